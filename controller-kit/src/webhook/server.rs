//! HTTPS: connections, routes and verdicts.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::extract::rejection::BytesRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use super::certificate::ServingCertificate;
use super::review::{Operation, Review};
use super::{Route, Validate, Verdict};
use crate::metrics::{Metrics, WebhookOutcome};
use crate::scheduler::panic_text;
use crate::shutdown::Tasks;

/// An object and its predecessor of 3 MiB each (what etcd takes at most), and what is around them.
pub(super) const BODY_LIMIT: usize = 7 * 1024 * 1024;
/// Connections at once. The API server needs a handful; the rest is who should not be here.
const CONNECTIONS: usize = 256;
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Longer than the API server keeps a connection idle, so that it is the one who closes.
const IDLE: Duration = Duration::from_mins(2);

/// Serves the webhook on all interfaces until the tasks are cancelled; returns its address.
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
    let router = router(routes, &validator, &metrics);
    tasks.spawn(
        "webhook",
        accept(listener, acceptor, router, tasks.token().clone()),
    );
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

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    router: Router,
    shutdown: CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let slot = tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            slot = slots.clone().acquire_owned() => slot,
        };
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (acceptor, router, shutdown) =
                    (acceptor.clone(), router.clone(), shutdown.clone());
                connections.spawn(async move {
                    converse(stream, &acceptor, router, &shutdown).await;
                    drop(slot);
                });
            }
            Err(error) => {
                // Out of file descriptors, mostly: it passes when a connection ends.
                error!(error = %error, "webhook connection not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

/// One connection. At shutdown the request under way is answered, and no further one.
async fn converse(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    router: Router,
    shutdown: &CancellationToken,
) {
    let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
    let stream = tokio::select! {
        () = shutdown.cancelled() => return,
        stream = handshake => match stream {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return debug!(error = %error, "TLS handshake failed"),
            Err(_) => return debug!("TLS handshake took too long"),
        },
    };
    let mut http = http1::Builder::new();
    let connection = http
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        debug!(error = %error, "webhook connection broken");
    }
}

pub(super) fn router(
    routes: &[Route],
    validator: &Arc<dyn Validate>,
    metrics: &Arc<Metrics>,
) -> Router {
    let mut router = Router::new();
    for route in routes {
        let (validator, metrics, kind) = (validator.clone(), metrics.clone(), route.kind);
        let answer = move |body: Result<Bytes, BytesRejection>| async move {
            review(kind, body, &*validator, &metrics)
        };
        router = router.route(route.path, post(answer));
    }
    router.layer(DefaultBodyLimit::max(BODY_LIMIT))
}

fn review(
    kind: &'static str,
    body: Result<Bytes, BytesRejection>,
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
        Ok(body) => body,
        Err(rejection) => {
            return refuse(rejection.status(), format!("{}\n", rejection.body_text()));
        }
    };
    let review = match Review::parse(&body) {
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
