//! Why a pod is as it is: what each preset makes of it, and why some make nothing of it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::conflict::{Conflict, PresetName};
use crate::gate::{Untouched, passes_gate};
use crate::inject::{Addition, Injection, inject};
use crate::preset::{Mode, Preset};
use crate::validate::{self, FieldError};

/// A preset that may be for a pod, or that nobody can read.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Which.
    pub name: PresetName,
    /// The preset, or all that is wrong with it.
    pub compiled: Result<Preset, Vec<FieldError>>,
}

/// What a preset makes of a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The pod gets these; none if it has all of them.
    Applied(Vec<Addition>),
    /// The pod would get these; the preset is in mode `Audit`.
    Audited(Vec<Addition>),
    /// The pod would get it, if nothing were in the way: of this preset or of another.
    HeldBack,
    /// The pod itself is left alone.
    LeftAlone,
    /// Its selector does not select the pod: why.
    OtherLabels(String),
    /// It is for other namespaces: why.
    OtherNamespace(String),
    /// It is for no pod, because of these.
    Invalid(Vec<FieldError>),
}

impl Outcome {
    /// Whether its selectors select the pod.
    pub fn is_selected(&self) -> bool {
        matches!(
            self,
            Self::Applied(_) | Self::Audited(_) | Self::HeldBack | Self::LeftAlone
        )
    }
}

/// One preset, and what it makes of the pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// Which.
    pub name: PresetName,
    /// What it makes of the pod.
    pub outcome: Outcome,
    /// What it comes across.
    pub conflicts: Vec<Conflict>,
}

/// What presets make of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Why the pod is left alone, if it is.
    pub untouched: Option<Untouched>,
    /// Those that select the pod in the order in which it gets them, then the others.
    pub presets: Vec<Explained>,
    /// All of it together.
    pub injection: Injection,
}

impl Candidate {
    /// Reads the object of a preset.
    ///
    /// # Errors
    ///
    /// If it is of another kind.
    pub fn read(object: &Value) -> Result<Self, FieldError> {
        let kind = validate::origin_of(object).map_err(|errors| errors.into_iter().next());
        let origin = kind.map_err(|error| {
            error.unwrap_or_else(|| FieldError::of("kind", "it is no pod preset"))
        })?;
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let name = PresetName {
            origin,
            namespace: text("namespace").to_owned(),
            name: text("name").to_owned(),
        };
        let compiled = Preset::compile(object);
        Ok(Self { name, compiled })
    }
}

/// Explains what presets make of a pod that is created in a namespace with these labels.
///
/// A preset and a pod without a namespace are taken to be in the same one: files seldom name it.
///
/// ```
/// use pod_presets::{Candidate, Outcome, explain};
/// use serde_json::json;
///
/// let preset = Candidate::read(&json!({
///     "apiVersion": "settings.carto.run/v1alpha1",
///     "kind": "PodPreset",
///     "metadata": {"name": "db"},
///     "spec": {"selector": {"matchLabels": {"role": "frontend"}}, "env": [{"name": "DB_PORT", "value": "6379"}]},
/// })).unwrap();
/// let pod = json!({"metadata": {"labels": {"role": "backend"}}, "spec": {"containers": [{"name": "web"}]}});
/// let explanation = explain(&pod, &[preset], &Default::default());
/// let why = "label [role] must be one of [frontend], but is [backend]".to_owned();
/// assert_eq!(explanation.presets[0].outcome, Outcome::OtherLabels(why));
/// ```
pub fn explain(
    pod: &Value,
    candidates: &[Candidate],
    namespace_labels: &BTreeMap<String, String>,
) -> Explanation {
    let untouched = passes_gate(pod).err();
    let labels = labels_of(pod);
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let (mut selected, mut others) = (Vec::new(), Vec::new());
    for candidate in candidates {
        match rejection(candidate, namespace, &labels, namespace_labels) {
            Ok(preset) => selected.push(preset),
            Err(outcome) => others.push(explained(&candidate.name, outcome)),
        }
    }
    selected.sort_by(|left, right| left.precedence(right));
    others.sort_by(|left, right| left.name.cmp(&right.name));
    let injection = match untouched {
        Some(_) => Injection::default(),
        None => inject(pod, &selected),
    };
    let own = selected
        .iter()
        .map(|preset| outcome_of(preset, untouched, &injection));
    let presets = own.chain(others).collect();
    Explanation {
        untouched,
        presets,
        injection,
    }
}

/// The preset, if it selects the pod; otherwise why it does not.
fn rejection<'c>(
    candidate: &'c Candidate,
    namespace: &str,
    labels: &BTreeMap<String, String>,
    namespace_labels: &BTreeMap<String, String>,
) -> Result<&'c Preset, Outcome> {
    let own = &*candidate.name.namespace;
    if !own.is_empty() && !namespace.is_empty() && own != namespace {
        let why = format!("it is in namespace {own}");
        return Err(Outcome::OtherNamespace(why));
    }
    let preset = candidate.compiled.as_ref();
    let preset = preset.map_err(|errors| Outcome::Invalid(errors.clone()))?;
    if let Some(why) = preset.unmet_of_namespace(namespace_labels) {
        return Err(Outcome::OtherNamespace(format!("of the namespace {why}")));
    }
    match preset.unmet(labels) {
        Some(why) => Err(Outcome::OtherLabels(why)),
        None => Ok(preset),
    }
}

fn explained(name: &PresetName, outcome: Outcome) -> Explained {
    Explained {
        name: name.clone(),
        outcome,
        conflicts: Vec::new(),
    }
}

fn outcome_of(preset: &Preset, untouched: Option<Untouched>, injection: &Injection) -> Explained {
    let name = preset.id();
    if untouched.is_some() {
        return explained(name, Outcome::LeftAlone);
    }
    if preset.mode() == Mode::Audit {
        let mut audited = injection.audited.iter();
        let audited = audited.find(|it| it.applied.preset == *name).cloned();
        let (added, conflicts) = audited
            .map(|it| (it.applied.added, it.conflicts))
            .unwrap_or_default();
        return Explained {
            name: name.clone(),
            outcome: Outcome::Audited(added),
            conflicts,
        };
    }
    let mut applied = injection.applied.iter();
    let applied = applied.find(|it| it.preset == *name);
    let conflicts = injection.conflicts.iter();
    Explained {
        name: name.clone(),
        outcome: applied.map_or(Outcome::HeldBack, |it| Outcome::Applied(it.added.clone())),
        conflicts: conflicts.filter(|it| it.preset == *name).cloned().collect(),
    }
}

fn labels_of(pod: &Value) -> BTreeMap<String, String> {
    let labels = pod["metadata"]["labels"].as_object().into_iter().flatten();
    labels
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}
