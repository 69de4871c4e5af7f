//! What a preset wishes in one list of a pod, in CEL.

use conventions::pod::Part;
use serde_json::{Map, Value, json};

use super::cel::{literal, text};
use crate::conflict::Conflict;
use crate::merge::{Item, Wish, merge, name_of};
use crate::preset::{ConflictPolicy, Entry, Preset, list_of};

/// One list of the pod, or of each container.
pub(super) struct List<'p> {
    preset: &'p Preset,
    part: Part,
    /// What the preset makes of an empty list: of its own wishes some may stand in the way of others.
    entries: Vec<&'p Entry>,
    /// In the way of one another, so that no pod gets it.
    pub(super) own_conflicts: Vec<Conflict>,
}

impl<'p> List<'p> {
    pub(super) fn of(preset: &'p Preset, part: Part) -> Self {
        let wished = match part {
            Part::EnvVar => &preset.env,
            Part::EnvFromSource => &preset.env_from,
            Part::Volume => &preset.volumes,
            Part::VolumeMount => &preset.mounts,
        };
        let wishes = wished.iter().map(|entry| Wish { preset, entry });
        let merged = merge(part, None, [], wishes);
        let entries = merged.items.iter().filter_map(|item| match item {
            Item::Wished(wish) => Some(wish.entry),
            Item::Own(_) | Item::Device(_) => None,
        });
        let conflicts = merged.conflicts.into_iter();
        Self {
            preset,
            part,
            entries: entries.collect(),
            own_conflicts: conflicts.filter(|it| it.settled.is_blocking()).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The variable with the wishes.
    pub(super) fn variable(&self) -> &'static str {
        match self.part {
            Part::EnvVar => "env",
            Part::EnvFromSource => "envFrom",
            Part::Volume => "volumes",
            Part::VolumeMount => "mounts",
        }
    }

    /// What is wished: `keys` by which it is known, all `forms` that mean the same, the `value`.
    pub(super) fn wishes(&self) -> String {
        let wishes: Vec<Value> = self.entries.iter().map(|it| self.wish(it)).collect();
        literal(&Value::Array(wishes))
    }

    fn wish(&self, entry: &Entry) -> Value {
        let preset = self.preset;
        let name = name_of(self.part, Item::Wished(Wish { preset, entry }));
        let paths = self.paths(entry);
        let keys: Vec<String> = match self.part {
            Part::VolumeMount => {
                let volume = (!self.is_by_path()).then(|| volume_key(&name));
                paths.iter().cloned().chain(volume).collect()
            }
            Part::EnvFromSource => vec![source_key(&entry.written)],
            Part::EnvVar | Part::Volume => vec![name.clone()],
        };
        let mut forms = Vec::new();
        for path in &paths {
            for form in [entry.filled().clone(), entry.written.clone()] {
                let mut form = form;
                if self.part == Part::VolumeMount {
                    form["mountPath"] = path.as_str().into();
                }
                let (mut required, mut compact_required) = (form.clone(), compact(&form));
                require(&mut required);
                require(&mut compact_required);
                for form in [compact(&form), form, required, compact_required] {
                    if !forms.contains(&form) {
                        forms.push(form);
                    }
                }
            }
        }
        json!({"keys": keys, "paths": paths, "name": name, "forms": forms, "value": entry.written})
    }

    /// A mount is known by its path alone where a volume may be mounted more than once.
    fn is_by_path(&self) -> bool {
        self.preset.multi_mount || self.preset.conflict_policy() == ConflictPolicy::Override
    }

    /// Paths that are the same as that of a mount; of other entries one that means nothing.
    fn paths(&self, entry: &Entry) -> Vec<String> {
        let path = entry.text("mountPath");
        let tidy = path.trim_end_matches('/');
        if !self.are_slashes_nothing() || tidy.is_empty() {
            return vec![path.to_owned()];
        }
        let mut paths = vec![tidy.to_owned(), format!("{tidy}/")];
        if !paths.iter().any(|it| it == path) {
            paths.push(path.to_owned());
        }
        paths
    }

    /// The list as it is.
    fn own(&self) -> String {
        let field = list_of(self.part);
        match self.part {
            Part::Volume => "(has(object.spec.volumes) ? object.spec.volumes : [])".to_owned(),
            _ => format!("(has(c.{field}) ? c.{field} : [])"),
        }
    }

    /// Whether `e` of the list is known by a key of `w`.
    fn is_rival(&self) -> String {
        match self.part {
            Part::EnvVar | Part::Volume => "(e.name in w.keys)".to_owned(),
            Part::EnvFromSource => format!("({SOURCE_KEY} in w.keys)"),
            Part::VolumeMount => {
                format!(
                    "(e.mountPath in w.keys || ({} + e.name) in w.keys)",
                    text(VOLUME)
                )
            }
        }
    }

    /// Whether the list of `c` has `w`, in whatever form.
    fn has_wish(&self) -> String {
        format!("{}.exists(e, e in w.forms)", self.own())
    }

    /// Whether a slash at the end of a path makes no other path of it.
    fn are_slashes_nothing(&self) -> bool {
        self.part == Part::VolumeMount && self.preset.multi_mount
    }

    /// Whether the list of `c` has something else where `w` is wished.
    fn conflicts_with(&self) -> String {
        let (own, rival, has) = (self.own(), self.is_rival(), self.has_wish());
        let devices = self.devices();
        format!("(!{has} && ({own}.exists(e, {rival}) || {devices}))")
    }

    /// Whether `c` has a device at the path of `w`, which nothing replaces.
    fn devices(&self) -> &'static str {
        match self.part {
            Part::VolumeMount => {
                "(has(c.volumeDevices) && c.volumeDevices.exists(d, d.devicePath in w.paths))"
            }
            _ => "false",
        }
    }

