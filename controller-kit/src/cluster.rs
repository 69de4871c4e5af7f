//! Access to the API server: one connection pool for the controller itself and one without any
//! identity, on which each request carries the bearer token of an owner's service account.

mod call;
mod error;
mod fence;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::client::{Body, ClientBuilder};
use serde_json::Value;
use tokio::time::Instant;
use tower::layer::util::Stack;
use tower::timeout::TimeoutLayer;
use tower_http::timeout::ResponseBodyTimeoutLayer;
use tracing::field::Empty;
use tracing::{Instrument as _, Span, debug_span};

pub use call::Call;
pub use error::RequestError;
use error::refusal;
pub(crate) use error::{MOST_REST, tells_of_etcd};
pub use fence::Fence;

use crate::api_latency::ApiLatency;
use crate::metrics::{Asked, CountRequests, Metrics, Sender};
use crate::telemetry::TRACED;
use crate::time_of_day::{Clock, ReadTime, TimeOfDay};

/// A request that takes longer than this is given up: a hung connection must not hold a worker for ever.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// No answer begins later. The API server gives up what is no watch after a minute and says so; what takes longer was lost on
/// the way, and a listing that waits for it would be blind for ever.
pub(crate) const ANSWER_BEGINS: Duration = Duration::from_secs(75);

/// Nor does any answer stand still for longer. The API server ends a watch in which nothing happens after 290 s.
const STALLED_BODY: Duration = Duration::from_secs(310);

/// What is read of an answer. The largest that is asked for is a list of the objects of one family, each 1.5 MiB at the most.
const LONGEST_ANSWER: usize = 32 << 20;

/// Who sends a request.
#[derive(Debug, Clone, Copy)]
pub enum Identity<'a> {
    /// The controller.
    Controller,
    /// The holder of a bearer token.
    Bearer(&'a str),
}

/// A successful answer.
#[derive(Debug)]
pub struct Answer {
    /// 200 or 201: only this tells a created object from a changed one.
    pub code: StatusCode,
    /// The object.
    pub body: Value,
}

/// The API server.
#[derive(Clone)]
pub struct Cluster {
    controller: kube::Client,
    tenant: kube::Client,
    metrics: Arc<Metrics>,
    api_latency: Arc<ApiLatency>,
    time: Arc<TimeOfDay>,
    fence: Arc<Fence>,
}

impl Cluster {
    /// Connects with the identity in `config` for the controller's own requests, and without identity for owners'.
    ///
    /// # Errors
    /// When the TLS set-up in `config` cannot be used; the operator must fix the kubeconfig.
    pub fn connect(mut config: kube::Config, metrics: Arc<Metrics>) -> Result<Self, kube::Error> {
        // The scheduler owns retries: a retry inside the client would hide load from it, and would
        // repeat a create whose reply was lost.
        config.default_retry = false;
        let mut anonymous = config.clone();
        // A client certificate would win over the bearer token, and every owner would be an administrator.
        anonymous.auth_info = kube::config::AuthInfo::default();
        let time = Arc::new(TimeOfDay::of_machine());
        let reading = ReadTime(time.clone());
        let counted = |config: kube::Config, sender: Sender| {
            let counting = CountRequests::new(&metrics, sender);
            let client = ClientBuilder::try_from(config)?
                .with_layer(&reading)
                .with_layer(&counting)
                .with_layer(&deadlines());
            Ok::<_, kube::Error>(client.build())
        };
        Ok(Self {
            controller: counted(config, Sender::Controller)?,
            tenant: counted(anonymous, Sender::Owner)?,
            metrics,
            api_latency: Arc::default(),
            time,
            fence: Arc::default(),
        })
    }

    /// Uses clients as given (tests script them).
    pub fn new(controller: kube::Client, tenant: kube::Client, metrics: Arc<Metrics>) -> Self {
        Self {
            controller,
            tenant,
            metrics,
            api_latency: Arc::default(),
            time: Arc::new(TimeOfDay::of_machine()),
            fence: Arc::default(),
        }
    }

    /// The client with the controller's identity.
    pub fn controller(&self) -> &kube::Client {
        &self.controller
    }

    /// Until when anything may be written.
    pub(crate) fn fence(&self) -> &Arc<Fence> {
        &self.fence
    }

    /// How fast the API server answers.
    pub(crate) fn api_latency(&self) -> &Arc<ApiLatency> {
        &self.api_latency
    }

    /// The time of day as the API server has it, as far as it has answered.
    pub fn clock(&self) -> Clock {
        let time = self.time.clone();
        Arc::new(move || time.now())
    }

