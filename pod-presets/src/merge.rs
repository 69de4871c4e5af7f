//! One list of a pod, and what presets wish to be in it.
//!
//! Presets are merged with one another first, and the result with what the pod has. So it does not matter whether the pod
//! has the result already: who replaces the wish of another finds his own in the pod, and not the other's.

use std::collections::{BTreeSet, HashMap};

use conventions::pod::Part;
use serde_json::Value;

use crate::conflict::{Conflict, Field, Opponent, Settled};
use crate::preset::{ConflictPolicy, Entry, Preset, filled};

/// What a preset wishes to be in a list.
#[derive(Clone, Copy)]
pub(crate) struct Wish<'p> {
    pub(crate) preset: &'p Preset,
    pub(crate) entry: &'p Entry,
}

/// What is in a list.
#[derive(Clone, Copy)]
pub(crate) enum Item<'v> {
    /// The pod has it.
    Own(&'v Value),
    /// The pod has a device there, which stands in another list and cannot be replaced.
    Device(&'v Value),
    /// A preset adds it.
    Wished(Wish<'v>),
}

impl<'v> Item<'v> {
    fn wish(self) -> Option<Wish<'v>> {
        match self {
            Self::Own(_) | Self::Device(_) => None,
            Self::Wished(wish) => Some(wish),
        }
    }
}

/// What became of a list.
pub(crate) struct Merged<'v> {
    pub(crate) items: Vec<Item<'v>>,
    pub(crate) conflicts: Vec<Conflict>,
}

impl Merged<'_> {
    /// Whether the list is another one now.
    pub(crate) fn is_changed(&self) -> bool {
        let mut items = self.items.iter();
        items.any(|item| matches!(item, Item::Wished(_)))
    }
}

/// Merges wishes, in the order of their presets, into what the pod has.
pub(crate) fn merge<'v>(
    part: Part,
    container: Option<&str>,
    own: impl IntoIterator<Item = Item<'v>>,
    wishes: impl IntoIterator<Item = Wish<'v>>,
) -> Merged<'v> {
    let mut wished = List::new(part, container);
    for wish in wishes {
        wished.place(wish);
    }
    let mut list = List::new(part, container);
    list.are_wishes_met = true;
    for item in own {
        list.push(item);
    }
    list.conflicts = wished.conflicts;
    let wishes = wished.items.into_iter().flatten().filter_map(Item::wish);
    let mut rest = Vec::new();
    // What is replaced is nobody's rival: the next time it is not in the pod.
    for wish in wishes {
        if list.is_replacement(wish) {
            list.place(wish);
        } else {
            rest.push(wish);
        }
    }
    for wish in rest {
        list.place(wish);
    }
    let items = list.items.into_iter().flatten();
    Merged {
        items: items
            .filter(|item| !matches!(item, Item::Device(_)))
            .collect(),
        conflicts: list.conflicts,
    }
}

struct List<'v> {
    part: Part,
    container: Option<String>,
    /// Nothing where something was taken away.
    items: Vec<Option<Item<'v>>>,
    /// The last item with the name.
    by_name: HashMap<String, usize>,
    /// The last mount at the path.
    by_path: HashMap<String, usize>,
    /// All mounts at the path, whatever slashes are at its end.
    by_tidy_path: HashMap<String, BTreeSet<usize>>,
    conflicts: Vec<Conflict>,
    /// Whether wishes have met one another already. Then none is a rival of another.
    are_wishes_met: bool,
}

impl<'v> List<'v> {
    fn new(part: Part, container: Option<&str>) -> Self {
        Self {
            part,
            container: container.map(str::to_owned),
            items: Vec::new(),
            by_name: HashMap::new(),
            by_path: HashMap::new(),
            by_tidy_path: HashMap::new(),
            conflicts: Vec::new(),
            are_wishes_met: false,
        }
    }

    fn push(&mut self, item: Item<'v>) {
        self.index(item, self.items.len());
        self.items.push(Some(item));
    }

    fn index(&mut self, item: Item<'v>, at: usize) {
        if !is_rival(self.are_wishes_met, item) {
            return;
        }
        put(&mut self.by_name, name_of(self.part, item), at);
        if self.part == Part::VolumeMount {
            let path = path_of(item);
            put(&mut self.by_path, path.to_owned(), at);
            let all = self.by_tidy_path.entry(tidy(path).to_owned());
            all.or_default().insert(at);
        }
    }

