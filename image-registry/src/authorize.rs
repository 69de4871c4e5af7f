//! Being let in: name and password, or a token that somebody gives for them.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conventions::credentials::Credential;
use quick_cache::sync::Cache;
use reqwest::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use tokio::time::Instant;

use crate::challenge::Challenge;
use crate::clients::is_loopback;
use crate::endpoints::Endpoint;
use crate::fault::clip;
use crate::who::{Fingerprint, Who};

/// Tokens that are remembered.
const TOKENS: usize = 512;
/// The most bytes of one.
const TOKEN_BYTES: usize = 16 << 10;
/// How long a token is good that does not say it.
const USUAL_LIFE: Duration = Duration::from_mins(1);
/// The longest that a token is kept, whatever it says.
const LONGEST_LIFE: Duration = Duration::from_hours(1);
/// The longest that anybody is left alone at his own wish.
const LONGEST_WAIT: Duration = Duration::from_hours(24);
/// As whom we ask where tokens are given for tokens.
const CLIENT: &str = "carto";

/// What a token is for.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct TokenKey {
    pub(crate) host: String,
    pub(crate) repository: String,
    pub(crate) who: Fingerprint,
}

/// What is sent along, and until when.
#[derive(Clone)]
struct Token {
    header: HeaderValue,
    until: Instant,
}

/// Tokens until they expire.
pub(crate) struct Tokens {
    cache: Cache<TokenKey, Token>,
}

impl Tokens {
    pub(crate) fn new() -> Self {
        Self {
            cache: Cache::new(TOKENS),
        }
    }

    pub(crate) fn get(&self, key: &TokenKey) -> Option<HeaderValue> {
        let token = self.cache.get(key)?;
        (token.until > Instant::now()).then_some(token.header)
    }

    pub(crate) fn keep(&self, key: TokenKey, header: HeaderValue, life: Duration) {
        let until = Instant::now() + life;
        self.cache.insert(key, Token { header, until });
    }

    /// Forgets what was not good any more.
    pub(crate) fn forget(&self, key: &TokenKey, header: &HeaderValue) {
        self.cache.remove_if(key, |token| token.header == *header);
    }
}

/// How a token is asked for.
pub(crate) struct TokenRequest {
    pub(crate) url: Url,
    how: How,
}

