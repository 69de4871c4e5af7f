//! Which authorities count where, and with TLS or without.

use std::fs;
use std::path::PathBuf;

use axum::body::Body;
use axum::response::Response;
use conventions::credentials::Keyring;
use image_registry::{Cause, FaultKind, ImageError, Images, Pass, Settings};
use serde_json::json;
use tempfile::{TempDir, tempdir};
use test_support::TestAuthority;

use crate::fake::{FakeRegistry, images_with, settings, status};

struct Stand {
    authority: TestAuthority,
    registry: FakeRegistry,
    cache: TempDir,
    hosts: TempDir,
}

impl Stand {
    /// A registry with TLS that has an image, and whose authority nobody trusts yet.
    async fn new() -> Self {
        let authority = TestAuthority::new("the right one").unwrap();
        let registry = FakeRegistry::start_secure(&authority).await;
        registry.put_image("app", "1", &json!({}));
        Self {
            registry,
            authority,
            cache: tempdir().unwrap(),
            hosts: tempdir().unwrap(),
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            hosts_folder: Some(self.hosts.path().to_owned()),
            tries: 1,
            ..settings(&self.cache)
        }
    }

    fn images(&self) -> Images {
        images_with(self.settings())
    }

    fn authorities(&self) -> PathBuf {
        self.hosts.path().join("ca.crt")
    }

    /// Writes the file of a registry, with these authorities for the one that has TLS.
    fn write(&self, registry: &str, before: &str) {
        let (host, file) = (&self.registry.host, self.authorities());
        let text = before.replace("HOST", &format!("https://{host}"));
        let folder = self.hosts.path().join(registry);
        fs::create_dir_all(&folder).unwrap();
        let text = format!("{text}\nca = \"{}\"\n", file.display());
        fs::write(folder.join("hosts.toml"), text).unwrap();
    }

    async fn resolve(&self, images: &Images, registry: &FakeRegistry) -> Result<(), ImageError> {
        let image = format!("{}/app:1", registry.host);
        let (nobody, pass) = (Keyring::default(), Pass::default());
        images.resolve(&image, &nobody, &pass).await.map(drop)
    }
}

fn challenge(realm: &str) -> Response {
    let response = Response::builder()
        .status(401)
        .header("www-authenticate", format!("Bearer realm=\"{realm}\""));
    response.body(Body::empty()).unwrap()
}

/// Has a registry lead to another one for its tokens and contents.
fn lead(from: &FakeRegistry, to: &str) {
    let to = to.to_owned();
    from.behave(move |seen| {
        if seen.authorization.is_none() {
            return Some(challenge(&format!("https://{to}/token")));
        }
        let location = format!("https://{to}{}", seen.path);
        let led = Response::builder().status(307).header("location", location);
        seen.path
            .contains("/blobs/")
            .then(|| led.body(Body::empty()).unwrap())
    });
}

