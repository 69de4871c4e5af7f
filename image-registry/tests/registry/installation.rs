//! Credentials of the installation: a file of Docker, and programs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conventions::credentials::Keyring;
use image_registry::{Cause, FaultKind, Images, Pass, Settings};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use test_support::eventually;

use crate::fake::{FakeRegistry, images_with, keyring, settings};

/// Lets in whoever has this name, and a password that begins with `pass`.
async fn registry_for(name: &'static str) -> FakeRegistry {
    let registry = FakeRegistry::start().await;
    registry.put_image("app", "1", &json!({}));
    registry.behave(move |seen| {
        let known = |text: &String| {
            let text = STANDARD.decode(text.trim_start_matches("Basic ")).unwrap();
            String::from_utf8(text)
                .unwrap()
                .starts_with(&format!("{name}:pass"))
        };
        let let_in = seen.path == "/v2/" || seen.authorization.as_ref().is_some_and(known);
        let response = Response::builder()
            .status(401)
            .header("www-authenticate", "Basic");
        (!let_in).then(|| response.body(Body::empty()).unwrap())
    });
    registry
}

/// A program that is this script, and a configuration that names it.
struct Plugin {
    folder: TempDir,
}

impl Plugin {
    fn new(script: &str) -> Self {
        let plugin = Self {
            folder: tempdir().unwrap(),
        };
        symlink("/bin/sh", plugin.path("plugin")).unwrap();
        let config = json!({
            "apiVersion": "kubelet.config.k8s.io/v1",
            "kind": "CredentialProviderConfig",
            "providers": [{
                "name": "plugin",
                "matchImages": [],
                "defaultCacheDuration": "1h",
                "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
                "args": ["-c", script],
                "env": [{"name": "HERE", "value": plugin.folder.path()}],
            }],
        });
        fs::write(plugin.path("config.yaml"), config.to_string()).unwrap();
        plugin
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn set_images(&self, host: &str) {
        let text = fs::read_to_string(self.path("config.yaml")).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        config["providers"][0]["matchImages"] = json!([host]);
        fs::write(self.path("config.yaml"), config.to_string()).unwrap();
    }

    fn images(&self, cache: &TempDir, host: &str) -> Images {
        self.set_images(host);
        images_with(Settings {
            plugins: Some((self.path("config.yaml"), self.folder.path().to_owned())),
            budget: Duration::from_mins(1),
            ..settings(cache)
        })
    }
}

/// A script that keeps the request and gives credentials for this host.
fn giving(host: &str) -> String {
    let answer = json!({
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "kind": "CredentialProviderResponse",
        "cacheKeyType": "Registry",
        "auth": {host: {"username": "cloud", "password": "pass"}},
    });
    format!("cat >> \"$HERE/requests\"; echo >> \"$HERE/requests\"; echo '{answer}'")
}

#[tokio::test]
async fn a_program_is_asked_once_when_nobody_else_is_let_in() {
    let (registry, folder) = (registry_for("cloud").await, tempdir().unwrap());
    let plugin = Plugin::new(&giving(&registry.host));
    let images = plugin.images(&folder, &registry.host);
    let image = format!("{}/app:1", registry.host);
    let wrong = keyring(&[(&registry.host, "wrong")]);
    for _ in 0..3 {
        images
            .resolve(&image, &wrong, &Pass::default())
            .await
            .unwrap();
    }
    let requests = fs::read_to_string(plugin.path("requests")).unwrap();
    let [request] = &requests.lines().collect::<Vec<_>>()[..] else {
        panic!("{requests}");
    };
    let request: Value = serde_json::from_str(request).unwrap();
    let expected = json!({
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "kind": "CredentialProviderRequest",
        "image": format!("{}/app", registry.host),
    });
    assert_eq!(request, expected);

    let right = keyring(&[(&registry.host, "cloud")]);
    let plugin = Plugin::new(&giving(&registry.host));
    let images = plugin.images(&folder, &registry.host);
    images
        .resolve(&image, &right, &Pass::default())
        .await
        .unwrap();
    assert!(!plugin.path("requests").exists(), "there was no need");
}

#[tokio::test]
async fn a_program_that_fails_is_told_as_a_fault_of_the_installation() {
    for (script, fault) in [
        ("echo hunter2; exit 3", "it ends with exit status: 3"),
        ("yes hunter2", "it says more than 262144 bytes"),
        (
            "echo hunter2",
            "says something that is no CredentialProviderResponse",
        ),
    ] {
        let (registry, folder) = (registry_for("cloud").await, tempdir().unwrap());
        let images = Plugin::new(script);
        let images = images.images(&folder, &registry.host);
        let image = format!("{}/app:1", registry.host);
        let told = images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await
            .unwrap_err();
        assert!(
            matches!(told.cause(), Cause::Installation(_)),
            "{script}: {told}"
        );
        assert_eq!(told.kind(), FaultKind::Infrastructure);
        let text = told.to_string();
        assert!(
            text.contains(fault) && !text.contains("hunter2"),
            "{script}: {text}"
        );
        // Images that everybody may read are read all the same.
        registry.behave(|_| None);
        images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_when_nobody_waits_for_it() {
    let (registry, folder) = (registry_for("cloud").await, tempdir().unwrap());
    let plugin = Plugin::new("echo $$ > \"$HERE/pid\"; exec sleep 1000");
    let images = plugin.images(&folder, &registry.host);
    let image = format!("{}/app:1", registry.host);
    let (nobody, pass) = (Keyring::default(), Pass::default());
    let begun = eventually("the program runs", Duration::from_mins(1), || async {
        let pid = fs::read_to_string(plugin.path("pid")).unwrap_or_default();
        anyhow::ensure!(pid.ends_with('\n'), "{pid:?}");
        Ok(())
    });
    tokio::select! {
        ended = images.resolve(&image, &nobody, &pass) => panic!("it hangs: {ended:?}"),
        () = begun => {}
    }
    let pid = fs::read_to_string(plugin.path("pid")).unwrap();
    let process = Path::new("/proc").join(pid.trim()).join("exe");
    let gone = || async { fs::read_link(&process).is_err() };
    eventually("the program is gone", Duration::from_mins(1), gone).await;
}

#[tokio::test]
async fn what_a_program_says_for_ever_is_remembered_for_long() {
    let (registry, folder) = (registry_for("cloud").await, tempdir().unwrap());
    let ever = "\"cacheDuration\":\"9223372036854775807s\",\"cacheKeyType\"";
    let plugin = Plugin::new(&giving(&registry.host).replace("\"cacheKeyType\"", ever));
    let images = plugin.images(&folder, &registry.host);
    let image = format!("{}/app:1", registry.host);
    for _ in 0..2 {
        let (nobody, pass) = (Keyring::default(), Pass::default());
        images.resolve(&image, &nobody, &pass).await.unwrap();
    }
    let requests = fs::read_to_string(plugin.path("requests")).unwrap();
    assert_eq!(requests.lines().count(), 1, "{requests}");
}

#[tokio::test]
async fn a_configuration_of_programs_that_is_broken_stops_the_start() {
    let (folder, plugin) = (tempdir().unwrap(), Plugin::new(""));
    fs::write(plugin.path("config.yaml"), "kind: Pod").unwrap();
    let made = Images::new(
        Settings {
            plugins: Some((plugin.path("config.yaml"), plugin.folder.path().to_owned())),
            ..settings(&folder)
        },
        std::sync::Arc::new(image_registry::Unobserved),
    );
    assert!(made.is_err_and(|error| error.to_string().contains("config.yaml")));
}

#[tokio::test]
async fn the_own_file_is_for_images_of_everybody_and_counts_when_it_changes() {
    let (registry, folder) = (registry_for("own").await, tempdir().unwrap());
    let file = folder.path().join("config.json");
    let cache = tempdir().unwrap();
    let images = images_with(Settings {
        docker_config: Some(file.clone()),
        access_age: Duration::ZERO,
        ..settings(&cache)
    });
    let image = format!("{}/app:1", registry.host);
    let resolve = || async {
        let resolved = images
            .resolve(&image, &keyring(&[]), &Pass::default())
            .await;
        resolved.map(drop).map_err(|error| error.kind())
    };
    assert_eq!(resolve().await, Err(FaultKind::User));
    let config = json!({"auths": {&registry.host: {"username": "own", "password": "pass"}}});
    fs::write(&file, config.to_string()).unwrap();
    assert_eq!(resolve().await, Ok(()));
    // Somebody writes it at this moment.
    for half in ["{\"auths\": {", ""] {
        fs::write(&file, half).unwrap();
        assert_eq!(resolve().await, Ok(()), "{half:?}");
    }
    fs::write(&file, json!({"auths": {}}).to_string()).unwrap();
    assert_eq!(resolve().await, Err(FaultKind::User));
}

#[tokio::test]
async fn a_program_that_failed_is_not_asked_again_at_once() {
    let (registry, folder) = (registry_for("cloud").await, tempdir().unwrap());
    let plugin = Plugin::new("echo run >> \"$HERE/runs\"; exit 1");
    let images = plugin.images(&folder, &registry.host);
    let image = format!("{}/app:1", registry.host);
    for _ in 0..5 {
        let resolved = images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await;
        assert_eq!(resolved.unwrap_err().kind(), FaultKind::Infrastructure);
    }
    assert_eq!(fs::read_to_string(plugin.path("runs")).unwrap(), "run\n");
}
