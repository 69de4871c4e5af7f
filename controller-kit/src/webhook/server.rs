//! HTTPS: connections, routes and verdicts.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http_body_util::BodyExt as _;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::error;

use super::certificate::ServingCertificate;
use super::review::{Operation, Review};
use super::{Route, Validate, Verdict};
use crate::metrics::{Metrics, WebhookOutcome};
use crate::scheduler::panic_text;
use crate::serving::{self, Limits};
use crate::shutdown::Tasks;

/// An object and its predecessor of 3 MiB each (what etcd takes at most), and what is around them.
pub(super) const BODY_LIMIT: usize = 7 * 1024 * 1024;
/// What all bodies that are being read or judged may take together.
const BODIES_LIMIT: usize = 4 * BODY_LIMIT;
/// The beginning of a body takes none of that room: a review of nearly every blueprint is shorter, and is answered also while
/// somebody fills the room with bodies that never end.
const SMALL_BODY: usize = 128 * 1024;
/// The API server sends a body at once.
const BODY_PATIENCE: Duration = Duration::from_secs(5);
/// A pod that ends is asked until all nodes know of it.
pub(super) const WITHDRAWAL: Duration = Duration::from_secs(5);
/// The API server needs a handful of connections; the rest is who should not be here.
const LIMITS: Limits = Limits {
    connections: 64,
    opening: Duration::from_secs(10),
    // Longer than the API server keeps a connection idle, so that it is the one who closes.
    idle: Duration::from_mins(2),
    request: Duration::from_secs(10),
    // With the withdrawal, less than what the process waits for its tasks.
    drain: Duration::from_secs(2),
};
/// Objects that are judged at a time. A large one takes a while, which must not be the time of a thread that all else runs on.
pub(super) const JUDGES: usize = 4;

/// Serves the webhook on all interfaces until the tasks are cancelled, and for a moment after; returns its address.
///
/// # Errors
/// The port is taken or may not be used, or TLS cannot be set up; the operator must fix it.
pub async fn serve(
    port: u16,
    routes: &[Route],
    validator: Arc<dyn Validate>,
    certificate: Arc<ServingCertificate>,
    metrics: Arc<Metrics>,
    tasks: &Tasks,
) -> io::Result<SocketAddr> {
    let listener = match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind(("0.0.0.0", port)).await?,
    };
    let address = listener.local_addr()?;
    let acceptor = TlsAcceptor::from(Arc::new(tls(certificate)?));
    let open = move |stream| {
        let acceptor = acceptor.clone();
        async move { acceptor.accept(stream).await }
    };
    let router = router(routes, &validator, &metrics);
    let shutdown = tasks.token().clone();
    let withdrawn = async move {
        shutdown.cancelled().await;
        tokio::time::sleep(WITHDRAWAL).await;
    };
    let serving =
        serving::serve::<TlsStream<TcpStream>, _>(listener, LIMITS, open, router, withdrawn);
    tasks.spawn("webhook", serving);
    Ok(address)
}

fn tls(certificate: Arc<ServingCertificate>) -> io::Result<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let mut config = config.with_no_client_auth().with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

pub(super) fn router(
    routes: &[Route],
    validator: &Arc<dyn Validate>,
    metrics: &Arc<Metrics>,
) -> Router {
    let judges = Arc::new(Semaphore::new(JUDGES));
    let mut router = Router::new();
    let room = Arc::new(Semaphore::new(BODIES_LIMIT));
    for route in routes {
        let (validator, metrics, kind) = (validator.clone(), metrics.clone(), route.kind);
        let (room, judges) = (room.clone(), judges.clone());
        let answer = async move |body: Body| {
            let read = tokio::time::timeout(BODY_PATIENCE, read(body, &room)).await;
            let read = read.unwrap_or(Err((
                StatusCode::REQUEST_TIMEOUT,
                "the body did not arrive in time",
            )));
            let (validator, metrics) = (validator.clone(), metrics.clone());
            let judge = move || review(kind, &read, &*validator, &metrics);
            aside(&judges, judge).await
        };
        router = router.route(route.path, post(answer));
    }
    router
}

/// A body, and the room that it takes until it is dropped.
struct Received {
    bytes: Vec<u8>,
    room: Option<OwnedSemaphorePermit>,
}

