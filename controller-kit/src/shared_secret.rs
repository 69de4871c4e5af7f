//! A Secret that processes share: whoever finds that something is missing in it writes it, and all use what is there.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::time::Instant;

/// What is done about a Secret.
pub(crate) trait Keeper {
    /// Looks at the Secret and brings it in order; returns after what time to look again, though it has not changed.
    fn reconcile(&self, secret: Option<&Secret>) -> impl Future<Output = Option<Duration>> + Send;

    /// The Secret is not watched for now.
    fn unwatched(&self, error: &watcher::Error);
}

/// A Secret by its name.
#[derive(Clone)]
pub(crate) struct SharedSecret {
    api: Api<Secret>,
    pub(crate) name: String,
}

impl SharedSecret {
    pub(crate) fn new(client: &kube::Client, namespace: &str, name: &str) -> Self {
        Self {
            api: Api::namespaced(client.clone(), namespace),
            name: name.to_owned(),
        }
    }

    /// What there is now, with no other right than that to watch it.
    pub(crate) async fn read(&self) -> Result<Option<Secret>, kube::Error> {
        let named = ListParams::default().fields(&format!("metadata.name={}", self.name));
        Ok(self.api.list(&named).await?.items.pop())
    }

    /// Has it looked after, for ever.
    pub(crate) async fn keep(&self, keeper: impl Keeper) {
        let stream = watcher::watch_object(self.api.clone(), &self.name).default_backoff();
        tokio::pin!(stream);
        let mut latest = None;
        let mut due = None;
        loop {
            // A point in time: a watch that fails again and again must not put the next look off for ever.
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
                        keeper.unwatched(&error);
                        continue;
                    }
                    // The stream never ends.
                    None => return,
                },
                () = again => {}
            }
            let Some(secret) = &latest else { continue };
            let wait = keeper.reconcile(secret.as_ref()).await;
            due = wait.map(|wait| Instant::now() + wait);
        }
    }

    /// Writes what it is to hold, in place of what was `found`. Of several who do so one wins; it is a conflict to the others.
    pub(crate) async fn write(
        &self,
        found: Option<&Secret>,
        data: BTreeMap<String, ByteString>,
    ) -> Result<(), kube::Error> {
        let parameters = PostParams::default();
        let data = Some(data);
        if let Some(found) = found {
            // With its resourceVersion.
            let secret = Secret {
                data,
                ..found.clone()
            };
            self.api.replace(&self.name, &parameters, &secret).await?;
        } else {
            let metadata = ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            };
            let secret = Secret {
                metadata,
                data,
                type_: Some("Opaque".into()),
                ..Secret::default()
            };
            self.api.create(&parameters, &secret).await?;
        }
        Ok(())
    }
}
