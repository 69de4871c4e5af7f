//! Which presets there are, in the order in which pods get them.
//!
//! A watch writes here, admissions read: each takes the lists of its namespace as they are and
//! holds no lock while it works. What is held is what the API server holds of presets, each
//! compiled once; a ResourceQuota for `count/podpresets.settings.carto.run` bounds what a tenant
//! adds to that. One that cannot be compiled is in no list.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use controller_kit::reflect::Change;
use parking_lot::RwLock;

use super::entries::{Labels, NamespaceEntry, PresetEntry};

/// Presets, the first to be applied first.
type Ordered = Arc<Vec<Arc<PresetEntry>>>;

/// All presets that can be applied.
#[derive(Default)]
pub(super) struct Index(RwLock<Held>);

#[derive(Default)]
struct Held {
    cluster: Ordered,
    /// By namespace; those without any have no entry.
    namespaced: HashMap<Arc<str>, Ordered>,
}

/// The presets that a pod of one namespace may get.
#[derive(Clone, Default)]
pub(super) struct Candidates {
    cluster: Ordered,
    namespaced: Ordered,
}

impl Candidates {
    /// Those for a pod with these labels, in the order in which they are applied. The namespace is
    /// needed where [`Self::ask_for_namespaces`].
    pub(super) fn of(
        &self,
        labels: &Labels,
        namespace: Option<&NamespaceEntry>,
    ) -> Vec<Arc<PresetEntry>> {
        let none = Labels::new();
        let of_namespace = namespace.map_or(&none, |entry| &entry.labels);
        let all = self.cluster.iter().chain(self.namespaced.iter());
        let selects = |entry: &&Arc<PresetEntry>| {
            let preset = entry.preset();
            preset.is_some_and(|preset| preset.selects(labels, of_namespace))
        };
        all.filter(selects).cloned().collect()
    }

    /// Whether the labels of the namespace may decide.
    pub(super) fn ask_for_namespaces(&self) -> bool {
        !self.cluster.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cluster.is_empty() && self.namespaced.is_empty()
    }
}

impl Index {
    /// Those of a namespace.
    pub(super) fn candidates(&self, namespace: &str) -> Candidates {
        let held = self.0.read();
        Candidates {
            cluster: held.cluster.clone(),
            namespaced: held.namespaced.get(namespace).cloned().unwrap_or_default(),
        }
    }

    /// A preset appeared, changed or went.
    pub(super) fn changed(&self, change: &Change<'_, PresetEntry>) {
        let mut held = self.0.write();
        let Held {
            cluster,
            namespaced,
        } = &mut *held;
        let namespace = &change.key.namespace;
        let list = if namespace.is_empty() {
            cluster
        } else {
            namespaced.entry(namespace.clone()).or_default()
        };
        let list = Arc::make_mut(list);
        if let Some(before) = change.before {
            list.retain(|entry| !is_same_object(entry, before));
        }
        if let Some(after) = change.after
            && after.compiled.is_ok()
        {
            let place = list.partition_point(|entry| order(entry, after) == Ordering::Less);
            list.insert(place, after.clone());
        }
        if list.is_empty() && !namespace.is_empty() {
            namespaced.remove(namespace);
        }
    }
}

/// In the order of the crate of presets. None of those in a list is broken.
fn order(left: &PresetEntry, right: &PresetEntry) -> Ordering {
    match (&left.compiled, &right.compiled) {
        (Ok(left), Ok(right)) => left.precedence(right),
        _ => Ordering::Equal,
    }
}

