//! Layers go through this process, and do not stay in it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use conventions::credentials::Keyring;
use futures::stream;
use image_registry::{Images, Pass, Settings, Unobserved};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const CONTENT: usize = 20 << 20;
const CHUNK: usize = 64 << 10;
/// What the peak may grow by, for a layer of 20 MiB.
const MOST: u64 = 10 << 20;

/// Parts of an archive with one file, as they come.
fn parts() -> impl Iterator<Item = Bytes> + Send {
    let mut header = tar::Header::new_gnu();
    header.set_path("sbom.json").unwrap();
    header.set_size(CONTENT as u64);
    header.set_cksum();
    let header = Bytes::copy_from_slice(header.as_bytes());
    let content =
        (0..CONTENT / CHUNK).map(|number| Bytes::from(vec![number.to_le_bytes()[0]; CHUNK]));
    std::iter::once(header)
        .chain(content)
        .chain([Bytes::from_static(&[0; 1024])])
}

fn digest_of(parts: impl Iterator<Item = Bytes>) -> String {
    let mut hash = Sha256::new();
    parts.for_each(|part| hash.update(&part));
    let hash = hash.finalize();
    let hex = hash
        .iter()
        .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    format!("sha256:{hex}")
}

/// The most memory that this process has had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<u64>()
        .unwrap()
        << 10
}

#[tokio::test]
async fn a_large_layer_takes_little_memory() {
    let layer = digest_of(parts());
    let config = json!({
        "config": {"Labels": {"io.buildpacks.app.sbom": layer}},
        "rootfs": {"diff_ids": [layer]},
    });
    let config = config.to_string();
    let config_digest = digest_of([Bytes::from(config.clone())].into_iter());
    let manifest = json!({
        "schemaVersion": 2,
        "config": {"digest": config_digest},
        "layers": [{"digest": layer}],
    });
    let manifest = manifest.to_string();
    let answer = move |request: Request| {
        let path = request.uri().path().to_owned();
        let body = if path.ends_with(&layer) {
            Body::from_stream(stream::iter(parts().map(Ok::<_, std::io::Error>)))
        } else if path.ends_with(&config_digest) {
            Body::from(config.clone())
        } else {
            Body::from(manifest.clone())
        };
        async { Response::new(body) }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap();
    let mut server = JoinSet::new();
    server.spawn(async move {
        axum::serve(listener, Router::new().fallback(answer))
            .await
            .unwrap();
    });

    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        sbom_layer_bytes: 64 << 20,
        ..Settings::new(folder.path())
    };
    let images = Images::new(settings, Arc::new(Unobserved)).unwrap();
    // What TLS, threads and connections take comes first.
    let missing = format!("{host}/app@sha256:{}", "0".repeat(64));
    images
        .resolve(&missing, &Keyring::default(), &Pass::default())
        .await
        .unwrap_err();
    let before = peak();
    let image = format!("{host}/app:1");
    let resolved = images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap();
    let grown = peak() - before;
    let [bom] = &resolved.boms[..] else {
        panic!("{resolved:?}");
    };
    assert_eq!(
        (bom.name.as_str(), bom.length),
        ("cnb-app:sbom.json", CONTENT as u64)
    );
    assert!(grown < MOST, "{grown} bytes more for a layer of {CONTENT}");
}
