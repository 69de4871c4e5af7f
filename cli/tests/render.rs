//! `carto convention render`, with servers that the library for conventions makes.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::Output;

use convention_webhook_sdk::{Applied, ConventionError, Images, Limits, Server, Template};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::TestKeyPair;
use tokio::process::Command;
use tokio::task::JoinSet;

const INTENT: &str = "
apiVersion: conventions.carto.run/v1alpha1
kind: PodIntent
metadata: {name: app}
spec:
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, resources: {limits: {cpu: '0.5'}}}]
";

async fn time_zone(template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
    let mut applied = Applied::nothing();
    for mut container in template.containers_mut() {
        applied.record("time-zone", container.default_env("TZ", "UTC")?);
    }
    Ok(applied)
}

/// Writes what it knows of the image, and fails where the template says so.
async fn tells(template: &mut Template, images: &Images) -> Result<Applied, ConventionError> {
    if template.labels().contains_key("fails") {
        return Err(ConventionError::new("take the label away"));
    }
    let user = images
        .iter()
        .filter_map(|image| image.settings().user())
        .collect::<Vec<_>>();
    template.default_annotation("user", &user.join(" "));
    Ok(Applied::from("user"))
}

async fn empties(template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
    template.set_at(&["containers"], json!([]))?;
    Ok(Applied::nothing())
}

struct Scene {
    folder: TempDir,
    url: String,
    _server: JoinSet<()>,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key_pair = TestKeyPair::signed_by_itself(&["localhost"]).unwrap();
        key_pair.write_to(folder.path()).unwrap();
        let write =
            |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
        write("intent.yaml", INTENT);
        write(
            "images.yaml",
            "[{image: web, config: {config: {User: '1000'}}}, {image: other, config: {config: {User: '0'}}}]",
        );
        let bound = Server::builder()
            .address("127.0.0.1:0".parse().unwrap())
            .tls_directory(folder.path())
            .limits(Limits::default())
            .convention("/time-zone", time_zone)
            .convention("/add-env", add_env::add_env)
            .convention("/tells", tells)
            .convention("/empties", empties)
            .bind()
            .await
            .unwrap();
        let url = format!("https://localhost:{}", bound.address().port());
        let mut server = JoinSet::new();
        server.spawn(bound.serve_until(std::future::pending()));
        Self {
            folder,
            url,
            _server: server,
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    async fn render(&self, intent: &Path, arguments: &[&str]) -> Output {
        let mut carto = Command::new(env!("CARGO_BIN_EXE_carto"));
        carto.args(["convention", "render", "-f"]).arg(intent);
        carto.arg("--ca").arg(self.path("tls.crt"));
        carto.arg("--images").arg(self.path("images.yaml"));
        carto.args(arguments).output().await.unwrap()
    }

    fn server(&self, name: &str) -> String {
        format!("--server={name}={}/{name}", self.url)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn a_template_goes_through_its_conventions_in_order() {
    let scene = Scene::new().await;
    let servers = [scene.server("time-zone"), scene.server("tells")];
    let servers = [servers[0].as_str(), servers[1].as_str()];
    let output = scene.render(&scene.path("intent.yaml"), &servers).await;
    assert!(output.status.success(), "{}", said(&output));
    let template: Value = serde_saphyr::from_slice(&output.stdout).unwrap();
    assert_eq!(
        template,
        json!({
            "metadata": {
                "labels": {"app": "web"},
                "annotations": {
                    "conventions.carto.run/applied-conventions": "time-zone/time-zone\ntells/user",
                    "user": "1000",
                },
            },
            "spec": {"containers": [{
                "name": "web",
                "image": "web",
                "resources": {"limits": {"cpu": "0.5"}},
                "env": [{"name": "TZ", "value": "UTC"}],
            }]},
        })
    );
    let output = scene
        .render(&scene.path("intent.yaml"), &[servers[0], "--diff"])
        .await;
    let expected = "\
        + metadata.annotations.conventions.carto.run/applied-conventions: \"time-zone/time-zone\"\n\
        + spec.containers[web].env[TZ].name: \"TZ\"\n\
        + spec.containers[web].env[TZ].value: \"UTC\"\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[tokio::test]
async fn the_intent_of_the_examples_comes_out_as_their_readme_says() {
    let scene = Scene::new().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/conventions");
    let server = format!("--server=add-env={}/add-env", scene.url);
    let intent = folder.join("podintent.yaml");
    let output = scene.render(&intent, &[&server, "--diff"]).await;
    assert!(output.status.success(), "{}", said(&output));
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        readme.contains(&format!("```text\n{printed}```")),
        "{printed}"
    );
}

#[tokio::test]
async fn what_the_controller_would_refuse_is_refused_by_name() {
    let scene = Scene::new().await;
    let fails = scene.path("fails.yaml");
    std::fs::write(&fails, INTENT.replace("app: web", "fails: here")).unwrap();
    let intent = scene.path("intent.yaml");
    for (intent, name, expected) in [
        (&fails, "tells", "convention tells: "),
        (&fails, "tells", "take the label away"),
        (&intent, "empties", "convention empties: spec.containers"),
        (&intent, "nobody", "convention nobody: "),
    ] {
        let output = scene.render(intent, &[&scene.server(name)]).await;
        assert!(!output.status.success());
        assert!(output.stdout.is_empty());
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}

#[tokio::test]
async fn who_is_not_trusted_is_told_with_the_flag_that_says_whom_to_trust() {
    let scene = Scene::new().await;
    let (intent, server) = (scene.path("intent.yaml"), scene.server("time-zone"));
    let render = async |authority: Option<&str>| {
        let mut carto = Command::new(env!("CARGO_BIN_EXE_carto"));
        carto
            .args(["convention", "render", &server, "-f"])
            .arg(&intent);
        if let Some(authority) = authority {
            let pem = scene.path("ca.crt");
            std::fs::write(&pem, authority).unwrap();
            carto.arg("--ca").arg(pem);
        }
        let output = carto.output().await.unwrap();
        assert!(!output.status.success());
        said(&output)
    };
    let other = TestKeyPair::signed_by_itself(&["localhost"]).unwrap();
    let another = TestKeyPair::with_another_kind_of_key(&["localhost"]).unwrap();
    let (other, another) = (other.certificate_pem(), another.certificate_pem());
    for authority in [None, Some(other), Some(another)] {
        let told = render(authority.as_deref()).await;
        assert!(told.contains("its certificate was signed by an"), "{told}");
        assert!(told.contains("--ca"), "{told}");
    }
    let told = render(Some("no certificate")).await;
    assert!(told.contains("ca.crt is no certificate: "), "{told}");
    assert!(!told.contains("caBundle"), "{told}");
}

#[tokio::test]
async fn files_that_are_none_are_told() {
    let scene = Scene::new().await;
    let server = scene.server("time-zone");
    for (text, expected) in [
        (None, "read "),
        (Some("a: ["), "is no PodIntent: "),
        (
            Some("spec: {}"),
            "is no PodIntent: it has no pod template in spec.template",
        ),
        (
            Some("{kind: Deployment, spec: {template: {spec: {}}}}"),
            "is no PodIntent: it is a \"Deployment\"; a pod template is put below spec.template",
        ),
        (
            Some("{spec: {template: {}}}\n---\n{}\n"),
            "is no PodIntent: ",
        ),
        (Some("- 1"), "is no PodIntent: "),
    ] {
        let path = scene.path("broken.yaml");
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let output = scene.render(&path, &[&server]).await;
        assert!(!output.status.success());
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}
