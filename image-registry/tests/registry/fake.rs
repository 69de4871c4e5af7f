//! A registry in this process.

use std::collections::HashMap;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::response::Response;
use conventions::credentials::{Keyring, SecretKind};
use image_registry::{Images, Settings, StoredBom, Unobserved};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use test_support::TestAuthority;
use tokio::task::JoinSet;

use crate::door::Door;

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: String,
}

/// Answers instead of the contents, if it wants to.
type Behaviour = Arc<dyn Fn(&Seen) -> Option<Response> + Send + Sync>;

#[derive(Default)]
struct Inner {
    contents: Mutex<HashMap<String, (&'static str, Bytes)>>,
    seen: Mutex<Vec<Seen>>,
    behaviour: Mutex<Option<Behaviour>>,
    /// Whether a connection ends with its first answer.
    hasty: bool,
}

/// Until it is dropped.
pub(crate) struct FakeRegistry {
    pub(crate) host: String,
    secure: Arc<AtomicBool>,
    inner: Arc<Inner>,
    _task: JoinSet<()>,
}

impl FakeRegistry {
    pub(crate) async fn start() -> Self {
        Self::behind(Door::open(None).await, false)
    }

    /// With TLS, and a certificate of this authority.
    pub(crate) async fn start_secure(authority: &TestAuthority) -> Self {
        Self::behind(Door::open(Some(authority)).await, true)
    }

    /// Has new connections of one that was started with TLS have it, or not.
    pub(crate) fn speak_tls(&self, secure: bool) {
        self.secure.store(secure, Ordering::SeqCst);
    }

    fn behind(door: Door, hasty: bool) -> Self {
        let (host, secure) = (door.address().to_string(), door.secure());
        let inner = Arc::new(Inner {
            hasty,
            ..Inner::default()
        });
        let router = Router::new().fallback(answer).with_state(inner.clone());
        let mut task = JoinSet::new();
        task.spawn(async move { axum::serve(door, router).await.unwrap() });
        Self {
            host,
            secure,
            inner,
            _task: task,
        }
    }

    /// Has it behave in its own way from now on.
    pub(crate) fn behave(
        &self,
        behaviour: impl Fn(&Seen) -> Option<Response> + Send + Sync + 'static,
    ) {
        *self.inner.behaviour.lock().unwrap() = Some(Arc::new(behaviour));
    }

    /// What it was asked for, but for its version.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let seen = self.inner.seen.lock().unwrap().clone();
        seen.into_iter()
            .filter(|seen| seen.path != "/v2/")
            .collect()
    }

    /// Paths of what it was asked for since the last call.
    pub(crate) fn take_paths(&self) -> Vec<String> {
        let seen = self.seen();
        self.inner.seen.lock().unwrap().clear();
        seen.into_iter()
            .map(|seen| format!("{} {}", seen.method, seen.path))
            .collect()
    }

    pub(crate) fn put_blob(&self, repository: &str, bytes: impl Into<Bytes>) -> String {
        let bytes = bytes.into();
        let digest = digest_of(&bytes);
        self.put(
            &format!("/v2/{repository}/blobs/{digest}"),
            "application/octet-stream",
            bytes,
        );
        digest
    }

    pub(crate) fn put_manifest(
        &self,
        repository: &str,
        tag: &str,
        type_: &'static str,
        manifest: &Value,
    ) -> String {
        let bytes = Bytes::from(manifest.to_string());
        let digest = digest_of(&bytes);
        for name in [tag, &digest] {
            self.put(
                &format!("/v2/{repository}/manifests/{name}"),
                type_,
                bytes.clone(),
            );
        }
        digest
    }

    pub(crate) fn put(&self, path: &str, type_: &'static str, bytes: Bytes) {
        self.inner
            .contents
            .lock()
            .unwrap()
            .insert(path.to_owned(), (type_, bytes));
    }

    /// An image with this configuration and these layers (unpacked content, stored as given). Gives
    /// its digest.
    pub(crate) fn put_image(&self, repository: &str, tag: &str, config: &Value) -> String {
        self.put_layers(repository, tag, config, &[])
    }

    pub(crate) fn put_layers(
        &self,
        repository: &str,
        tag: &str,
        config: &Value,
        layers: &[Bytes],
    ) -> String {
        let bytes = config.to_string();
        let size = bytes.len();
        let config = self.put_blob(repository, bytes);
        let layers = layers.iter().map(|layer| {
            let digest = self.put_blob(repository, layer.clone());
            json!({"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest, "size": layer.len()})
        });
        let layers: Vec<Value> = layers.collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": config, "size": size},
            "layers": layers,
        });
        self.put_manifest(repository, tag, MANIFEST, &manifest)
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let mut response = answer_of(&inner, request).await;
    if inner.hasty {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

async fn answer_of(inner: &Inner, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let path = parts
        .uri
        .path_and_query()
        .map(ToString::to_string)
        .unwrap_or_default();
    let authorization = parts.headers.get("authorization");
    let seen = Seen {
        method: parts.method.to_string(),
        authorization: authorization.map(|it| it.to_str().unwrap().to_owned()),
        body: String::from_utf8(body.to_vec()).unwrap(),
        path,
    };
    inner.seen.lock().unwrap().push(seen.clone());
    let behaviour = inner.behaviour.lock().unwrap().clone();
    if let Some(response) = behaviour.and_then(|behaviour| behaviour(&seen)) {
        return response;
    }
    let plain = seen.path.split('?').next().unwrap_or_default();
    let found = inner.contents.lock().unwrap().get(plain).cloned();
    match found {
        Some((type_, bytes)) => {
            let response = Response::builder().header("content-type", type_);
            let digest = digest_of(&bytes);
            let response = response.header("docker-content-digest", digest);
            response.body(Body::from(bytes)).unwrap()
        }
        None if plain == "/v2/" => Response::new(Body::empty()),
        None => status(
            404,
            r#"{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "no such thing"}]}"#,
        ),
    }
}

pub(crate) fn content(bom: &StoredBom) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(bom.length).unwrap()];
    bom.file.read_exact_at(&mut bytes, bom.offset).unwrap();
    bytes
}

pub(crate) fn status(status: u16, body: &'static str) -> Response {
    Response::builder()
        .status(status)
        .body(Body::from(body))
        .unwrap()
}

pub(crate) fn digest_of(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hex = hash
        .iter()
        .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    format!("sha256:{hex}")
}

/// A keyring with these entries: what they are for, and the name, whose password is `pass-of-` and
/// the name.
pub(crate) fn keyring(entries: &[(&str, &str)]) -> Keyring {
    let mut keyring = Keyring::default();
    for (address, name) in entries {
        let entry = json!({"username": name, "password": format!("pass-of-{name}")});
        let config = json!({"auths": {*address: entry}}).to_string();
        assert!(
            keyring
                .add(SecretKind::DockerConfigJson, config.as_bytes())
                .is_empty()
        );
    }
    keyring
}

/// Settings for tests, which wait for nothing long.
pub(crate) fn settings(folder: &tempfile::TempDir) -> Settings {
    Settings {
        first_delay: std::time::Duration::from_millis(5),
        ..Settings::new(folder.path())
    }
}

/// Images as the settings for tests have them.
pub(crate) fn images(folder: &tempfile::TempDir) -> Images {
    images_with(settings(folder))
}

pub(crate) fn images_with(settings: Settings) -> Images {
    Images::new(settings, Arc::new(Unobserved)).unwrap()
}
