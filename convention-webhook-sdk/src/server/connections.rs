//! Connections: whoever reaches the port may connect, so none is kept for a client that does
//! nothing with it.
//!
//! A client may be sending its next request in the moment in which its connection is closed, and
//! cannot know whether it was read. So at the end clients are asked to leave, each by its next
//! answer, before those that are idle are made to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use super::body::Held;
use super::idle::{Place, Places};
use super::limits::Limits;
use super::metrics::Metrics;

/// Out of file descriptors, mostly: it passes when a connection ends.
const NOT_ACCEPTED: Duration = Duration::from_millis(100);

/// Serves until `stop`, and as long after it as the limits say.
pub(super) async fn serve(
    listener: TcpListener,
    acceptor: &TlsAcceptor,
    router: &Router,
    limits: Limits,
    metrics: &Metrics,
    stop: impl Future<Output = ()>,
) {
    let places = Places::new(limits.connections);
    let (leaving, asked_to_leave) = watch::channel(false);
    let (closing, closed) = watch::channel(false);
    let mut connections = JoinSet::new();
    let stop = async {
        stop.await;
        leaving.send_replace(true);
        tokio::time::sleep(limits.withdrawal).await;
    };
    tokio::pin!(stop);
    loop {
        while connections.try_join_next().is_some() {}
        let next = async { (accept(&listener).await, places.take().await) };
        let ((stream, peer), place) = tokio::select! {
            biased;
            () = &mut stop => break,
            next = next => next,
        };
        let open = metrics.connection();
        let connection = Connection {
            acceptor: acceptor.clone(),
            router: router.clone(),
            limits,
            place,
            asked_to_leave: asked_to_leave.clone(),
        };
        let closed = closed.clone();
        connections.spawn(async move {
            let _open = open;
            connection.converse(stream, peer, closed).await;
        });
    }
    drop(listener);
    closing.send_replace(true);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.drain, all_ended).await.is_err() {
        warn!("requests were broken off: they took longer than there was time");
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                warn!(%error, "connection not accepted");
                tokio::time::sleep(NOT_ACCEPTED).await;
            }
        }
    }
}

struct Connection {
    acceptor: TlsAcceptor,
    router: Router,
    limits: Limits,
    place: Arc<Place>,
    /// Each answer is the last one of its connection.
    asked_to_leave: watch::Receiver<bool>,
}

impl Connection {
    async fn converse(
        self,
        stream: TcpStream,
        peer: SocketAddr,
        mut closed: watch::Receiver<bool>,
    ) {
        let place = self.place.clone();
        tokio::select! {
            () = self.talk(stream, peer, &mut closed) => {}
            () = place.needed() => debug!(%peer, "a place is needed, and this client was idle"),
            () = place.overdue() => debug!(%peer, "the answer was not taken in time"),
        }
    }

    /// At the end the request under way is answered, and no further one.
    async fn talk(self, stream: TcpStream, peer: SocketAddr, closed: &mut watch::Receiver<bool>) {
        let opening = tokio::time::timeout(self.limits.opening, self.acceptor.accept(stream));
        let opened = tokio::select! {
            opened = opening => opened,
            () = is_closed(closed) => return,
        };
        let stream = match opened {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return debug!(%peer, %error, "no handshake"),
            Err(_) => return debug!(%peer, "no handshake in time"),
        };
        let asked = Arc::new(AtomicBool::new(false));
        let router = TowerToHyperService::new(self.router);
        let service = service_fn(|request| {
            asked.store(true, Ordering::Relaxed);
            let answer = respond(
                router.clone(),
                self.place.clone(),
                self.limits.body,
                request,
            );
            parting(answer, self.asked_to_leave.clone())
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.idle)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let silent = async {
            tokio::time::sleep(self.limits.opening).await;
            if asked.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = silent => return debug!(%peer, "no request in time"),
            () = is_closed(closed) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            debug!(%peer, %error, "connection broken");
        }
    }
}

/// Ends when the server does.
async fn is_closed(closed: &mut watch::Receiver<bool>) {
    // An error is an end, too: the server is gone.
    let _ = closed.wait_for(|closed| *closed).await;
}

/// As long as a request is under way, and its answer is, the place is not for somebody else.
async fn respond(
    router: TowerToHyperService<Router>,
    place: Arc<Place>,
    limit: Duration,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let working = place.works();
    let answer = router.call(request.map(Body::new)).await?;
    let guards = (working, place.sends(limit));
    Ok(answer.map(|body| Body::new(Held::new(body, guards))))
}

/// The same answer, which ends the connection once clients are asked to leave.
async fn parting(
    answer: impl Future<Output = Result<Response, Infallible>>,
    asked_to_leave: watch::Receiver<bool>,
) -> Result<Response, Infallible> {
    let mut answer = answer.await?;
    if *asked_to_leave.borrow() {
        let close = HeaderValue::from_static("close");
        answer.headers_mut().insert(CONNECTION, close);
    }
    Ok(answer)
}
