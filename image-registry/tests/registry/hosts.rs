//! Mirrors.

use std::fs;
use std::path::Path;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use conventions::credentials::Keyring;
use futures::stream;
use image_registry::{Cause, FaultKind, Images, Pass, Settings};
use serde_json::json;
use tempfile::{TempDir, tempdir};

use crate::fake::{FakeRegistry, Seen, images_with, keyring, settings, status};

struct Stand {
    mirror: FakeRegistry,
    origin: FakeRegistry,
    folder: TempDir,
    hosts: TempDir,
}

impl Stand {
    async fn new() -> Self {
        Self {
            mirror: FakeRegistry::start().await,
            origin: FakeRegistry::start().await,
            folder: tempdir().unwrap(),
            hosts: tempdir().unwrap(),
        }
    }

    fn images(&self) -> Images {
        images_with(Settings {
            hosts_folder: Some(self.hosts.path().to_owned()),
            budget: Duration::from_secs(15),
            ..settings(&self.folder)
        })
    }

    /// Says for the origin, or for all, that the mirror is one.
    fn mirrored(&self, folder: &str, more: &str) {
        let text = format!("[host.\"http://{}\"]\n{more}\n", self.mirror.host);
        write(self.hosts.path(), folder, &text);
    }

    fn image(&self, rest: &str) -> String {
        format!("{}/{rest}", self.origin.host)
    }
}

fn write(hosts: &Path, folder: &str, text: &str) {
    let folder = hosts.join(folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("hosts.toml"), text).unwrap();
}

#[tokio::test]
async fn a_mirror_is_asked_first_and_told_whose_it_is() {
    let stand = Stand::new().await;
    let digest = stand.mirror.put_image("team/app", "1", &json!({}));
    stand.mirrored(&stand.origin.host, "");
    let (image, images) = (stand.image("team/app:1"), stand.images());
    let resolved = images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap();
    assert_eq!(resolved.reference, format!("{image}@{digest}"));
    let namespace = stand.origin.host.replace(':', "%3A");
    let [manifest, config] = &stand.mirror.take_paths()[..] else {
        panic!("manifest and configuration");
    };
    assert_eq!(
        manifest,
        &format!("GET /v2/team/app/manifests/1?ns={namespace}")
    );
    assert!(config.contains("/blobs/"));
    assert!(stand.origin.seen().is_empty());
}

#[tokio::test]
async fn a_mirror_of_docker_hub_is_told_the_name_that_people_use() {
    let stand = Stand::new().await;
    stand.mirror.put_image("library/ubuntu", "1", &json!({}));
    stand.mirrored("docker.io", "");
    let (images, pass) = (stand.images(), Pass::default());
    images
        .resolve("ubuntu:1", &Keyring::default(), &pass)
        .await
        .unwrap();
    let paths = stand.mirror.take_paths();
    assert_eq!(paths.len(), 2);
    assert!(
        paths.iter().all(|path| path.ends_with("?ns=docker.io")),
        "{paths:?}"
    );
}

#[tokio::test]
async fn fields_that_only_others_know_harm_no_image() {
    let stand = Stand::new().await;
    stand.mirror.put_image("app", "1", &json!({}));
    let more = "dial_timeout = \"5s\"\nheader = {x-token = \"t\"}";
    stand.mirrored(&stand.origin.host, more);
    let (images, pass) = (stand.images(), Pass::default());
    images
        .resolve(&stand.image("app:1"), &Keyring::default(), &pass)
        .await
        .unwrap();
    assert_eq!(stand.mirror.take_paths().len(), 2);
}

#[tokio::test]
async fn whatever_a_mirror_does_the_registry_is_asked_after_it() {
    let stand = Stand::new().await;
    stand.origin.put_image("app", "1", &json!({}));
    stand.mirrored("_default", "");
    let hang = || {
        let chunks = stream::pending::<Result<Bytes, std::io::Error>>();
        Response::new(Body::from_stream(chunks))
    };
    let behaviours: [fn() -> Option<Response>; 7] = [
        || None,
        || Some(status(401, "")),
        || Some(status(429, "")),
        || Some(status(500, "")),
        || Some(status(400, "")),
        || Some(status(200, "not a manifest")),
        || None,
    ];
    for behaviour in behaviours {
        stand.mirror.behave(move |_| behaviour());
        let (image, images) = (stand.image("app:1"), stand.images());
        let digest = stand.origin.put_image("app", "1", &json!({}));
        let image_with_digest = format!("{}@{digest}", stand.image("app"));
        for image in [&image_with_digest, &image] {
            let resolved = images
                .resolve(image, &Keyring::default(), &Pass::default())
                .await;
            if behaviour().is_some_and(|response| response.status() == 200) && image.ends_with(":1")
            {
                assert!(
                    resolved.is_err(),
                    "a mirror that is believed for tags says what they mean"
                );
            } else {
                resolved.unwrap();
            }
        }
    }
    stand.mirror.behave(move |_| Some(hang()));
    let image = stand.image("app:1");
    stand
        .images()
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap();
    assert!(!stand.mirror.seen().is_empty());
}

