//! A preset, read once and matched with many pods.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use api_types::Selector;
use api_types::selector::CompiledSelector;
use conventions::pod::Part;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::conflict::PresetName;
use crate::defaults;
use crate::origin::Origin;
use crate::same;
use crate::target::Target;
use crate::validate::{self, FieldError};

/// What follows when a pod has something else in a place that a preset wants to fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConflictPolicy {
    /// The pod gets nothing, of no preset.
    #[default]
    Skip,
    /// What is there stays, and the pod gets the rest.
    KeepExisting,
    /// What the preset says takes its place.
    Override,
    /// The pod is refused.
    Deny,
}

impl ConflictPolicy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Skip, Self::KeepExisting, Self::Override, Self::Deny];

    /// The text of `conflictPolicy`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "Skip",
            Self::KeepExisting => "KeepExisting",
            Self::Override => "Override",
            Self::Deny => "Deny",
        }
    }

    /// What a text stands for; an empty one for what holds where nothing is said.
    pub fn from_text(text: &str) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|it| it.as_str() == text);
        known.or_else(|| text.is_empty().then(Self::default))
    }
}

/// Whether a preset changes pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// It does.
    #[default]
    Enforce,
    /// It is only told what it would do.
    Audit,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Enforce, Self::Audit];

    /// The text of `mode`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "Enforce",
            Self::Audit => "Audit",
        }
    }

    /// What a text stands for; an empty one for what holds where nothing is said.
    pub fn from_text(text: &str) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|it| it.as_str() == text);
        known.or_else(|| text.is_empty().then(Self::default))
    }
}

/// One item that a preset adds to a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// As the author wrote it.
    pub(crate) written: Value,
    /// With what the API server fills in, where that differs.
    filled: Option<Value>,
}

impl Entry {
    fn new(written: &Value, filled: Value) -> Self {
        Self {
            written: written.clone(),
            filled: (filled != *written).then_some(filled),
        }
    }

    /// As the API server would store it.
    pub(crate) fn filled(&self) -> &Value {
        self.filled.as_ref().unwrap_or(&self.written)
    }

    /// A text of it; empty if there is none.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.written[field].as_str().unwrap_or_default()
    }

    pub(crate) fn means(&self, other: &Value) -> bool {
        same::same(self.filled(), other)
    }
}

/// A preset, compiled once per version of its object.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    name: PresetName,
    resource_version: String,
    uid: String,
    created: Option<Timestamp>,
    pods: CompiledSelector,
    namespaces: CompiledSelector,
    pub(crate) policy: ConflictPolicy,
    mode: Mode,
    pub(crate) target: Target,
    pub(crate) multi_mount: bool,
    pub(crate) env: Vec<Entry>,
    pub(crate) env_from: Vec<Entry>,
    pub(crate) volumes: Vec<Entry>,
    pub(crate) mounts: Vec<Entry>,
}

