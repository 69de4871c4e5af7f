//! Bills of materials in layers of images.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use conventions::credentials::Keyring;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::future::join_all;
use futures::stream;
use image_registry::{Cause, FaultKind, Images, Pass, ResolvedImage, Settings};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use test_support::eventually;

use crate::fake::{FakeRegistry, content, digest_of, images, images_with, settings};

fn layer(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap().into()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// The configuration of an image whose last layer, of this digest, has bills of materials.
fn config(unpacked: &str) -> Value {
    let other = digest_of(b"the application");
    json!({
        "config": {"Labels": {"io.buildpacks.lifecycle.metadata": json!({"sbom": {"sha": unpacked}}).to_string()}},
        "rootfs": {"diff_ids": [other, unpacked]},
    })
}

/// An image with this layer of bills of materials, sent as it is given.
fn put(registry: &FakeRegistry, name: &str, unpacked: &[u8], packed: impl Into<Bytes>) -> String {
    let packed = packed.into();
    let config = config(&digest_of(unpacked));
    registry.put_layers(
        name,
        "1",
        &config,
        &[Bytes::from("the application"), packed.clone()],
    );
    digest_of(&packed)
}

async fn resolve(
    images: &Images,
    registry: &FakeRegistry,
    name: &str,
) -> Result<ResolvedImage, Cause> {
    let image = format!("{}/{name}:1", registry.host);
    let resolved = images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await;
    resolved.map_err(|error| error.cause().clone())
}

fn read(image: &ResolvedImage) -> Vec<(String, Vec<u8>)> {
    let boms = image.boms.iter();
    boms.map(|bom| (bom.name.clone(), content(bom))).collect()
}

/// What is left in the folder.
fn left(folder: &TempDir) -> usize {
    std::fs::read_dir(folder.path()).unwrap().count()
}

const FILES: [(&str, &[u8]); 2] = [
    ("/layers/sbom/launch/b.cdx.json", br#"{"b": 1}"#),
    ("/layers/sbom/a.syft.json", br#"{"a": 2}"#),
];

fn expected() -> Vec<(String, Vec<u8>)> {
    FILES
        .iter()
        .map(|(name, content)| (format!("cnb-app:{name}"), content.to_vec()))
        .collect()
}

#[tokio::test]
async fn bills_are_read_from_the_layer_and_then_from_disk() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let unpacked = layer(&FILES);
    put(&registry, "packed", &unpacked, gzip(&unpacked));
    put(&registry, "plain", &unpacked, unpacked.clone());
    let halves = [gzip(&unpacked[..700]), gzip(&unpacked[700..])].concat();
    put(&registry, "halves", &unpacked, halves);
    let frames = [zstd(&unpacked[..700]), zstd(&unpacked[700..])].concat();
    put(&registry, "frames", &unpacked, frames);
    let first = images(&folder);
    for name in ["packed", "plain", "halves", "frames"] {
        let image = resolve(&first, &registry, name).await.unwrap();
        assert_eq!(read(&image), expected(), "{name}");
        assert_eq!(
            registry.take_paths().len(),
            3,
            "manifest, configuration and the one layer"
        );
        resolve(&first, &registry, name).await.unwrap();
        assert_eq!(registry.take_paths().len(), 1, "the tag");
    }
    // After a restart what is on disk is used, once the registry has let us in.
    let second = images(&folder);
    assert_eq!(
        read(&resolve(&second, &registry, "packed").await.unwrap()),
        expected()
    );
    assert_eq!(registry.take_paths().len(), 2);
}

#[tokio::test]
async fn a_broken_file_on_disk_is_fetched_again() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let unpacked = layer(&FILES);
    put(&registry, "app", &unpacked, gzip(&unpacked));
    resolve(&images(&folder), &registry, "app").await.unwrap();
    let file = std::fs::read_dir(folder.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::fs::write(&file, &unpacked[1..]).unwrap();
    let image = resolve(&images(&folder), &registry, "app").await.unwrap();
    assert_eq!(read(&image), expected());
}

#[tokio::test]
async fn a_layer_is_fetched_once_for_all_who_want_it_at_the_same_time() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let unpacked = layer(&FILES);
    let packed = put(&registry, "app", &unpacked, gzip(&unpacked));
    let images = images(&folder);
    let all = join_all((0..50).map(|_| resolve(&images, &registry, "app"))).await;
    assert!(
        all.into_iter()
            .all(|image| read(&image.unwrap()) == expected())
    );
    let paths = registry.take_paths();
    let of = |what: &str| paths.iter().filter(|path| path.contains(what)).count();
    assert_eq!((of(&packed), of("/blobs/")), (1, 2), "{paths:?}");
}

#[tokio::test]
async fn who_gives_up_lets_the_next_one_fetch_and_leaves_nothing() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let unpacked = layer(&FILES);
    let packed = put(&registry, "app", &unpacked, gzip(&unpacked));
    let (asked, wanted) = (Arc::new(AtomicUsize::new(0)), packed.clone());
    let count = asked.clone();
    registry.behave(move |seen| {
        let first = seen.path.contains(&wanted) && count.fetch_add(1, Ordering::Relaxed) == 0;
        let begun = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(&[0x1f, 0x8b]))]);
        first.then(|| {
            Response::new(Body::from_stream(futures::StreamExt::chain(
                begun,
                stream::pending(),
            )))
        })
    });
    let images = images(&folder);
    let begun = eventually(
        "the layer is asked for",
        Duration::from_secs(30),
        || async {
            anyhow::ensure!(asked.load(Ordering::Relaxed) == 1, "not yet");
            Ok(())
        },
    );
    tokio::select! {
        ended = resolve(&images, &registry, "app") => panic!("it hangs: {ended:?}"),
        () = begun => {}
    }
    assert_eq!(
        read(&resolve(&images, &registry, "app").await.unwrap()),
        expected()
    );
    let only_one = || async {
        anyhow::ensure!(left(&folder) == 1, "{} files", left(&folder));
        Ok(())
    };
    eventually(
        "nothing is left but the layer",
        Duration::from_secs(10),
        only_one,
    )
    .await;
}

