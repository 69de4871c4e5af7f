//! What is pushed into the registry is there for somebody else's client.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use test_support::{DockerRegistry, TestImage, assets, eventually};

const LIMIT: Duration = Duration::from_mins(1);
const SBOM: &str = "/layers/sbom/launch/acme_java/sbom.cdx.json";

/// `crane`, with a configuration of its own.
struct Crane {
    program: PathBuf,
    configuration: tempfile::TempDir,
    authority: Option<PathBuf>,
}

impl Crane {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            program: assets()?.binary("crane")?,
            configuration: tempfile::tempdir()?,
            authority: None,
        })
    }

    fn trusting(mut self, authority: &str) -> anyhow::Result<Self> {
        let file = self.configuration.path().join("authority.pem");
        std::fs::write(&file, authority)?;
        self.authority = Some(file);
        Ok(self)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("DOCKER_CONFIG", self.configuration.path());
        let none = Path::new("/dev/null");
        command.env("SSL_CERT_FILE", self.authority.as_deref().unwrap_or(none));
        command.env("SSL_CERT_DIR", self.configuration.path().join("none"));
        command
    }

    fn run(&self, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(arguments).output()?;
        let said = String::from_utf8_lossy(&stderr);
        ensure!(status.success(), "crane {arguments:?}: {said}");
        Ok(stdout)
    }

    fn text(&self, arguments: &[&str]) -> anyhow::Result<String> {
        Ok(String::from_utf8(self.run(arguments)?)?.trim().to_owned())
    }

    fn json(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.run(arguments)?)?)
    }
}

fn java() -> TestImage {
    TestImage::new()
        .config(json!({"Env": ["BP=1"], "User": "1000"}))
        .label("team", "payments")
        .layer(&[("app/run", b"#!/bin/sh")])
        .sbom(&[(SBOM, b"{\"bomFormat\": \"CycloneDX\"}")])
}

#[tokio::test]
async fn a_pushed_image_is_read_by_another_client() -> anyhow::Result<()> {
    let registry = DockerRegistry::start().await?;
    let pushed = registry.push("team/app", "v1", &java()).await?;
    let (crane, image) = (Crane::new()?, format!("{}/team/app:v1", registry.host()));
    assert_eq!(crane.text(&["digest", &image])?, pushed.digest);

    let config = crane.json(&["config", &image])?;
    assert_eq!(config["architecture"], "amd64");
    assert_eq!(config["config"]["Env"], json!(["BP=1"]));
    assert_eq!(config["config"]["Labels"]["team"], "payments");
    let manifest = crane.json(&["manifest", &image])?;
    assert_eq!(manifest["config"]["digest"], pushed.config);
    assert_eq!(manifest["layers"][1]["digest"], pushed.layers[1]);
    Ok(())
}

#[tokio::test]
async fn the_layer_that_the_label_names_holds_the_bills_of_materials() -> anyhow::Result<()> {
    let registry = DockerRegistry::start().await?;
    let pushed = registry.push("app", "v1", &java()).await?;
    let (crane, host) = (Crane::new()?, registry.host());
    let config = crane.json(&["config", &format!("{host}/app:v1")])?;
    let label = &config["config"]["Labels"]["io.buildpacks.lifecycle.metadata"];
    let metadata: Value = serde_json::from_str(label.as_str().context("no label")?)?;
    assert_eq!(metadata["sbom"]["sha"], config["rootfs"]["diff_ids"][1]);

    let layer = crane.run(&["blob", &format!("{host}/app@{}", pushed.layers[1])])?;
    let mut archive = tar::Archive::new(GzDecoder::new(layer.as_slice()));
    let mut names = Vec::new();
    for entry in archive.entries()? {
        names.push(String::from_utf8(entry?.path_bytes().into_owned())?);
    }
    assert_eq!(names, [SBOM]);
    Ok(())
}

#[tokio::test]
async fn an_index_has_an_image_for_each_platform() -> anyhow::Result<()> {
    let registry = DockerRegistry::start().await?;
    let images = [java().docker(), java().architecture("arm64")];
    let pushed = registry.push_index("app", "v1", &images).await?;
    let (crane, image) = (Crane::new()?, format!("{}/app:v1", registry.host()));
    assert_eq!(crane.text(&["digest", &image])?, pushed.digest);
    for (platform, image_of_it) in ["linux/amd64", "linux/arm64"].iter().zip(&pushed.images) {
        let digest = crane.text(&["digest", &image, "--platform", platform])?;
        assert_eq!(digest, image_of_it.digest, "{platform}");
    }
    Ok(())
}

