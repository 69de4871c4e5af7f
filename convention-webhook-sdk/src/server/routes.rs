//! Which request goes where, and what it may take.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http_body_util::BodyExt as _;
use tracing::{error, info, warn};

use super::body::{Held, Parts};
use super::limits::Limits;
use super::metrics::Metrics;
use super::record::Recorder;
use super::room::{Full, Room, Share};
use crate::answer::{self, Answer, Outcome};
use crate::convention::{AnyConvention, Convention};

pub(super) const HEALTH: &str = "/healthz";
pub(super) const METRICS: &str = "/metrics";

/// Reading more than this is done where it holds up nobody else.
const LONG: usize = 256 * 1024;
/// What a value may take in memory, its key and its share of what it stands in included.
const VALUE_BYTES: usize = 220;
/// As many as a pod and its images have; room is taken for those beyond.
const FEW_VALUES: usize = 2048;
/// Names of calls are longer only if somebody makes them up.
const LONGEST_NAME: usize = 512;

/// Routes for a convention in a server of one's own: `POST /`, to be nested where it is to be. The
/// server has to care for TLS, connections and its end; the default [`Limits`] of bodies and time
/// hold, and that of connections as one of requests at once: who comes when there are as many waits,
/// and is answered with 503 when that takes too long.
///
/// ```
/// use convention_webhook_sdk::{Applied, ConventionError, Images, Template, router};
///
/// async fn label(template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
///     template.set_label("a", "b");
///     Ok(Applied::from("label"))
/// }
///
/// let routes = axum::Router::new().nest("/label", router(label));
/// # let _: axum::Router = routes;
/// ```
pub fn router(convention: impl Convention) -> Router {
    let shared = Desk::shared(Limits::default(), Arc::new(Metrics::new()), None);
    let desk = Arc::new(Desk::new("/".to_owned(), Arc::new(convention), shared));
    let answer = move |request| async move { desk.answer(request).await };
    Router::new().route("/", axum::routing::any(answer))
}

/// What the desks of a server share.
#[derive(Clone)]
pub(super) struct Shared {
    limits: Limits,
    metrics: Arc<Metrics>,
    recorder: Option<Arc<Recorder>>,
    room: Room,
}

/// Where one convention is asked.
pub(super) struct Desk {
    path: String,
    convention: Arc<dyn AnyConvention>,
    shared: Shared,
}

/// The desks of a server.
pub(super) struct Routes(Arc<BTreeMap<String, Arc<Desk>>>);

impl Routes {
    pub(super) fn of(desks: BTreeMap<String, Arc<Desk>>) -> Self {
        Self(Arc::new(desks))
    }

    /// Paths of conventions are compared as they are: they may hold what a router takes for a
    /// pattern.
    pub(super) fn router(self, metrics: &Arc<Metrics>) -> Router {
        let metrics = metrics.clone();
        let told = async move || {
            let kind = HeaderValue::from_static("text/plain; version=0.0.4");
            ([(header::CONTENT_TYPE, kind)], metrics.text())
        };
        let answer = move |request: Request<Body>| async move {
            match self.0.get(request.uri().path()) {
                Some(desk) => desk.answer(request).await,
                None => (StatusCode::NOT_FOUND, "no convention here\n").into_response(),
            }
        };
        Router::new()
            .route(HEALTH, get(async || "ok\n"))
            .route(METRICS, get(told))
            .fallback(answer)
    }
}

/// Why a body is not read.
type Refusal = (StatusCode, &'static str);

const NO_ROOM: Refusal = (
    StatusCode::SERVICE_UNAVAILABLE,
    "there is no room for the body",
);

/// A body, and the room that it takes until it is dropped.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    room: Share,
}

impl Desk {
    pub(super) fn new(path: String, convention: Arc<dyn AnyConvention>, shared: Shared) -> Self {
        Self {
            path,
            convention,
            shared,
        }
    }

    pub(super) fn shared(
        limits: Limits,
        metrics: Arc<Metrics>,
        recorder: Option<Arc<Recorder>>,
    ) -> Shared {
        // At least one request has room, however small the room is said to be.
        let all = limits.all_bodies_bytes.max(limits.body_bytes);
        Shared {
            room: Room::new(limits.connections, all, metrics.bodies()),
            limits,
            metrics,
            recorder,
        }
    }

