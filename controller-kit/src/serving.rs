//! HTTP for clients that nobody vouches for: whoever reaches the port may connect.
//!
//! So connections are few, and none is kept for a client that does nothing with it: the handshake, the head of a request and
//! the whole of an answer have their time, and where all places are taken, who has been idle for longest goes.
//!
//! A client may be sending its next request on an idle connection at the moment in which that is closed, and cannot know
//! whether it was read. So at the end clients are asked to leave, each by its next answer, long before they are made to.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

/// What each client may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at once.
    pub(crate) connections: usize,
    /// From the connection to the head of its first request.
    pub(crate) opening: Duration,
    /// Between two requests, and for the head of the next one.
    pub(crate) idle: Duration,
    /// From the head of a request to its answer.
    pub(crate) request: Duration,
    /// How it ends.
    pub(crate) ending: Ending,
}

/// How long the parts of the end take, one after the other. In all of them a connection ends with its next answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    /// Who comes is served: not everybody knows yet that nobody should come.
    pub(crate) withdrawal: Duration,
    /// Nobody new is served, and who is idle may still ask, once. It is over when no connection is left.
    pub(crate) lingering: Duration,
    /// For what is under way then.
    pub(crate) drain: Duration,
}

/// How often it is looked whether somebody has become idle, while all places are taken.
const LOOK: Duration = Duration::from_millis(100);
/// Nobody is turned out before this time: who has just come still shakes hands, and who was just answered may be sending
/// the next request. A thousand PodIntents created fifty at a time were refused so, each fiftieth by a connection reset.
const SETTLED: Duration = Duration::from_secs(1);

/// Serves until `stop` is cancelled, and as long after it as the limits say. `open` makes of a TCP connection what is spoken
/// over.
pub(crate) async fn serve<S, O>(
    listener: TcpListener,
    limits: Limits,
    open: impl Fn(TcpStream) -> O,
    router: Router,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    O: Future<Output = io::Result<S>> + Send + 'static,
{
    let places = Arc::new(Places::new(limits.connections));
    let end = End {
        asked_to_leave: stop.clone(),
        closing: CancellationToken::new(),
    };
    let mut connections = JoinSet::new();
    let withdrawn = async {
        stop.cancelled().await;
        tokio::time::sleep(limits.ending.withdrawal).await;
    };
    tokio::pin!(withdrawn);
    loop {
        while connections.try_join_next().is_some() {}
        let next = async { (accept(&listener).await, places.take().await) };
        let ((stream, peer), place) = tokio::select! {
            biased;
            () = &mut withdrawn => break,
            next = next => next,
        };
        let seat = place.seat.clone();
        let routes = (router.clone(), peer);
        let talk = converse(open(stream), limits, place, routes, end.clone());
        connections.spawn(async move {
            tokio::select! {
                () = talk => {}
                () = seat.leave.cancelled() => debug!("a place is needed, and this client was idle"),
            }
        });
    }
    drop(listener);
    if all_ended(&mut connections, limits.ending.lingering).await {
        return;
    }
    end.closing.cancel();
    if !all_ended(&mut connections, limits.ending.drain).await {
        debug!(connections = connections.len(), "connections broken off");
    }
}

/// The two signs by which it ends.
#[derive(Clone)]
struct End {
    /// Each answer from now on is the last one of its connection.
    asked_to_leave: CancellationToken,
    /// Who is idle is closed.
    closing: CancellationToken,
}

/// Whether all have ended in this time; it is not longer waited than for the last one.
async fn all_ended(connections: &mut JoinSet<()>, within: Duration) -> bool {
    let ended = async { while connections.join_next().await.is_some() {} };
    tokio::time::timeout(within, ended).await.is_ok()
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                // Out of file descriptors, mostly: it passes when a connection ends.
                error!(error = %error, "connection not accepted");
                tokio::time::sleep(LOOK).await;
            }
        }
    }
}

/// One connection. From the end on the request under way is answered, or the next one, and no further one.
async fn converse<S>(
    open: impl Future<Output = io::Result<S>> + Send,
    limits: Limits,
    place: Place,
    (router, peer): (Router, SocketAddr),
    end: End,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let opened = tokio::time::timeout(limits.opening, open);
    let stream = tokio::select! {
        () = end.closing.cancelled() => return,
        opened = opened => match opened {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return debug!(error = %error, "connection not opened"),
            Err(_) => return debug!("connection not opened in time"),
        },
    };
    let router = TowerToHyperService::new(router);
    let seat = &place.seat;
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = respond(request, router.clone(), seat.clone(), limits.request);
        parting(answer, end.asked_to_leave.clone())
    });
    let mut http = http1::Builder::new();
    let connection = http
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let silent = async {
        tokio::time::sleep(limits.opening).await;
        if seat.state.lock().was_busy {
            std::future::pending::<()>().await;
        }
    };
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = silent => return debug!("no request in time"),
        () = end.closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        debug!(error = %error, "connection broken");
    }
}