    /// The metrics that requests are counted in.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Sends one request, once.
    ///
    /// # Errors
    /// [`RequestError::Refused`] with the server's `Status`, or [`RequestError::Transport`].
    pub async fn send(
        &self,
        identity: Identity<'_>,
        call: Call<'_>,
    ) -> Result<Answer, RequestError> {
        if call.method != Method::GET {
            self.fence.check()?;
        }
        let request = build(identity, &call)?;
        let span = span(&request);
        let answered = self
            .answer(identity, &call, request)
            .instrument(span.clone())
            .await;
        let code = match &answered {
            Ok(answer) => Some(answer.code),
            Err(error) => error.code(),
        };
        span.record("code", code.map(|code| i64::from(code.as_u16())));
        answered
    }

    async fn answer(
        &self,
        identity: Identity<'_>,
        call: &Call<'_>,
        request: Request<Body>,
    ) -> Result<Answer, RequestError> {
        let client = match identity {
            Identity::Controller => &self.controller,
            Identity::Bearer(_) => &self.tenant,
        };
        let sent = Instant::now();
        match tokio::time::timeout(REQUEST_TIMEOUT, receive(client, request)).await {
            Ok(answer) => {
                if answer.is_ok() && tells_of_the_server(identity, call) {
                    self.api_latency.record(sent.elapsed(), Instant::now());
                }
                answer
            }
            Err(_) => Err(RequestError::Transport(format!(
                "no answer within {} s",
                REQUEST_TIMEOUT.as_secs()
            ))),
        }
    }
}

/// Whether the time that the answer takes is the server's own: of writes of our status, which are alike. What is stamped may pass
/// a tenant's admission webhook, whose slowness says nothing of the server.
fn tells_of_the_server(identity: Identity<'_>, call: &Call<'_>) -> bool {
    matches!(identity, Identity::Controller) && call.method == Method::PATCH
}

/// What traces show of a request: what it is about, and nothing that is in it.
fn span(request: &Request<Body>) -> Span {
    let span = debug_span!(
        target: TRACED, "request",
        otel.kind = "client", verb = Empty, resource = Empty, code = Empty
    );
    if !span.is_disabled() {
        let asked = Asked::of(request);
        span.record("verb", asked.verb);
        span.record("resource", asked.resource);
    }
    span
}

/// Gives up answers that were lost on the way.
fn deadlines() -> Stack<ResponseBodyTimeoutLayer, TimeoutLayer> {
    Stack::new(
        ResponseBodyTimeoutLayer::new(STALLED_BODY),
        TimeoutLayer::new(ANSWER_BEGINS),
    )
}

fn build(identity: Identity<'_>, call: &Call<'_>) -> Result<Request<Body>, RequestError> {
    let mut builder = Request::builder()
        .method(&call.method)
        .uri(&call.uri)
        .header(header::ACCEPT, "application/json");
    if let Identity::Bearer(token) = identity {
        let mut value = http::HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
            RequestError::Transport("the service account token is not a valid header value".into())
        })?;
        value.set_sensitive(true);
        builder = builder.header(header::AUTHORIZATION, value);
    }
    let body = match call.body {
        Some(value) => {
            builder = builder.header(header::CONTENT_TYPE, call.content_type);
            let text = serde_json::to_string(value)
                .map_err(|error| RequestError::Transport(error.to_string()))?;
            call.escaped(text).into_bytes()
        }
        None => Vec::new(),
    };
    builder
        .body(Body::from(body))
        .map_err(|error| RequestError::Transport(error.to_string()))
}

async fn receive(client: &kube::Client, request: Request<Body>) -> Result<Answer, RequestError> {
    let (code, bytes) = fetch(client, request, LONGEST_ANSWER).await?;
    let body = serde_json::from_slice(&bytes)
        .map_err(|error| RequestError::Transport(error.to_string()))?;
    Ok(Answer { code, body })
}

/// Sends a request, once, and reads a successful answer of at most so many bytes.
pub(crate) async fn fetch(
    client: &kube::Client,
    request: Request<Body>,
    longest: usize,
) -> Result<(StatusCode, Bytes), RequestError> {
    let what = format!("{} {}", request.method(), request.uri());
    let response = client
        .send(request)
        .await
        .map_err(|error| RequestError::Transport(chain(&error)))?;
    let code = response.status();
    let retry_after = response.headers().get(header::RETRY_AFTER).cloned();
    let bytes = match read(response.into_body(), longest).await? {
        Some(bytes) => bytes,
        // What a refusal says at such a length helps nobody: it is told by its code.
        None if !code.is_success() => Bytes::new(),
        None => {
            return Err(RequestError::TooLong {
                request: what,
                longest,
            });
        }
    };
    if code.is_success() {
        return Ok((code, bytes));
    }
    Err(refusal(code, retry_after.as_ref(), &bytes))
}