    /// Whether anything conflicts, in any container.
    pub(super) fn conflicts(&self) -> String {
        let conflict = format!(
            "variables.{}.exists(w, {})",
            self.variable(),
            self.conflicts_with()
        );
        match self.part {
            Part::Volume => conflict,
            _ => format!("variables.all.exists(c, {conflict})"),
        }
    }

    /// The wishes that are to be added to the list.
    fn missing(&self) -> String {
        let mountable = match self.part {
            Part::VolumeMount => format!(" && {}", self.is_of_preset()),
            _ => String::new(),
        };
        format!(
            "variables.{}.filter(w, !{} && !{}{mountable})",
            self.variable(),
            self.has_wish(),
            self.conflicts_with()
        )
    }

    /// A mount whose volume stayed somebody else's would show what the preset does not know.
    fn is_of_preset(&self) -> String {
        let volumes = Self::of(self.preset, Part::Volume);
        if self.preset.conflict_policy() != ConflictPolicy::KeepExisting || volumes.is_empty() {
            return "true".to_owned();
        }
        let own = volumes.own();
        format!(
            "!variables.volumes.exists(v, v.name == w.name && {own}.exists(e, e.name == v.name && !(e in v.forms)))"
        )
    }

    /// Lists of patches, one after the other. What is in a list already is never written anew: from Kubernetes 1.37 on an API
    /// server hands out Go structs, and cannot make a value of a patch of them.
    pub(super) fn patches(&self) -> Vec<String> {
        if self.part == Part::Volume {
            return vec![format!(
                "(size(variables.all) > 0 ? {} : [])",
                self.of_list("\"/spec/volumes\"")
            )];
        }
        let field = list_of(self.part);
        let of = |containers: &str, names: &str, list: &str| {
            let path = format!(
                "\"/spec/{list}/\" + string(variables.{names}.indexOf(c.name)) + \"/{field}\""
            );
            let patches = self.of_list(&path);
            format!("variables.{containers}.map(c, {patches}).flatten()")
        };
        vec![
            of("apps", "appNames", "containers"),
            of("inits", "initNames", "initContainers"),
        ]
    }

