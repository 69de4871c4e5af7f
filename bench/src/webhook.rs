//! The webhook of all conventions of the bench: over TLS, and as fast as one can be.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::Listener;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use rcgen::CertifiedKey;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::api::Api;

const LOCALHOST: &str = "127.0.0.1";

/// A server that answers as long as this value is there.
pub(crate) struct Webhook {
    _task: JoinSet<()>,
    seen: Arc<Counts>,
    address: SocketAddr,
    certificate: CertificateDer<'static>,
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    bytes: AtomicU64,
}

/// What it reads of a request. Bills of materials are passed over.
#[derive(Deserialize)]
struct Asked {
    metadata: Value,
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    template: Value,
}

impl Webhook {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed([LOCALHOST.to_owned()])?;
        let key = PrivateKeyDer::try_from(signing_key.serialize_der());
        let key = key.map_err(anyhow::Error::msg)?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)?;
        let listener = TlsListener {
            tcp: TcpListener::bind((LOCALHOST, 0)).await?,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        };
        let (address, seen) = (listener.local_addr()?, Arc::<Counts>::default());
        let app = Router::new()
            .route("/{convention}", post(decorate))
            .layer(DefaultBodyLimit::disable())
            .with_state(seen.clone());
        let mut task = JoinSet::new();
        task.spawn(async move {
            // It only ends with the task.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self {
            _task: task,
            seen,
            address,
            certificate: cert.der().clone(),
        })
    }

    /// How often it was called so far.
    pub(crate) fn calls(&self) -> u64 {
        self.seen.calls.load(Relaxed)
    }

    /// How much it was told.
    pub(crate) fn bytes(&self) -> u64 {
        self.seen.bytes.load(Relaxed)
    }

    /// What a convention of this name says of it.
    pub(crate) fn client_config(&self, convention: &str) -> Value {
        let authority = format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            STANDARD.encode(&self.certificate)
        );
        json!({
            "url": format!("https://{}/{convention}", self.address),
            "caBundle": STANDARD.encode(authority),
        })
    }

    /// Connections of the bare client.
    pub(crate) fn connect(&self) -> anyhow::Result<Api> {
        let mut config = kube::Config::new(format!("https://{}", self.address).parse()?);
        config.root_cert = Some(vec![self.certificate.to_vec()]);
        let client = kube::Client::try_from(config)?;
        Ok(Api { client })
    }
}

/// Each convention adds an annotation with its name.
async fn decorate(
    State(seen): State<Arc<Counts>>,
    Path(convention): Path<String>,
    body: Bytes,
) -> Response {
    seen.calls.fetch_add(1, Relaxed);
    seen.bytes.fetch_add(body.len() as u64, Relaxed);
    let Asked { metadata, spec } = match serde_json::from_slice(&body) {
        Ok(asked) => asked,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let mut template = spec.template;
    template["metadata"]["annotations"][format!("bench.carto.run/{convention}")] = json!("applied");
    let answer = json!({
        "apiVersion": "webhooks.conventions.carto.run/v1alpha1",
        "kind": "PodConventionContext",
        "metadata": metadata,
        "status": {"template": template, "appliedConventions": ["annotation"]},
    });
    Json(answer).into_response()
}

struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, from) = Listener::accept(&mut self.tcp).await;
            // Without it, the end of an answer waits for the acknowledgement of its beginning.
            let _ = stream.set_nodelay(true);
            // A client that does not trust it goes away.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_convention_adds_an_annotation_to_the_template_and_is_counted() {
        let webhook = Webhook::start().await.unwrap();
        let client = webhook.connect().unwrap();
        let asked = json!({"metadata": {"name": "a"}, "spec": {"template": {"metadata": {}}}});
        let answer = client.post("/one", &asked).await.unwrap();
        let annotations = &answer["status"]["template"]["metadata"]["annotations"];
        assert_eq!(*annotations, json!({"bench.carto.run/one": "applied"}));
        let length = u64::try_from(asked.to_string().len()).unwrap();
        assert_eq!((webhook.calls(), webhook.bytes()), (1, length));
        assert!(client.post("/one", &json!({})).await.is_err());
    }
}
