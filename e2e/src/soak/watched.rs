//! Which revisions have been in the cluster: all, also those that the next one has replaced.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use kube::api::DynamicObject;
use test_support::{Change, observe};
use tokio::task::JoinSet;

use crate::example::NAMESPACE;

/// The revisions in Workloads' ConfigMaps, from now on until it is dropped.
pub(super) struct Arrivals {
    seen: Arc<Mutex<BTreeSet<(String, String)>>>,
    _watch: JoinSet<()>,
}

impl Arrivals {
    pub(super) fn watch(client: &Client) -> Self {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let mut watch = JoinSet::new();
        watch.spawn(collect(client.clone(), seen.clone()));
        Self {
            seen,
            _watch: watch,
        }
    }

    /// Those of these Workloads and revisions that were not seen.
    pub(super) fn missing(&self, wanted: &[(String, String)]) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = wanted.iter().filter(|it| !seen.contains(*it));
        missing
            .map(|(name, revision)| format!("{name} {revision}"))
            .collect()
    }
}

async fn collect(client: Client, seen: Arc<Mutex<BTreeSet<(String, String)>>>) {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    observe(&client, &path, |told: Change<DynamicObject>| {
        let objects = match told {
            Change::Listed(objects) => objects,
            Change::Changed(object) => vec![object],
            Change::Deleted(_) | Change::Gap(_) => Vec::new(),
        };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        for object in objects {
            let name = object.metadata.name.unwrap_or_default();
            let revision = object.data["data"]["revision"].as_str();
            seen.extend(revision.map(|revision| (name, revision.to_owned())));
        }
    })
    .await;
}
