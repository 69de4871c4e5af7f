//! What templates get from presets: those of PodIntents that a ClusterPodConvention with
//! `podPresets` selects.
//!
//! It is what a pod of the template would get when it is created, so nothing is left to add then. A
//! PodIntent sees its presets before anything runs, and a preset that changes makes another
//! template, which whoever owns the PodIntent rolls out.

use std::sync::Arc;

use controller_kit::process::Synced;
use controller_kit::reflect::{Change, Reflector};
use controller_kit::stamped::ObjectKey;
use convention_protocol::PodTemplate;
use conventions::inputs::digest_of_bytes;
use pod_presets::{Preset, inject, passes_gate};
use serde_json::{Value, json};

use super::Stores;
use super::admit::{Unanswered, is_too_much};
use super::entries::{Labels, NamespaceEntry, PresetEntry};
use super::index::Index;
use crate::fault::Fault;

/// The presets that templates may get.
#[derive(Clone)]
pub(crate) struct TemplatePresets {
    pub(super) index: Arc<Index>,
    pub(super) stores: Arc<Stores>,
    pub(super) synced: Synced,
}

/// The presets that select a template, in their order.
pub(crate) struct Selected(Vec<Arc<PresetEntry>>);

/// A template with all of them.
#[derive(Debug)]
pub(crate) struct Decorated {
    pub(crate) template: PodTemplate,
    /// The presets that it has.
    pub(crate) applied: Vec<String>,
    /// Why it has none, if it should have some.
    pub(crate) conflict: String,
}

impl TemplatePresets {
    /// Those that select a pod with these labels.
    ///
    /// # Errors
    /// It is not known: presets are not listed, or may not be, or the namespace is not.
    pub(crate) fn select(&self, namespace: &str, labels: &Labels) -> Result<Selected, Fault> {
        let unknown = |why: Unanswered| Fault::Presets(why.to_string());
        if let Some((kind, why)) = self.stores.refused() {
            return Err(Fault::Presets(format!("{kind}s cannot be listed: {why}")));
        }
        if !self.synced.is_synced() {
            return Err(unknown(Unanswered::NotSynced));
        }
        let candidates = self.index.candidates(namespace);
        let entry = self.stores.namespaces.get(&ObjectKey::new("", namespace));
        if candidates.ask_for_namespaces() && entry.is_none() {
            return Err(unknown(Unanswered::UnknownNamespace));
        }
        Ok(Selected(candidates.of(labels, entry.as_deref())))
    }
}

impl Selected {
    /// A digest of what a template gets. A status that is written is no other one.
    pub(crate) fn digest(&self) -> String {
        let versions: Vec<[&str; 2]> = self.0.iter().map(|it| [&*it.uid, &*it.marked]).collect();
        digest_of_bytes(json!(versions).to_string().as_bytes())
    }

    /// The template with all of them, or as it was if they conflict.
    ///
    /// # Errors
    /// Why there may be no such pod.
    pub(crate) fn apply(&self, template: &PodTemplate) -> Result<Decorated, String> {
        let mut decorated = Decorated {
            template: template.clone(),
            applied: Vec::new(),
            conflict: String::new(),
        };
        let mut pod = serde_json::to_value(template).map_err(|error| error.to_string())?;
        if passes_gate(&pod).is_err() {
            return Ok(decorated);
        }
        if is_too_much(&pod, &self.0) {
            return Err(Unanswered::TooMuch.to_string());
        }
        let presets: Vec<&Preset> = self.0.iter().filter_map(|it| it.preset()).collect();
        let injection = inject(&pod, &presets);
        if let Some(denied) = injection.denied {
            return Err(denied);
        }
        decorated.conflict = injection.warnings.join("; ");
        let applied = injection.applied.iter();
        decorated.applied = applied.map(|it| it.preset.receipt()).collect();
        if let Some(after) = injection.pod {
            pod = after;
            decorated.template = template_of(pod)?;
        }
        Ok(decorated)
    }
}

fn template_of(pod: Value) -> Result<PodTemplate, String> {
    serde_json::from_value(pod).map_err(|error| error.to_string())
}

/// A change of what templates get.
pub(crate) trait Touches {
    /// The namespace, if it is one that its tenants can change so.
    fn namespace(&self) -> Option<&str>;

