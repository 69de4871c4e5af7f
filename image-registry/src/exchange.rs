//! One request and its answer: within the limits of the registry, let in, and led on to where the
//! content is.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue, LOCATION};
use reqwest::{Method, Response, StatusCode, Url};

use crate::answer::Answer;
use crate::authorize::{
    NoToken, TokenKey, TokenRequest, Tokens, basic, is_denial, is_token, retry_after, token_in,
};
use crate::challenge::Challenge;
use crate::clients::{Clients, is_loopback};
use crate::endpoints::{Endpoint, host_of};
use crate::error::Cause;
use crate::fault::{has_bad_certificate, text_of};
use crate::limits::{Limits, Place};
use crate::observe::{Observe, Outcome};
use crate::settings::{Settings, SettingsError};
use crate::tries::Trouble;
use crate::who::{Fingerprint, Who};

/// How often an answer may lead on.
const REDIRECTIONS: usize = 5;
/// The most bytes of an answer with a token.
const TOKEN_BYTES: u64 = 256 << 10;
/// How long a name and password are sent along without being asked for them.
const BASIC_LIFE: Duration = Duration::from_mins(10);

/// Something in a repository.
pub(crate) struct Ask<'a> {
    pub(crate) repository: &'a str,
    /// As `manifests/latest`.
    pub(crate) rest: &'a str,
    pub(crate) method: Method,
    pub(crate) accept: &'static str,
    /// Whether it may well not be there.
    pub(crate) optional: bool,
    /// Whether what a tag means is asked.
    pub(crate) by_tag: bool,
}

/// Asks.
pub(crate) struct Exchange {
    pub(crate) clients: Arc<Clients>,
    pub(crate) observe: Arc<dyn Observe>,
    limits: Limits,
    tokens: Tokens,
}

impl Ask<'_> {
    /// What it is, for people.
    pub(crate) fn what(&self) -> String {
        // How a registry counts its parts is nobody's business.
        let rest = self.rest.split('?').next().unwrap_or_default();
        format!("{}/{rest}", self.repository)
    }
}

impl Exchange {
    /// # Errors
    ///
    /// If there is a file of authorities that is broken.
    pub(crate) fn new(
        settings: &Arc<Settings>,
        observe: Arc<dyn Observe>,
    ) -> Result<Self, SettingsError> {
        Ok(Self {
            clients: Arc::new(Clients::new(settings)?),
            observe,
            limits: Limits::new(settings),
            tokens: Tokens::new(),
        })
    }

    /// Asks once; twice if there has to be a token first.
    ///
    /// # Errors
    ///
    /// If there is no answer, or one that is no content.
    pub(crate) async fn ask(
        &self,
        endpoint: &Endpoint,
        ask: &Ask<'_>,
        who: &Who,
    ) -> Result<Answer, Trouble> {
        let key = TokenKey {
            host: endpoint.host.clone(),
            repository: ask.repository.to_owned(),
            who: who.fingerprint(),
        };
        let asker = key.who;
        let known = self.tokens.get(&key);
        let mut answer = self.send(endpoint, ask, asker, known.as_ref()).await?;
        if let Some(stale) = known.filter(|_| is_denial(answer.response.status())) {
            self.tokens.forget(&key, &stale);
            // A new token may open what this one does not any more.
            if answer.response.status() == StatusCode::FORBIDDEN && is_token(&stale) {
                drop(answer);
                answer = self.send(endpoint, ask, asker, None).await?;
            }
        }
        if answer.response.status() != StatusCode::UNAUTHORIZED {
            return self.judge(answer).await;
        }
        // Somebody whom the registry led to is not to learn the password by asking for it.
        let challenge = Challenge::from_headers(answer.response.headers());
        let Some(challenge) = challenge.filter(|_| answer.own) else {
            return self.judge(answer).await;
        };
        let header = match &challenge {
            Challenge::Basic => match basic(who) {
                Some(header) => Some(header),
                None => return self.judge(answer).await,
            },
            Challenge::Bearer { .. } => None,
        };
        // The place is given back before another one is asked for: who held one while it waited
        // for a second would wait for others who do the same.
        drop(answer);
        let (header, life) = match header {
            Some(header) => (header, BASIC_LIFE),
            None => self.token(endpoint, ask, &challenge, who).await?,
        };
        let answer = self.send(endpoint, ask, asker, Some(&header)).await?;
        if !is_denial(answer.response.status()) {
            self.tokens.keep(key, header, life);
        }
        self.judge(answer).await
    }

