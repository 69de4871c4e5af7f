//! Bills of materials beside images.

use axum::body::{Body, Bytes};
use axum::response::Response;
use conventions::credentials::Keyring;
use image_registry::{Cause, Pass, ResolvedImage, Settings};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::fake::{FakeRegistry, INDEX, MANIFEST, content, images_with, settings};

const BILL: &str = r#"{"bomFormat": "CycloneDX"}"#;

fn with(folder: &TempDir, attachments: bool, referrers: bool) -> Settings {
    Settings {
        attachments,
        referrers,
        ..settings(folder)
    }
}

/// The manifest of something that has a bill as its only layer.
fn artifact(registry: &FakeRegistry, bill: &str, subject: Option<&str>) -> Value {
    let empty = registry.put_blob("app", "{}");
    let layer = registry.put_blob("app", bill.to_owned());
    let mut manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": empty, "size": 2},
        "layers": [{"mediaType": "application/vnd.cyclonedx+json", "digest": layer, "size": bill.len()}],
    });
    if let Some(subject) = subject {
        manifest["subject"] = json!({"digest": subject, "size": 1});
    }
    manifest
}

async fn resolve(registry: &FakeRegistry, settings: Settings) -> Result<ResolvedImage, Cause> {
    let image = format!("{}/app:1", registry.host);
    let resolved = images_with(settings)
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await;
    resolved.map_err(|error| error.cause().clone())
}

fn read(image: &ResolvedImage) -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    image
        .boms
        .iter()
        .map(|bom| (bom.name.clone(), text(content(bom))))
        .collect()
}

fn expected(prefix: &str) -> Vec<(String, String)> {
    let digest = crate::fake::digest_of(BILL.as_bytes());
    vec![(format!("{prefix}:{digest}"), BILL.to_owned())]
}

#[tokio::test]
async fn what_cosign_attached_is_read_if_it_is_asked_for() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let digest = registry.put_image("app", "1", &json!({}));
    let attachment = artifact(&registry, BILL, None);
    let tag = format!("{}.sbom", digest.replace(':', "-"));
    registry.put_manifest("app", &tag, MANIFEST, &attachment);
    assert_eq!(
        read(&resolve(&registry, settings(&folder)).await.unwrap()),
        []
    );
    assert_eq!(registry.take_paths().len(), 2, "nothing more is asked for");
    let resolved = resolve(&registry, with(&folder, true, false))
        .await
        .unwrap();
    assert_eq!(read(&resolved), expected("cosign"));
    let small = Settings {
        sbom_file_bytes: 5,
        ..with(&folder, true, false)
    };
    let told = resolve(&registry, small).await.unwrap_err();
    assert!(
        matches!(told, Cause::TooLarge { size: Some(26), .. }),
        "{told:?}"
    );
}

#[tokio::test]
async fn what_refers_to_an_image_is_read_from_either_place_and_only_if_it_is_a_bill_of_it() {
    for tag in [false, true] {
        let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
        let digest = registry.put_image("app", "1", &json!({}));
        let bill = artifact(&registry, BILL, Some(&digest));
        let bill = registry.put_manifest("app", "bill", MANIFEST, &bill);
        let other = format!("sha256:{}", "1".repeat(64));
        let other = artifact(&registry, "{}", Some(&other));
        let other = registry.put_manifest("app", "other", MANIFEST, &other);
        let entry =
            |digest: &str, kind: &str| json!({"digest": digest, "size": 1, "artifactType": kind});
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [
            entry(&other, "application/vnd.cyclonedx+json"),
            entry(&digest, "application/vnd.example.signature"),
            entry(&bill, "application/vnd.cyclonedx+json"),
        ]});
        if tag {
            registry.put_manifest("app", &digest.replace(':', "-"), INDEX, &index);
        } else {
            let path = format!("/v2/app/referrers/{digest}");
            registry.put(&path, INDEX, Bytes::from(index.to_string()));
        }
        let resolved = resolve(&registry, with(&folder, false, true))
            .await
            .unwrap();
        assert_eq!(read(&resolved), expected("referrer"), "{tag}");
    }
}

#[tokio::test]
async fn all_that_is_beside_an_image_is_no_more_than_one_place_may_have() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let digest = registry.put_image("app", "1", &json!({}));
    let mut entries = Vec::new();
    for number in 0..3 {
        let mut bill = artifact(
            &registry,
            &format!("{{\"number\": {number}}}"),
            Some(&digest),
        );
        bill["layers"] = json!(vec![bill["layers"][0].clone(); 20]);
        let bill = registry.put_manifest("app", "bill", MANIFEST, &bill);
        let kind = "application/vnd.cyclonedx+json";
        entries.push(json!({"digest": bill, "size": 1, "artifactType": kind}));
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
    let path = format!("/v2/app/referrers/{digest}");
    registry.put(&path, INDEX, Bytes::from(index.to_string()));
    let resolved = resolve(&registry, with(&folder, false, true)).await;
    assert_eq!(resolved.unwrap().boms.len(), 32);
}

#[tokio::test]
async fn what_refers_to_an_image_may_be_told_in_parts_but_not_without_end() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let digest = registry.put_image("app", "1", &json!({}));
    let bill = artifact(&registry, BILL, Some(&digest));
    let bill = registry.put_manifest("app", "bill", MANIFEST, &bill);
    let place = format!("/v2/app/referrers/{digest}");
    let part = move |number: usize, last: usize| {
        // The bill is in the last part, and what leads to it names another host.
        let kind = [
            "application/vnd.example.signature",
            "application/vnd.cyclonedx+json",
        ];
        let kind = kind[usize::from(number == last)];
        let entry = json!({"digest": bill, "size": 1, "artifactType": kind});
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
        let next = format!(
            "<https://elsewhere.example/v2/x?last={}>; rel=\"next\"",
            number + 1
        );
        let response = Response::builder().header("content-type", INDEX);
        let response = if number == last {
            response
        } else {
            response.header("link", next)
        };
        response.body(Body::from(index.to_string())).unwrap()
    };
    for (last, parts, bills) in [(3, 4, expected("referrer")), (usize::MAX, 8, Vec::new())] {
        let (place, part) = (place.clone(), part.clone());
        registry.behave(move |seen| {
            let query = seen.path.strip_prefix(&place)?;
            let number = query.strip_prefix("?last=").unwrap_or("0");
            Some(part(number.parse().unwrap(), last))
        });
        registry.take_paths();
        let resolved = resolve(&registry, with(&folder, false, true)).await;
        assert_eq!(read(&resolved.unwrap()), bills);
        let paths = registry.take_paths();
        let asked = paths.iter().filter(|path| path.contains("/referrers/"));
        assert_eq!(asked.count(), parts, "{paths:?}");
    }
}

#[tokio::test]
async fn that_there_is_nothing_is_remembered() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let digest = registry.put_image("app", "1", &json!({}));
    let images = images_with(with(&folder, true, true));
    let image = format!("{}/app@{digest}", registry.host);
    for requests in [5, 0, 0] {
        images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await
            .unwrap();
        let paths = registry.take_paths();
        assert_eq!(paths.len(), requests, "{paths:?}");
    }
}