/// Room is taken for what has arrived, not for what a client says that it will send.
async fn read(
    mut body: Body,
    room: &Arc<Semaphore>,
) -> Result<Received, (StatusCode, &'static str)> {
    const TOO_LARGE: (StatusCode, &str) = (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
    let mut received = Received {
        bytes: Vec::new(),
        room: None,
    };
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|_| (StatusCode::BAD_REQUEST, "the body did not arrive whole"))?;
        let Ok(part) = frame.into_data() else {
            continue;
        };
        if received.bytes.len() + part.len() > BODY_LIMIT {
            return Err(TOO_LARGE);
        }
        let held = received.bytes.len() + part.len();
        // No part is larger than the limit, so it is never truncated; and nobody closes the semaphore.
        let size = u32::try_from(part.len()).unwrap_or(u32::MAX);
        if held > SMALL_BODY
            && let Ok(more) = room.clone().acquire_many_owned(size).await
        {
            match &mut received.room {
                Some(room) => room.merge(more),
                none => *none = Some(more),
            }
        }
        received.bytes.extend_from_slice(&part);
    }
    Ok(received)
}

/// Does the work on a thread of its own, as soon as there is one for it. The turn goes with the work, which goes on when nobody
/// waits for it any longer.
async fn aside(
    judges: &Arc<Semaphore>,
    work: impl FnOnce() -> Response + Send + 'static,
) -> Response {
    // Neither fails before the process ends.
    let ends = || (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response();
    let Ok(turn) = judges.clone().acquire_owned().await else {
        return ends();
    };
    let judged = tokio::task::spawn_blocking(move || {
        let response = work();
        drop(turn);
        response
    });
    judged.await.unwrap_or_else(|_| ends())
}

fn review(
    kind: &'static str,
    body: &Result<Received, (StatusCode, &'static str)>,
    validator: &dyn Validate,
    metrics: &Metrics,
) -> Response {
    let started = Instant::now();
    let refuse = |code: StatusCode, text: String| {
        metrics.webhook(
            kind,
            WebhookOutcome::BadRequest,
            started.elapsed().as_secs_f64(),
        );
        (code, text).into_response()
    };
    let body = match body {
        Ok(received) => &received.bytes,
        Err((code, text)) => return refuse(*code, format!("{text}\n")),
    };
    let review = match Review::parse(body) {
        Ok(review) => review,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    let verdict = match decide(kind, &review, validator) {
        Ok(verdict) => verdict,
        Err(text) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, text),
    };
    let outcome = if verdict.error.is_none() {
        WebhookOutcome::Allowed
    } else {
        WebhookOutcome::Denied
    };
    metrics.webhook(kind, outcome, started.elapsed().as_secs_f64());
    (
        [(header::CONTENT_TYPE, "application/json")],
        review.answer(&verdict).to_string(),
    )
        .into_response()
}

/// Only what is created or changed is looked at. A panic denies this one object (the webhook's failure
/// policy is Fail) and harms nobody else.
fn decide(
    kind: &'static str,
    review: &Review,
    validator: &dyn Validate,
) -> Result<Verdict, String> {
    if !matches!(review.operation, Operation::Create | Operation::Update) {
        return Ok(Verdict::default());
    }
    let object = match &review.object {
        Ok(object) => object,
        Err(text) => {
            return Ok(Verdict {
                error: Some(text.clone()),
                warnings: Vec::new(),
            });
        }
    };
    let judge = AssertUnwindSafe(|| validator.validate(kind, object, review.operation));
    std::panic::catch_unwind(judge).map_err(|panic| {
        error!(kind, panic = panic_text(&*panic), "validation panicked");
        "validation failed unexpectedly; see the log of the controller\n".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_review_of_usual_size_is_read_while_somebody_fills_the_room() {
        let room = Arc::new(Semaphore::new(0));
        let read_of = async |length: usize| {
            let body = Body::from(vec![b' '; length]);
            let read = tokio::time::timeout(BODY_PATIENCE, read(body, &room)).await;
            read.is_ok_and(|read| read.is_ok_and(|read| read.bytes.len() == length))
        };
        assert!(read_of(SMALL_BODY).await);
        assert!(!read_of(SMALL_BODY + 1).await);
    }

    #[tokio::test]
    async fn a_turn_goes_with_its_work_also_when_nobody_waits_any_longer() {
        let judges = Arc::new(Semaphore::new(1));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let work = move || {
            let _ = wait.recv();
            StatusCode::OK.into_response()
        };
        let waited = tokio::time::timeout(Duration::from_millis(50), aside(&judges, work)).await;
        assert!(waited.is_err());
        assert_eq!(judges.available_permits(), 0, "the work goes on");
        drop(go);
        let free = judges.acquire();
        let free = tokio::time::timeout(Duration::from_secs(30), free).await;
        assert!(free.unwrap().is_ok());
    }
}
