//! The real `docker-registry` (CNCF distribution), with files below a folder of its own.
//!
//! It differs from [`crate::OciRegistry`] in what tests of clients need: it asks for a password or shows a certificate if
//! told so, keeps its content while it is down, and tells which requests it answered.

mod access_log;
mod upload;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::json;

use crate::assets::assets;
use crate::pki::Pki;
use crate::ports::{free_ports, port_was_taken};
use crate::process::Process;
use crate::scratch::Scratch;
use crate::test_image::{Manifest, PackedImage, PushedImage, PushedIndex, TestImage};
use upload::Uploader;

pub use access_log::RegistryRequest;

const START_LIMIT: Duration = Duration::from_mins(1);
const PORT_ATTEMPTS: u32 = 5;
/// [`DockerRegistry::USER`] with the bcrypt hash of [`DockerRegistry::PASSWORD`], at the lowest cost that there is.
const HTPASSWD: &str = "carto:$2a$04$FGuRozZooNdLs/m2SUYQP.AmSa.1U36l6FYFnTwf7hRr3POHFMV5m\n";

/// A registry on a port of loopback. Dropping it ends it and removes what was pushed.
#[derive(Debug)]
pub struct DockerRegistry {
    /// Nothing while it is down.
    process: Option<Process>,
    settings: DockerRegistryBuilder,
    port: u16,
    /// Its certificate's authority, if it shows one.
    pki: Option<Pki>,
    home: Scratch,
}

/// How clients have to come. Start it with [`DockerRegistryBuilder::start`].
#[derive(Debug, Clone, Default)]
pub struct DockerRegistryBuilder {
    password: bool,
    tls: bool,
}

impl DockerRegistryBuilder {
    /// Clients must be [`DockerRegistry::USER`] and know [`DockerRegistry::PASSWORD`].
    #[must_use]
    pub fn with_password(mut self) -> Self {
        self.password = true;
        self
    }

    /// Clients must speak TLS and trust [`DockerRegistry::authority`], which signed the certificate of `localhost` and
    /// `127.0.0.1`.
    #[must_use]
    pub fn with_tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Starts an empty registry and waits until it answers.
    ///
    /// # Errors
    ///
    /// When the binary is missing (run `make control-plane`) or ends early; the message has the end of its log.
    pub async fn start(self) -> anyhow::Result<DockerRegistry> {
        let home = Scratch::new("carto-docker-registry-")?;
        let pki = self.tls.then(|| Pki::in_folder(home.path().join("pki")));
        let mut registry = DockerRegistry {
            process: None,
            settings: self,
            port: 0,
            pki: pki.transpose()?,
            home,
        };
        for attempt in 1.. {
            [registry.port] = free_ports()?;
            let Err(error) = registry.resume().await else {
                return Ok(registry);
            };
            if attempt == PORT_ATTEMPTS || !port_was_taken(&format!("{error:#}")) {
                return Err(error);
            }
            std::fs::remove_file(registry.log())?;
        }
        bail!("no attempt was made")
    }
}

impl DockerRegistry {
    /// Who may come in, if a password is asked for.
    pub const USER: &str = "carto";
    /// The password of [`DockerRegistry::USER`].
    pub const PASSWORD: &str = "open sesame";

    /// Starts an empty registry that everybody may use, without TLS.
    ///
    /// # Errors
    ///
    /// As [`DockerRegistryBuilder::start`].
    pub async fn start() -> anyhow::Result<Self> {
        Self::builder().start().await
    }

    /// An open registry without TLS, unless it is told otherwise.
    pub fn builder() -> DockerRegistryBuilder {
        DockerRegistryBuilder::default()
    }

    /// Host and port, the first part of a reference: `127.0.0.1:34567`.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The certificate of the authority that clients must trust, as PEM; nothing without TLS.
    ///
    /// # Errors
    ///
    /// When its file cannot be read.
    pub fn authority(&self) -> anyhow::Result<Option<String>> {
        let file = self.pki.as_ref().map(Pki::authority);
        let pem = file.map(std::fs::read_to_string).transpose();
        pem.context("the authority's certificate")
    }

    /// Pushes an image; a tag that exists moves to it.
    ///
    /// # Errors
    ///
    /// When the registry is down or refuses it.
    pub async fn push(
        &self,
        repository: &str,
        tag: &str,
        image: &TestImage,
    ) -> anyhow::Result<PushedImage> {
        let image = image.pack()?;
        let uploader = self.uploader()?;
        uploader.image(repository, tag, &image).await?;
        Ok(image.pushed())
    }