    /// The patches of one list, which is at this path: of what is replaced, and then of what is added. A list that is empty is not
    /// there.
    fn of_list(&self, path: &str) -> String {
        let (own, missing) = (self.own(), self.missing());
        let added = format!(
            "[{missing}].filter(m, size(m) > 0).map(m, size({own}) == 0 \
             ? [JSONPatch{{op: \"add\", path: {path}, value: m.map(w, w.value)}}] \
             : m.map(w, JSONPatch{{op: \"add\", path: {path} + \"/-\", value: w.value}})).flatten()"
        );
        if self.preset.conflict_policy() != ConflictPolicy::Override {
            return added;
        }
        let replaced = self.replaced(path);
        format!("({replaced} + {added})")
    }

    /// The patches of what is replaced in the list at this path.
    fn replaced(&self, path: &str) -> String {
        let (own, rival, conflict) = (self.own(), self.is_rival(), self.conflicts_with());
        let devices = self.devices();
        let wishes = format!(
            "variables.{}.filter(w, {rival} && {conflict} && !({devices})",
            self.variable()
        );
        let is_first = format!("{own}.filter(e, {rival})[0].mountPath == e.mountPath");
        let value = if self.are_slashes_nothing() {
            format!("{wishes} && {is_first})")
        } else {
            format!("{wishes})")
        };
        let replace = format!(
            "JSONPatch{{op: \"replace\", path: {path} + \"/\" + string(i), value: {value}[0].value}}"
        );
        let replaced = format!("{own}.transformList(i, e, size({value}) > 0, {replace})");
        if !self.are_slashes_nothing() {
            return replaced;
        }
        // The last one first: a removal moves what is behind it.
        let at = format!("(size({own}) - 1 - i)");
        let is_removed = format!("[{own}[{at}]].exists(e, {wishes} && !({is_first})).size() > 0)");
        let remove = format!("JSONPatch{{op: \"remove\", path: {path} + \"/\" + string{at}}}");
        format!("{replaced} + {own}.transformList(i, e, {is_removed}, {remove})")
    }
}

/// What the key of a volume begins with, among keys that are paths.
const VOLUME: &str = "volume ";

fn volume_key(name: &str) -> String {
    format!("{VOLUME}{name}")
}

/// The key of a source `e`.
const SOURCE_KEY: &str = "((has(e.configMapRef) ? \"configMap \" + e.configMapRef.name : \"\") + (has(e.secretRef) ? \"secret \" + e.secretRef.name : \"\") + \" \" + (has(e.prefix) ? e.prefix : \"\"))";

/// The same for one that is written down.
fn source_key(source: &Value) -> String {
    let name = |field: &str, kind: &str| match source[field]["name"].as_str() {
        Some(name) => format!("{kind} {name}"),
        None => String::new(),
    };
    let (config_map, secret) = (
        name("configMapRef", "configMap"),
        name("secretRef", "secret"),
    );
    let prefix = source["prefix"].as_str().unwrap_or_default();
    format!("{config_map}{secret} {prefix}")
}

/// Fields that refer to what may be `optional`. The API server shows that it is not, if its author said so.
const REFERENCES: [&str; 6] = [
    "configMap",
    "configMapKeyRef",
    "configMapRef",
    "secret",
    "secretKeyRef",
    "secretRef",
];

/// Says of each reference that it is not optional, unless something is said of it.
fn require(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                require(value);
                let reference = value.as_object_mut();
                if let Some(reference) = reference.filter(|_| REFERENCES.contains(&&**field)) {
                    reference.entry("optional").or_insert(Value::Bool(false));
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(require),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// As the API server shows it, which leaves out what is empty or false.
fn compact(value: &Value) -> Value {
    let Some(fields) = value.as_object() else {
        return value.clone();
    };
    let kept = fields.iter().filter(|(_, value)| match value {
        Value::Null => false,
        Value::Bool(it) => *it,
        Value::String(it) => !it.is_empty(),
        Value::Array(it) => !it.is_empty(),
        Value::Number(_) | Value::Object(_) => true,
    });
    let kept: Map<String, Value> = kept
        .map(|(key, value)| (key.clone(), compact(value)))
        .collect();
    Value::Object(kept)
}
