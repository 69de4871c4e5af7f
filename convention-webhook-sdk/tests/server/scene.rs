//! A server, and clients that trust it.

use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use convention_webhook_sdk::{
    Applied, ConventionError, Images, Limits, Server, ServerBuilder, Template,
};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serde_json::Value;
use tempfile::TempDir;
use test_support::TestKeyPair;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longer than any machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);
/// What nobody reaches in a test that is about something else.
pub(crate) const NEVER: Duration = Duration::from_mins(10);

pub(crate) const REQUEST: &str = r#"{"metadata": {"name": "app-env"}, "spec": {"template": {"spec": {"containers": [{"name": "web"}]}}}}"#;

/// Limits that do not strike, and no wait at the end.
pub(crate) fn limits() -> Limits {
    Limits {
        opening: NEVER,
        idle: NEVER,
        body: NEVER,
        convention: NEVER,
        withdrawal: Duration::ZERO,
        drain: NEVER,
        reload: Duration::from_millis(5),
        ..Limits::default()
    }
}

/// A certificate of its own for `localhost`, with its key.
pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) pem: String,
    pub(crate) key: String,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let made = TestKeyPair::signed_by_itself(&["localhost"]).unwrap();
        Self {
            certificate: made.certificate(),
            pem: made.certificate_pem(),
            key: made.key_pem(),
        }
    }

    /// As the kubelet mounts a Secret: files are links into a folder that is exchanged by one
    /// rename.
    pub(crate) fn mount(&self, directory: &Path, version: &str) {
        let data = directory.join(format!("..{version}"));
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join("tls.crt"), &self.pem).unwrap();
        std::fs::write(data.join("tls.key"), &self.key).unwrap();
        symlink(&data, directory.join("..data_tmp")).unwrap();
        std::fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
        for file in ["tls.crt", "tls.key"] {
            let _ = symlink(Path::new("..data").join(file), directory.join(file));
        }
    }
}

pub(crate) struct Scene {
    pub(crate) directory: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) identity: Identity,
    stop: watch::Sender<bool>,
    server: JoinSet<()>,
}

impl Scene {
    pub(crate) async fn new(builder: ServerBuilder) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let identity = Identity::new();
        identity.mount(directory.path(), "first");
        let bound = builder
            .address("127.0.0.1:0".parse().unwrap())
            .tls_directory(directory.path())
            .bind()
            .await
            .unwrap();
        let address = bound.address();
        let (stop, mut stopped) = watch::channel(false);
        let mut server = JoinSet::new();
        server.spawn(bound.serve_until(async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }));
        Self {
            directory,
            address,
            identity,
            stop,
            server,
        }
    }

    pub(crate) async fn with_limits(limits: Limits) -> Self {
        Self::new(Server::builder().limits(limits).convention("/", env)).await
    }

    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits for the end of the server, which must be stopped.
    pub(crate) async fn ended(&mut self) {
        let ended = tokio::time::timeout(PATIENCE, self.server.join_next()).await;
        ended.expect("the server ends").unwrap().unwrap();
    }

    /// A connection that trusts the first certificate.
    pub(crate) async fn client(&self) -> Client {
        let connector = trusting([&self.identity.certificate], &[&rustls::version::TLS13]);
        Client::connect(self.address, &connector).await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> (StatusCode, String) {
        self.client().await.post(path, body).await.unwrap()
    }
}

/// A connector that trusts these certificates.
pub(crate) fn trusting<'c>(
    certificates: impl IntoIterator<Item = &'c CertificateDer<'static>>,
    versions: &[&'static SupportedProtocolVersion],
) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

pub(crate) async fn handshake(
    address: SocketAddr,
    connector: &TlsConnector,
) -> anyhow::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost")?;
    Ok(connector.connect(name, stream).await?)
}

/// One connection of HTTP.
pub(crate) struct Client {
    send: SendRequest<Full<Bytes>>,
    _connection: JoinSet<()>,
}

impl Client {
    pub(crate) async fn connect(
        address: SocketAddr,
        connector: &TlsConnector,
    ) -> anyhow::Result<Self> {
        let stream = TokioIo::new(handshake(address, connector).await?);
        let (send, connection) = hyper::client::conn::http1::handshake(stream).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _ = connection.await;
        });
        Ok(Self {
            send,
            _connection: tasks,
        })
    }

    pub(crate) async fn post(
        &mut self,
        path: &str,
        body: impl Into<Bytes>,
    ) -> anyhow::Result<(StatusCode, String)> {
        self.ask("POST", path, body.into()).await
    }

    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<(StatusCode, String)> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .body(Full::new(body))?;
        let answer = tokio::time::timeout(PATIENCE, self.send.send_request(request)).await??;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}

pub(crate) async fn env(template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
    let mut applied = Applied::nothing();
    for mut container in template.containers_mut() {
        applied.record("env", container.default_env("A", "b")?);
    }
    Ok(applied)
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