    /// Takes an item away. Who has its name or its path from now on is another, or nobody.
    fn forget(&mut self, at: usize) {
        let Some(item) = self.items[at].take() else {
            return;
        };
        let (part, are_wishes_met) = (self.part, self.are_wishes_met);
        let name = name_of(part, item);
        let others = &self.items;
        repoint(&mut self.by_name, &name, at, others, |it| {
            is_rival(are_wishes_met, it) && name_of(part, it) == name
        });
        if part == Part::VolumeMount {
            let path = path_of(item);
            let is_at_path = |it| is_rival(are_wishes_met, it) && path_of(it) == path;
            repoint(&mut self.by_path, path, at, others, is_at_path);
            if let Some(all) = self.by_tidy_path.get_mut(tidy(path)) {
                all.remove(&at);
            }
        }
    }

    /// Whether a wish takes the place of something that the list has.
    fn is_replacement(&self, wish: Wish<'v>) -> bool {
        let (by_name, by_path) = self.rivals(wish);
        let rivals = [by_name, by_path];
        rivals != [None, None] && self.settled(wish, rivals) == Settled::Overridden
    }

    /// Puts a wish into the list, unless it is there already or another is.
    fn place(&mut self, wish: Wish<'v>) {
        let item = Item::Wished(wish);
        let (by_name, by_path) = self.rivals(wish);
        let is_there = |at: &Option<usize>| at.is_some_and(|at| self.means(wish, at));
        if is_there(&by_path) || is_there(&by_name) {
            return;
        }
        let name_field = match self.part {
            Part::EnvVar => Field::Env,
            Part::EnvFromSource => Field::EnvFrom,
            Part::Volume => Field::Volume,
            Part::VolumeMount => Field::VolumeMount,
        };
        let rivals = [(name_field, by_name), (Field::MountPath, by_path)];
        let rivals = rivals.into_iter();
        let rivals: Vec<(Field, usize)> = rivals.filter_map(|(it, at)| Some((it, at?))).collect();
        let [(_, first), ..] = rivals[..] else {
            return self.push(item);
        };
        let settled = self.settled(wish, [by_name, by_path]);
        for (field, at) in &rivals {
            let conflict = self.conflict(wish, *field, *at, settled);
            self.conflicts.extend(conflict);
        }
        if settled == Settled::Overridden {
            // For who counts all but the slash, what differs in it only is at the path, too.
            let others = self.at_tidy_path(wish).cloned().unwrap_or_default();
            let first = others.first().copied().unwrap_or(first);
            for at in by_name.into_iter().chain(by_path).chain(others) {
                self.forget(at);
            }
            self.items[first] = Some(item);
            self.index(item, first);
        }
    }

    /// The items with the same name, and at the same path. Of several at the path the one that is wished counts, if it is there.
    fn rivals(&self, wish: Wish<'v>) -> (Option<usize>, Option<usize>) {
        let item = Item::Wished(wish);
        if self.part != Part::VolumeMount {
            let by_name = self.by_name.get(&name_of(self.part, item));
            return (by_name.copied(), None);
        }
        let by_path = match self.at_tidy_path(wish) {
            Some(all) => {
                // Devices come before what is mounted, and nothing replaces them.
                let same = all.iter().find(|at| self.means(wish, **at));
                same.or_else(|| all.first())
            }
            None => self.by_path.get(path_of(item)),
        };
        let by_path = by_path.copied();
        // Kubernetes lets a container see a volume at several paths. Who replaces what is there replaces what is at the path.
        let only_path = wish.preset.multi_mount || wish.preset.policy == ConflictPolicy::Override;
        let by_name = if only_path {
            None
        } else {
            self.by_name.get(&name_of(self.part, item)).copied()
        };
        (by_name, by_path)
    }

    /// What is at the path of a wish but for slashes at its end, if its preset counts what is.
    fn at_tidy_path(&self, wish: Wish<'v>) -> Option<&BTreeSet<usize>> {
        let counts = self.part == Part::VolumeMount && wish.preset.multi_mount;
        let path = tidy(path_of(Item::Wished(wish)));
        self.by_tidy_path.get(path).filter(|_| counts)
    }

    fn is_device(&self, at: usize) -> bool {
        matches!(self.items[at], Some(Item::Device(_)))
    }

