//! `/healthz`, `/readyz`, `/metrics` and `/debug/log-level`.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::serving::{self, Ending, Limits};
use crate::shutdown::Tasks;
use crate::telemetry::LogControl;

type Check = Box<dyn Fn() -> bool + Send + Sync>;

/// What must be true before the process counts as ready.
#[derive(Default)]
pub(crate) struct Readiness {
    checks: Mutex<Vec<(&'static str, Check)>>,
}

impl Readiness {
    /// No checks: ready at once.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Ready only when `check` says so, too. It is called on every probe and must be quick.
    pub(crate) fn require(
        &self,
        name: &'static str,
        check: impl Fn() -> bool + Send + Sync + 'static,
    ) {
        self.checks.lock().push((name, Box::new(check)));
    }

    /// Whether all checks are true, and a line for each.
    pub(crate) fn report(&self) -> (bool, String) {
        let checks = self.checks.lock();
        let mut ready = true;
        let mut text = String::new();
        for (name, check) in checks.iter() {
            let passed = check();
            ready &= passed;
            text.push_str(if passed { "[+] " } else { "[-] " });
            text.push_str(name);
            text.push('\n');
        }
        (ready, text)
    }
}

/// Where the probes are served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbePorts {
    /// /healthz, /readyz, /debug/log-level; 0 = off.
    pub(crate) health: u16,
    /// /metrics; 0 = off. May be the same port.
    pub(crate) metrics: u16,
}

/// Serves the probes on all interfaces until the tasks are cancelled.
///
/// # Errors
/// A port is taken or may not be used; the operator must choose another.
pub(crate) async fn serve(
    ports: ProbePorts,
    readiness: Arc<Readiness>,
    metrics: Arc<Metrics>,
    log: LogControl,
    tasks: &Tasks,
) -> std::io::Result<()> {
    let health = health_router(readiness, log);
    if ports.health == ports.metrics {
        let both = health.merge(metrics_router(metrics));
        return listen("--health-port", ports.health, both, tasks).await;
    }
    listen("--health-port", ports.health, health, tasks).await?;
    let metrics = metrics_router(metrics);
    listen("--metrics-port", ports.metrics, metrics, tasks).await
}

/// `flag` is the one that chooses the port, for the operator who must choose another.
async fn listen(flag: &str, port: u16, router: Router, tasks: &Tasks) -> std::io::Result<()> {
    if port == 0 {
        return Ok(());
    }
    let refused = |error: std::io::Error| {
        std::io::Error::new(error.kind(), format!("port {port} ({flag}): {error}"))
    };
    // Takes IPv4 as well, where the host has both.
    let listener = match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind(("0.0.0.0", port))
            .await
            .map_err(refused)?,
    };
    tasks.spawn("probes", answer(listener, router, tasks.token().clone()));
    Ok(())
}

/// The kubelet and a few who read metrics.
const LIMITS: Limits = Limits {
    connections: 32,
    opening: Duration::from_secs(10),
    // Longer than metrics are usually read apart.
    idle: Duration::from_mins(2),
    request: Duration::from_secs(10),
    // They are answered in no time, so nothing is lost; and who is not answered knows that this process is not ready.
    ending: Ending {
        withdrawal: Duration::ZERO,
        lingering: Duration::ZERO,
        drain: Duration::ZERO,
    },
};

async fn answer(listener: TcpListener, router: Router, shutdown: CancellationToken) {
    let open = |stream| std::future::ready(std::io::Result::Ok(stream));
    serving::serve::<TcpStream, _>(listener, LIMITS, open, router, shutdown).await;
}

fn health_router(readiness: Arc<Readiness>, log: LogControl) -> Router {
    let ready = get(async |State(readiness): State<Arc<Readiness>>| {
        let (ready, text) = readiness.report();
        (
            if ready {
                StatusCode::OK
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            },
            text,
        )
    });
    Router::new()
        .route("/readyz", ready.with_state(readiness))
        .route("/healthz", get(async || "ok\n"))
        .route(
            "/debug/log-level",
            get(show_level).put(set_level).with_state(log),
        )
}