    /// Pushes an index of one image for each platform, in this order; a tag that exists moves to it.
    ///
    /// # Errors
    ///
    /// As [`DockerRegistry::push`].
    pub async fn push_index(
        &self,
        repository: &str,
        tag: &str,
        images: &[TestImage],
    ) -> anyhow::Result<PushedIndex> {
        let images: Vec<_> = images
            .iter()
            .map(TestImage::pack)
            .collect::<Result<_, _>>()?;
        let uploader = self.uploader()?;
        for image in &images {
            uploader
                .image(repository, &image.manifest.digest(), image)
                .await?;
        }
        let index = Manifest::of_index(&images)?;
        uploader.manifest(repository, tag, &index).await?;
        Ok(PushedIndex {
            digest: index.digest(),
            images: images.iter().map(PackedImage::pushed).collect(),
        })
    }

    /// The requests of everybody but [`DockerRegistry::push`], in the order in which they were answered. The last one may
    /// come here a moment after its client has the answer.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn requests(&self) -> anyhow::Result<Vec<RegistryRequest>> {
        let log = std::fs::read_to_string(self.log()).context("the registry's log")?;
        let all = log.lines().filter_map(RegistryRequest::parse);
        Ok(all
            .filter(|request| request.agent != upload::AGENT)
            .collect())
    }

    /// Takes it down, in the middle of whatever it does. What was pushed stays.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Freezes it: clients connect, and nobody answers. [`DockerRegistry::thaw`] ends that.
    ///
    /// # Errors
    ///
    /// When it is down.
    pub async fn freeze(&mut self) -> anyhow::Result<()> {
        let process = self.running()?;
        process.signal("STOP")?;
        // The signal takes a moment.
        let status = format!("/proc/{}/status", process.pid());
        let stopped = async || {
            let status = std::fs::read_to_string(&status)?;
            ensure!(status.contains("State:\tT"), "{status}");
            Ok(())
        };
        process.ready(START_LIMIT, stopped).await
    }

    /// Lets it answer again.
    ///
    /// # Errors
    ///
    /// When it is down.
    pub fn thaw(&mut self) -> anyhow::Result<()> {
        self.running()?.signal("CONT")
    }

    /// Starts it again after [`DockerRegistry::stop`], with the same port, certificate and content.
    ///
    /// # Errors
    ///
    /// When somebody took the port, or as [`DockerRegistryBuilder::start`].
    pub async fn resume(&mut self) -> anyhow::Result<()> {
        let configuration = self.home.path().join("configuration.yaml");
        std::fs::write(&configuration, self.configuration()?)?;
        let mut process = Process::builder(assets()?.binary("docker-registry")?)
            // It would send spans to a collector of the machine.
            .env("OTEL_TRACES_EXPORTER", "none")
            .arg("serve")
            .arg(configuration)
            .start(self.log())?;
        let uploader = self.uploader()?;
        process.ready(START_LIMIT, || uploader.is_there()).await?;
        self.process = Some(process);
        Ok(())
    }

    /// JSON is YAML too.
    fn configuration(&self) -> anyhow::Result<String> {
        let home = self.home.path();
        let mut configuration = json!({
            "version": 0.1,
            "log": {"level": "error"},
            "storage": {
                "filesystem": {"rootdirectory": home.join("content")},
                "maintenance": {"uploadpurging": {"enabled": false}},
            },
            "http": {"addr": self.host()},
        });
        if self.settings.password {
            let path = home.join("htpasswd");
            std::fs::write(&path, HTPASSWD)?;
            configuration["auth"] = json!({"htpasswd": {"realm": "carto", "path": path}});
        }
        if let Some(pki) = &self.pki {
            let shown = pki.server();
            configuration["http"]["tls"] =
                json!({"certificate": shown.certificate, "key": shown.key});
        }
        Ok(configuration.to_string())
    }

    fn uploader(&self) -> anyhow::Result<Uploader> {
        let user = (Self::USER, Self::PASSWORD);
        let user = self.settings.password.then_some(user);
        Uploader::new(&self.host(), self.authority()?.as_deref(), user)
    }

    fn running(&mut self) -> anyhow::Result<&mut Process> {
        self.process.as_mut().context("the registry is down")
    }

    fn log(&self) -> PathBuf {
        self.home.path().join("registry.log")
    }
}