#[tokio::test]
async fn authorities_of_a_host_count_at_all_its_ports_and_at_no_other_host() {
    let stand = Stand::new().await;
    fs::write(stand.authorities(), stand.authority.pem()).unwrap();
    stand.write(&stand.registry.host, "server = \"HOST\"");
    let other = FakeRegistry::start_secure(&stand.authority).await;
    other.put_image("app", "1", &json!({}));
    other.behave(|seen| {
        let token = seen.path.starts_with("/token");
        token.then(|| status(200, r#"{"token": "t", "expires_in": 300}"#))
    });
    lead(&stand.registry, &other.host);
    assert_eq!(
        stand.resolve(&stand.images(), &stand.registry).await,
        Ok(())
    );
    assert_eq!(other.take_paths().len(), 2, "a token and the configuration");

    // The same one by another name.
    let port = other.host.rsplit(':').next().unwrap();
    lead(&stand.registry, &format!("localhost:{port}"));
    let images = stand.images();
    let error = stand.resolve(&images, &stand.registry).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(other.seen().is_empty());
    let images = images_with(Settings {
        ca_file: Some(stand.authorities()),
        ..stand.settings()
    });
    assert_eq!(stand.resolve(&images, &stand.registry).await, Ok(()));
}

#[tokio::test]
async fn a_mirror_whose_authorities_are_broken_is_passed_over_until_they_are_not() {
    let stand = Stand::new().await;
    let origin = FakeRegistry::start().await;
    origin.put_image("app", "1", &json!({}));
    stand.write(&origin.host, "[host.\"HOST\"]");
    let images = stand.images();
    for broken in [None, Some("nonsense"), Some("-----BEGIN CERTIFICATE-----")] {
        if let Some(broken) = broken {
            fs::write(stand.authorities(), broken).unwrap();
        }
        assert_eq!(stand.resolve(&images, &origin).await, Ok(()), "{broken:?}");
        assert!(stand.registry.seen().is_empty());
    }
    fs::write(stand.authorities(), stand.authority.pem()).unwrap();
    origin.take_paths();
    assert_eq!(stand.resolve(&images, &origin).await, Ok(()));
    assert!(origin.seen().is_empty() && !stand.registry.take_paths().is_empty());
}

#[tokio::test]
async fn a_registry_whose_authorities_are_broken_fails_alone_and_what_was_good_stays() {
    let stand = Stand::new().await;
    let other = FakeRegistry::start().await;
    other.put_image("app", "1", &json!({}));
    stand.write(&stand.registry.host, "server = \"HOST\"");
    let images = stand.images();
    for broken in [None, Some("nonsense")] {
        if let Some(broken) = broken {
            fs::write(stand.authorities(), broken).unwrap();
        }
        let error = stand.resolve(&images, &stand.registry).await.unwrap_err();
        assert!(matches!(error.cause(), Cause::Installation(_)), "{error}");
        assert_eq!(error.kind(), FaultKind::Infrastructure);
        assert!(error.to_string().contains("ca.crt"), "{error}");
        assert_eq!(stand.resolve(&images, &other).await, Ok(()));
    }
    fs::write(stand.authorities(), stand.authority.pem()).unwrap();
    assert_eq!(stand.resolve(&images, &stand.registry).await, Ok(()));
    for broken in [Some("nonsense"), None] {
        match broken {
            Some(broken) => fs::write(stand.authorities(), broken).unwrap(),
            None => fs::remove_file(stand.authorities()).unwrap(),
        }
        assert_eq!(
            stand.resolve(&images, &stand.registry).await,
            Ok(()),
            "{broken:?}"
        );
    }
    let other = TestAuthority::new("another one").unwrap();
    // Others are trusted as soon as they are there, and then the old ones are not.
    fs::write(stand.authorities(), other.pem()).unwrap();
    let error = stand.resolve(&images, &stand.registry).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_registry_of_this_host_may_have_tls_from_one_day_on_and_lose_it() {
    let stand = Stand::new().await;
    fs::write(stand.authorities(), stand.authority.pem()).unwrap();
    let images = images_with(Settings {
        ca_file: Some(stand.authorities()),
        ..stand.settings()
    });
    for secure in [false, true, false] {
        stand.registry.speak_tls(secure);
        // The first one may still do as it was.
        let _ = stand.resolve(&images, &stand.registry).await;
        assert_eq!(
            stand.resolve(&images, &stand.registry).await,
            Ok(()),
            "{secure}"
        );
    }
    // A program with TLS may say so to whom has none.
    stand.registry.behave(|_| Some(status(400, "")));
    let error = stand.resolve(&images, &stand.registry).await.unwrap_err();
    assert_eq!(error.kind(), FaultKind::User, "{error}");
    stand.registry.behave(|_| None);
    stand.registry.speak_tls(true);
    assert_eq!(stand.resolve(&images, &stand.registry).await, Ok(()));
}
