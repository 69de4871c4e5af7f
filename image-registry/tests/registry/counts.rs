//! What is counted, and how much is asked at the same time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::response::Response;
use conventions::credentials::Keyring;
use futures::future::join_all;
use futures::stream;
use image_registry::{CacheKind, Cause, Images, Observe, Outcome, Pass, Settings};
use serde_json::json;
use tempfile::tempdir;

use crate::fake::{FakeRegistry, images_with, settings, status};

/// Counts by what they are about.
#[derive(Default)]
struct Counts(Mutex<BTreeMap<String, usize>>);

impl Counts {
    fn count(&self, what: String) {
        *self.0.lock().unwrap().entry(what).or_default() += 1;
    }

    fn take(&self) -> Vec<String> {
        let counts = std::mem::take(&mut *self.0.lock().unwrap());
        counts
            .into_iter()
            .map(|(what, count)| format!("{what} {count}"))
            .collect()
    }
}

impl Observe for Counts {
    fn request(&self, host: &str, outcome: Outcome) {
        assert!(host.starts_with("127.0.0.1:"), "{host}");
        self.count(outcome.label().to_owned());
    }

    fn looked_up(&self, cache: CacheKind, found: bool) {
        self.count(format!("{} {found}", cache.label()));
    }
}

#[tokio::test]
async fn requests_are_counted_by_their_outcome_and_looks_by_what_was_there() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let counts = Arc::new(Counts::default());
    let images = Images::new(settings(&folder), counts.clone()).unwrap();
    let digest = registry.put_image("app", "1", &json!({}));
    let image = |rest: &str| format!("{}/app{rest}", registry.host);
    let resolve = async |rest: &str| {
        let image = image(rest);
        let resolved = images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await;
        (resolved.is_ok(), counts.take())
    };
    let expected = |texts: &[&str]| {
        texts
            .iter()
            .map(|&text| text.to_owned())
            .collect::<Vec<_>>()
    };
    let (known, counted) = resolve(":1").await;
    // The manifest is there: the tag was just asked for.
    let first = ["answered 2", "contents false 1", "contents true 1"];
    assert_eq!((known, counted), (true, expected(&first)));
    let (known, counted) = resolve(&format!("@{digest}")).await;
    assert_eq!((known, counted), (true, expected(&["contents true 2"])));
    for (code, outcome) in [
        (403, "denied 1"),
        (404, "unknown 1"),
        (429, "throttled 5"),
        (500, "refused 5"),
        (400, "refused 1"),
    ] {
        registry.behave(move |_| Some(status(code, "")));
        let (known, counted) = resolve(":2").await;
        assert_eq!((known, counted), (false, expected(&[outcome])), "{code}");
    }
}

#[tokio::test]
async fn a_flood_of_images_asks_a_registry_no_more_at_a_time_than_it_may() {
    let (registry, folder) = (FakeRegistry::start().await, tempdir().unwrap());
    let images = images_with(Settings {
        concurrency: 3,
        requests_per_second: 10_000,
        ..settings(&folder)
    });
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let highest = most.clone();
    registry.behave(move |seen| {
        if seen.path == "/v2/" {
            return None;
        }
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // It counts until its end is sent.
        let now = now.clone();
        let body = stream::once(async move {
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            let index = json!({"schemaVersion": 2, "manifests": []}).to_string();
            Ok::<_, std::io::Error>(Bytes::from(index))
        });
        Some(Response::new(Body::from_stream(body)))
    });
    let all = (0..60).map(|number| {
        let (images, image) = (&images, format!("{}/app:{number}", registry.host));
        async move {
            images
                .resolve(&image, &Keyring::default(), &Pass::default())
                .await
        }
    });
    for resolved in join_all(all).await {
        let error = resolved.unwrap_err();
        assert!(matches!(error.cause(), Cause::Platform { .. }), "{error}");
    }
    assert_eq!(
        (highest.load(Ordering::SeqCst), registry.seen().len()),
        (3, 60)
    );
}
