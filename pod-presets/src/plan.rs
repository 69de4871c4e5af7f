//! What is to be done to a pod, worked out before anything is.

use std::collections::{BTreeMap, BTreeSet};

use conventions::pod::Part;
use serde_json::Value;

use crate::conflict::{Conflict, PresetName, Settled};
use crate::inject::Addition;
use crate::merge::{Item, Merged, Wish, merge, name_of};
use crate::preset::{Preset, list_of};
use crate::target::ContainerType;

/// What of a pod is looked at.
pub(crate) enum Scope {
    WholePod,
    NewEphemeral { before: BTreeSet<String> },
}

/// All that is to be done to a pod.
#[derive(Default)]
pub(crate) struct Plan {
    lists: Vec<(String, Vec<Value>)>,
    pub(crate) added: Vec<(PresetName, Addition)>,
    /// Of each preset the first ones; what follows from them follows from one.
    pub(crate) conflicts: Vec<Conflict>,
    /// How many of each preset are kept.
    kept: BTreeMap<PresetName, usize>,
}

/// Conflicts of one preset that are kept. Tenants write presets and pods with thousands.
const MOST_CONFLICTS: usize = 20;

impl Plan {
    pub(crate) fn of(pod: &Value, presets: &[&Preset], scope: &Scope) -> Self {
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
                self.keep(merged.conflicts);
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
        self.keep(merged.conflicts);
    }

    fn keep(&mut self, conflicts: Vec<Conflict>) {
        for conflict in conflicts {
            let kept = self.kept.entry(conflict.preset.clone()).or_default();
            if *kept < MOST_CONFLICTS {
                *kept += 1;
                self.conflicts.push(conflict);
            }
        }
    }

    /// Returns whether anything was to be done.
    pub(crate) fn carry_out(&mut self, pod: &mut Value) -> bool {
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
        _ => name_of(part, Item::Wished(wish)),
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

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