enum How {
    Ask(Option<HeaderValue>),
    Refresh(Vec<(&'static str, String)>),
}

/// Why there is none.
#[derive(Debug)]
pub(crate) enum NoToken {
    /// There is nothing that could be sent along.
    Denied,
    /// The registry asks for something that is not done.
    Unsafe(String),
}

/// Name and password, as a header.
pub(crate) fn basic(who: &Who) -> Option<HeaderValue> {
    let Who::Known(Credential {
        username, password, ..
    }) = who
    else {
        return None;
    };
    sensitive(&format!(
        "Basic {}",
        STANDARD.encode(format!("{username}:{password}"))
    ))
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

impl TokenRequest {
    /// What has to be asked for the token that a registry wants.
    ///
    /// # Errors
    ///
    /// If the place to ask is one to which no password is sent.
    pub(crate) fn new(
        endpoint: &Endpoint,
        repository: &str,
        challenge: &Challenge,
        who: &Who,
    ) -> Result<Self, NoToken> {
        let Challenge::Bearer {
            realm,
            service,
            scope,
        } = challenge
        else {
            return Err(NoToken::Denied);
        };
        let mut url: Url = realm.parse().map_err(|_| {
            NoToken::Unsafe("it asks for a token from something that is no address".to_owned())
        })?;
        is_safe(endpoint, &url)?;
        let scope = scope_of(repository, scope.as_deref());
        if let Who::Known(credential) = who
            && let Some(token) = credential
                .identity_token
                .as_deref()
                .filter(|it| !it.is_empty())
        {
            let mut form = vec![
                ("grant_type", "refresh_token".to_owned()),
                ("client_id", CLIENT.to_owned()),
                ("scope", scope),
                ("refresh_token", token.to_owned()),
            ];
            form.extend(service.clone().map(|service| ("service", service)));
            let how = How::Refresh(form);
            return Ok(Self { url, how });
        }
        if let Some(service) = service {
            url.query_pairs_mut().append_pair("service", service);
        }
        url.query_pairs_mut().append_pair("scope", &scope);
        let how = How::Ask(basic(who));
        Ok(Self { url, how })
    }

    /// The request.
    pub(crate) fn build(&self, client: &Client) -> reqwest::RequestBuilder {
        match &self.how {
            How::Ask(None) => client.get(self.url.clone()),
            How::Ask(Some(header)) => client
                .get(self.url.clone())
                .header(reqwest::header::AUTHORIZATION, header.clone()),
            How::Refresh(form) => client.post(self.url.clone()).form(form),
        }
    }
}

/// A password is sent over TLS only. Somebody of the network does not have us ask this host.
fn is_safe(endpoint: &Endpoint, realm: &Url) -> Result<(), NoToken> {
    let own = is_loopback(realm);
    let safe = match realm.scheme() {
        "https" => !own || endpoint.is_loopback(),
        "http" => own && endpoint.is_loopback(),
        _ => false,
    };
    let userinfo = !realm.username().is_empty() || realm.password().is_some();
    if !safe || userinfo || realm.host_str().is_none() {
        let place = realm.host_str().unwrap_or_default();
        let fault = format!(
            "it asks for a token from {:?}, which is not safe",
            clip(place)
        );
        return Err(NoToken::Unsafe(fault));
    }
    Ok(())
}

/// What the token is for: reading this repository. Behind another address it may have a longer
/// name.
fn scope_of(repository: &str, asked: Option<&str>) -> String {
    let fits = |scope: &&str| {
        let name = scope.strip_prefix("repository:");
        let name = name.and_then(|rest| rest.strip_suffix(":pull"));
        let before = name.and_then(|name| name.strip_suffix(repository));
        before.is_some_and(|before| {
            !before.contains([' ', ':']) && (before.is_empty() || before.ends_with('/'))
        })
    };
    match asked.filter(fits) {
        Some(asked) => asked.to_owned(),
        None => format!("repository:{repository}:pull"),
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
    #[serde(default)]
    expires_in: Option<f64>,
}

/// The header that an answer gives, and for how long. Nothing if it is no answer.
pub(crate) fn token_in(body: &[u8]) -> Option<(HeaderValue, Duration)> {
    let answer: TokenAnswer = serde_json::from_slice(body).ok()?;
    let given = [answer.token, answer.access_token];
    let token = given
        .into_iter()
        .flatten()
        .find(|token| !token.is_empty())?;
    if token.len() > TOKEN_BYTES {
        return None;
    }
    let life = answer
        .expires_in
        .and_then(|it| Duration::try_from_secs_f64(it).ok());
    // So that it is still good when it arrives.
    let life = life.unwrap_or(USUAL_LIFE).min(LONGEST_LIFE).mul_f64(0.9);
    Some((sensitive(&format!("Bearer {token}"))?, life))
}

/// How long an answer asks to wait: so many seconds, or until a time, by the clock of who answers.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let asked: &str = text(RETRY_AFTER)?;
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds).min(LONGEST_WAIT));
    }
    let time = |text| {
        jiff::fmt::rfc2822::parse(text)
            .ok()
            .map(|it| it.timestamp())
    };
    let wait = time(asked)?.duration_since(time(text(DATE)?)?);
    let wait = Duration::try_from(wait).unwrap_or_default();
    Some(wait.min(LONGEST_WAIT))
}

/// Whether what is sent along is a token, which somebody may give another one for.
pub(crate) fn is_token(header: &HeaderValue) -> bool {
    header.as_bytes().starts_with(b"Bearer ")
}

