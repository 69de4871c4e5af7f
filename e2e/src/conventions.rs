//! The conventions controller with webhooks that were made with the SDK, each a process of its own.

mod certificates;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use test_support::{ControlPlane, Process, Scratch, free_port};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Controller;
use crate::binaries::{self, CONVENTIONS_CONTROLLER};
use crate::stack::{install, installed_controller_with};
pub use certificates::Certificates;

/// How long a webhook may take until it listens, on a busy machine.
const START_LIMIT: Duration = Duration::from_mins(2);
const API_VERSION: &str = "conventions.carto.run/v1alpha1";

/// An API server and the conventions controller, with exactly the rights of its manifest. Dropping it stops both.
pub struct ConventionStack {
    /// The conventions controller.
    pub controller: Controller,
    /// The API server and what belongs to it.
    pub control_plane: ControlPlane,
}

impl ConventionStack {
    /// Starts both, the controller with these arguments besides those of its manifest.
    ///
    /// # Errors
    ///
    /// When a part does not start; the text has the end of its log.
    pub async fn start(arguments: &[String]) -> anyhow::Result<Self> {
        let control_plane = ControlPlane::builder()
            .controller_manager(true)
            .audit()
            .start()
            .await?;
        install(&control_plane).await?;
        let controller =
            installed_controller_with(&control_plane, CONVENTIONS_CONTROLLER, arguments).await?;
        Ok(Self {
            controller,
            control_plane,
        })
    }
}

/// The webhook of an example in examples/conventions. Dropping it ends it.
pub struct ConventionWebhook {
    _process: Process,
    port: u16,
    /// What it shows to its clients.
    pub certificates: Certificates,
    _home: Scratch,
}

impl ConventionWebhook {
    /// Starts it on a free port, with a certificate of an authority of its own.
    ///
    /// # Errors
    ///
    /// When it cannot be built, or does not listen; the text has the end of its log.
    pub async fn start(example: &'static str) -> anyhow::Result<Self> {
        let home = Scratch::new("carto-convention-")?;
        let certificates = Certificates::issue(home.path().join("certificates"))?;
        let port = free_port()?;
        let mut process = Process::builder(binaries::convention(example)?)
            .env("PORT", port.to_string())
            .env("TLS_DIRECTORY", certificates.folder())
            .start(home.path().join("webhook.log"))?;
        let look = async || {
            TcpStream::connect(("127.0.0.1", port)).await?;
            Ok(())
        };
        process.ready(START_LIMIT, look).await?;
        Ok(Self {
            _process: process,
            port,
            certificates,
            _home: home,
        })
    }

    /// A ClusterPodConvention that asks it, for every PodIntent.
    pub fn convention(&self, name: &str) -> Value {
        let authorities = self.certificates.authority();
        json!({"apiVersion": API_VERSION, "kind": "ClusterPodConvention", "metadata": {"name": name},
            "spec": {"webhook": {"clientConfig": self.client_config(authorities)}}})
    }

    /// Connects and shakes hands, trusting nothing but the authority of its certificates, and sees
    /// the newest one.
    ///
    /// # Errors
    ///
    /// When it shows another certificate: it has not read the newest yet.
    pub async fn shows_the_newest(&self) -> anyhow::Result<()> {
        let mut roots = RootCertStore::empty();
        let authority = self.certificates.authority();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes())?)?;
        let config = ClientConfig::builder().with_root_certificates(roots);
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let name = ServerName::try_from("localhost")?;
        let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
        let stream = connector.connect(name, stream).await?;
        let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let newest = CertificateDer::from_pem_slice(self.certificates.newest().as_bytes())?;
        ensure!(shown.first() == Some(&newest), "it shows an older one");
        Ok(())
    }

    /// Where it is, for clients that trust these authorities.
    pub fn client_config(&self, authorities: &str) -> Value {
        json!({"url": format!("https://localhost:{}/", self.port), "caBundle": STANDARD.encode(authorities)})
    }
}

/// A PodIntent of one container, with this image if there is one.
pub fn pod_intent(namespace: &str, name: &str, image: Option<&str>) -> Value {
    let mut container = json!({"name": "app"});
    if let Some(image) = image {
        container["image"] = json!(image);
    }
    json!({"apiVersion": API_VERSION, "kind": "PodIntent",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"template": {"spec": {"containers": [container]}}}})
}

/// The condition of a PodIntent that has this type.
///
/// # Errors
///
/// When there is none; the text has those that are there.
pub fn condition<'i>(intent: &'i Value, type_: &str) -> anyhow::Result<&'i Value> {
    let conditions = &intent["status"]["conditions"];
    let mut all = conditions.as_array().into_iter().flatten();
    all.find(|condition| condition["type"] == type_)
        .with_context(|| format!("no condition {type_}: {conditions}"))
}
