//! Keeps the caBundle of a ValidatingWebhookConfiguration, or of a MutatingWebhookConfiguration, equal to what our
//! certificates are signed by, which is what the Secret says that the replicas share.
//!
//! After that Secret was lost, one of them makes another authority, and the others hear of it a moment later. In that moment
//! they see an authority in the configuration that is not theirs, and must not put their own back.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::ByteString;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::pki::Authority;
use crate::cluster::chain;
use crate::shared_secret::SharedSecret;

/// The wait after each write: if somebody undoes it, this is how fast we answer.
const PAUSE: Duration = Duration::from_secs(5);
/// The longest wait after patches that fail: what they are refused for may be mended by nobody for long.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// After a configuration was written, all API servers have it.
const HEARD_AFTER: Duration = Duration::from_secs(5);
/// Who asks cert-manager for the bundle does not want ours.
const INJECTED_BY_OTHERS: &str = "cert-manager.io/inject-ca-from";

/// A configuration of webhooks, of either kind: what is read of it has the same place in both.
pub(super) trait WebhookConfiguration:
    Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug + Send + 'static
{
}

impl<K> WebhookConfiguration for K where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug + Send + 'static
{
}

/// Whether the API server has been told to trust our certificates. Once it has, that is not taken back: whoever undoes it is
/// answered by a patch, and nobody gains by our not being asked meanwhile.
#[derive(Debug, Clone, Default)]
pub(super) struct Trust {
    is_given: Arc<AtomicBool>,
    /// The bundle that the configuration has, and since when.
    told: Arc<Mutex<Option<(String, Instant)>>>,
}

impl Trust {
    /// Whether nobody is kept waiting: it was told, or there is no configuration by which it would ask.
    pub(super) fn is_given(&self) -> bool {
        self.is_given.load(Ordering::Relaxed)
    }

    /// Whether it has been told of this bundle for long enough to have heard, or there is no configuration by which it would
    /// ask.
    pub(super) fn knows(&self, bundle: &str) -> bool {
        let told = self.told.lock();
        let told = told.as_ref().filter(|(told, _)| told == bundle);
        told.is_some_and(|(_, since)| since.elapsed() >= HEARD_AFTER)
    }

    /// What the configuration has now: this bundle, or another one.
    fn found(&self, is_given: bool, bundle: Option<&str>) {
        self.is_given.store(is_given, Ordering::Relaxed);
        let mut told = self.told.lock();
        if told.as_ref().map(|(told, _)| &**told) != bundle {
            *told = bundle.map(|bundle| (bundle.to_owned(), Instant::now()));
        }
    }
}

/// Patches the configuration when it, or what is trusted, changes and stands in the Secret; while it does not exist, waits
/// for it.
///
/// What is there is known from the watch and from replies to the patches alone: to read it is a right that is not asked for.
pub(super) async fn keep_ca_bundle<K: WebhookConfiguration>(
    client: kube::Client,
    name: String,
    mut trusted: watch::Receiver<String>,
    trust: Trust,
    secret: SharedSecret,
) {
    let configurations: Api<K> = Api::all(client);
    let stream = watcher::watch_object(configurations.clone(), &name).default_backoff();
    tokio::pin!(stream);
    let (mut latest, mut pace) = (None::<K>, Pace::new());
    let (mut is_known, mut is_told) = (false, false);
    loop {
        let bundle = trusted.borrow_and_update().clone();
        let patch = latest
            .as_ref()
            .and_then(|configuration| ca_bundle_patch(configuration, &bundle));
        let has_bundle = latest.is_some() && patch.is_none() && !bundle.is_empty();
        let is_missing = is_known && latest.is_none();
        is_told |= has_bundle;
        let told = (has_bundle || is_missing).then_some(&*bundle);
        trust.found(is_told || is_missing, told);
        tokio::select! {
            biased;
            event = stream.next() => match event {
                Some(Ok(configuration)) => {
                    latest = configuration;
                    is_known = true;
                    pace.is_changed();
                }
                Some(Err(error)) => {
                    warn!(configuration = %name, error = %chain(&error), "caBundle: configuration not watched");
                }
                None => return,
            },
            changed = trusted.changed() => {
                if changed.is_err() {
                    return;
                }
                pace.is_changed();
            }
            Some(patch) = pace.when_due(patch) => {
                let written = match is_in(&secret, &bundle).await {
                    Ok(true) => write(&configurations, &name, patch).await.map(Some),
                    Ok(false) => Ok(None),
                    Err(error) => Err(error),
                };
                match written {
                    Ok(Some(configuration)) => {
                        latest = Some(configuration);
                        pace.written();
                    }
                    Ok(None) => {
                        debug!(configuration = %name, "caBundle not written: the Secret has another authority");
                        pace.failed();
                    }
                    Err(error) => {
                        warn!(configuration = %name, error = %chain(&error), "caBundle not written");
                        pace.failed();
                    }
                }
            }
        }
    }
}

