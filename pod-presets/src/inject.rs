//! What presets make of a pod.

use std::collections::BTreeSet;

use conventions::pod::Part;
use serde_json::{Map, Value};

use crate::conflict::{Conflict, PresetName, Settled};
use crate::merge::{Item, Merged, Wish, merge};
use crate::preset::{Mode, Preset, list_of};
use crate::stale::markers;
use crate::target::ContainerType;

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
        containers.map(|it| text(&it["name"]).to_owned()).collect()
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

/// What of a pod is looked at.
enum Scope {
    WholePod,
    NewEphemeral { before: BTreeSet<String> },
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
        injection.applied = applied(&enforced, &plan.added);
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

fn applied(presets: &[&Preset], added: &[(PresetName, Addition)]) -> Vec<Applied> {
    let of = |preset: &&Preset| {
        let own = added.iter().filter(|(by, _)| by == preset.id());
        Applied {
            preset: preset.id().clone(),
            added: own.map(|(_, addition)| addition.clone()).collect(),
        }
    };
    presets.iter().map(of).collect()
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

/// All that is to be done to a pod.
#[derive(Default)]
struct Plan {
    lists: Vec<(String, Vec<Value>)>,
    added: Vec<(PresetName, Addition)>,
    conflicts: Vec<Conflict>,
}

impl Plan {
    fn of(pod: &Value, presets: &[&Preset], scope: &Scope) -> Self {
        let containers = containers(pod, scope);
        let mut plan = Self::default();
        let at_work: Vec<&Preset> = presets
            .iter()
            .filter(|preset| containers.iter().any(|it| it.is_of(preset)))
            .copied()
            .collect();
        let lost = plan.volumes(pod, &at_work, scope);
        for container in &containers {
            let own: Vec<&Preset> = at_work
                .iter()
                .filter(|it| container.is_of(it))
                .copied()
                .collect();
            plan.list(Part::EnvVar, container, &own, &lost);
            plan.list(Part::VolumeMount, container, &own, &lost);
            plan.list(Part::EnvFromSource, container, &own, &lost);
        }
        plan
    }

    /// Plans the volumes; returns those that are another's, by preset: what mounts them would see something else.
    fn volumes(
        &mut self,
        pod: &Value,
        presets: &[&Preset],
        scope: &Scope,
    ) -> BTreeSet<(PresetName, String)> {
        let own = items(&pod["spec"]["volumes"]);
        let wishes = presets.iter().flat_map(|preset| {
            let volumes = preset.volumes.iter();
            volumes.map(|entry| Wish { preset, entry })
        });
        let merged = merge(Part::Volume, None, own.map(Item::Own), wishes);
        let mut lost: BTreeSet<(PresetName, String)> = merged
            .conflicts
            .iter()
            .filter(|conflict| conflict.settled == Settled::Kept)
            .map(|conflict| (conflict.preset.clone(), conflict.key.clone()))
            .collect();
        match scope {
            Scope::WholePod => self.take("/spec/volumes", None, Part::Volume, merged),
            // To a pod that runs no volume can be added.
            Scope::NewEphemeral { .. } => {
                let missing = merged.items.iter().filter_map(|item| match item {
                    Item::Wished(wish) => Some(wish.entry.text("name").to_owned()),
                    Item::Own(_) | Item::Device(_) => None,
                });
                let missing: BTreeSet<String> = missing.collect();
                for preset in presets {
                    let own = preset.volumes.iter().map(|it| it.text("name"));
                    let own = own.filter(|name| missing.contains(*name));
                    lost.extend(own.map(|name| (preset.id().clone(), name.to_owned())));
                }
                self.conflicts.extend(merged.conflicts);
            }
        }
        lost
    }

    fn list(
        &mut self,
        part: Part,
        container: &Container<'_>,
        presets: &[&Preset],
        lost: &BTreeSet<(PresetName, String)>,
    ) {
        let wishes = presets.iter().flat_map(|preset| {
            let entries = match part {
                Part::EnvVar => &preset.env,
                Part::EnvFromSource => &preset.env_from,
                Part::VolumeMount => &preset.mounts,
                Part::Volume => &preset.volumes,
            };
            let entries = entries.iter().filter(|entry| {
                let volume = || (preset.id().clone(), entry.text("name").to_owned());
                part != Part::VolumeMount
                    || container.takes_mount(&entry.written) && !lost.contains(&volume())
            });
            entries.map(|entry| Wish { preset, entry })
        });
        let list = list_of(part);
        let devices = match part {
            Part::VolumeMount => &container.value["volumeDevices"],
            _ => &Value::Null,
        };
        let own = items(&container.value[list]).map(Item::Own);
        let own = items(devices).map(Item::Device).chain(own);
        let merged = merge(part, Some(container.name), own, wishes);
        let path = format!("{}/{list}", container.path);
        self.take(&path, Some(container.name), part, merged);
    }

    fn take(&mut self, path: &str, container: Option<&str>, part: Part, merged: Merged<'_>) {
        if merged.is_changed() {
            let mut items = Vec::with_capacity(merged.items.len());
            for item in merged.items {
                match item {
                    Item::Own(value) | Item::Device(value) => items.push(value.clone()),
                    Item::Wished(wish) => {
                        items.push(wish.entry.written.clone());
                        let addition = Addition {
                            path: path.to_owned(),
                            container: container.map(str::to_owned),
                            list: list_of(part),
                            key: key_of(part, wish),
                        };
                        self.added.push((wish.preset.id().clone(), addition));
                    }
                }
            }
            self.lists.push((path.to_owned(), items));
        }
        self.conflicts.extend(merged.conflicts);
    }

    /// Returns whether anything was to be done.
    fn carry_out(&mut self, pod: &mut Value) -> bool {
        let is_any = !self.lists.is_empty();
        for (path, items) in self.lists.drain(..) {
            let (parent, list) = path.rsplit_once('/').unwrap_or_default();
            if let Some(Value::Object(parent)) = pod.pointer_mut(parent) {
                parent.insert(list.to_owned(), Value::Array(items));
            }
        }
        is_any
    }
}

fn key_of(part: Part, wish: Wish<'_>) -> String {
    match part {
        Part::VolumeMount => wish.entry.text("mountPath").to_owned(),
        _ => crate::merge::name_of(part, Item::Wished(wish)),
    }
}

/// A container that presets may be for.
struct Container<'p> {
    path: String,
    name: &'p str,
    type_: ContainerType,
    value: &'p Value,
}

impl Container<'_> {
    fn is_of(&self, preset: &Preset) -> bool {
        preset.target.includes(self.type_, self.name)
    }

    /// An ephemeral container sees volumes as a whole.
    fn takes_mount(&self, mount: &Value) -> bool {
        let within = ["subPath", "subPathExpr"].map(|field| text(&mount[field]));
        self.type_ != ContainerType::Ephemeral || within == ["", ""]
    }
}

fn containers<'p>(pod: &'p Value, scope: &Scope) -> Vec<Container<'p>> {
    let of = |list: &str, type_of: fn(&Value) -> ContainerType| {
        let path = format!("/spec/{list}");
        let containers = items(&pod["spec"][list]).enumerate();
        let containers = containers.filter(|(_, value)| value.is_object());
        let containers = containers.map(|(index, value)| Container {
            path: format!("{path}/{index}"),
            name: text(&value["name"]),
            type_: type_of(value),
            value,
        });
        containers.collect::<Vec<_>>()
    };
    match scope {
        Scope::WholePod => {
            let mut all = of("containers", |_| ContainerType::App);
            all.extend(of("initContainers", ContainerType::of_init_container));
            all
        }
        Scope::NewEphemeral { before } => {
            let mut new = of("ephemeralContainers", |_| ContainerType::Ephemeral);
            new.retain(|container| !before.contains(container.name));
            new
        }
    }
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

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
