//! Keeps the ConfigMap of counts as it should be, if the operator wants one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use controller_kit::cluster::{Call, Cluster, Identity, RequestError, chain};
use controller_kit::reflect::{Entry, Reflector, Watched};
use controller_kit::stamped::ObjectKey;
use conventions::tally::{Counted, NAME, data};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tracing::warn;

use crate::controller::Stores;

/// Many changes are one write.
const GATHER: Duration = Duration::from_secs(1);
/// How long it is waited after a write that failed.
const AGAIN: Duration = Duration::from_secs(30);

/// The kind.
pub(crate) const CONFIG_MAPS: Watched = Watched {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
};

/// The data of the ConfigMap, as it is stored.
pub(crate) struct StoredTally(Value);

impl Entry for StoredTally {
    fn build(mut object: Value) -> Self {
        Self(object["data"].take())
    }
}

/// Writes the counts.
pub(crate) struct Tally {
    pub(crate) cluster: Cluster,
    pub(crate) key: ObjectKey,
    pub(crate) field_manager: &'static str,
    pub(crate) stored: Arc<Reflector<StoredTally>>,
    pub(crate) changed: Arc<Notify>,
}

impl Tally {
    /// In this namespace.
    pub(crate) fn new(
        cluster: &Cluster,
        namespace: &str,
        field_manager: &'static str,
        changed: &Arc<Notify>,
    ) -> Self {
        Self {
            cluster: cluster.clone(),
            key: ObjectKey::new(namespace, NAME),
            field_manager,
            stored: Arc::default(),
            changed: changed.clone(),
        }
    }

    /// Writes what has changed, for ever.
    pub(crate) async fn keep(&self, stores: &Stores) {
        loop {
            let changed = self.changed.notified();
            match self.write(stores).await {
                Ok(()) => changed.await,
                Err(error) => {
                    warn!(error = %chain(&error), "the ConfigMap of counts is not written");
                    // It may pass without any change that is heard of.
                    let _ = tokio::time::timeout(AGAIN, changed).await;
                }
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    async fn write(&self, stores: &Stores) -> Result<(), RequestError> {
        let data = json!(counts(stores));
        let stored = self.stored.get(&self.key);
        if stored.as_ref().is_some_and(|stored| stored.0 == data) {
            return Ok(());
        }
        let answer = if stored.is_some() {
            let path = CONFIG_MAPS.path(Some(&self.key.namespace), NAME);
            let patch = json!([{"op": "add", "path": "/data", "value": data}]);
            let call = Call::json_patch(&path, self.field_manager, &patch);
            self.cluster.send(Identity::Controller, call).await?
        } else {
            let path = CONFIG_MAPS.collection(Some(&self.key.namespace));
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data});
            let call = Call::create(&path, self.field_manager, &object);
            self.cluster.send(Identity::Controller, call).await?
        };
        self.stored.overlay(answer.body);
        Ok(())
    }
}

fn counts(stores: &Stores) -> BTreeMap<String, String> {
    let intents = stores.intents.all();
    let counted = intents.iter().map(|(_, intent)| Counted {
        ready: intent.ready.0,
        owner: intent.owner.as_deref(),
    });
    let conventions = stores.conventions.all().into_iter();
    data(counted, conventions.map(|(key, _)| key.name.to_string()))
}
