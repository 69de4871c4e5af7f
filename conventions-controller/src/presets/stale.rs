//! Which pods carry an older version of a preset, or a preset that is gone: a report, from which
//! nothing else follows, for pods say themselves what they carry.
//!
//! Only the replica that leads follows pods, and of each no more than its markers and its owner.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use controller_kit::process::Process;
use controller_kit::reflect::{Entry, Reflector, Watched};
use pod_presets::{ANNOTATIONS, EXCLUDE, Origin, Preset, Stale, StaleOwner, stale};
use serde_json::{Map, Value};

use super::Stores;
use super::entries::{PresetEntry, text};
use super::metrics::PresetMetrics;
use super::status::StalePods;
use super::subject::LONGEST_NAME;

/// How often pods are looked through.
const ROUND: Duration = Duration::from_secs(10);
/// Owners that a status names.
const MOST_OWNERS: usize = 20;
/// Those whose pods still run.
const AT_WORK: &str = "status.phase!=Succeeded,status.phase!=Failed";
const PODS: Watched = Watched {
    group: "",
    version: "v1",
    kind: "Pod",
    plural: "pods",
};

/// A pod, as far as it is about presets.
pub(super) struct PodEntry {
    namespace: Box<str>,
    /// Annotations that are markers.
    markers: Value,
    /// Kind and name of who made it.
    owner: (Box<str>, Box<str>),
}

impl Entry for PodEntry {
    fn build(object: Value) -> Self {
        let metadata = &object["metadata"];
        let markers = match &metadata["deletionTimestamp"] {
            Value::Null => markers(&metadata["annotations"]),
            _ => Map::new(),
        };
        // Most pods have none, and cost no more than their names.
        let owner = if markers.is_empty() {
            Default::default()
        } else {
            owner(metadata)
        };
        Self {
            namespace: text(&metadata["namespace"]).into(),
            markers: Value::Object(markers),
            owner,
        }
    }
}

fn markers(annotations: &Value) -> Map<String, Value> {
    let annotations = annotations.as_object().into_iter().flatten();
    annotations
        .filter(|(key, _)| key.starts_with(ANNOTATIONS) && *key != EXCLUDE)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Its controller; of a ReplicaSet that a Deployment made, the Deployment, which is found in the
/// name.
fn owner(metadata: &Value) -> (Box<str>, Box<str>) {
    let references = metadata["ownerReferences"].as_array().into_iter().flatten();
    let mut references = references.filter(|it| it["controller"] == true);
    let Some(owner) = references.next() else {
        return ("Pod".into(), text(&metadata["name"]).into());
    };
    let (kind, name) = (name_of(&owner["kind"]), name_of(&owner["name"]));
    let hash = text(&metadata["labels"]["pod-template-hash"]);
    let of_deployment = name.strip_suffix(hash).and_then(|it| it.strip_suffix('-'));
    match of_deployment {
        Some(deployment) if kind == "ReplicaSet" && !hash.is_empty() => {
            ("Deployment".into(), deployment.into())
        }
        _ => (kind.into(), name.into()),
    }
}

/// A reference says anything; of what is too long to be a name there is no such object.
fn name_of(value: &Value) -> &str {
    let name = text(value);
    if name.len() <= LONGEST_NAME { name } else { "" }
}

impl PodEntry {
    fn owner(&self) -> StaleOwner {
        StaleOwner {
            kind: self.owner.0.to_string(),
            namespace: self.namespace.to_string(),
            name: self.owner.1.to_string(),
            pods: 0,
        }
    }
}

/// What was found.
#[derive(Default)]
pub(super) struct Staleness {
    /// Of each preset, by uid.
    by_preset: HashMap<Box<str>, StalePods>,
    /// Who has pods with anything older than it is, or gone.
    pub(super) owners: BTreeSet<StaleOwner>,
}

impl Staleness {
    /// What was found of this one.
    pub(super) fn of(&self, entry: &PresetEntry) -> StalePods {
        self.by_preset.get(&entry.uid).cloned().unwrap_or_default()
    }
}

/// Presets, by namespace and marker. Of two groups two may share one.
type ByMarker<'e> = HashMap<(&'e str, String), Vec<(&'e PresetEntry, &'e Preset)>>;

/// Owners of one preset, with how many of their pods.
type Owners = BTreeMap<StaleOwner, i64>;

/// Follows pods, and hands on what is found, until the process ends.
pub(super) async fn follow(
    process: &Process,
    stores: &Arc<Stores>,
    metrics: &PresetMetrics,
    found: impl Fn(Staleness),
) {
    let pods: Arc<Reflector<PodEntry>> = Arc::default();
    let events = PODS.metadata_where(process.cluster.controller().clone(), AT_WORK);
    let cancel = process.tasks.token().clone();
    let following = pods.clone().follow(events, cancel, |_| {});
    let looking = async {
        let mut rounds = tokio::time::interval(ROUND);
        rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            rounds.tick().await;
            let (pods, stores) = (pods.clone(), stores.clone());
            let look = move || pods.is_synced().then(|| look(&pods, &stores));
            if let Ok(Some((staleness, orphans))) = tokio::task::spawn_blocking(look).await {
                metrics.stale(
                    staleness.by_preset.values().map(|it| it.pods).sum(),
                    orphans,
                );
                found(staleness);
            }
        }
    };
    tokio::select! {
        () = following => {}
        () = looking => {}
    }
}

