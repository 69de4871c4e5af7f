//! What presets make of a pod.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::conflict::{Conflict, PresetName, Settled};
use crate::plan::{Plan, Scope};
use crate::preset::{Mode, Preset};
use crate::stale::markers;

/// Something that a preset adds to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// The list it is added to, as a JSON pointer: `/spec/containers/0/env`.
    pub path: String,
    /// Name of the container; nothing for volumes.
    pub container: Option<String>,
    /// The list within it: `env`, `envFrom`, `volumes` or `volumeMounts`.
    pub list: &'static str,
    /// Name of what is added; of a mount its path.
    pub key: String,
}

/// A preset that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Which.
    pub preset: PresetName,
    /// What it added; nothing if the pod had all of it.
    pub added: Vec<Addition>,
}

/// What a preset that changes nothing would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Audited {
    /// Which, and what it would add.
    pub applied: Applied,
    /// What it would come across.
    pub conflicts: Vec<Conflict>,
}

/// What presets make of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Injection {
    /// The pod with all of it; nothing if it is as it was.
    pub pod: Option<Value>,
    /// The presets that were applied, in their order.
    pub applied: Vec<Applied>,
    /// What they came across. If one of these is blocking, the pod is as it was.
    pub conflicts: Vec<Conflict>,
    /// What presets would do that only look.
    pub audited: Vec<Audited>,
    /// What to tell whoever made the pod.
    pub warnings: Vec<String>,
    /// Why the pod is to be refused.
    pub denied: Option<String>,
}

/// Warnings that are told; an API server takes 4096 bytes of them.
const MOST_WARNINGS: usize = 16;

/// Injects presets that select a pod, which has [passed](crate::passes_gate), into it.
///
/// ```
/// use pod_presets::{Preset, inject};
/// use serde_json::json;
///
/// let preset = Preset::compile(&json!({
///     "apiVersion": "settings.carto.run/v1alpha1",
///     "kind": "PodPreset",
///     "metadata": {"name": "db", "resourceVersion": "7"},
///     "spec": {"selector": {"matchLabels": {"role": "frontend"}}, "env": [{"name": "DB_PORT", "value": "6379"}]},
/// })).unwrap();
/// let pod = json!({"metadata": {"labels": {"role": "frontend"}}, "spec": {"containers": [{"name": "web"}]}});
/// let injected = inject(&pod, &[&preset]).pod.unwrap();
/// assert_eq!(injected["spec"]["containers"][0]["env"], json!([{"name": "DB_PORT", "value": "6379"}]));
/// assert_eq!(inject(&injected, &[&preset]).pod, None);
/// ```
pub fn inject(pod: &Value, presets: &[&Preset]) -> Injection {
    injected(pod, presets, &Scope::WholePod)
}

/// Injects presets into the ephemeral containers of a pod that it did not have before.
///
/// They get what such a container can have: variables, and mounts without a path within the volume, of volumes that the pod
/// has. Presets are for them only if they say so.
pub fn inject_ephemeral(pod: &Value, before: &Value, presets: &[&Preset]) -> Injection {
    let names = |pod: &Value| {
        let containers = pod["spec"]["ephemeralContainers"].as_array().cloned();
        let containers = containers.into_iter().flatten();
        containers
            .filter_map(|it| it["name"].as_str().map(str::to_owned))
            .collect()
    };
    let scope = Scope::NewEphemeral {
        before: names(before),
    };
    injected(pod, presets, &scope)
}

/// The operations that make one pod of another.
pub fn patch(before: &Value, after: &Value) -> json_patch::Patch {
    json_patch::diff(before, after)
}

fn injected(pod: &Value, presets: &[&Preset], scope: &Scope) -> Injection {
    let mut presets = presets.to_vec();
    presets.sort_by(|left, right| left.precedence(right));
    let (enforced, audited): (Vec<&Preset>, Vec<&Preset>) = presets
        .into_iter()
        .partition(|it| it.mode() == Mode::Enforce);
    let mut plan = Plan::of(pod, &enforced, scope);
    let is_blocked = plan.conflicts.iter().any(|it| it.settled.is_blocking());
    let mut injection = Injection {
        warnings: warnings(&plan.conflicts),
        denied: denial(&plan.conflicts),
        ..Injection::default()
    };
    if !is_blocked {
        let mut after = pod.clone();
        let is_changed = plan.carry_out(&mut after);
        let is_marked = matches!(scope, Scope::WholePod) && mark(&mut after, &enforced);
        injection.pod = (is_changed || is_marked).then_some(after);
        injection.applied = applied(&enforced, plan.added);
    }
    injection.conflicts = plan.conflicts;
    let after = injection.pod.as_ref().unwrap_or(pod);
    let looks = audited.into_iter().map(|preset| look(after, preset, scope));
    injection.audited = looks.collect();
    injection
}

fn look(pod: &Value, preset: &Preset, scope: &Scope) -> Audited {
    let plan = Plan::of(pod, &[preset], scope);
    Audited {
        applied: Applied {
            preset: preset.id().clone(),
            added: plan.added.into_iter().map(|(_, added)| added).collect(),
        },
        conflicts: plan.conflicts,
    }
}

fn applied(presets: &[&Preset], added: Vec<(PresetName, Addition)>) -> Vec<Applied> {
    let mut by_preset: BTreeMap<PresetName, Vec<Addition>> = BTreeMap::new();
    for (preset, addition) in added {
        by_preset.entry(preset).or_default().push(addition);
    }
    let applied = presets.iter().map(|preset| Applied {
        preset: preset.id().clone(),
        added: by_preset.remove(preset.id()).unwrap_or_default(),
    });
    applied.collect()
}

fn warnings(conflicts: &[Conflict]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for conflict in conflicts.iter().filter(|it| it.settled == Settled::Skipped) {
        let warning = format!("{}: {}", conflict.preset, conflict.message());
        if !told.contains(&warning) {
            told.push(warning);
        }
        if told.len() == MOST_WARNINGS {
            break;
        }
    }
    told
}

fn denial(conflicts: &[Conflict]) -> Option<String> {
    let denied = conflicts.iter().find(|it| it.settled == Settled::Denied)?;
    Some(format!("{}: {}", denied.preset, denied.message()))
}

/// Writes the markers; returns whether any was another one.
fn mark(pod: &mut Value, presets: &[&Preset]) -> bool {
    let markers = markers(presets);
    let is_marked = markers
        .iter()
        .all(|(key, version)| pod["metadata"]["annotations"][key] == version.as_str());
    if is_marked {
        return false;
    }
    let Some(annotations) = object(pod, "metadata").and_then(|it| object(it, "annotations")) else {
        return false;
    };
    for (key, version) in markers {
        annotations[key] = version.into();
    }
    true
}

/// An object within another, which is made if it is not there.
fn object<'v>(within: &'v mut Value, field: &str) -> Option<&'v mut Value> {
    let value = within.as_object_mut()?.entry(field).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    Some(value)
}