/// Answers a request in its time; as long the seat is busy.
async fn respond(
    request: Request<Incoming>,
    router: TowerToHyperService<Router>,
    seat: Arc<Seat>,
    patience: Duration,
) -> Response {
    let _busy = Busy::on(seat);
    match tokio::time::timeout(patience, router.call(request)).await {
        Ok(Ok(answer)) => answer,
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "took too long\n").into_response(),
    }
}

/// The same answer, which ends the connection once clients are asked to leave.
async fn parting(
    answer: impl Future<Output = Response>,
    asked_to_leave: CancellationToken,
) -> Result<Response, Infallible> {
    let mut answer = answer.await;
    if asked_to_leave.is_cancelled() {
        let close = HeaderValue::from_static("close");
        answer.headers_mut().insert(CONNECTION, close);
    }
    Ok(answer)
}

/// The places that there are for connections.
struct Places {
    free: Arc<Semaphore>,
    taken: Mutex<Vec<Arc<Seat>>>,
}

/// A place that is taken, until it is dropped.
struct Place {
    seat: Arc<Seat>,
    places: Arc<Places>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Who sits there.
struct Seat {
    /// The place is needed.
    leave: CancellationToken,
    state: Mutex<Sitting>,
}

#[derive(Debug, Clone, Copy)]
struct Sitting {
    idle_since: Option<Instant>,
    was_busy: bool,
}

impl Places {
    fn new(connections: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(connections)),
            taken: Mutex::default(),
        }
    }

    /// Waits for a place; while there is none, whoever has been idle for longest has to go, but nobody in his first moments.
    async fn take(self: &Arc<Self>) -> Place {
        loop {
            if let Ok(permit) = self.free.clone().try_acquire_owned() {
                return self.seat(Some(permit));
            }
            self.turn_one_out();
            let freed = self.free.clone().acquire_owned();
            if let Ok(permit) = tokio::time::timeout(LOOK, freed).await {
                return self.seat(permit.ok());
            }
        }
    }

    fn seat(self: &Arc<Self>, permit: Option<OwnedSemaphorePermit>) -> Place {
        let seat = Arc::new(Seat {
            leave: CancellationToken::new(),
            state: Mutex::new(Sitting {
                idle_since: Some(Instant::now()),
                was_busy: false,
            }),
        });
        self.taken.lock().push(seat.clone());
        Place {
            seat,
            places: self.clone(),
            _permit: permit,
        }
    }

    fn turn_one_out(&self) {
        let taken = self.taken.lock();
        let idle = |seat: &Arc<Seat>| Some((seat.state.lock().idle_since?, seat.clone()));
        let idle = taken.iter().filter_map(idle);
        let idle = idle.filter(|(since, _)| since.elapsed() >= SETTLED);
        if let Some((_, seat)) = idle.min_by_key(|(since, _)| *since) {
            seat.leave.cancel();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        taken.retain(|seat| !Arc::ptr_eq(seat, &self.seat));
    }
}

/// A request is under way.
struct Busy(Arc<Seat>);

impl Busy {
    fn on(seat: Arc<Seat>) -> Self {
        *seat.state.lock() = Sitting {
            idle_since: None,
            was_busy: true,
        };
        Self(seat)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.state.lock().idle_since = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::shutdown::Tasks;

    const FEW: Limits = Limits {
        connections: 2,
        opening: Duration::from_mins(10),
        idle: Duration::from_mins(10),
        request: Duration::from_mins(10),
        ending: Ending {
            withdrawal: Duration::ZERO,
            lingering: Duration::ZERO,
            drain: Duration::from_millis(1),
        },
    };
    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    /// Longer than any machine needs, and shorter than the limits that are not asked about.
    const PATIENCE: Duration = Duration::from_mins(2);

    struct Scene {
        address: SocketAddr,
        tasks: Tasks,
    }

    async fn scene(limits: Limits) -> Scene {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/", get(async || "here"))
            .route("/never", get(async || std::future::pending::<&str>().await));
        let tasks = Tasks::new();
        let stop = tasks.token().clone();
        let open = |stream| std::future::ready(io::Result::Ok(stream));
        let serving = serve::<TcpStream, _>(listener, limits, open, router, stop);
        tasks.spawn("serving", serving);
        Scene { address, tasks }
    }

    impl Scene {
        async fn connect(&self) -> TcpStream {
            TcpStream::connect(self.address).await.unwrap()
        }

        async fn ask(&self, stream: &mut TcpStream) -> String {
            stream.write_all(GET).await.unwrap();
            answer(stream).await
        }
    }

    async fn answer(stream: &mut TcpStream) -> String {
        let mut bytes = [0; 1024];
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut bytes));
        let read = read.await.expect("an answer or the end").unwrap_or(0);
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    #[tokio::test]
    async fn who_only_keeps_a_place_loses_it_to_who_has_a_request() {
        let scene = scene(FEW).await;
        // One says nothing at all, one only begins.
        let mut silent = scene.connect().await;
        let mut slow = scene.connect().await;
        slow.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = scene.connect().await;
            assert!(scene.ask(&mut client).await.contains("200 OK"));
            clients.push(client);
        }
        assert_eq!(answer(&mut silent).await, "");
        assert_eq!(answer(&mut slow).await, "");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_loses_the_place_in_the_first_moments_or_just_after_an_answer() {
        let places = Arc::new(Places::new(1));
        let place = places.take().await;
        let is_turned_out = || {
            places.turn_one_out();
            place.seat.leave.is_cancelled()
        };
        assert!(!is_turned_out());
        tokio::time::advance(SETTLED).await;
        drop(Busy::on(place.seat.clone()));
        assert!(!is_turned_out());
        tokio::time::advance(SETTLED).await;
        assert!(is_turned_out());
    }

