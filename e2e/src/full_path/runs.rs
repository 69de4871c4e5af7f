//! Every run that was ever started, also those that are gone: status and retention forget, this does not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::ensure;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::Value;
use test_support::{Change, observe};
use tokio::task::JoinSet;

/// A run, as it was first seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    /// Name of its Runnable.
    pub(super) runnable: String,
    /// The revision of the application that it is for.
    pub(super) revision: String,
    /// What it was made from, the attempt included.
    pub(super) digest: String,
    name: String,
}

/// Watches runs until it is dropped.
pub(super) struct Runs {
    api: Api<DynamicObject>,
    found: Arc<Mutex<BTreeMap<String, Run>>>,
    _watch: JoinSet<()>,
}

impl Runs {
    /// Begins to watch. Runs that end before this are not seen.
    pub(super) fn watch(runs: Api<DynamicObject>) -> Self {
        let found = Arc::new(Mutex::new(BTreeMap::new()));
        let mut watch = JoinSet::new();
        watch.spawn(collect(runs.clone(), found.clone()));
        Self {
            api: runs,
            found,
            _watch: watch,
        }
    }

    /// All runs so far, once those that are there now are among them.
    ///
    /// # Errors
    ///
    /// When the API server does not answer, or some are missing yet.
    pub(super) async fn all(&self) -> anyhow::Result<Vec<Run>> {
        let present = self.api.list(&ListParams::default()).await?;
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = present
            .items
            .iter()
            .filter_map(|run| run.metadata.uid.as_ref());
        let missing: Vec<_> = missing.filter(|uid| !found.contains_key(*uid)).collect();
        ensure!(missing.is_empty(), "not seen yet: {missing:?}");
        Ok(found.values().cloned().collect())
    }
}

/// Runs that were made from the same as another one: none, whatever happens.
pub(super) fn doubled(runs: &[Run]) -> Vec<&Run> {
    let mut seen = BTreeSet::new();
    let mut doubled = Vec::new();
    for run in runs {
        if !seen.insert((&run.runnable, &run.digest)) {
            doubled.push(run);
        }
    }
    doubled
}

async fn collect(runs: Api<DynamicObject>, found: Arc<Mutex<BTreeMap<String, Run>>>) {
    let (client, path) = (runs.clone().into_client(), runs.resource_url().to_owned());
    observe(&client, &path, |told: Change<DynamicObject>| {
        let objects = match told {
            Change::Listed(objects) => objects,
            Change::Changed(object) | Change::Deleted(object) => vec![object],
            Change::Gap(_) => Vec::new(),
        };
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        for object in objects {
            let uid = object.metadata.uid.clone().unwrap_or_default();
            found.entry(uid).or_insert_with(|| read(&object));
        }
    })
    .await;
}

fn read(object: &DynamicObject) -> Run {
    let text = |map: &Option<BTreeMap<String, String>>, key: &str| {
        let found = map.as_ref().and_then(|map| map.get(key));
        found.cloned().unwrap_or_default()
    };
    Run {
        runnable: text(&object.metadata.labels, "carto.run/runnable-name"),
        revision: variable(container(&object.data), "REVISION"),
        digest: text(&object.metadata.annotations, "carto.run/rendered-digest"),
        name: object.metadata.name.clone().unwrap_or_default(),
    }
}

/// The container of a run: of a Job, or of what stands in for one.
pub(super) fn container(run: &Value) -> &Value {
    let of_job = run.pointer("/spec/template/spec/containers/0");
    of_job.unwrap_or_else(|| &run["spec"]["value"])
}

/// The variable of a container whose name ends so.
pub(super) fn variable(container: &Value, name: &str) -> String {
    let mut variables = container["env"].as_array().into_iter().flatten();
    let found = variables.find(|variable| {
        let found = variable["name"].as_str();
        found.is_some_and(|found| found.ends_with(name))
    });
    let value = found.and_then(|variable| variable["value"].as_str());
    value.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_of_the_same_is_doubled_and_another_attempt_is_not() {
        let run = |name: &str, digest: &str| Run {
            runnable: "test".to_owned(),
            revision: "main@sha1:1".to_owned(),
            digest: digest.to_owned(),
            name: name.to_owned(),
        };
        let runs = [run("a", "1"), run("b", "2"), run("c", "1")];
        assert_eq!(doubled(&runs), [&runs[2]]);
        assert_eq!(doubled(&runs[..2]), Vec::<&Run>::new());
    }
}
