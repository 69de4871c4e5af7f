//! One call, with all its tries.

use std::time::Duration;

use conventions::answer::Answer;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use tokio::time::{Instant, sleep, timeout};
use url::Url;

use crate::body::{RequestBody, RequestStream};
use crate::error::CallError;
use crate::pool::{HttpClient, Pools};
use crate::settings::Settings;
use crate::target::{Target, shown};
use crate::{failure, redirect, response, retry};

/// How long a call takes at most, if the convention says nothing else.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(30);

/// Calls webhooks. It is made once, and shared.
pub struct Clients {
    pools: Pools,
    user_agent: HeaderValue,
}

/// Why no webhook can be called. Whoever wrote the program must correct it.
#[derive(Debug, thiserror::Error)]
pub enum ClientsError {
    /// The name of the program is none that a header takes.
    #[error("{0:?} is no User-Agent")]
    UserAgent(String),
    /// TLS cannot be spoken.
    #[error("TLS cannot be used: {0}")]
    Tls(#[from] rustls::Error),
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Clients")
            .field(self.pools.settings())
            .finish()
    }
}

/// How far a call has come, for when its time is over.
#[derive(Default)]
struct Progress {
    stage: Stage,
    /// Whether there is a connection for what is being sent.
    connection: Option<CaptureConnection>,
    /// Why the try before failed.
    before: Option<CallError>,
}

#[derive(Clone, Copy, Default)]
enum Stage {
    /// As many calls as may be are under way already.
    #[default]
    Queued,
    /// It is connected, sent, and waited for an answer.
    Sent,
    /// The answer is being read.
    Answered,
}

impl Clients {
    /// Makes what all calls share. The authorities that the system trusts are read now, once.
    ///
    /// # Errors
    ///
    /// If the settings cannot be used; whoever wrote the program must correct them.
    pub fn new(settings: Settings) -> Result<Self, ClientsError> {
        let user_agent = HeaderValue::from_str(&settings.user_agent)
            .map_err(|_| ClientsError::UserAgent(settings.user_agent.clone()))?;
        Ok(Self {
            pools: Pools::new(settings)?,
            user_agent,
        })
    }

    /// Asks a webhook. Whatever it does, the call ends when the budget does.
    ///
    /// # Errors
    ///
    /// Why there is no answer; [`CallError::kind`] says for whom that is.
    pub async fn call(
        &self,
        target: &Target,
        budget: Duration,
        body: &RequestBody,
    ) -> Result<Answer, CallError> {
        let mut progress = Progress::default();
        let call = Call {
            clients: self,
            target,
            budget,
            body,
        };
        let ended = timeout(budget, call.tries(&mut progress)).await;
        ended.unwrap_or_else(|_| Err(progress.timed_out(target, budget)))
    }
}

impl Progress {
    /// What was waited for.
    fn timed_out(&self, target: &Target, budget: Duration) -> CallError {
        let is_connected = self
            .connection
            .as_ref()
            .is_some_and(|connection| connection.connection_metadata().is_some());
        let what = match self.stage {
            Stage::Queued => "other calls to it did not end",
            Stage::Sent if !is_connected => "there was no connection",
            Stage::Sent => "there was no answer",
            Stage::Answered => "its answer had no end",
        };
        let mut cause = format!("{what} within {budget:?}");
        if let Some(before) = &self.before {
            cause.push_str("; the try before: ");
            cause.push_str(&before.to_string());
        }
        CallError::TimedOut {
            url: target.to_string(),
            cause,
        }
    }
}

/// What one call is about.
struct Call<'a> {
    clients: &'a Clients,
    target: &'a Target,
    budget: Duration,
    body: &'a RequestBody,
}

impl Call<'_> {
    async fn tries(&self, progress: &mut Progress) -> Result<Answer, CallError> {
        let url = self.target.to_string();
        let pool = self.clients.pools.of(self.target);
        let pool = pool.map_err(|error| CallError::untrusted(&url, &error.to_string()))?;
        let began = Instant::now();
        let settings = self.clients.pools.settings();
        let mut tries = 0;
        loop {
            tries += 1;
            progress.stage = Stage::Queued;
            // It is never closed.
            let under_way = pool.calls.acquire().await;
            let error = match self.once(&pool.client, progress).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            // Not while it is waited.
            drop(under_way);
            let left = self.budget.saturating_sub(began.elapsed());
            let Some(wait) = retry::wait(&error, tries, left, &*settings.jitter) else {
                return Err(error);
            };
            progress.before = Some(error);
            sleep(wait).await;
        }
    }

    /// One try, to wherever the webhook leads.
    async fn once(
        &self,
        client: &HttpClient,
        progress: &mut Progress,
    ) -> Result<Answer, CallError> {
        let most = self.clients.pools.settings().most_answer_bytes;
        let mut url = self.target.url().clone();
        let seconds = self.budget.as_secs().max(1);
        // So do the clients of the API server. Servers need not read it.
        url.set_query(Some(&format!("timeout={seconds}s")));
        let mut followed = 0;
        loop {
            let response = self.sent(client, &url, progress).await?;
            progress.stage = Stage::Answered;
            let status = response.status();
            if !redirect::is_redirect(status) {
                return response::answer(&url, self.target, response, most).await;
            }
            if followed == redirect::MOST {
                return Err(redirect::too_many(&url, status));
            }
            url = redirect::followed(&url, status, response.headers())?;
            followed += 1;
        }
    }

    async fn sent(
        &self,
        client: &HttpClient,
        url: &Url,
        progress: &mut Progress,
    ) -> Result<Response<Incoming>, CallError> {
        let request = self.request(url);
        let mut request =
            request.map_err(|error| CallError::request(&shown(url), &error.to_string()))?;
        progress.stage = Stage::Sent;
        progress.connection = Some(capture_connection(&mut request));
        let response = client.request(request).await;
        response.map_err(|error| failure::of_client(&shown(url), self.target, &error))
    }

    fn request(&self, url: &Url) -> Result<Request<RequestStream>, http::Error> {
        Request::builder()
            .method(Method::POST)
            .uri(url.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, self.clients.user_agent.clone())
            .body(self.body.stream())
    }
}