fn metrics_router(metrics: Arc<Metrics>) -> Router {
    let show = get(async |State(metrics): State<Arc<Metrics>>| {
        (
            [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
            metrics.render(),
        )
    });
    Router::new().route("/metrics", show.with_state(metrics))
}

async fn show_level(State(log): State<LogControl>) -> String {
    format!("{}\n", log.level())
}

/// Only from inside the pod (`kubectl port-forward` arrives as that): who may reach the health port over
/// the network may not fill the disk with logs.
async fn set_level(
    State(log): State<LogControl>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    body: String,
) -> Response {
    if !peer.ip().to_canonical().is_loopback() {
        return (StatusCode::FORBIDDEN, "only from inside the pod\n").into_response();
    }
    match body.trim().parse() {
        Ok(level) => {
            log.set(level);
            format!("{level}\n").into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::telemetry::LogLevel;

    struct Scene {
        address: SocketAddr,
        tasks: Tasks,
        log: LogControl,
        readiness: Arc<Readiness>,
    }

    async fn scene() -> Scene {
        let (readiness, metrics, log) = (
            Arc::new(Readiness::new()),
            Arc::new(Metrics::new()),
            LogControl::detached(LogLevel::Info),
        );
        metrics.request_avoided();
        let router = health_router(readiness.clone(), log.clone()).merge(metrics_router(metrics));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, tasks) = (listener.local_addr().unwrap(), Tasks::new());
        tasks.spawn("probes", answer(listener, router, tasks.token().clone()));
        Scene {
            address,
            tasks,
            log,
            readiness,
        }
    }

    impl Scene {
        async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            (
                head.split(' ').nth(1).unwrap().parse().unwrap(),
                body.to_owned(),
            )
        }
    }

    #[tokio::test]
    async fn ready_only_when_every_check_is_true() {
        let scene = scene().await;
        assert_eq!(scene.ask("GET", "/readyz", "").await, (200, String::new()));
        let synced = Arc::new(AtomicBool::new(false));
        let seen = synced.clone();
        scene
            .readiness
            .require("caches", move || seen.load(Ordering::SeqCst));
        scene.readiness.require("webhook", || true);
        assert_eq!(
            scene.ask("GET", "/readyz", "").await,
            (503, "[-] caches\n[+] webhook\n".into())
        );
        assert_eq!(
            scene.ask("GET", "/healthz", "").await,
            (200, "ok\n".into()),
            "not ready is not dead"
        );
        synced.store(true, Ordering::SeqCst);
        assert_eq!(scene.ask("GET", "/readyz", "").await.0, 200);
    }

    #[tokio::test]
    async fn metrics_are_text() {
        let scene = scene().await;
        let (code, text) = scene.ask("GET", "/metrics", "").await;
        assert!(
            code == 200 && text.contains("carto_api_requests_avoided_total 1"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn the_log_level_is_shown_and_changed() {
        let scene = scene().await;
        assert_eq!(
            scene.ask("PUT", "/debug/log-level", "debug\n").await,
            (200, "debug\n".into())
        );
        assert_eq!(
            (
                scene.log.level(),
                scene.ask("GET", "/debug/log-level", "").await.1
            ),
            (LogLevel::Debug, "debug\n".into())
        );
        let (code, text) = scene.ask("PUT", "/debug/log-level", "loud").await;
        assert!(code == 400 && text.contains("error, info, debug"), "{text}");
        assert_eq!(scene.log.level(), LogLevel::Debug);
    }

    #[tokio::test]
    async fn nobody_changes_the_log_level_over_the_network() {
        for (peer, code) in [
            ("10.0.0.7", 403),
            ("::ffff:10.0.0.7", 403),
            ("::1", 200),
            ("::ffff:127.0.0.1", 200),
        ] {
            let peer = SocketAddr::new(peer.parse().unwrap(), 1);
            let answer = set_level(
                State(LogControl::detached(LogLevel::Info)),
                ConnectInfo(peer),
                "debug".into(),
            )
            .await;
            assert_eq!(answer.status().as_u16(), code, "{peer}");
        }
    }

    #[tokio::test]
    async fn an_idle_connection_does_not_hold_up_the_shutdown() {
        let scene = scene().await;
        let _idle = TcpStream::connect(scene.address).await.unwrap();
        scene.tasks.token().cancel();
        scene.tasks.join(Duration::from_secs(5)).await.unwrap();
    }

    #[tokio::test]
    async fn port_zero_is_off_and_a_taken_port_is_named_with_its_flag() {
        let (tasks, metrics) = (Tasks::new(), Arc::new(Metrics::new()));
        let log = LogControl::detached(LogLevel::Info);
        let off = ProbePorts {
            health: 0,
            metrics: 0,
        };
        serve(off, Arc::default(), metrics.clone(), log.clone(), &tasks)
            .await
            .unwrap();
        tasks.token().cancel();
        tasks.join(Duration::from_secs(1)).await.unwrap();
        let taken = TcpListener::bind("[::]:0").await.unwrap();
        let port = taken.local_addr().unwrap().port();
        for (health, metrics_port, flag) in [
            (port, 0, "--health-port"),
            (0, port, "--metrics-port"),
            (port, port, "--health-port"),
        ] {
            let ports = ProbePorts {
                health,
                metrics: metrics_port,
            };
            let tasks = Tasks::new();
            let served = serve(ports, Arc::default(), metrics.clone(), log.clone(), &tasks).await;
            let text = served.unwrap_err().to_string();
            assert!(
                text.starts_with(&format!("port {port} ({flag}): Address already in use")),
                "{text}"
            );
        }
    }
}
