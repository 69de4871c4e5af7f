//! What is made of good answers and of bad ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::response::Response;
use conventions::credentials::Keyring;
use futures::stream;
use image_registry::{Cause, FaultKind, ImageError, Pass, PinnedDigest, Settings};
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::fake::{FakeRegistry, INDEX, digest_of, images, images_with, settings, status};

fn config() -> Value {
    json!({"os": "linux", "architecture": "amd64", "config": {"Env": ["A=1"]}, "unknown": {"kept": 1.5}})
}

async fn failure(registry: &FakeRegistry, image: &str) -> ImageError {
    let folder = tempdir().unwrap();
    let images = images(&folder);
    let image = format!("{}/{image}", registry.host);
    images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap_err()
}

#[tokio::test]
async fn configurations_that_flood_with_values_are_refused_one_by_one_and_together() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let images = images(&folder);
    let pass = Pass::default();
    let resolve = async |number: usize, values: usize, pass: &Pass| {
        let config = json!({"config": {"Labels": {}}, "flood": vec![number; values]});
        registry.put_image("app", &number.to_string(), &config);
        let image = format!("{}/app:{number}", registry.host);
        let resolved = images.resolve(&image, &Keyring::default(), pass).await;
        resolved
            .map(drop)
            .map_err(|error| (error.kind(), error.to_string()))
    };
    let (kind, told) = resolve(0, 10_001, &Pass::default()).await.unwrap_err();
    assert_eq!(kind, FaultKind::User);
    assert!(told.contains("more than 10000 values"), "{told}");
    for number in 1..=10 {
        assert_eq!(resolve(number, 9_900, &pass).await, Ok(()), "{number}");
    }
    let (kind, told) = resolve(11, 9_900, &pass).await.unwrap_err();
    assert_eq!(kind, FaultKind::User);
    assert!(told.contains("more than 100000 values"), "{told}");
    assert_eq!(resolve(11, 9_900, &Pass::default()).await, Ok(()));
}

#[tokio::test]
async fn a_registry_that_asks_for_a_long_wait_is_left_alone_and_nobody_waits_for_it() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    registry.put_image("app", "1", &json!({}));
    registry.behave(|seen| {
        let throttled = Response::builder()
            .status(429)
            .header("retry-after", "3600");
        (seen.path != "/v2/").then(|| throttled.body(Body::empty()).unwrap())
    });
    let images = images(&folder);
    let image = format!("{}/app:1", registry.host);
    for requests in [1, 0, 0] {
        let error = images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await
            .unwrap_err();
        assert!(
            matches!(error.cause(), Cause::Throttled { status: 429, .. }),
            "{error}"
        );
        let left = error.retry_after().unwrap();
        assert!(left > Duration::from_secs(20), "{left:?}");
        assert_eq!(registry.take_paths().len(), requests);
    }
}

#[tokio::test]
async fn a_tag_gets_its_digest_and_the_configuration_is_passed_on_as_it_is() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let digest = registry.put_image("team/app", "1", &config());
    let image = format!("{}/team/app:1", registry.host);
    let (images, keyring) = (images(&folder), Keyring::default());
    let resolved = images
        .resolve(&image, &keyring, &Pass::default())
        .await
        .unwrap();
    assert_eq!(resolved.reference, format!("{image}@{digest}"));
    assert_eq!(resolved.digest.as_str(), digest);
    assert_eq!(
        resolved.config_digest.as_str(),
        digest_of(config().to_string().as_bytes())
    );
    assert_eq!(resolved.config, config());
    assert_eq!(registry.take_paths().len(), 2);

    let again = images
        .resolve(&resolved.reference, &keyring, &Pass::default())
        .await
        .unwrap();
    assert_eq!(
        (again.reference, again.config),
        (resolved.reference, config())
    );
    assert_eq!(
        registry.take_paths(),
        [""; 0],
        "a digest that is known is not asked for again"
    );
}

#[tokio::test]
async fn a_tag_means_the_same_throughout_a_pass() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let first = registry.put_image("app", "latest", &config());
    let image = format!("{}/app", registry.host);
    let (images, keyring, pass) = (images(&folder), Keyring::default(), Pass::default());
    images.resolve(&image, &keyring, &pass).await.unwrap();
    let second = registry.put_image("app", "latest", &json!({"os": "plan9"}));
    registry.take_paths();
    let same = images.resolve(&image, &keyring, &pass).await.unwrap();
    assert_eq!(
        (same.digest.as_str(), registry.take_paths().len()),
        (first.as_str(), 0)
    );
    let next = images
        .resolve(&image, &keyring, &Pass::default())
        .await
        .unwrap();
    assert_eq!(next.digest.as_str(), second);
    assert_eq!(next.reference, format!("{image}:latest@{second}"));
}