/// Whether an answer says that somebody else may be let in.
pub(crate) fn is_denial(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_is_for_reading_the_repository_and_nothing_else() {
        for (asked, expected) in [
            ("repository:team/app:pull", "repository:team/app:pull"),
            (
                "repository:proxy/team/app:pull",
                "repository:proxy/team/app:pull",
            ),
            ("repository:team/app:pull,push", "repository:team/app:pull"),
            ("repository:other/app:pull", "repository:team/app:pull"),
            ("repository:xteam/app:pull", "repository:team/app:pull"),
            (
                "repository:a:pull repository:team/app:pull",
                "repository:team/app:pull",
            ),
            ("registry:catalog:*", "repository:team/app:pull"),
        ] {
            assert_eq!(scope_of("team/app", Some(asked)), expected, "{asked}");
        }
    }

    #[test]
    fn a_wait_is_read_in_seconds_or_as_a_time() {
        let of = |asked: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, asked.parse().unwrap());
            headers.insert(DATE, "Wed, 21 Oct 2026 07:28:00 GMT".parse().unwrap());
            retry_after(&headers).map(|wait| wait.as_secs())
        };
        assert_eq!(of("120"), Some(120));
        assert_eq!(of("Wed, 21 Oct 2026 07:29:30 GMT"), Some(90));
        assert_eq!(of("Wed, 21 Oct 2026 07:20:00 GMT"), Some(0));
        assert_eq!(of("18446744073709551615"), Some(24 * 3600));
        assert_eq!(of("Thu, 31 Dec 9998 00:00:00 GMT"), Some(24 * 3600));
        for none in ["soon", "-5", "", "1.5"] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn tokens_live_as_long_as_they_say_and_no_longer_than_an_hour() {
        let life = |body: &str| token_in(body.as_bytes()).map(|(_, life)| life.as_secs());
        assert_eq!(life(r#"{"token": "t"}"#), Some(54));
        assert_eq!(
            life(r#"{"access_token": "t", "expires_in": 300}"#),
            Some(270)
        );
        for odd in ["1e300", "86400", "99999999999999999999"] {
            let body = format!(r#"{{"token": "t", "expires_in": {odd}}}"#);
            assert!(life(&body).is_some_and(|life| life <= 3600), "{odd}");
        }
        assert_eq!(life(r#"{"token": "t", "expires_in": -1}"#), Some(54));
        let endless = format!(r#"{{"token": "{}"}}"#, "t".repeat(TOKEN_BYTES + 1));
        for none in [
            endless.as_str(),
            "",
            "{}",
            "[]",
            r#"{"token": ""}"#,
            r#"{"token": 5}"#,
            r#"{"token": "a\nb"}"#,
        ] {
            assert_eq!(life(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_asked_a_token_is_for_reading_this_repository(asked in "[a-z/:, ]{0,60}") {
            for asked in [asked.clone(), format!("repository:{asked}team/app:pull")] {
                let scope = scope_of("team/app", Some(&asked));
                let name = scope.strip_prefix("repository:").and_then(|it| it.strip_suffix(":pull"));
                let name = name.unwrap_or_default();
                prop_assert!(name == "team/app" || name.ends_with("/team/app"), "{scope}");
                prop_assert!(!name.contains([':', ' ']), "{scope}");
            }
        }

        #[test]
        fn no_answer_makes_it_panic_or_lasts_for_ever(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            token in "\\PC{0,40}",
            life in any::<f64>(),
            wait in "[ -~]{0,40}",
            seconds in any::<u64>(),
        ) {
            let _ = token_in(&bytes);
            let body = serde_json::json!({"token": token, "expires_in": life}).to_string();
            if let Some((header, life)) = token_in(body.as_bytes()) {
                prop_assert!(header.is_sensitive() && life <= LONGEST_LIFE);
            }
            for wait in [wait, seconds.to_string()] {
                let mut headers = HeaderMap::new();
                headers.insert(RETRY_AFTER, wait.parse().unwrap());
                headers.insert(DATE, "Wed, 21 Oct 2026 07:28:00 GMT".parse().unwrap());
                prop_assert!(retry_after(&headers).unwrap_or_default() <= LONGEST_WAIT);
            }
        }
    }
}