impl Preset {
    /// Reads the object of a preset, as the API server has it or as a file does.
    ///
    /// ```
    /// use pod_presets::Preset;
    /// use serde_json::json;
    ///
    /// let preset = Preset::compile(&json!({
    ///     "apiVersion": "settings.k8s.io/v1alpha1",
    ///     "kind": "PodPreset",
    ///     "metadata": {"name": "allow-database", "namespace": "myns", "resourceVersion": "7"},
    ///     "spec": {"selector": {"matchLabels": {"role": "frontend"}}, "env": [{"name": "DB_PORT", "value": "6379"}]},
    /// })).unwrap();
    /// let marker = ("podpreset.admission.kubernetes.io/podpreset-allow-database".to_owned(), "7".to_owned());
    /// assert_eq!(preset.marker(), marker);
    /// ```
    ///
    /// # Errors
    ///
    /// All that is wrong with it, up to a number; whoever wrote it must correct it, and meanwhile it is for no pod.
    pub fn compile(object: &Value) -> Result<Self, Vec<FieldError>> {
        let origin = validate::origin_of(object)?;
        let problems = validate::problems(object, origin);
        if !problems.is_empty() {
            return Err(problems);
        }
        let (metadata, spec) = (&object["metadata"], &object["spec"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let word = |field: &str| spec[field].as_str().unwrap_or_default();
        let list = |part: Part| entries(spec, part);
        Ok(Self {
            name: PresetName {
                origin,
                namespace: text(&metadata["namespace"]),
                name: text(&metadata["name"]),
            },
            resource_version: text(&metadata["resourceVersion"]),
            uid: text(&metadata["uid"]),
            created: metadata["creationTimestamp"]
                .as_str()
                .and_then(|time| time.parse().ok()),
            pods: selector(&spec["selector"], "spec.selector")?,
            namespaces: selector(&spec["namespaceSelector"], "spec.namespaceSelector")?,
            policy: ConflictPolicy::from_text(word("conflictPolicy")).unwrap_or_default(),
            mode: Mode::from_text(word("mode")).unwrap_or_default(),
            target: Target::read(&spec["containers"]),
            multi_mount: spec["multiMount"] == true,
            env: list(Part::EnvVar),
            env_from: list(Part::EnvFromSource),
            volumes: list(Part::Volume),
            mounts: list(Part::VolumeMount),
        })
    }

    /// Name, namespace and kind.
    pub fn id(&self) -> &PresetName {
        &self.name
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.name.name
    }

    /// Namespace; empty for those of the cluster, and for those of files that name none.
    pub fn namespace(&self) -> &str {
        &self.name.namespace
    }

    /// Which kind it comes from.
    pub fn origin(&self) -> Origin {
        self.name.origin
    }

    /// The version that it was read from.
    pub fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// The uid of its object; empty where it has none.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// How many variables, sources of variables, volumes and mounts it has: what a container costs
    /// that gets it.
    pub fn entries(&self) -> usize {
        self.env.len() + self.env_from.len() + self.volumes.len() + self.mounts.len()
    }

    /// Whether it changes pods.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What follows when a pod has something else where it has something.
    pub fn conflict_policy(&self) -> ConflictPolicy {
        self.policy
    }

    /// Whether it is for pods with these labels, in a namespace with these. Of a preset in a namespace those of the namespace
    /// do not matter: that it is the pod's, its caller has seen to.
    pub fn selects(
        &self,
        labels: &BTreeMap<String, String>,
        namespace_labels: &BTreeMap<String, String>,
    ) -> bool {
        let of_namespace = || self.namespaces.matches(namespace_labels);
        self.pods.matches(labels) && (self.origin().is_namespaced() || of_namespace())
    }

    /// What a pod with these labels lacks for this preset, in words; nothing if it is for the pod.
    pub(crate) fn unmet(&self, labels: &BTreeMap<String, String>) -> Option<String> {
        unmet(&self.pods, labels)
    }

    /// What a namespace with these labels lacks for this preset. To one in a namespace labels of it
    /// do not matter.
    pub(crate) fn unmet_of_namespace(&self, labels: &BTreeMap<String, String>) -> Option<String> {
        let asks = !self.origin().is_namespaced();
        unmet(&self.namespaces, labels).filter(|_| asks)
    }

    /// The annotation that a pod gets, by which it is known that the preset was applied, and in which version.
    pub fn marker(&self) -> (String, String) {
        (self.name.marker_key(), self.resource_version.clone())
    }

    /// The order of presets: those of the cluster, then the others; of each the oldest first, and of one age by name.
    ///
    /// ```
    /// use pod_presets::Preset;
    /// use serde_json::json;
    ///
    /// let preset = |name, created| Preset::compile(&json!({
    ///     "apiVersion": "settings.carto.run/v1alpha1",
    ///     "kind": "PodPreset",
    ///     "metadata": {"name": name, "creationTimestamp": created},
    ///     "spec": {"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A"}]},
    /// })).unwrap();
    /// let mut presets = [preset("a", "2026-01-02T00:00:00Z"), preset("b", "2026-01-01T00:00:00Z")];
    /// presets.sort_by(Preset::precedence);
    /// assert_eq!(presets.map(|it| it.name().to_owned()), ["b", "a"]);
    /// ```
    pub fn precedence(&self, other: &Self) -> Ordering {
        fn key(preset: &Preset) -> (u8, Option<Timestamp>, &PresetName) {
            (preset.origin().rank(), preset.created, &preset.name)
        }
        key(self).cmp(&key(other))
    }
}

fn unmet(selector: &CompiledSelector, labels: &BTreeMap<String, String>) -> Option<String> {
    let requirement = selector.unmet(labels)?;
    let found = labels.get(&requirement.key).map(String::as_str);
    Some(format!("label {}", requirement.unmet_by(found)))
}

/// `matchLabels` and `matchExpressions`, nothing else.
pub(crate) fn selector(value: &Value, path: &str) -> Result<CompiledSelector, Vec<FieldError>> {
    let refused = |text: &str| vec![FieldError::invalid(path, value, text)];
    let selector = if value.is_null() {
        Selector::default()
    } else {
        serde_json::from_value(value.clone()).map_err(|error| refused(&error.to_string()))?
    };
    CompiledSelector::new(&selector).map_err(|error| refused(&error.to_string()))
}

/// The list of the spec that has such parts.
pub(crate) fn list_of(part: Part) -> &'static str {
    match part {
        Part::EnvVar => "env",
        Part::EnvFromSource => "envFrom",
        Part::Volume => "volumes",
        Part::VolumeMount => "volumeMounts",
    }
}

/// How many such parts a preset may have: more than anybody needs, and few enough to compare.
pub(crate) fn most_of(part: Part) -> usize {
    match part {
        Part::EnvVar | Part::EnvFromSource => 1000,
        // Without a bound a rule that compares two lists costs more than an API server allows.
        Part::Volume | Part::VolumeMount => 256,
    }
}

fn entries(spec: &Value, part: Part) -> Vec<Entry> {
    let filled = |value: &Value| filled(part, value);
    let values = spec[list_of(part)].as_array().into_iter().flatten();
    values
        .map(|value| Entry::new(value, filled(value)))
        .collect()
}

/// A part as the API server would store it.
pub(crate) fn filled(part: Part, value: &Value) -> Value {
    match part {
        Part::EnvVar => defaults::env(value),
        Part::Volume => defaults::volume(value),
        Part::EnvFromSource | Part::VolumeMount => value.clone(),
    }
}