#[tokio::test]
async fn an_index_is_pinned_and_the_platform_chooses_the_configuration() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let arm = registry.put_image("app", "arm", &json!({"architecture": "arm64"}));
    let amd = registry.put_image("app", "amd", &json!({"architecture": "amd64"}));
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [
        {"digest": arm, "size": 1, "platform": {"os": "linux", "architecture": "arm64"}},
        {"digest": amd, "size": 1, "platform": {"os": "linux", "architecture": "amd64"}},
    ]});
    let index = registry.put_manifest("app", "1", INDEX, &index);
    let image = format!("{}/app:1", registry.host);
    for (platform, pinned_digest, digest, architecture) in [
        ("linux/amd64", PinnedDigest::Index, &index, "amd64"),
        ("linux/arm64", PinnedDigest::Index, &index, "arm64"),
        ("linux/amd64", PinnedDigest::Child, &amd, "amd64"),
    ] {
        let images = images_with(Settings {
            platform: platform.parse().unwrap(),
            pinned_digest,
            ..settings(&folder)
        });
        let (keyring, pass) = (Keyring::default(), Pass::default());
        let resolved = images.resolve(&image, &keyring, &pass).await.unwrap();
        assert_eq!(resolved.reference, format!("{image}@{digest}"));
        assert_eq!(resolved.config["architecture"], architecture);
        let given = format!("{}/app@{index}", registry.host);
        let resolved = images.resolve(&given, &keyring, &pass).await.unwrap();
        assert_eq!(resolved.reference, given, "a digest that is given stays");
    }
    let images = images_with(Settings {
        platform: "linux/s390x".parse().unwrap(),
        ..settings(&folder)
    });
    let error = images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), FaultKind::User);
    assert!(
        error.to_string().contains("has no image for linux/s390x"),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_no_image_is_told_to_the_user() {
    let registry = FakeRegistry::start().await;
    registry.put_manifest("app", "old", "text/plain", &json!({"schemaVersion": 1}));
    registry.put("/v2/app/manifests/text", "text/plain", Bytes::from("hello"));
    for (image, cause) in [
        (
            "app:missing",
            "has no app/manifests/missing (MANIFEST_UNKNOWN)",
        ),
        ("app:old", "schema version 1"),
        ("app:text", "is not a manifest of an image"),
        ("a/../app:text", "has a part that is no name"),
        ("UPPER", "could not parse reference"),
    ] {
        let error = failure(&registry, image).await;
        assert_eq!(error.kind(), FaultKind::User, "{error}");
        let text = error.to_string();
        assert!(text.starts_with("failed to resolve image \""), "{text}");
        assert!(text.contains(cause), "{text}");
        assert!(
            text.ends_with(" as digest could not be determined from tag provided"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_registry_that_lies_about_digests_is_not_believed() {
    let registry = FakeRegistry::start().await;
    let digest = registry.put_image("app", "1", &config());
    let other = registry.put_image("app", "2", &json!({}));
    // Another manifest under the digest that was asked for; another configuration; a header that is
    // not true.
    registry.behave(move |seen| {
        let lie = |body: &'static str| Some(status(200, body));
        match seen.path.as_str() {
            path if path.ends_with(&other) => lie(r#"{"schemaVersion": 2, "manifests": []}"#),
            path if path.contains("/blobs/") => lie(r#"{"config": {"User": "root"}}"#),
            path if path.ends_with("/manifests/3") => {
                let response = Response::builder().header("docker-content-digest", &other);
                Some(
                    response
                        .body(Body::from(r#"{"schemaVersion": 2, "manifests": []}"#))
                        .unwrap(),
                )
            }
            _ => None,
        }
    });
    let other = digest_of(b"never");
    registry.put(
        &format!("/v2/app/manifests/{other}"),
        "text/plain",
        Bytes::from("always"),
    );
    for image in [
        "app:1",
        "app:3",
        &format!("app@{digest}"),
        &format!("app@{other}"),
    ] {
        let error = failure(&registry, image).await;
        assert!(
            matches!(error.cause(), Cause::Lie { .. }),
            "{image}: {error}"
        );
        assert_eq!(error.kind(), FaultKind::Infrastructure);
    }
}

#[tokio::test]
async fn a_signed_manifest_of_the_first_version_is_no_lie_and_is_refused_as_such() {
    let registry = FakeRegistry::start().await;
    let signed = r#"{"schemaVersion": 1, "fsLayers": [], "signatures": [{}]}"#;
    let digest = digest_of(b"what is signed");
    let claimed = digest.clone();
    registry.behave(move |seen| {
        let response = Response::builder().header("docker-content-digest", &claimed);
        (seen.path != "/v2/").then(|| response.body(Body::from(signed)).unwrap())
    });
    for image in ["app:1", &format!("app@{digest}")] {
        let error = failure(&registry, image).await;
        assert!(matches!(error.cause(), Cause::Schema1 { .. }), "{error}");
        assert_eq!(error.kind(), FaultKind::User);
    }
}

#[tokio::test]
async fn trouble_that_passes_is_not_told() {
    for code in [408, 429, 500, 502, 503, 504] {
        let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
        registry.put_image("app", "1", &config());
        let count = AtomicUsize::new(0);
        registry.behave(move |seen| {
            let fails =
                seen.path != "/v2/" && !count.fetch_add(1, Ordering::Relaxed).is_multiple_of(3);
            fails.then(|| status(code, ""))
        });
        let images = images(&folder);
        let image = format!("{}/app:1", registry.host);
        let resolved = images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await;
        assert_eq!(resolved.unwrap().config, config(), "{code}");
    }
}

#[tokio::test]
async fn trouble_that_stays_is_told_as_such_after_five_tries() {
    let registry = FakeRegistry::start().await;
    registry.behave(|_| Some(status(503, "")));
    let error = failure(&registry, "app").await;
    assert_eq!(error.kind(), FaultKind::Infrastructure);
    assert!(error.to_string().contains("answers 503"), "{error}");
    assert_eq!(registry.seen().len(), 5);
}

#[tokio::test]
async fn who_asks_to_be_left_alone_is() {
    let registry = FakeRegistry::start().await;
    let answer = |seconds: &'static str| {
        let response = Response::builder()
            .status(429)
            .header("retry-after", seconds);
        response.body(Body::empty()).unwrap()
    };
    registry.behave(move |_| Some(answer("3600")));
    let error = failure(&registry, "app").await;
    assert_eq!(error.retry_after(), Some(Duration::from_hours(1)));
    assert_eq!(
        (error.kind(), registry.seen().len()),
        (FaultKind::Infrastructure, 1)
    );

    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    registry.put_image("app", "1", &config());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    registry.behave(move |seen| {
        let first = seen.path != "/v2/" && count.fetch_add(1, Ordering::Relaxed) == 0;
        first.then(|| answer("1"))
    });
    let (images, start) = (images(&folder), Instant::now());
    let image = format!("{}/app:1", registry.host);
    images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn endless_answers_are_given_up() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    registry.put_image("app", "1", &config());
    let endless = || {
        let chunks =
            stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 1 << 16])));
        Response::new(Body::from_stream(chunks))
    };
    for part in ["/manifests/", "/blobs/"] {
        registry.behave(move |seen| seen.path.contains(part).then(endless));
        let images = images(&folder);
        let image = format!("{}/app:1", registry.host);
        let error = images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await
            .unwrap_err();
        assert!(matches!(error.cause(), Cause::TooLarge { .. }), "{error}");
    }
    // An error without end is an error all the same.
    registry.behave(move |seen| {
        let mut response = endless();
        *response.status_mut() = axum::http::StatusCode::FORBIDDEN;
        (seen.path != "/v2/").then_some(response)
    });
    let error = failure(&registry, "app:1").await;
    assert!(matches!(error.cause(), Cause::Denied { .. }), "{error}");
}

#[tokio::test]
async fn a_registry_that_hangs_costs_no_more_than_the_budget() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let hang = || {
        let chunks = stream::pending::<Result<Bytes, std::io::Error>>();
        Response::new(Body::from_stream(chunks))
    };
    registry.behave(move |seen| (seen.path != "/v2/").then(hang));
    let images = images_with(Settings {
        budget: Duration::from_millis(500),
        ..settings(&folder)
    });
    let image = format!("{}/app:1", registry.host);
    let start = Instant::now();
    let error = images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), FaultKind::Infrastructure);
    assert!(matches!(error.cause(), Cause::Late { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn nobody_there_is_told_as_such() {
    let folder = tempdir().unwrap();
    let images = images(&folder);
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let image = format!("{free}/app");
    let error = images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), FaultKind::Infrastructure);
    assert!(error.to_string().contains("cannot be asked for"), "{error}");
}

#[tokio::test]
async fn a_host_that_is_read_as_another_one_is_not_asked() {
    let folder = tempdir().unwrap();
    let images = images(&folder);
    for image in [
        "127.1/app",
        "0x7f.1:5000/app",
        "0177.0.0.1/app",
        "2130706433.:1/app",
    ] {
        let resolved = images
            .resolve(image, &Keyring::default(), &Pass::default())
            .await;
        let error = resolved.unwrap_err();
        assert_eq!(error.kind(), FaultKind::User, "{error}");
        assert!(error.to_string().contains("is no address"), "{error}");
    }
}

#[tokio::test]
async fn a_configuration_that_is_a_flood_of_values_is_none() {
    let registry = FakeRegistry::start().await;
    registry.put_image("app", "1", &json!({"a": vec![0; 300_000]}));
    let error = failure(&registry, "app:1").await;
    assert_eq!(error.kind(), FaultKind::User);
    assert!(
        error.to_string().ends_with("has more than 10000 values"),
        "{error}"
    );
}