/// Of two groups two presets may have one name.
fn is_same_object(left: &PresetEntry, right: &PresetEntry) -> bool {
    match (&left.compiled, &right.compiled) {
        (Ok(left), Ok(right)) => left.id() == right.id(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use controller_kit::reflect::{Entry as _, key_of};
    use controller_kit::stamped::ObjectKey;
    use serde_json::{Value, json};

    use super::*;

    fn object(group: &str, kind: &str, name: &str, created: u8) -> Value {
        let namespace = if kind == "PodPreset" { "dev" } else { "" };
        json!({
            "apiVersion": format!("{group}/v1alpha1"), "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "uid": format!("{group}{kind}{name}"),
                "creationTimestamp": format!("2026-01-{created:02}T00:00:00Z"), "resourceVersion": "1"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "namespaceSelector": {},
                "env": [{"name": "A", "value": name}]},
        })
    }

    fn entry(object: &Value) -> (ObjectKey, Arc<PresetEntry>) {
        (key_of(object), Arc::new(PresetEntry::build(object.clone())))
    }

    /// A watch shows this object after that one.
    fn shown(index: &Index, before: Option<&Value>, after: Option<&Value>) {
        let (before, after) = (before.map(entry), after.map(entry));
        let key = after.as_ref().or(before.as_ref()).unwrap().0.clone();
        index.changed(&Change {
            key: &key,
            before: before.as_ref().map(|(_, entry)| entry),
            after: after.as_ref().map(|(_, entry)| entry),
        });
    }

    fn names(index: &Index, namespace: &str) -> Vec<String> {
        let labels = Labels::from([("a".to_owned(), "b".to_owned())]);
        let namespace_entry = NamespaceEntry::build(json!({}));
        let candidates = index.candidates(namespace);
        let found = candidates.of(&labels, Some(&namespace_entry));
        found.iter().map(|entry| entry.name.to_string()).collect()
    }

    #[test]
    fn presets_come_in_their_order_however_they_are_shown() {
        const NEW: &str = "settings.carto.run";
        let all = [
            object("settings.k8s.io", "PodPreset", "middle", 2),
            object(NEW, "ClusterPodPreset", "cluster-late", 9),
            object(NEW, "PodPreset", "young", 3),
            object(NEW, "PodPreset", "old", 1),
            object(NEW, "ClusterPodPreset", "cluster", 8),
        ];
        let expected = ["cluster", "cluster-late", "old", "middle", "young"];
        for turn in 0..all.len() {
            let index = Index::default();
            for object in all.iter().cycle().skip(turn).take(all.len()) {
                shown(&index, None, Some(object));
            }
            assert_eq!(names(&index, "dev"), expected);
            assert_eq!(names(&index, "other"), expected[..2]);
        }
    }

    #[test]
    fn what_changes_or_goes_is_of_its_own_group_only() {
        let index = Index::default();
        let old = object("settings.k8s.io", "PodPreset", "same", 1);
        let new = object("settings.carto.run", "PodPreset", "same", 2);
        shown(&index, None, Some(&old));
        shown(&index, None, Some(&new));
        shown(&index, Some(&new), Some(&new));
        assert_eq!(names(&index, "dev"), ["same", "same"]);
        shown(&index, Some(&old), None);
        assert_eq!(names(&index, "dev"), ["same"]);
        shown(&index, Some(&new), None);
        assert!(index.candidates("dev").is_empty());
        assert!(
            index.0.read().namespaced.is_empty(),
            "nothing is kept of it"
        );
    }

    #[test]
    fn a_preset_that_cannot_be_read_harms_only_itself_until_it_is_mended() {
        let index = Index::default();
        let good = object("settings.carto.run", "PodPreset", "good", 1);
        let other = object("settings.carto.run", "PodPreset", "other", 2);
        let mut broken = other.clone();
        broken["spec"]["selector"] =
            json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
        shown(&index, None, Some(&good));
        shown(&index, None, Some(&broken));
        assert_eq!(names(&index, "dev"), ["good"]);
        shown(&index, Some(&broken), Some(&other));
        assert_eq!(names(&index, "dev"), ["good", "other"]);
        shown(&index, Some(&other), Some(&broken));
        assert_eq!(names(&index, "dev"), ["good"]);
        // Nobody can parse one that is nested too deep: only its name is known.
        shown(
            &index,
            Some(&broken),
            Some(&json!({"metadata": {"namespace": "dev", "name": "other"}})),
        );
        assert_eq!(names(&index, "dev"), ["good"]);
    }
}