/// When the next patch is due.
struct Pace {
    last: Option<Instant>,
    pause: Duration,
}

impl Pace {
    fn new() -> Self {
        Self {
            last: None,
            pause: PAUSE,
        }
    }

    /// Another patch, or for another state, may succeed where the last one did not.
    fn is_changed(&mut self) {
        self.pause = PAUSE;
    }

    fn written(&mut self) {
        *self = Self {
            last: Some(Instant::now()),
            pause: PAUSE,
        };
    }

    fn failed(&mut self) {
        if self.last.is_some() {
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        self.last = Some(Instant::now());
    }

    /// The patch, once it may be sent.
    async fn when_due(&self, patch: Option<Value>) -> Option<Value> {
        if let (Some(last), Some(_)) = (self.last, &patch) {
            tokio::time::sleep_until(last + self.pause).await;
        }
        patch
    }
}

/// Whether this is what is trusted by those who know the Secret as it is now.
async fn is_in(secret: &SharedSecret, bundle: &str) -> Result<bool, kube::Error> {
    let data = secret.read().await?.and_then(|secret| secret.data);
    let found = data.as_ref().and_then(Authority::from_data);
    Ok(found.is_some_and(|authority| authority.trusted() == bundle))
}

async fn write<K: WebhookConfiguration>(
    configurations: &Api<K>,
    name: &str,
    patch: Value,
) -> Result<K, kube::Error> {
    let patch = serde_json::from_value(patch).map_err(kube::Error::SerdeError)?;
    let written = configurations
        .patch(name, &PatchParams::default(), &Patch::Json::<()>(patch))
        .await?;
    info!(configuration = %name, "caBundle written");
    Ok(written)
}

/// A JSON patch that changes nothing but the bundles, and fails if the list has changed meanwhile. `None`
/// if nothing is to be done.
fn ca_bundle_patch(configuration: &impl WebhookConfiguration, bundle: &str) -> Option<Value> {
    let annotations = configuration.meta().annotations.as_ref();
    if bundle.is_empty()
        || annotations.is_some_and(|annotations| annotations.contains_key(INJECTED_BY_OTHERS))
    {
        return None;
    }
    let bundle = json!(ByteString(bundle.as_bytes().to_vec()));
    let configuration = serde_json::to_value(configuration).unwrap_or_default();
    let mut operations = Vec::new();
    let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
    for (place, webhook) in webhooks.enumerate() {
        if webhook["clientConfig"]["caBundle"] != bundle {
            operations.push(json!({"op": "test", "path": format!("/webhooks/{place}/name"), "value": webhook["name"]}));
            operations.push(json!({"op": "add", "path": format!("/webhooks/{place}/clientConfig/caBundle"), "value": bundle}));
        }
    }
    (!operations.is_empty()).then_some(Value::Array(operations))
}