    #[tokio::test]
    async fn whose_request_is_under_way_keeps_the_place() {
        let limits = Limits {
            request: Duration::from_secs(2),
            ..FEW
        };
        let scene = scene(limits).await;
        let mut asking = [scene.connect().await, scene.connect().await];
        for stream in &mut asking {
            let request = b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n";
            stream.write_all(request).await.unwrap();
        }
        let mut client = scene.connect().await;
        assert!(scene.ask(&mut client).await.contains("200 OK"));
        for stream in &mut asking {
            let answer = answer(stream).await;
            assert!(answer.contains("408 Request Timeout"), "{answer}");
        }
    }

    #[tokio::test]
    async fn who_asks_nothing_in_time_is_left() {
        let limits = Limits {
            opening: Duration::from_millis(50),
            ..FEW
        };
        let scene = scene(limits).await;
        let mut silent = scene.connect().await;
        assert_eq!(answer(&mut silent).await, "");
    }

    #[tokio::test]
    async fn the_end_does_not_wait_for_who_does_not_end() {
        let scene = scene(FEW).await;
        let mut hanging = scene.connect().await;
        hanging
            .write_all(b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        let mut idle = scene.connect().await;
        assert!(scene.ask(&mut idle).await.contains("200 OK"));
        scene.tasks.token().cancel();
        scene.tasks.join(PATIENCE).await.unwrap();
        assert_eq!(answer(&mut idle).await, "");
        assert_eq!(answer(&mut hanging).await, "");
    }

    /// Of whatever else, nothing ends it.
    fn ending(withdrawal: Duration, lingering: Duration) -> Limits {
        Limits {
            ending: Ending {
                withdrawal,
                lingering,
                drain: FEW.idle,
            },
            ..FEW
        }
    }

    /// That is when it lingers.
    async fn nobody_new_is_served(scene: &Scene) {
        while TcpStream::connect(scene.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn who_was_idle_at_the_end_is_answered_once_more_and_then_nothing_is_waited_for() {
        let scene = scene(ending(Duration::ZERO, FEW.idle)).await;
        let mut idle = scene.connect().await;
        let before = scene.ask(&mut idle).await;
        assert!(!before.contains("connection: close"), "{before}");
        scene.tasks.token().cancel();
        nobody_new_is_served(&scene).await;
        let last = scene.ask(&mut idle).await;
        assert!(last.contains("200 OK") && last.contains("connection: close"));
        assert_eq!(answer(&mut idle).await, "");
        // Long before the time to linger is over.
        scene.tasks.join(PATIENCE).await.unwrap();
    }

    #[tokio::test]
    async fn who_comes_before_everybody_knows_of_the_end_is_answered_once() {
        let scene = scene(ending(FEW.idle, FEW.idle)).await;
        scene.tasks.token().cancel();
        let mut client = scene.connect().await;
        let only = scene.ask(&mut client).await;
        assert!(only.contains("200 OK") && only.contains("connection: close"));
        assert_eq!(answer(&mut client).await, "");
    }

    /// Time that is paused goes on only while nothing is to do: who looks again and again would stay for ever.
    #[tokio::test]
    async fn who_stays_idle_is_waited_for_asleep_and_no_longer_than_it_is_lingered() {
        let (withdrawal, lingering) = (Duration::from_secs(5), Duration::from_secs(10));
        let scene = scene(ending(withdrawal, lingering)).await;
        let mut idle = scene.connect().await;
        assert!(scene.ask(&mut idle).await.contains("200 OK"));
        tokio::time::pause();
        let stopped = Instant::now();
        scene.tasks.token().cancel();
        scene.tasks.join(PATIENCE).await.unwrap();
        let took = stopped.elapsed();
        let longest = withdrawal + lingering + Duration::from_secs(1);
        assert!(took >= withdrawal + lingering && took < longest, "{took:?}");
        tokio::time::resume();
        assert_eq!(answer(&mut idle).await, "");
    }
}
