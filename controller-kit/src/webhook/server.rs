//! HTTPS: connections, routes and answers.

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
use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::error;

use super::certificate::ServingCertificate;
use super::judges::Judges;
use super::{Admit, Review, Route, Routes};
use crate::metrics::{Metrics, WebhookOutcome};
use crate::scheduler::panic_text;
use crate::serving::{self, Ending, Limits};
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
const WITHDRAWAL: Duration = Duration::from_secs(5);
/// How much longer a connection stays that the API server has kept. One that it uses ends with the answer; one that it has not
/// used for so long is hardly used in the very moment in which it is closed. It would close it itself only after 90 s.
const LINGERING: Duration = Duration::from_secs(10);
/// For reviews that are under way then.
const DRAIN: Duration = Duration::from_secs(2);
/// The API server needs one for each review under way, and has two for each object of a kind with both sorts of webhooks;
/// the rest is who should not be here. A connection takes some 30 KiB.
const LIMITS: Limits = Limits {
    connections: 256,
    opening: Duration::from_secs(10),
    // Longer than the API server keeps a connection idle, so that it is the one who closes.
    idle: Duration::from_mins(2),
    request: Duration::from_secs(10),
    ending: Ending {
        withdrawal: WITHDRAWAL,
        lingering: Duration::ZERO,
        drain: DRAIN,
    },
};

/// How long a webhook may linger whose process waits so long for its tasks.
pub(super) fn longest_lingering(patience: Duration) -> Duration {
    const SPARE: Duration = Duration::from_secs(1);
    LINGERING.min(patience.saturating_sub(WITHDRAWAL + DRAIN + SPARE))
}

/// Serves the webhook on all interfaces until the tasks are cancelled, and for a moment after; returns its address.
///
/// # Errors
/// The port is taken or may not be used, or TLS cannot be set up; the operator must fix it.
pub async fn serve(
    port: u16,
    routes: Routes,
    certificate: Arc<ServingCertificate>,
    metrics: Arc<Metrics>,
    tasks: &Tasks,
) -> io::Result<SocketAddr> {
    let lingering = Duration::ZERO;
    serve_lingering(port, routes, certificate, metrics, tasks, lingering).await
}

/// The same; connections that are idle at the end stay for a while.
pub(super) async fn serve_lingering(
    port: u16,
    routes: Routes,
    certificate: Arc<ServingCertificate>,
    metrics: Arc<Metrics>,
    tasks: &Tasks,
    lingering: Duration,
) -> io::Result<SocketAddr> {
    let ending = Ending {
        lingering,
        ..LIMITS.ending
    };
    let limits = Limits { ending, ..LIMITS };
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
    let router = router(routes, &metrics);
    let stop = tasks.token().clone();
    let serving = serving::serve::<TlsStream<TcpStream>, _>(listener, limits, open, router, stop);
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

pub(super) fn router(routes: Routes, metrics: &Arc<Metrics>) -> Router {
    let (judges, room) = (Judges::new(), Arc::new(Semaphore::new(BODIES_LIMIT)));
    let mut router = Router::new();
    for (Route { path, kind }, admit) in routes {
        let desk = Arc::new(Desk {
            kind,
            admit,
            judges: judges.clone(),
            metrics: metrics.clone(),
        });
        let room = room.clone();
        let answer = async move |body: Body| {
            let read = tokio::time::timeout(BODY_PATIENCE, read(body, &room)).await;
            let read = read.unwrap_or(Err((
                StatusCode::REQUEST_TIMEOUT,
                "the body did not arrive in time",
            )));
            desk.review(read).await
        };
        router = router.route(path, post(answer));
    }
    router
}

/// Why a body is not read.
type Refusal = (StatusCode, &'static str);

/// A body, and the room that it takes until it is dropped.
struct Received {
    bytes: Vec<u8>,
    room: Option<OwnedSemaphorePermit>,
}

/// Room is taken for what has arrived, not for what a client says that it will send.
async fn read(mut body: Body, room: &Arc<Semaphore>) -> Result<Received, Refusal> {
    const TOO_LARGE: Refusal = (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
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

/// What is asked about one object under one path.
struct Desk {
    kind: &'static str,
    admit: Arc<dyn Admit>,
    judges: Judges,
    metrics: Arc<Metrics>,
}

impl Desk {
    async fn review(&self, body: Result<Received, Refusal>) -> Response {
        let kind = self.kind;
        let body = match body {
            Ok(body) => body,
            Err((code, text)) => return self.refuse(Instant::now(), code, format!("{text}\n")),
        };
        let Received { bytes, room } = body;
        let parse = move || {
            let started = Instant::now();
            (
                started,
                Review::parse(kind, &bytes).map(|review| review.taking(room)),
            )
        };
        let (started, review) = match self.judges.do_aside(parse).await {
            Some((started, Ok(review))) => (started, Arc::new(review)),
            Some((started, Err(error))) => {
                return self.refuse(started, StatusCode::BAD_REQUEST, format!("{error}\n"));
            }
            None => return ends(),
        };
        // A panic denies this one object, where the webhook's failure policy is Fail, and harms nobody else.
        let admitted = AssertUnwindSafe(async { self.admit.admit(review.clone()).await });
        let answer = match admitted.catch_unwind().await {
            Ok(Some(answer)) => answer,
            Ok(None) => return ends(),
            Err(panic) => {
                error!(kind, panic = panic_text(&*panic), "validation panicked");
                let text = "validation failed unexpectedly; see the log of the controller\n";
                return self.refuse(started, StatusCode::INTERNAL_SERVER_ERROR, text.to_owned());
            }
        };
        let outcome = if answer.error.is_none() {
            WebhookOutcome::Allowed
        } else {
            WebhookOutcome::Denied
        };
        self.notify(outcome, started);
        let body = review.answer(&answer).to_string();
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    }

    fn refuse(&self, started: Instant, code: StatusCode, text: String) -> Response {
        self.notify(WebhookOutcome::BadRequest, started);
        (code, text).into_response()
    }

    fn notify(&self, outcome: WebhookOutcome, started: Instant) {
        let seconds = started.elapsed().as_secs_f64();
        self.metrics.webhook(self.kind, outcome, seconds);
    }
}

fn ends() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response()
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

    #[test]
    fn the_end_is_within_what_the_process_waits() {
        let of = |seconds| longest_lingering(Duration::from_secs(seconds)).as_secs();
        assert_eq!([8, 12, 20, 300].map(of), [0, 4, 10, 10]);
    }
}