    async fn enter(&self, host: &str, who: Fingerprint, what: &str) -> Result<Place, Trouble> {
        self.limits.enter(host, who).await.map_err(|paused| {
            let cause = Cause::Throttled {
                host: host.to_owned(),
                what: what.to_owned(),
                status: paused.status,
                retry_after: Some(paused.left),
            };
            Trouble::Passing(cause, Some(paused.left))
        })
    }

    async fn token(
        &self,
        endpoint: &Endpoint,
        ask: &Ask<'_>,
        challenge: &Challenge,
        who: &Who,
    ) -> Result<(HeaderValue, Duration), Trouble> {
        let lie = |fault: String| {
            Trouble::Final(Cause::Lie {
                host: endpoint.host.clone(),
                what: ask.what(),
                fault,
            })
        };
        let request = match TokenRequest::new(endpoint, ask.repository, challenge, who) {
            Ok(request) => request,
            Err(NoToken::Unsafe(fault)) => return Err(lie(fault)),
            Err(NoToken::Denied) => return Err(Trouble::Final(denied(&endpoint.host, ask))),
        };
        let host = host_of(&request.url);
        let what = format!("a token for {}", ask.repository);
        let asker = who.fingerprint();
        let place = self.enter(&host, asker, &what).await?;
        let client = endpoint.client(&request.url, &self.clients);
        let client = client.map_err(Trouble::Final)?;
        let sent = request.build(&client).send().await;
        let response = sent.map_err(|error| self.unreachable(&host, &what, error))?;
        let status = response.status();
        if is_denial(status) || status == StatusCode::BAD_REQUEST {
            self.observe.request(&host, Outcome::Denied);
            return Err(Trouble::Final(denied(&host, ask)));
        }
        if is_misled(status) {
            self.observe.request(&host, Outcome::Refused);
            let status = status.as_u16();
            return Err(Trouble::Final(Cause::Trouble { host, what, status }));
        }
        let answer = Answer::new(response, host, what, false, asker, place);
        let (_, body) = self.judge(answer).await?.bytes(TOKEN_BYTES, "").await?;
        token_in(&body).ok_or_else(|| lie("there is no token in the answer for one".to_owned()))
    }

    /// Sends a request and follows where it is led.
    async fn send(
        &self,
        endpoint: &Endpoint,
        ask: &Ask<'_>,
        asker: Fingerprint,
        authorization: Option<&HeaderValue>,
    ) -> Result<Answer, Trouble> {
        let what = ask.what();
        let place = self.enter(&endpoint.host, asker, &what).await?;
        let no_address = || Cause::Image {
            what: what.clone(),
            fault: "is no address".to_owned(),
        };
        let mut url = endpoint.url(ask.repository, ask.rest);
        for _ in 0..=REDIRECTIONS {
            let to = url.take().ok_or_else(|| Trouble::Final(no_address()))?;
            let own = endpoint.is_origin_of(&to);
            let client = endpoint.client(&to, &self.clients);
            let client = client.map_err(Trouble::Final)?;
            let host = if own {
                endpoint.host.clone()
            } else {
                host_of(&to)
            };
            let mut request = client
                .request(ask.method.clone(), to.clone())
                .header(ACCEPT, ask.accept);
            // Whoever a registry leads to is not to know what it was told.
            if let Some(header) = authorization.filter(|_| own) {
                request = request.header(AUTHORIZATION, header.clone());
            }
            let sent = request.send().await;
            if own {
                endpoint.heard(sent.as_ref().ok().map(Response::status));
            }
            let response = sent.map_err(|error| self.unreachable(&host, &what, error))?;
            if !is_redirection(response.status()) {
                return Ok(Answer::new(response, host, what, own, asker, place));
            }
            self.observe.request(&host, Outcome::Answered);
            let location = response.headers().get(LOCATION);
            let location = location.and_then(|it| it.to_str().ok());
            let next = location.and_then(|location| led_to(endpoint.is_loopback(), &to, location));
            url = Some(next.ok_or_else(|| Trouble::Final(misled(&endpoint.host, &what)))?);
        }
        self.observe.request(&endpoint.host, Outcome::Failed);
        Err(Trouble::Final(Cause::Lie {
            host: endpoint.host.clone(),
            what,
            fault: "it leads on without end".to_owned(),
        }))
    }