#[tokio::test]
async fn what_arrives_at_the_same_time_is_no_more_than_the_cache_may_hold() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let large = |fill: u8| layer(&[("/layers/sbom/a.syft.json", &vec![fill; 300_000])]);
    let (slow, other) = (large(1), large(2));
    let packed = put(&registry, "slow", &slow, slow.clone());
    put(&registry, "other", &other, other.clone());
    let (begun, wanted) = (Bytes::from(slow[..290_000].to_owned()), packed);
    registry.behave(move |seen| {
        let begun = stream::iter([Ok::<_, std::io::Error>(begun.clone())]);
        let body = Body::from_stream(futures::StreamExt::chain(begun, stream::pending()));
        seen.path.contains(&wanted).then(|| Response::new(body))
    });
    let images = images_with(Settings {
        disk_bytes: 400_000,
        ..settings(&folder)
    });
    let arrives = eventually("one arrives", Duration::from_mins(1), || async {
        let files = std::fs::read_dir(folder.path())?;
        let sizes = files.map(|file| Ok(file?.metadata()?.len()));
        let arrived = sizes.sum::<std::io::Result<u64>>()?;
        anyhow::ensure!(arrived == 290_000, "{arrived} bytes");
        Ok(())
    });
    let refused = async {
        arrives.await;
        resolve(&images, &registry, "other").await.unwrap_err()
    };
    let told = tokio::select! {
        ended = resolve(&images, &registry, "slow") => panic!("it hangs: {ended:?}"),
        told = refused => told,
    };
    assert!(matches!(told, Cause::Installation(_)), "{told}");
    assert!(told.to_string().contains("no room"), "{told}");
    let alone = || async { resolve(&images, &registry, "other").await.map(drop) };
    eventually("the slow one is gone", Duration::from_mins(1), alone).await;
}

#[tokio::test]
async fn all_images_of_an_object_together_have_no_more_than_two_layers_of_bills_may_have() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let of = |content: &'static [u8]| layer(&[("/layers/sbom/a.syft.json", content)]);
    let layers = [of(b"1"), of(b"2"), of(b"3")];
    for (name, layer) in ["one", "two", "three"].iter().zip(&layers) {
        put(&registry, name, layer, layer.clone());
    }
    let images = images_with(Settings {
        sbom_layer_bytes: layers[0].len() as u64 + 100,
        ..settings(&folder)
    });
    let resolve = async |name: &str, pass: &Pass| {
        let image = format!("{}/{name}:1", registry.host);
        let resolved = images.resolve(&image, &Keyring::default(), pass).await;
        resolved
            .map(|image| image.boms.len())
            .map_err(|error| (error.kind(), error.to_string()))
    };
    let pass = Pass::default();
    for name in ["one", "two", "one", "two"] {
        assert_eq!(resolve(name, &pass).await, Ok(1), "the same is not more");
    }
    let (kind, told) = resolve("three", &pass).await.unwrap_err();
    assert_eq!(kind, FaultKind::User);
    assert!(
        told.contains("all images") && told.contains("twice --max-sbom-layer-size"),
        "{told}"
    );
    assert_eq!(resolve("three", &Pass::default()).await, Ok(1));
}

#[tokio::test]
async fn what_is_larger_than_it_may_be_is_told_with_its_flag() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let settings = || Settings {
        sbom_file_bytes: 1000,
        sbom_layer_bytes: 1 << 20,
        ..settings(&folder)
    };
    let large = layer(&[("small", b"x"), ("large", &[b'x'; 1001])]);
    put(&registry, "file", &large, gzip(&large));
    // A MiB and a half of one letter, in some KiB.
    let bomb = layer(&[("bomb", &vec![b'x'; 3 << 19])]);
    put(&registry, "bomb", &bomb, gzip(&bomb));
    put(&registry, "plain", &bomb, bomb.clone());
    put(&registry, "zstd", &bomb, zstd(&bomb));
    let images = images_with(settings());
    let told = resolve(&images, &registry, "file").await.unwrap_err();
    let unpacked = digest_of(&large);
    assert_eq!(
        told.to_string(),
        format!(
            "\"large\" in layer {unpacked} of bills of materials has 1001 bytes, more than the 1000 bytes that are taken (--max-sbom-size)"
        )
    );
    assert_eq!(told.kind(), FaultKind::User);
    let long = layer(&[(&"x\u{1b}".repeat(45), &[b'x'; 1001])]);
    put(&registry, "long", &long, gzip(&long));
    let told = resolve(&images, &registry, "long").await.unwrap_err();
    let told = told.to_string();
    assert!(told.len() < 400 && !told.contains('\u{1b}'), "{told}");
    for name in ["bomb", "plain", "zstd"] {
        let told = resolve(&images, &registry, name)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            told.ends_with(
                "has more than the 1048576 bytes that are taken (--max-sbom-layer-size)"
            ),
            "{told}"
        );
    }
    assert_eq!(
        left(&folder),
        2,
        "only the layers are kept whose size is right"
    );
}