    /// Whether a template with these labels, of a PodIntent with this key, gets something else now.
    fn touches(&self, intent: &ObjectKey, labels: &Labels) -> bool;
}

/// Who is told of such changes.
pub(crate) type Told = Arc<dyn Fn(&dyn Touches) + Send + Sync>;

/// A preset appeared, changed or went.
pub(super) struct PresetNews<'c> {
    namespace: &'c str,
    versions: Vec<&'c PresetEntry>,
    namespaces: &'c Reflector<NamespaceEntry>,
}

impl<'c> PresetNews<'c> {
    /// Nothing if templates get the same from both versions, as when a status was written.
    pub(super) fn of(change: &'c Change<'_, PresetEntry>, stores: &'c Stores) -> Option<Self> {
        let version = |entry: Option<&'c Arc<PresetEntry>>| entry.map(|it| (&it.uid, &it.marked));
        (version(change.before) != version(change.after)).then(|| Self {
            namespace: &change.key.namespace,
            versions: { change.before.into_iter() }
                .chain(change.after)
                .map(AsRef::as_ref)
                .collect(),
            namespaces: &stores.namespaces,
        })
    }
}

impl Touches for PresetNews<'_> {
    fn namespace(&self) -> Option<&str> {
        Some(self.namespace).filter(|it| !it.is_empty())
    }

    fn touches(&self, intent: &ObjectKey, labels: &Labels) -> bool {
        if !self.namespace.is_empty() && *self.namespace != *intent.namespace {
            return false;
        }
        let namespace = self.namespaces.get(&ObjectKey::new("", &intent.namespace));
        let none = Labels::new();
        let of_namespace = namespace.as_ref().map_or(&none, |entry| &entry.labels);
        let presets = self.versions.iter().filter_map(|it| it.preset());
        { presets }.any(|preset| preset.selects(labels, of_namespace))
    }
}

/// A namespace appeared, or has other labels.
pub(super) struct NamespaceNews<'c>(&'c str);

impl<'c> NamespaceNews<'c> {
    /// Nothing if no preset asks for it.
    pub(super) fn of(change: &'c Change<'_, NamespaceEntry>, index: &Index) -> Option<Self> {
        let labels = |entry: Option<&'c Arc<NamespaceEntry>>| entry.map(|it| &it.labels);
        let name = &*change.key.name;
        let is_news = labels(change.before) != labels(change.after);
        (is_news && index.candidates(name).ask_for_namespaces()).then_some(Self(name))
    }
}

impl Touches for NamespaceNews<'_> {
    fn namespace(&self) -> Option<&str> {
        Some(self.0)
    }

    fn touches(&self, intent: &ObjectKey, _: &Labels) -> bool {
        *intent.namespace == *self.0
    }
}

#[cfg(test)]
mod tests {
    use controller_kit::process::Work;
    use controller_kit::reflect::{Entry as _, key_of};
    use controller_kit::shutdown::Tasks;

    use super::*;

    fn object(kind: &str, version: &str, spec: Value) -> Value {
        let namespace = if kind == "PodPreset" { "dev" } else { "" };
        let mut object = json!({
            "apiVersion": "settings.carto.run/v1alpha1", "kind": kind,
            "metadata": {"name": "db", "namespace": namespace, "uid": "u", "resourceVersion": version},
        });
        object["spec"] = spec;
        object
    }