    async fn answer(&self, request: Request<Body>) -> Response {
        let started = Instant::now();
        if request.method() != Method::POST {
            let allow = [(header::ALLOW, "POST")];
            return (StatusCode::METHOD_NOT_ALLOWED, allow, "POST only\n").into_response();
        }
        let receiving = async { self.unfold(self.receive(request).await?).await };
        let reading = tokio::time::timeout(self.shared.limits.body, receiving);
        let received = match reading.await {
            Ok(Ok(received)) => received,
            Ok(Err((status, text))) => return self.refuse(status, text, started.elapsed()),
            Err(_) => {
                let text = "the body did not arrive in time, or there was no room for it";
                return self.refuse(StatusCode::SERVICE_UNAVAILABLE, text, started.elapsed());
            }
        };
        let (name, answer, received) = self.apply(received).await;
        self.tell(&name, &answer, started.elapsed());
        let room = self.record(received, &answer).await;
        let status = StatusCode::from_u16(answer.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = [(header::CONTENT_TYPE, answer.content_type)];
        // An answer may be as long as its request, so the room is needed until it is sent.
        let body = Body::new(Held::new(Parts::of(answer.body), room));
        (status, kind, body).into_response()
    }

    /// Reads a body of which no byte more is taken than it may have. That much will come is no
    /// reason to keep room for it.
    async fn receive(&self, request: Request<Body>) -> Result<Received, Refusal> {
        const TOO_LARGE: Refusal = (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
        let limit = self.shared.limits.body_bytes;
        let length = request.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| usize::try_from(length).unwrap_or(usize::MAX) > limit) {
            return Err(TOO_LARGE);
        }
        let room = self.shared.room.enter().await;
        let room = room.map_err(|Full| NO_ROOM)?;
        let bytes = Vec::new();
        let mut received = Received { bytes, room };
        let mut body = request.into_body();
        while let Some(frame) = body.frame().await {
            let broken = (StatusCode::BAD_REQUEST, "the body did not arrive whole");
            let Ok(part) = frame.map_err(|_| broken)?.into_data() else {
                continue;
            };
            let bytes = received.bytes.len() + part.len();
            if bytes > limit {
                return Err(TOO_LARGE);
            }
            let grown = self.shared.room.grow(&mut received.room, bytes).await;
            grown.map_err(|Full| NO_ROOM)?;
            received.bytes.extend_from_slice(&part);
        }
        Ok(received)
    }

    /// Takes room for what the body becomes in memory: `{"":0},` is seven bytes, and becomes hundreds.
    async fn unfold(&self, received: Received) -> Result<Received, Refusal> {
        let (values, mut received) = if received.bytes.len() > LONG {
            let count = move || (answer::values(&received.bytes), received);
            tokio::task::spawn_blocking(count)
                .await
                .map_err(|_| NO_ROOM)?
        } else {
            (answer::values(&received.bytes), received)
        };
        let bytes = received.bytes.len() + values.saturating_sub(FEW_VALUES) * VALUE_BYTES;
        let grown = self.shared.room.grow(&mut received.room, bytes).await;
        grown.map_err(|Full| NO_ROOM)?;
        received.room.is_enough();
        Ok(received)
    }

    /// The name of the call, and its answer.
    async fn apply(&self, received: Received) -> (String, Answer, Received) {
        let (request, received) = if received.bytes.len() > LONG {
            let read = move || (answer::read(&received.bytes), received);
            let Ok(read) = tokio::task::spawn_blocking(read).await else {
                // The runtime ends; nobody waits for this answer.
                return (String::new(), self.timed_out(), Received::default());
            };
            read
        } else {
            (answer::read(&received.bytes), received)
        };
        let request = match request {
            Ok(request) => request,
            Err(refused) => return (String::new(), refused, received),
        };
        let name = answer::shortened(&request.metadata.name, LONGEST_NAME);
        let applying = answer::apply(&*self.convention, request);
        let applied = tokio::time::timeout(self.shared.limits.convention, applying).await;
        let answer = applied.unwrap_or_else(|_| self.timed_out());
        (name, answer, received)
    }

    fn timed_out(&self) -> Answer {
        Answer::timed_out(self.shared.limits.convention)
    }

    fn refuse(&self, status: StatusCode, text: &str, took: Duration) -> Response {
        info!(path = self.path, status = status.as_u16(), text, "refused");
        self.shared.metrics.answered(&self.path, "refused", took);
        let mut response = (status, format!("{text}\n")).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        // What is left of the body would be taken for the next request.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }

    fn tell(&self, name: &str, answer: &Answer, took: Duration) {
        let outcome = answer.outcome.word();
        self.shared.metrics.answered(&self.path, outcome, took);
        let (path, seconds) = (&self.path, took.as_secs_f64());
        match &answer.outcome {
            Outcome::Applied(applied) => {
                info!(path, name, seconds, applied = applied.join(","), "applied");
            }
            Outcome::BadRequest(why) => info!(path, why, "not a request"),
            Outcome::Failed(why) => warn!(path, name, seconds, why, "not applied"),
            Outcome::Panicked(panic) => error!(path, name, panic, "the convention panicked"),
            Outcome::TimedOut => error!(path, name, seconds, "the convention took too long"),
        }
    }

    /// Hands the room of the request on. What cannot be recorded is served all the same.
    async fn record(&self, received: Received, answer: &Answer) -> Share {
        let Received { bytes, room } = received;
        let Some(recorder) = self.shared.recorder.clone() else {
            return room;
        };
        if matches!(answer.outcome, Outcome::BadRequest(_)) {
            return room;
        }
        let (path, status, body) = (self.path.clone(), answer.status, answer.body.clone());
        let write = move || recorder.write(&path, &bytes, status, &body);
        let error = match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => return room,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.shared.metrics.not_recorded();
        warn!(path = self.path, error, "exchange not recorded");
        room
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    use serde_json::{Value, json};
    use tokio::task::JoinSet;

    use super::*;
    use crate::{Applied, Change, ConventionError, Images, Template};

    /// Never answers, and counts who asks.
    struct Hangs(Arc<AtomicUsize>);

    impl Convention for Hangs {
        async fn apply(&self, _: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            std::future::pending().await
        }
    }

    /// In a server of somebody else, which takes as many connections as come: how many of so many
    /// requests reach the convention. The others are told to come again.
    async fn reach(times: usize, body: &str) -> usize {
        let asked = Arc::new(AtomicUsize::new(0));
        let server = TowerToHyperService::new(router(Hangs(asked.clone())));
        let mut answers = JoinSet::new();
        for _ in 0..times {
            let body = Body::from(body.to_owned());
            let request = Request::post("/").body(body).unwrap();
            let server = server.clone();
            answers.spawn(async move { server.call(request).await.unwrap() });
        }
        let mut refused = 0;
        while let Some(answer) = answers.join_next().await {
            let answer = answer.unwrap();
            if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
                assert_eq!(answer.headers()[header::RETRY_AFTER], "1");
                refused += 1;
            } else {
                assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
            }
        }
        let asked = asked.load(Ordering::Relaxed);
        assert_eq!(asked + refused, times);
        asked
    }

    /// Adds a label, but for a template that has it already.
    struct Labels;

    impl Convention for Labels {
        async fn apply(
            &self,
            template: &mut Template,
            _: &Images,
        ) -> Result<Applied, ConventionError> {
            let mut applied = Applied::nothing();
            match applied.record("team", template.set_label("team", "web")) {
                Change::Made => Ok(applied),
                _ => Err(ConventionError::new("labelled already")),
            }
        }
    }

    #[tokio::test]
    async fn a_convention_answers_below_a_path_of_somebody_elses_server() {
        let routes = Router::new().nest("/conventions/label", router(Labels));
        let server = TowerToHyperService::new(routes);
        let answer = async |path: &str, body: Body| {
            let request = Request::post(path).body(body).unwrap();
            let answer = server.call(request).await.unwrap();
            let status = answer.status().as_u16();
            let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
            let body = serde_json::from_slice(&body.unwrap()).unwrap_or(Value::Null);
            (status, body)
        };
        let of = |metadata: Value| {
            let template = json!({"metadata": metadata, "spec": {"containers": []}});
            Body::from(json!({"spec": {"template": template}}).to_string())
        };
        let (status, body) = answer("/conventions/label", of(json!({}))).await;
        assert_eq!(status, 200);
        let label = &body["status"]["template"]["metadata"]["labels"]["team"];
        assert_eq!(
            (label, &body["status"]["appliedConventions"]),
            (&json!("web"), &json!(["team"]))
        );
        let labelled = of(json!({"labels": {"team": "web"}}));
        let (status, body) = answer("/conventions/label", labelled).await;
        assert_eq!(
            (status, &body["message"]),
            (500, &json!("labelled already"))
        );
        assert_eq!(answer("/conventions/label", Body::from("no")).await.0, 400);
        assert_eq!(answer("/conventions", of(json!({}))).await.0, 404);
        let too_large = Body::from(vec![b' '; (64 << 20) + 1]);
        assert_eq!(answer("/conventions/label", too_large).await.0, 413);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_small_requests_is_not_taken_in_at_once() {
        let most = Limits::default().connections;
        assert_eq!(reach(1000, "{}").await, most);
    }

    #[tokio::test(start_paused = true)]
    async fn room_is_taken_for_what_bodies_become() {
        // Less than half a MiB, and 40 MiB in memory.
        let values = vec![r#"{"":0}"#; 64_000].join(",");
        let body = format!(r#"{{"spec": {{"template": {{"spec": {{"a": [{values}]}}}}}}}}"#);
        assert!(body.len() < 1 << 19);
        let reached = reach(20, &body).await;
        assert!((1..=3).contains(&reached), "{reached}");
        // As many small values as a pod has take none.
        let values = vec!["0"; 1000].join(",");
        let body = format!(r#"{{"spec": {{"template": {{"spec": {{"a": [{values}]}}}}}}}}"#);
        assert_eq!(reach(200, &body).await, 200);
    }
}