/// What pods carry older versions of, and how many markers are of presets that are gone.
fn look(pods: &Reflector<PodEntry>, stores: &Stores) -> (Staleness, i64) {
    let all = Origin::ALL.map(|origin| stores.of(origin).all());
    let by_marker = by_marker(all.iter().flatten().map(|(_, entry)| &**entry));
    let (mut found, mut orphans) = (HashMap::<Box<str>, Owners>::new(), 0);
    let mut all_owners = BTreeSet::new();
    pods.for_each(|pod| {
        let own = presets_of(pod, &by_marker);
        let presets = own.iter().map(|(_, preset)| *preset);
        for outdated in stale(&pod.markers, presets) {
            orphans += i64::from(outdated.current.is_none());
            all_owners.insert(pod.owner());
            for (entry, _) in own.iter().filter(|(_, preset)| is_meant(&outdated, preset)) {
                let owners = found.entry(entry.uid.clone()).or_default();
                *owners.entry(pod.owner()).or_default() += 1;
            }
        }
    });
    let found = found.into_iter().map(|(uid, owners)| (uid, summed(owners)));
    let staleness = Staleness {
        by_preset: found.collect(),
        owners: all_owners,
    };
    (staleness, orphans)
}

fn by_marker<'e>(entries: impl Iterator<Item = &'e PresetEntry>) -> ByMarker<'e> {
    let mut by_marker = ByMarker::new();
    for entry in entries {
        if let Some(preset) = entry.preset() {
            let key = (preset.namespace(), preset.id().marker_key());
            by_marker.entry(key).or_default().push((entry, preset));
        }
    }
    by_marker
}

/// The presets that its markers are of.
fn presets_of<'e>(pod: &PodEntry, by_marker: &ByMarker<'e>) -> Vec<(&'e PresetEntry, &'e Preset)> {
    let markers = pod.markers.as_object().into_iter().flatten();
    let presets = markers.flat_map(|(marker, _)| {
        let of = |namespace| by_marker.get(&(namespace, marker.clone()));
        of("").into_iter().chain(of(&*pod.namespace)).flatten()
    });
    presets.copied().collect()
}

fn is_meant(outdated: &Stale, preset: &Preset) -> bool {
    preset.name() == outdated.preset
        && (preset.origin() == Origin::Cluster) == outdated.is_of_cluster
}

/// Those with the most pods.
fn summed(owners: Owners) -> StalePods {
    let pods = owners.values().sum();
    let mut owners: Vec<StaleOwner> = owners
        .into_iter()
        .map(|(owner, pods)| StaleOwner { pods, ..owner })
        .collect();
    owners.sort_by_key(|owner| std::cmp::Reverse(owner.pods));
    owners.truncate(MOST_OWNERS);
    StalePods { pods, owners }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(more: &Value) -> PodEntry {
        let mut metadata = json!({"name": "web-1", "namespace": "dev"});
        let fields = metadata.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        PodEntry::build(json!({"metadata": metadata}))
    }

    #[test]
    fn of_a_pod_no_more_is_kept_than_its_markers_and_its_owner() {
        let marker = "podpreset.admission.kubernetes.io/podpreset-a";
        let exclude = "podpreset.admission.kubernetes.io/exclude";
        let annotations = json!({marker: "7", exclude: "false", "x": "y".repeat(1000)});
        let kept = pod(&json!({"annotations": annotations}));
        assert_eq!(kept.markers, json!({marker: "7"}));
        let without = pod(&json!({"annotations": {"x": "y"}}));
        assert_eq!((without.markers, &*without.owner.1), (json!({}), ""));
        let leaving =
            pod(&json!({"annotations": annotations, "deletionTimestamp": "2026-01-01T00:00:00Z"}));
        assert_eq!(leaving.markers, json!({}));
    }

    #[test]
    fn an_owner_is_who_made_the_pod_or_the_deployment_behind() {
        let owned = |kind: &str, name: &str, hash: &str| {
            let metadata = json!({"name": "web-1", "labels": {"pod-template-hash": hash},
                "ownerReferences": [{"kind": "X", "name": "x"}, {"kind": kind, "name": name, "controller": true}]});
            let (kind, name) = owner(&metadata);
            format!("{kind}/{name}")
        };
        assert_eq!(owned("ReplicaSet", "web-5d4", "5d4"), "Deployment/web");
        assert_eq!(owned("ReplicaSet", "web-5d4", ""), "ReplicaSet/web-5d4");
        assert_eq!(owned("ReplicaSet", "web", "5d4"), "ReplicaSet/web");
        assert_eq!(
            owned("StatefulSet", "web-5d4", "5d4"),
            "StatefulSet/web-5d4"
        );
        let (kind, name) = owner(&json!({"name": "web-1"}));
        assert_eq!((&*kind, &*name), ("Pod", "web-1"));
    }
}