/// All of a body; `None` if it is too long, as it would be held in memory.
async fn read(body: Body, longest: usize) -> Result<Option<Bytes>, RequestError> {
    match Limited::new(body, longest).collect().await {
        Ok(collected) => Ok(Some(collected.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(None),
        Err(error) => Err(RequestError::Transport(error.to_string())),
    }
}

/// The message of an error and of everything that caused it.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// One path segment or query value, percent-encoded.
pub(crate) fn encode(segment: &str) -> String {
    let mut encoded = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                encoded.push(char::from(byte));
            }
            other => {
                encoded.push('%');
                encoded.push(
                    char::from_digit(u32::from(other >> 4), 16)
                        .map_or('0', |digit| digit.to_ascii_uppercase()),
                );
                encoded.push(
                    char::from_digit(u32::from(other & 15), 16)
                        .map_or('0', |digit| digit.to_ascii_uppercase()),
                );
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_cannot_leave_its_place_in_the_path() {
        assert_eq!(encode("../a/b?c"), "..%2Fa%2Fb%3Fc");
        assert_eq!(encode("app-1.x"), "app-1.x");
    }

    /// A service in front of an API server that sends what it is asked for after these times.
    async fn asked_within(begins: Duration, ends: Duration) -> Result<(), tower::BoxError> {
        use tower::{Layer as _, ServiceExt as _};
        let server = tower::service_fn(move |_: Request<Body>| async move {
            tokio::time::sleep(begins).await;
            let body = futures::stream::once(async move {
                tokio::time::sleep(ends).await;
                Ok::<_, std::io::Error>(hyper::body::Frame::data(Bytes::from_static(b"{}")))
            });
            let body = http_body_util::StreamBody::new(Box::pin(body));
            Ok::<_, tower::BoxError>(http::Response::new(body))
        });
        let bounded = deadlines().layer(server);
        let response = bounded.oneshot(Request::new(Body::empty())).await?;
        response.into_body().collect().await.map(|_| ())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_was_lost_on_the_way_is_not_awaited_for_ever() {
        let (minute, day) = (Duration::from_mins(1), Duration::from_hours(24));
        assert!(asked_within(minute, Duration::from_secs(290)).await.is_ok());
        assert!(asked_within(day, Duration::ZERO).await.is_err());
        assert!(asked_within(Duration::ZERO, day).await.is_err());
    }

    #[tokio::test]
    async fn no_more_than_the_limit_is_read_of_an_answer_and_that_is_no_outage() {
        let answering = |code: u16, length: usize| {
            let service = tower::service_fn(move |_: Request<Body>| async move {
                let mut answer = http::Response::new(Body::from(vec![b' '; length]));
                *answer.status_mut() = StatusCode::from_u16(code).unwrap();
                Ok::<_, std::convert::Infallible>(answer)
            });
            kube::Client::new(service, "default")
        };
        let ask = async |code, length| {
            let request = Request::get("/api/v1/namespaces/n/pods?labelSelector=a");
            let request = request.body(Body::empty()).unwrap();
            fetch(&answering(code, length), request, 1 << 20).await
        };
        let (_, bytes) = ask(200, 1 << 20).await.unwrap();
        assert_eq!(bytes.len(), 1 << 20);
        let error = ask(200, (1 << 20) + 1).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the answer to [GET /api/v1/namespaces/n/pods?labelSelector=a] is longer than 1 MiB, and no more is read of one"
        );
        assert!(
            !error.passes_by_itself(),
            "it has the same length the next time"
        );
        // A refusal is what it is, however long.
        let refused = ask(503, (1 << 20) + 1).await.unwrap_err();
        assert!(refused.is(StatusCode::SERVICE_UNAVAILABLE) && refused.passes_by_itself());
    }

    #[test]
    fn the_token_header_is_marked_sensitive() {
        let request = build(Identity::Bearer("secret"), &Call::get("/x")).unwrap();
        assert!(request.headers()[header::AUTHORIZATION].is_sensitive());
    }

    #[test]
    fn only_writes_of_our_status_tell_how_fast_the_server_is() {
        let operations = Value::Null;
        let patch = Call::json_patch("/x/status", "me", &operations);
        assert!(tells_of_the_server(Identity::Controller, &patch));
        let discovery = Call::get("/x");
        assert!(!tells_of_the_server(Identity::Controller, &discovery));
        let bearer = Identity::Bearer("token");
        assert!(
            !tells_of_the_server(bearer, &patch),
            "may pass a slow webhook"
        );
    }
}