#[tokio::test]
async fn a_mirror_that_knows_no_tags_is_asked_for_digests_only() {
    let stand = Stand::new().await;
    let digest = stand.origin.put_image("app", "1", &json!({}));
    stand.mirror.put_image("app", "1", &json!({}));
    stand.mirrored(&stand.origin.host, "capabilities = [\"pull\"]");
    let image = stand.image("app:1");
    let images = stand.images();
    images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap();
    let of_mirror = stand.mirror.take_paths();
    assert!(
        of_mirror.len() == 1 && of_mirror[0].contains("/blobs/"),
        "{of_mirror:?}"
    );
    let image = stand.image(&format!("app@{digest}"));
    let images = stand.images();
    stand.origin.take_paths();
    images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap();
    assert_eq!(
        (
            stand.mirror.take_paths().len(),
            stand.origin.take_paths().len()
        ),
        (2, 0)
    );
}

#[tokio::test]
async fn whom_the_registry_let_in_still_goes_to_the_mirrors_first() {
    let stand = Stand::new().await;
    for tag in ["1", "2"] {
        let config = json!({"tag": tag});
        stand.origin.put_image("app", tag, &config);
        stand.mirror.put_image("app", tag, &config);
    }
    let denied = |seen: &Seen| {
        let challenge = Response::builder()
            .status(401)
            .header("www-authenticate", "Basic");
        let denied = seen.path != "/v2/" && seen.authorization.is_none();
        denied.then(|| challenge.body(Body::empty()).unwrap())
    };
    stand.origin.behave(denied);
    stand.mirror.behave(|_| Some(status(500, "")));
    stand.mirrored(&stand.origin.host, "");
    let me = keyring(&[(&stand.origin.host, "me")]);
    let images = stand.images();
    let resolve = async |image: &str| {
        let image = stand.image(image);
        images
            .resolve(&image, &me, &Pass::default())
            .await
            .map(drop)
    };
    assert_eq!(resolve("app:1").await, Ok(()));
    assert_eq!(
        stand.mirror.take_paths().len(),
        1,
        "a mirror that fails is not asked again for the same image"
    );
    // Now the registry is down, and the mirror is well.
    stand.origin.behave(|_| Some(status(500, "")));
    stand.mirror.behave(|_| None);
    stand.origin.take_paths();
    assert_eq!(resolve("app:2").await, Ok(()));
    assert_eq!(stand.mirror.take_paths().len(), 2);
    assert!(stand.origin.seen().is_empty());
}

#[tokio::test]
async fn a_mirror_is_not_told_the_credentials_of_the_registry() {
    let stand = Stand::new().await;
    stand.origin.put_image("app", "1", &json!({}));
    for registry in [&stand.mirror, &stand.origin] {
        registry.behave(|seen| {
            let challenge = Response::builder()
                .status(401)
                .header("www-authenticate", "Basic");
            let denied = seen.path != "/v2/" && seen.authorization.is_none();
            denied.then(|| challenge.body(Body::empty()).unwrap())
        });
    }
    stand.mirrored("_default", "");
    let both = keyring(&[(&stand.origin.host, "origin")]);
    stand
        .images()
        .resolve(&stand.image("app:1"), &both, &Pass::default())
        .await
        .unwrap();
    assert!(
        stand
            .mirror
            .seen()
            .iter()
            .all(|seen| seen.authorization.is_none())
    );
    assert!(
        stand
            .origin
            .seen()
            .iter()
            .any(|seen| seen.authorization.is_some())
    );
}

#[tokio::test]
async fn a_file_counts_as_soon_as_it_changes_and_what_was_good_stays() {
    let stand = Stand::new().await;
    stand.origin.put_image("app", "1", &json!({}));
    stand.mirror.put_image("app", "1", &json!({}));
    let (images, image) = (stand.images(), stand.image("app:1"));
    let resolve = || async {
        let resolved = images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await;
        (resolved.map(drop), stand.mirror.take_paths().len())
    };
    assert_eq!(resolve().await, (Ok(()), 0));
    write(stand.hosts.path(), &stand.origin.host, "nonsense");
    let (told, _) = resolve().await;
    let told = told.unwrap_err();
    assert!(matches!(told.cause(), Cause::Installation(_)), "{told}");
    assert_eq!(told.kind(), FaultKind::Infrastructure);
    assert!(told.to_string().contains("hosts.toml"), "{told}");
    stand.mirrored(&stand.origin.host, "");
    assert_eq!(resolve().await, (Ok(()), 1));
    write(stand.hosts.path(), &stand.origin.host, "nonsense again");
    assert_eq!(resolve().await, (Ok(()), 1));
    fs::remove_dir_all(stand.hosts.path().join(&stand.origin.host)).unwrap();
    assert_eq!(resolve().await, (Ok(()), 0));
}

#[tokio::test]
async fn what_is_called_the_server_is_the_registry_itself_and_is_told_its_credentials() {
    let stand = Stand::new().await;
    stand.mirror.put_image("app", "1", &json!({}));
    stand.mirror.behave(|seen| {
        let challenge = Response::builder()
            .status(401)
            .header("www-authenticate", "Basic");
        let denied = seen.path != "/v2/" && seen.authorization.is_none();
        denied.then(|| challenge.body(Body::empty()).unwrap())
    });
    let server = format!("server = \"http://{}\"\n", stand.mirror.host);
    write(stand.hosts.path(), "registry.example", &server);
    let known = keyring(&[("registry.example", "known")]);
    let image = "registry.example/app:1";
    let images = stand.images();
    images
        .resolve(image, &known, &Pass::default())
        .await
        .unwrap();
    let seen = stand.mirror.seen();
    assert!(seen.iter().any(|seen| seen.authorization.is_some()));
    assert!(seen.iter().all(|seen| !seen.path.contains("ns=")));
    images
        .resolve(image, &Keyring::default(), &Pass::default())
        .await
        .unwrap_err();
}
