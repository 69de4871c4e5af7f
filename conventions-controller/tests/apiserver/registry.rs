//! A registry in the test's own process that has one image, and behaves as it is told.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse as _, Response};
use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// What it does with a request for anything but its version.
#[derive(Clone, Copy)]
pub(crate) enum Behaves {
    /// Has `team/app:1.0`.
    Well,
    /// Gives another manifest, and another configuration, than the digest says.
    Lies,
    /// Wants to be left alone for so many seconds.
    Throttles(u32),
    /// Says nothing.
    Hangs,
}

/// It stops when it is dropped.
pub(crate) struct Registry {
    /// `team/app:1.0` there.
    pub(crate) image: String,
    /// Its digest.
    pub(crate) digest: String,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

struct Shared {
    manifest: String,
    config: String,
    behaves: Mutex<Behaves>,
    asked: Mutex<Vec<Instant>>,
}

impl Registry {
    pub(crate) async fn start(behaves: Behaves) -> Self {
        let config = json!({"config": {"User": "me"}}).to_string();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "layers": [],
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": digest_of(&config), "size": config.len()},
        });
        let shared = Arc::new(Shared {
            manifest: manifest.to_string(),
            config,
            behaves: Mutex::new(behaves),
            asked: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            image: format!("{host}/team/app:1.0"),
            digest: digest_of(&shared.manifest),
            shared,
            _serving: serving,
        }
    }

    /// What it does from now on.
    pub(crate) fn behaves(&self, behaves: Behaves) {
        *self.shared.behaves.lock() = behaves;
    }

    /// When it was asked for something.
    pub(crate) fn asked(&self) -> Vec<Instant> {
        self.shared.asked.lock().clone()
    }
}

fn digest_of(text: &str) -> String {
    let hash = Sha256::digest(text);
    let hex = hash
        .iter()
        .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    format!("sha256:{hex}")
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path();
    if path == "/v2/" {
        return StatusCode::OK.into_response();
    }
    shared.asked.lock().push(Instant::now());
    let behaves = *shared.behaves.lock();
    let is_lie = match behaves {
        Behaves::Well => false,
        Behaves::Lies => true,
        Behaves::Throttles(seconds) => {
            let after = [(RETRY_AFTER, seconds.to_string())];
            return (StatusCode::TOO_MANY_REQUESTS, after).into_response();
        }
        Behaves::Hangs => std::future::pending().await,
    };
    let (type_, content) = if path.contains("/manifests/") {
        (MANIFEST, &shared.manifest)
    } else {
        ("application/octet-stream", &shared.config)
    };
    // Another user would be told to conventions.
    let content = if is_lie && path.contains("/sha256:") {
        content.replace("me", "root")
    } else {
        content.clone()
    };
    let mut response = ([(CONTENT_TYPE, type_)], content).into_response();
    if let Ok(digest) = digest_of(&shared.manifest).parse()
        && path.contains("/manifests/")
    {
        response
            .headers_mut()
            .insert("docker-content-digest", digest);
    }
    response
}