    fn sets(value: &str) -> Value {
        json!({"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A", "value": value}]})
    }

    fn entry(object: &Value) -> Arc<PresetEntry> {
        Arc::new(PresetEntry::build(object.clone()))
    }

    fn known(objects: &[Value]) -> TemplatePresets {
        let presets = TemplatePresets {
            index: Arc::default(),
            stores: Arc::default(),
            synced: Work::default().synced(),
        };
        for object in objects {
            presets.index.changed(&Change {
                key: &key_of(object),
                before: None,
                after: Some(&entry(object)),
            });
        }
        presets
    }

    fn labels() -> Labels {
        Labels::from([("a".to_owned(), "b".to_owned())])
    }

    fn selected(objects: &[Value]) -> Selected {
        known(objects).select("dev", &labels()).unwrap()
    }

    fn template(containers: &Value, annotations: &Value) -> PodTemplate {
        let metadata = json!({"labels": {"a": "b"}, "annotations": annotations});
        let spec = json!({"containers": containers, "a-newer-field": {"is": "kept"}});
        template_of(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    #[tokio::test]
    async fn as_long_as_presets_or_the_namespace_are_not_known_nothing_is_said() {
        let mut work = Work::default();
        let never = Box::pin(futures::stream::pending());
        let store: Arc<Reflector<PresetEntry>> = Arc::default();
        work.follow(&Tasks::new(), "never", &store, never, |_| {});
        let mut presets = known(&[]);
        presets.synced = work.synced();
        let why = |presets: &TemplatePresets| {
            let fault = presets.select("dev", &labels()).map(|_| ()).unwrap_err();
            fault.to_string()
        };
        assert_eq!(why(&presets), "pod presets are not known yet");
        let mut of_cluster = sets("1");
        of_cluster["namespaceSelector"] = json!({});
        let presets = known(&[object("ClusterPodPreset", "1", of_cluster)]);
        let expected = "the labels of the namespace are not known yet";
        assert_eq!(why(&presets), expected);
    }

    #[test]
    fn a_template_keeps_what_it_has_and_says_which_presets_it_got() {
        let before = template(&json!([{"name": "web"}]), &json!({"own": "1"}));
        let of = selected(&[object("PodPreset", "7", sets("1"))]);
        let decorated = of.apply(&before).unwrap();
        assert_eq!(decorated.applied, ["podpreset-db"]);
        assert_eq!(decorated.conflict, "");
        let after = serde_json::to_value(&decorated.template).unwrap();
        let expected = json!({
            "metadata": {"labels": {"a": "b"}, "annotations": {"own": "1",
                "podpreset.admission.kubernetes.io/podpreset-db": "7"}},
            "spec": {"containers": [{"name": "web", "env": [{"name": "A", "value": "1"}]}],
                "a-newer-field": {"is": "kept"}},
        });
        assert_eq!(after, expected);
        assert_eq!(
            of.apply(&decorated.template).unwrap().template,
            decorated.template
        );
    }

    #[test]
    fn who_does_not_want_presets_gets_none_and_too_much_work_is_not_begun() {
        let of = selected(&[object("PodPreset", "7", sets("1"))]);
        let exclude = json!({"podpreset.admission.kubernetes.io/exclude": "true"});
        let before = template(&json!([{"name": "web"}]), &exclude);
        let decorated = of.apply(&before).unwrap();
        assert_eq!((decorated.template, decorated.applied.len()), (before, 0));
        let env: Vec<Value> = (0..100)
            .map(|it| json!({"name": format!("A{it}")}))
            .collect();
        let mut many = sets("1");
        many["env"] = json!(env);
        let of = selected(&[object("PodPreset", "7", many)]);
        let containers: Vec<Value> = (0..501).map(|it| json!({"name": it.to_string()})).collect();
        let before = template(&json!(containers), &json!({}));
        let expected = "pod presets have too many entries for so many containers";
        assert_eq!(of.apply(&before).unwrap_err(), expected);
    }

    #[test]
    fn another_version_is_another_digest_and_news_and_a_status_is_not() {
        let first = object("PodPreset", "7", sets("1"));
        let mut counted = object("PodPreset", "8", sets("1"));
        counted["metadata"]["generation"] = json!(1);
        counted["status"] = json!({"observedGeneration": 1, "observedResourceVersion": "7"});
        let second = object("PodPreset", "9", sets("2"));
        let digest = |object: &Value| selected(std::slice::from_ref(object)).digest();
        assert_eq!(digest(&first), digest(&counted));
        assert_ne!(digest(&first), digest(&second));
        let stores = Arc::<Stores>::default();
        let is_news = |after: &Value, intent: &str, labels: &Labels| {
            let (key, before, after) = (key_of(after), entry(&first), entry(after));
            let change = Change {
                key: &key,
                before: Some(&before),
                after: Some(&after),
            };
            let news = PresetNews::of(&change, &stores);
            news.is_some_and(|it| it.touches(&ObjectKey::new(intent, "app"), labels))
        };
        assert!(!is_news(&counted, "dev", &labels()));
        assert!(is_news(&second, "dev", &labels()));
        assert!(!is_news(&second, "other", &labels()));
        assert!(!is_news(&second, "dev", &Labels::new()));
    }
}