    fn means(&self, wish: Wish<'_>, at: usize) -> bool {
        let there = match self.items[at] {
            Some(Item::Own(value)) => filled(self.part, value),
            Some(Item::Wished(other)) => other.entry.filled().clone(),
            Some(Item::Device(_)) | None => return false,
        };
        wish.entry.means(&there)
            || self.part == Part::VolumeMount
                && wish.preset.multi_mount
                && wish.entry.means(&at_path_of(wish, there))
    }

    fn settled(&self, wish: Wish<'_>, rivals: [Option<usize>; 2]) -> Settled {
        let mut rivals = rivals.into_iter().flatten();
        match wish.preset.policy {
            ConflictPolicy::Skip => Settled::Skipped,
            ConflictPolicy::Deny => Settled::Denied,
            ConflictPolicy::KeepExisting => Settled::Kept,
            ConflictPolicy::Override if rivals.any(|at| self.is_device(at)) => Settled::Kept,
            ConflictPolicy::Override => Settled::Overridden,
        }
    }

    fn conflict(&self, wish: Wish<'_>, field: Field, at: usize, it: Settled) -> Option<Conflict> {
        let (with, existing) = match self.items[at]? {
            Item::Own(value) | Item::Device(value) => (Opponent::Pod, value.clone()),
            Item::Wished(other) => (
                Opponent::Preset(other.preset.id().clone()),
                other.entry.filled().clone(),
            ),
        };
        let key = match field {
            Field::MountPath => wish.entry.text("mountPath").to_owned(),
            _ => name_of(self.part, Item::Wished(wish)),
        };
        Some(Conflict {
            preset: wish.preset.id().clone(),
            container: self.container.clone(),
            field,
            key,
            with,
            settled: it,
            wanted: wish.entry.filled().clone(),
            existing,
        })
    }
}

/// Whether an item can be in the way of a wish.
fn is_rival(are_wishes_met: bool, item: Item<'_>) -> bool {
    !are_wishes_met || item.wish().is_none()
}

/// The last one counts.
fn put(index: &mut HashMap<String, usize>, key: String, at: usize) {
    let last = index.entry(key).or_insert(at);
    *last = at.max(*last);
}

/// Has a key that was of the item at a place point to the last of the others that has it.
fn repoint<'v>(
    index: &mut HashMap<String, usize>,
    key: &str,
    at: usize,
    others: &[Option<Item<'v>>],
    has_key: impl Fn(Item<'v>) -> bool,
) {
    if index.get(key) != Some(&at) {
        return;
    }
    let last = others.iter().rposition(|it| it.is_some_and(&has_key));
    match last {
        Some(last) => index.insert(key.to_owned(), last),
        None => index.remove(key),
    };
}

fn value_of(item: Item<'_>) -> &Value {
    match item {
        Item::Own(value) | Item::Device(value) => value,
        Item::Wished(wish) => &wish.entry.written,
    }
}

/// By what an item is known.
pub(crate) fn name_of(part: Part, item: Item<'_>) -> String {
    let value = value_of(item);
    match part {
        Part::EnvFromSource => source_of(value),
        Part::EnvVar | Part::Volume | Part::VolumeMount => {
            value["name"].as_str().unwrap_or_default().to_owned()
        }
    }
}

/// Prefix, kind and name of where variables come from.
fn source_of(value: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let prefix = text(&value["prefix"]);
    let [config_map, secret] =
        ["configMapRef", "secretRef"].map(|source| text(&value[source]["name"]));
    let source = match (config_map.is_empty(), secret.is_empty()) {
        (false, true) => format!("configMap {config_map}"),
        (true, false) => format!("secret {secret}"),
        _ => format!("configMap {config_map} secret {secret}"),
    };
    match prefix.as_str() {
        "" => source,
        prefix => format!("{source} with prefix {prefix}"),
    }
}

fn path_of(item: Item<'_>) -> &str {
    let field = match item {
        Item::Device(_) => "devicePath",
        Item::Own(_) | Item::Wished(_) => "mountPath",
    };
    value_of(item)[field].as_str().unwrap_or_default()
}

fn tidy(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" => path,
        tidy => tidy,
    }
}

/// A mount with the wished path, if the two differ in a slash at the end only.
fn at_path_of(wish: Wish<'_>, mut mount: Value) -> Value {
    let wished = wish.entry.text("mountPath");
    if mount["mountPath"].as_str().map(tidy) == Some(tidy(wished)) {
        mount["mountPath"] = wished.into();
    }
    mount
}
