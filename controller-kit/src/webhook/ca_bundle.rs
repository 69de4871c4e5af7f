//! Keeps the caBundle of a ValidatingWebhookConfiguration equal to what our certificates are signed by.

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::cluster::chain;

/// The wait after each write: if somebody undoes it, this is how fast we answer.
const PAUSE: Duration = Duration::from_secs(5);
/// The longest wait after patches that fail: what they are refused for may be mended by nobody for long.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// Who asks cert-manager for the bundle does not want ours.
const INJECTED_BY_OTHERS: &str = "cert-manager.io/inject-ca-from";

/// Patches the configuration when it, or what is trusted, changes; while it does not exist, waits for it.
///
/// What is there is known from the watch and from replies to the patches alone: to read it is a right that is not asked for.
pub(super) async fn keep_ca_bundle(
    client: kube::Client,
    name: String,
    mut trusted: watch::Receiver<String>,
    shutdown: CancellationToken,
) {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client);
    let work = async {
        let stream = watcher::watch_object(configurations.clone(), &name).default_backoff();
        tokio::pin!(stream);
        let (mut latest, mut pace) = (None, Pace::new());
        loop {
            let bundle = trusted.borrow_and_update().clone();
            let patch = latest
                .as_ref()
                .and_then(|configuration| ca_bundle_patch(configuration, &bundle));
            tokio::select! {
                biased;
                event = stream.next() => match event {
                    Some(Ok(configuration)) => {
                        latest = configuration;
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
                    match write(&configurations, &name, patch).await {
                        Ok(configuration) => {
                            latest = Some(configuration);
                            pace.written();
                        }
                        Err(error) => {
                            warn!(configuration = %name, error = %chain(&error), "caBundle not written");
                            pace.failed();
                        }
                    }
                }
            }
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = work => {}
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

async fn write(
    configurations: &Api<ValidatingWebhookConfiguration>,
    name: &str,
    patch: Value,
) -> Result<ValidatingWebhookConfiguration, kube::Error> {
    let patch = serde_json::from_value(patch).map_err(kube::Error::SerdeError)?;
    let written = configurations
        .patch(name, &PatchParams::default(), &Patch::Json::<()>(patch))
        .await?;
    info!(configuration = %name, "caBundle written");
    Ok(written)
}

/// A JSON patch that changes nothing but the bundles, and fails if the list has changed meanwhile. `None`
/// if nothing is to be done.
pub(super) fn ca_bundle_patch(
    configuration: &ValidatingWebhookConfiguration,
    bundle: &str,
) -> Option<Value> {
    let annotations = configuration.metadata.annotations.as_ref();
    if bundle.is_empty()
        || annotations.is_some_and(|annotations| annotations.contains_key(INJECTED_BY_OTHERS))
    {
        return None;
    }
    let bundle = ByteString(bundle.as_bytes().to_vec());
    let mut operations = Vec::new();
    for (place, webhook) in configuration.webhooks.iter().flatten().enumerate() {
        let client = serde_json::to_value(&webhook.client_config).unwrap_or_default();
        if client["caBundle"] != json!(bundle) {
            operations.push(json!({"op": "test", "path": format!("/webhooks/{place}/name"), "value": webhook.name}));
            operations.push(json!({"op": "add", "path": format!("/webhooks/{place}/clientConfig/caBundle"), "value": bundle}));
        }
    }
    (!operations.is_empty()).then_some(Value::Array(operations))
}