#[tokio::test]
async fn a_layer_without_end_is_given_up() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let unpacked = layer(&FILES);
    let packed = put(&registry, "app", &unpacked, gzip(&unpacked));
    let (gzip, skipped) = (
        &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff][..],
        &[0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff][..],
    );
    for head in [&b"plain"[..], gzip, skipped] {
        let wanted = packed.clone();
        registry.behave(move |seen| {
            let chunks =
                stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![0; 1 << 16])));
            let head = stream::iter([Ok(Bytes::from_static(head))]);
            let body = futures::StreamExt::chain(head, chunks);
            seen.path
                .contains(&wanted)
                .then(|| Response::new(Body::from_stream(body)))
        });
        let images = images_with(Settings {
            sbom_layer_bytes: 4 << 20,
            ..settings(&folder)
        });
        let told = resolve(&images, &registry, "app").await.unwrap_err();
        assert!(matches!(told, Cause::TooLarge { .. }), "{told}");
    }
    assert_eq!(left(&folder), 0);
}

#[tokio::test]
async fn layers_that_are_not_what_they_are_said_to_be_are_not_kept() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let unpacked = layer(&FILES);
    let other = layer(&[("other", b"x")]);
    // The registry sends something else.
    let packed = put(&registry, "lie", &unpacked, gzip(&unpacked));
    registry.put(
        &format!("/v2/lie/blobs/{packed}"),
        "text/plain",
        gzip(&other),
    );
    // It breaks off.
    let packed = put(&registry, "half", &unpacked, gzip(&unpacked));
    let whole = gzip(&unpacked);
    registry.put(
        &format!("/v2/half/blobs/{packed}"),
        "text/plain",
        whole.slice(..whole.len() / 2),
    );
    for name in ["lie", "half"] {
        let told = resolve(&images(&folder), &registry, name)
            .await
            .unwrap_err();
        assert!(matches!(told, Cause::Lie { .. }), "{name}: {told}");
    }
    // The image says what is not true of its own layer, or has one that is none.
    put(&registry, "other", &unpacked, gzip(&other));
    put(&registry, "cut", &unpacked, whole.slice(..whole.len() / 2));
    put(
        &registry,
        "zstd",
        &unpacked,
        Bytes::from_static(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0]),
    );
    put(
        &registry,
        "window",
        &unpacked,
        Bytes::from_static(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0xff, 0, 0, 0]),
    );
    for (name, fault) in [
        (
            "other",
            "has another digest unpacked than the configuration says",
        ),
        ("cut", "cannot be unpacked"),
        ("zstd", "cannot be unpacked"),
        ("window", "is packed with a window of more than 8 MiB"),
    ] {
        let told = resolve(&images(&folder), &registry, name)
            .await
            .unwrap_err();
        assert_eq!(told.kind(), FaultKind::User, "{name}");
        assert!(told.to_string().ends_with(fault), "{name}: {told}");
    }
    assert_eq!(left(&folder), 0);
    for text in [&b"no archive"[..], &[b'x'; 5000]] {
        put(&registry, "text", text, gzip(text));
        let told = resolve(&images(&folder), &registry, "text")
            .await
            .unwrap_err();
        assert_eq!(told.kind(), FaultKind::User);
        assert!(
            told.to_string()
                .contains("of bills of materials is no archive"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn nobody_reads_the_bills_of_an_image_of_others_by_naming_their_layer() {
    let (registry, evil) = (FakeRegistry::start().await, FakeRegistry::start().await);
    let folder = tempdir().unwrap();
    let unpacked = layer(&FILES);
    let packed = put(&registry, "secret", &unpacked, gzip(&unpacked));
    let images = images(&folder);
    resolve(&images, &registry, "secret").await.unwrap();
    // A registry of one's own says that it has the layer, and does not.
    for (registry, name) in [(&registry, "mine"), (&evil, "secret")] {
        put(registry, name, &unpacked, gzip(&unpacked));
        registry.put(
            &format!("/v2/{name}/blobs/{packed}"),
            "text/plain",
            Bytes::new(),
        );
        let told = resolve(&images, registry, name).await.unwrap_err();
        assert!(matches!(told, Cause::Lie { .. }), "{name}: {told}");
    }
}
