//! The HTTPS server.

mod body;
mod connections;
mod error;
mod idle;
mod key_pair;
mod limits;
mod listen;
mod logs;
mod metrics;
mod record;
mod room;
mod routes;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsAcceptor;
use tracing::info;

pub use error::{KeyPairError, ServeError};
pub use limits::Limits;
pub use logs::init_logs;
pub use routes::router;

use crate::convention::{AnyConvention, Convention};
use key_pair::KeyPair;
use metrics::Metrics;
use record::Recorder;
use routes::{Desk, HEALTH, METRICS, Routes};

/// The server of one or more conventions.
///
/// - HTTPS with TLS 1.3 and HTTP/1.1. The key pair is read from `/config/certs/tls.crt` and
///   `tls.key`, as cert-manager's Secret is mounted there, and read again when the files change.
/// - `POST` at the path of each convention; `GET /healthz` for probes, `GET /metrics` for
///   Prometheus.
/// - Everything has a bound: see [`Limits`].
/// - At SIGTERM it serves on for a moment, then answers what is under way and ends.
pub struct Server;

impl Server {
    /// A server on port 9000 with the key pair of `/config/certs`.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// The same, with what the environment says: `PORT`, `TLS_DIRECTORY`, `RECORD_DIRECTORY`. One
    /// that is empty says nothing.
    ///
    /// # Errors
    ///
    /// `PORT` is no port; whoever runs the server must correct it.
    pub fn from_env() -> Result<ServerBuilder, ServeError> {
        let mut builder = Self::builder();
        if let Some(port) = variable("PORT") {
            let port = port.to_string_lossy();
            let number = port.parse();
            let number = number.map_err(|_| ServeError::Port(port.into_owned()))?;
            builder = builder.port(number);
        }
        if let Some(directory) = variable("TLS_DIRECTORY") {
            builder = builder.tls_directory(directory);
        }
        if let Some(directory) = variable("RECORD_DIRECTORY") {
            builder = builder.record_to(directory);
        }
        Ok(builder)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "called by `main`, which decides that the environment is asked"
)]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// What a server is to be.
///
/// ```no_run
/// use convention_webhook_sdk::{Applied, ConventionError, Images, Server, Template, init_logs};
///
/// async fn label(template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
///     let mut applied = Applied::nothing();
///     applied.record("tier", template.default_label("example.com/tier", "web"));
///     Ok(applied)
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     init_logs();
///     Server::from_env()?.convention("/", label).serve().await?;
///     Ok(())
/// }
/// ```
pub struct ServerBuilder {
    address: Option<SocketAddr>,
    port: u16,
    tls_directory: PathBuf,
    record_to: Option<PathBuf>,
    limits: Limits,
    conventions: Vec<(String, Arc<dyn AnyConvention>)>,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            address: None,
            port: 9000,
            tls_directory: PathBuf::from("/config/certs"),
            record_to: None,
            limits: Limits::default(),
            conventions: Vec::new(),
        }
    }
}

impl ServerBuilder {
    /// Serves a convention at a path: that of `spec.webhook.clientConfig.service.path`, which is
    /// `/` if there is none.
    #[must_use]
    pub fn convention(mut self, path: impl Into<String>, convention: impl Convention) -> Self {
        self.conventions.push((path.into(), Arc::new(convention)));
        self
    }

    /// Listens on this port of all interfaces.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Listens on this address only.
    #[must_use]
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Where `tls.crt` and `tls.key` are.
    #[must_use]
    pub fn tls_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.tls_directory = directory.into();
        self
    }

    /// What clients may take.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Writes requests and their answers to a directory, for `testing::replay`: the first 1000, or as
    /// many as have 1 GiB.
    /// They hold whatever the templates do, so nobody else may read the files.
    #[must_use]
    pub fn record_to(mut self, directory: impl Into<PathBuf>) -> Self {
        self.record_to = Some(directory.into());
        self
    }

    /// Serves until SIGTERM or SIGINT.
    ///
    /// # Errors
    ///
    /// As [`Self::bind`].
    pub async fn serve(self) -> Result<(), ServeError> {
        let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Signals)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signals)?;
        let bound = self.bind().await?;
        let stop = async move {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            info!(signal = name, "stopping");
        };
        bound.serve_until(stop).await;
        Ok(())
    }

    /// Reads the key pair and takes the port. Connections wait until it serves.
    ///
    /// # Errors
    ///
    /// No convention, or a path that cannot be served, which the author of the server must correct;
    /// a key pair that cannot be read, a port that is taken, or a directory for records that cannot
    /// be written, which whoever runs it must correct.
    pub async fn bind(self) -> Result<BoundServer, ServeError> {
        let metrics = Arc::new(Metrics::new());
        let key_pair = KeyPair::load(&self.tls_directory, metrics.clone()).await?;
        let recorder = match &self.record_to {
            Some(directory) => Some(Arc::new(Recorder::open(directory)?)),
            None => None,
        };
        let routes = Routes::of(desks(
            self.conventions,
            &Desk::shared(self.limits, metrics.clone(), recorder),
        )?);
        let listener = listen::listen(self.address, self.port).await?;
        let address = listener.local_addr().map_err(|source| ServeError::Listen {
            address: "what was just taken".to_owned(),
            source,
        })?;
        Ok(BoundServer {
            acceptor: TlsAcceptor::from(Arc::new(listen::tls(&key_pair)?)),
            router: routes.router(&metrics),
            listener,
            address,
            key_pair,
            limits: self.limits,
            metrics,
        })
    }
}

fn desks(
    conventions: Vec<(String, Arc<dyn AnyConvention>)>,
    shared: &routes::Shared,
) -> Result<BTreeMap<String, Arc<Desk>>, ServeError> {
    let mut desks = BTreeMap::new();
    for (path, convention) in conventions {
        let is_path = path.starts_with('/') && !path.contains(['?', '#', ' ']);
        if !is_path || [HEALTH, METRICS].contains(&path.as_str()) {
            return Err(ServeError::Path(path));
        }
        let desk = Arc::new(Desk::new(path.clone(), convention, shared.clone()));
        if desks.insert(path.clone(), desk).is_some() {
            return Err(ServeError::TwoConventions(path));
        }
    }
    if desks.is_empty() {
        return Err(ServeError::NoConvention);
    }
    Ok(desks)
}

/// A server that has its port.
pub struct BoundServer {
    listener: TcpListener,
    address: SocketAddr,
    acceptor: TlsAcceptor,
    router: Router,
    key_pair: Arc<KeyPair>,
    limits: Limits,
    metrics: Arc<Metrics>,
}

impl BoundServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`, a moment longer, and until what is under way is answered: see
    /// [`Limits`].
    pub async fn serve_until(self, stop: impl Future<Output = ()>) {
        info!(address = %self.address, "serving conventions");
        let serving = connections::serve(
            self.listener,
            &self.acceptor,
            &self.router,
            self.limits,
            &self.metrics,
            stop,
        );
        // Following the files never ends by itself.
        tokio::select! {
            () = serving => {}
            () = self.key_pair.follow(self.limits.reload) => {}
        }
        info!("stopped");
    }
}
