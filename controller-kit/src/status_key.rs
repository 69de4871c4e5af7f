//! The key for digests of secret values: in a Secret that all controllers of the installation share.
//!
//! It is made where the Secret has none, so an installation ships the Secret empty and no controller needs the right to
//! create one. Whoever takes the key out, or deletes the Secret, has a new one made: digests change once, that is all.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use realizer::StatusKey;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::cluster::chain;
use crate::process::Process;
use crate::shutdown::Tasks;

/// Where the key is in the Secret.
const ENTRY: &str = "key";
/// Bytes of a key; a shorter one is replaced.
const LENGTH: usize = 32;
/// The wait after a refused write.
const RETRY: Duration = Duration::from_secs(30);

/// The key as it is known now. Clones know the same.
#[derive(Debug, Clone)]
pub struct StatusKeys(watch::Receiver<Option<StatusKey>>);

impl StatusKeys {
    /// Never a key: no digest of a secret value is shown.
    pub fn none() -> Self {
        Self(watch::Sender::new(Some(StatusKey::NONE)).subscribe())
    }

    /// The key for a walk that begins now.
    pub fn now(&self) -> StatusKey {
        self.0.borrow().clone().unwrap_or_default()
    }

    /// Waits until it is known whether there is a key: digests that go and come back would move times for nothing.
    pub(crate) async fn known(&self) {
        // Whoever keeps the key goes last of all; without it, what is known stays.
        let _ = self.0.clone().wait_for(Option::is_some).await;
    }

    /// Waits until there is another key than the first one that was known, and so on; false when there will be none.
    pub(crate) async fn replaced(&mut self, before: &mut StatusKey) -> bool {
        let is_another = |known: &Option<StatusKey>| known.as_ref().is_some_and(|it| it != before);
        match self.0.wait_for(is_another).await {
            Ok(known) => {
                *before = known.clone().unwrap_or_default();
                true
            }
            Err(_) => false,
        }
    }
}

/// Keeps the key in this Secret of our own namespace until the tasks are cancelled. Outside a cluster, unless told, there
/// is no such namespace, and no key.
pub(crate) async fn keep(secret: Option<&str>, process: &Process) -> StatusKeys {
    match (process.known_namespace().await, secret) {
        (Some(namespace), Some(secret)) => {
            let client = process.cluster.controller();
            start(client, &namespace, secret, &process.tasks)
        }
        _ => StatusKeys::none(),
    }
}

fn start(client: &kube::Client, namespace: &str, secret: &str, tasks: &Tasks) -> StatusKeys {
    let publish = watch::Sender::new(None);
    let keys = StatusKeys(publish.subscribe());
    let keeper = Keeper {
        secrets: Api::namespaced(client.clone(), namespace),
        secret: secret.to_owned(),
        publish,
    };
    let shutdown = tasks.token().clone();
    tasks.spawn("status-key", async move {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = keeper.run() => {}
        }
    });
    keys
}

struct Keeper {
    secrets: Api<Secret>,
    secret: String,
    publish: watch::Sender<Option<StatusKey>>,
}

impl Keeper {
    async fn run(self) {
        let stream = watcher::watch_object(self.secrets.clone(), &self.secret).default_backoff();
        tokio::pin!(stream);
        let mut latest = None;
        let mut due = None;
        loop {
            // A point in time: a watch that fails again and again must not put the next try off for ever.
            let again = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                event = stream.next() => match event {
                    Some(Ok(secret)) => latest = Some(secret),
                    Some(Err(error)) => {
                        self.unwatched(&error);
                        continue;
                    }
                    // The stream never ends.
                    None => return,
                },
                () = again => {}
            }
            let Some(secret) = &latest else { continue };
            due = match self.reconcile(secret.as_ref()).await {
                Ok(()) => None,
                Err(error) => {
                    self.without(&error);
                    Some(Instant::now() + RETRY)
                }
            };
        }
    }

    /// A key is used only when it is in the Secret: another controller may have been faster.
    async fn reconcile(&self, secret: Option<&Secret>) -> Result<(), kube::Error> {
        if let Some(key) = secret.and_then(key_in) {
            self.publish(key);
            return Ok(());
        }
        let Some(made) = random() else {
            // No randomness, no key; whatever the machine lacks, it will not have in a moment.
            self.publish_if_unknown();
            return Ok(());
        };
        match self.write(secret, &made).await {
            Ok(()) => {
                info!(secret = %self.secret, "key for digests of secret values made");
                self.publish(StatusKey::new(&made));
                Ok(())
            }
            // Somebody was faster; the watch brings what they wrote.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn write(&self, secret: Option<&Secret>, key: &[u8]) -> Result<(), kube::Error> {
        let parameters = PostParams::default();
        let data = BTreeMap::from([(ENTRY.to_owned(), ByteString(key.to_owned()))]);
        match secret {
            None => {
                let metadata = ObjectMeta {
                    name: Some(self.secret.clone()),
                    ..ObjectMeta::default()
                };
                let secret = Secret {
                    metadata,
                    data: Some(data),
                    type_: Some("Opaque".into()),
                    ..Secret::default()
                };
                self.secrets.create(&parameters, &secret).await?;
            }
            Some(secret) => {
                // With its resourceVersion: of two controllers one wins.
                let secret = Secret {
                    data: Some(data),
                    ..secret.clone()
                };
                self.secrets
                    .replace(&self.secret, &parameters, &secret)
                    .await?;
            }
        }
        Ok(())
    }

    fn publish(&self, key: StatusKey) {
        self.publish.send_if_modified(|known| {
            let changed = known.as_ref() != Some(&key);
            *known = Some(key);
            changed
        });
    }

    /// A key that is known is used until there is another: without a digest, nobody would see a change.
    fn publish_if_unknown(&self) {
        if self.publish.borrow().is_none() {
            self.publish(StatusKey::NONE);
        }
    }

    fn without(&self, error: &kube::Error) {
        warn!(secret = %self.secret, error = %chain(error), "no key could be written, so digests of secret values may be left out");
        self.publish_if_unknown();
    }

    /// Without the right to watch it there is no key; whatever else is wrong passes.
    fn unwatched(&self, error: &watcher::Error) {
        warn!(secret = %self.secret, error = %chain(error), "the key for digests of secret values is not watched");
        if is_forbidden(error) {
            self.publish_if_unknown();
        }
    }
}

fn is_forbidden(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code == 403,
        _ => false,
    }
}

fn key_in(secret: &Secret) -> Option<StatusKey> {
    let ByteString(bytes) = secret.data.as_ref()?.get(ENTRY)?;
    (bytes.len() >= LENGTH).then(|| StatusKey::new(bytes))
}

fn random() -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    let source = rustls::crypto::ring::default_provider().secure_random;
    source.fill(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests;
