//! The key for digests of secret values: in a Secret that all controllers of the installation share.
//!
//! It is made where the Secret has none, so an installation ships the Secret empty and no controller needs the right to
//! create one. Whoever takes the key out, or deletes the Secret, has a new one made: digests change once, that is all.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher;
use realizer::StatusKey;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::cluster::chain;
use crate::process::Process;
use crate::reflect::answer;
use crate::shared_secret::{Keeper, SharedSecret};
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
    let secret = SharedSecret::new(client, namespace, secret);
    let keeper = KeyKeeper {
        secret: secret.clone(),
        publish,
    };
    tasks.spawn_until_stopped("status-key", async move { secret.keep(keeper).await });
    keys
}

struct KeyKeeper {
    secret: SharedSecret,
    publish: watch::Sender<Option<StatusKey>>,
}

impl Keeper for KeyKeeper {
    async fn reconcile(&self, secret: Option<&Secret>) -> Option<Duration> {
        let error = self.bring_in_order(secret).await.err()?;
        warn!(secret = %self.secret.name, error = %chain(&error), "no key could be written, so digests of secret values may be left out");
        self.publish_if_unknown();
        Some(RETRY)
    }

    /// Without the right to watch it there is no key; whatever else is wrong passes.
    fn unwatched(&self, error: &watcher::Error) {
        warn!(secret = %self.secret.name, error = %chain(error), "the key for digests of secret values is not watched");
        if answer(error).is_some_and(|status| status.code == 403) {
            self.publish_if_unknown();
        }
    }
}

impl KeyKeeper {
    /// A key is used only when it is in the Secret: another controller may have been faster.
    async fn bring_in_order(&self, secret: Option<&Secret>) -> Result<(), kube::Error> {
        if let Some(key) = secret.and_then(key_in) {
            self.publish(key);
            return Ok(());
        }
        let Some(made) = random() else {
            // No randomness, no key; whatever the machine lacks, it will not have in a moment.
            self.publish_if_unknown();
            return Ok(());
        };
        let data = BTreeMap::from([(ENTRY.to_owned(), ByteString(made.to_vec()))]);
        match self.secret.write(secret, data).await {
            Ok(()) => {
                info!(secret = %self.secret.name, "key for digests of secret values made");
                self.publish(StatusKey::new(&made));
                Ok(())
            }
            // Somebody was faster; the watch brings what they wrote.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(error),
        }
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