    /// What an answer means: content, or why there is none.
    async fn judge(&self, answer: Answer) -> Result<Answer, Trouble> {
        let status = answer.response.status();
        let outcome = match status {
            StatusCode::OK => Outcome::Answered,
            StatusCode::TOO_MANY_REQUESTS => Outcome::Throttled,
            StatusCode::NOT_FOUND => Outcome::Unknown,
            status if is_denial(status) => Outcome::Denied,
            _ => Outcome::Refused,
        };
        self.observe.request(&answer.host, outcome);
        if outcome == Outcome::Answered {
            return Ok(answer);
        }
        let asked = retry_after(answer.response.headers());
        let (host, what) = (answer.host.clone(), answer.what.clone());
        if outcome == Outcome::Throttled || (status.is_server_error() && asked.is_some()) {
            let (status, retry_after) = (status.as_u16(), asked);
            let pause = asked.unwrap_or_default();
            if outcome == Outcome::Throttled {
                self.limits.pause_asker(&host, answer.asker, status, pause);
            } else {
                self.limits.pause(&host, status, pause);
            }
            let cause = Cause::Throttled {
                host,
                what,
                status,
                retry_after,
            };
            return Err(Trouble::Passing(cause, asked));
        }
        if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT {
            let status = status.as_u16();
            return Err(Trouble::Passing(
                Cause::Trouble { host, what, status },
                None,
            ));
        }
        if status.is_success() {
            let fault = format!("its answer has status {}", status.as_u16());
            return Err(Trouble::Final(Cause::Lie { host, what, fault }));
        }
        let code = answer.code().await;
        Err(Trouble::Final(match outcome {
            Outcome::Denied => Cause::Denied {
                host,
                what,
                tried: format!("{}{code}", status.as_u16()),
            },
            Outcome::Unknown => Cause::Unknown { host, what, code },
            _ => Cause::Refused {
                host,
                what,
                status: status.as_u16(),
                code,
            },
        }))
    }

    fn unreachable(&self, host: &str, what: &str, error: reqwest::Error) -> Trouble {
        self.observe.request(host, Outcome::Failed);
        let hopeless = has_bad_certificate(&error);
        let cause = Cause::Unreachable {
            host: host.to_owned(),
            what: what.to_owned(),
            fault: text_of(error),
        };
        if hopeless {
            Trouble::Final(cause)
        } else {
            Trouble::Passing(cause, None)
        }
    }
}

fn denied(host: &str, ask: &Ask<'_>) -> Cause {
    Cause::Denied {
        host: host.to_owned(),
        what: ask.what(),
        tried: "no token".to_owned(),
    }
}

/// Whether the registry names a place for tokens that knows of none. Nobody who asks for an image
/// can mend that.
fn is_misled(status: StatusCode) -> bool {
    let passing = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT];
    status.is_redirection() || (status.is_client_error() && !passing.contains(&status))
}

fn is_redirection(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Where an answer leads: to a host of the network over TLS, or from this host to itself.
fn led_to(from_loopback: bool, from: &Url, location: &str) -> Option<Url> {
    let to = from.join(location).ok()?;
    let own = is_loopback(&to);
    let bare = to.username().is_empty() && to.password().is_none() && to.host_str().is_some();
    let safe = match to.scheme() {
        "https" => !own || from_loopback,
        "http" => own && from_loopback,
        _ => false,
    };
    (bare && safe).then_some(to)
}

fn misled(host: &str, what: &str) -> Cause {
    Cause::Lie {
        host: host.to_owned(),
        what: what.to_owned(),
        fault: "it leads to a place that is not safe".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_an_answer_says_it_leads_to_no_place_that_is_not_safe(
            scheme in "(http|https|ftp|file|//|)",
            user in "(|u@|u:p@)",
            host in "(localhost|127\\.0\\.0\\.1|\\[::1\\]|registry\\.example|169\\.254\\.169\\.254|)",
            rest in "\\PC{0,40}",
            loopback in any::<bool>(),
        ) {
            let from = Url::parse("https://registry.example/v2/app/blobs/x").unwrap();
            for location in [format!("{scheme}://{user}{host}{rest}"), format!("{scheme}{rest}"), rest] {
                let Some(to) = led_to(loopback, &from, &location) else {
                    continue;
                };
                prop_assert!(to.scheme() == "https" || is_loopback(&to), "{}", to);
                prop_assert!(loopback || !is_loopback(&to), "{}", to);
                prop_assert!(to.username().is_empty() && to.password().is_none());
            }
        }
    }
}