#[tokio::test]
async fn the_same_words_make_the_same_image_and_other_words_move_the_tag() -> anyhow::Result<()> {
    let registry = DockerRegistry::start().await?;
    let first = registry.push("app", "v1", &java()).await?;
    assert_eq!(registry.push("app", "v2", &java()).await?, first);
    let other = java().sbom_by_short_label(&[("/layers/sbom/b.cdx.json", b"{}")]);
    let other = registry.push("app", "v1", &other).await?;
    assert_ne!(other.digest, first.digest);
    let image = format!("{}/app:v1", registry.host());
    assert_eq!(Crane::new()?.text(&["digest", &image])?, other.digest);
    Ok(())
}

#[tokio::test]
async fn only_those_who_know_the_password_come_in() -> anyhow::Result<()> {
    let registry = DockerRegistry::builder().with_password().start().await?;
    let pushed = registry.push("app", "v1", &java()).await?;
    let (crane, host) = (Crane::new()?, registry.host());
    let image = format!("{host}/app:v1");
    let refused = crane.run(&["digest", &image]).unwrap_err().to_string();
    assert!(refused.contains("401"), "{refused}");

    let (user, password) = (DockerRegistry::USER, DockerRegistry::PASSWORD);
    crane.run(&["auth", "login", &host, "-u", user, "-p", "wrong"])?;
    assert!(crane.run(&["digest", &image]).is_err());
    crane.run(&["auth", "login", &host, "-u", user, "-p", password])?;
    assert_eq!(crane.text(&["digest", &image])?, pushed.digest);
    Ok(())
}

#[tokio::test]
async fn only_those_who_trust_the_authority_come_in() -> anyhow::Result<()> {
    let registry = DockerRegistry::builder().with_tls().start().await?;
    let pushed = registry.push("app", "v1", &java()).await?;
    let image = format!("{}/app:v1", registry.host());
    assert!(Crane::new()?.run(&["digest", &image]).is_err());
    let authority = registry.authority()?.context("no authority")?;
    let crane = Crane::new()?.trusting(&authority)?;
    assert_eq!(crane.text(&["digest", &image])?, pushed.digest);
    Ok(())
}

#[tokio::test]
async fn a_registry_that_was_down_has_its_port_and_content_again() -> anyhow::Result<()> {
    let mut registry = DockerRegistry::builder().with_tls().start().await?;
    let pushed = registry.push("app", "v1", &java()).await?;
    let image = format!("{}/app:v1", registry.host());
    let authority = registry.authority()?.context("no authority")?;
    let crane = Crane::new()?.trusting(&authority)?;
    registry.stop();
    assert!(crane.run(&["digest", &image]).is_err());
    assert!(registry.push("app", "v2", &java()).await.is_err());
    assert!(registry.freeze().await.is_err(), "it is down");
    registry.resume().await?;
    assert_eq!(crane.text(&["digest", &image])?, pushed.digest);
    Ok(())
}

#[tokio::test]
async fn a_frozen_registry_answers_when_it_is_thawed() -> anyhow::Result<()> {
    let mut registry = DockerRegistry::start().await?;
    let pushed = registry.push("app", "v1", &java()).await?;
    registry.freeze().await?;
    let image = format!("{}/app:v1", registry.host());
    let crane = Crane::new()?;
    let mut waiting = crane.command(&["digest", &image]);
    let mut waiting = waiting.stdout(std::process::Stdio::piped()).spawn()?;
    // Somebody else gives up in the meantime.
    let image = java();
    let push = registry.push("app", "v2", &image);
    let given_up = tokio::time::timeout(Duration::from_millis(500), push).await;
    assert!(given_up.is_err(), "a frozen registry answered");
    assert!(waiting.try_wait()?.is_none(), "a frozen registry answered");
    registry.thaw()?;
    let answer = waiting.wait_with_output()?;
    assert_eq!(String::from_utf8(answer.stdout)?.trim(), pushed.digest);
    Ok(())
}

#[tokio::test]
async fn requests_are_told_but_for_those_of_the_push() -> anyhow::Result<()> {
    let registry = DockerRegistry::start().await?;
    registry.push("app", "v1", &java()).await?;
    assert_eq!(registry.requests()?, []);
    let image = format!("{}/app:v1", registry.host());
    Crane::new()?.run(&["digest", &image])?;
    let heads = eventually("the request is in the log", LIMIT, async || {
        let requests = registry.requests()?;
        let heads = requests.iter().filter(|request| request.method == "HEAD");
        let heads: Vec<_> = heads.cloned().collect();
        ensure!(!heads.is_empty(), "{requests:?}");
        anyhow::Ok(Some(heads))
    })
    .await;
    let [head] = heads.as_slice() else {
        anyhow::bail!("{heads:?}")
    };
    assert_eq!(
        (head.path.as_str(), head.status),
        ("/v2/app/manifests/v1", 200)
    );
    Ok(())
}
