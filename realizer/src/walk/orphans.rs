//! Objects no step stands for any more (docs/behaviour/deletion.md#orphans).
//!
//! Candidates are what status remembers and what the shell's caches know to belong to the owner; the latter finds what
//! a lost status write, a deleted template or a superseded family left behind. What a failing step once made is never
//! an orphan: nothing is known of what the step stands for now. Nor is what a failing step would write to: a step that was
//! renamed while the API server had a bad moment must not cost the object that it goes on with.
//!
//! A step that was renamed may also fail before it is known which object it goes on with: its input is not there, ytt had
//! no time, no option matches. While there is one such step, every orphan is kept, because each may be that object.

use std::collections::BTreeSet;

use api_types::names::ResourceName;
use api_types::{ResourceStatus, TemplateKind, TemplateRef, labels};

use crate::owner::owner_status::{OwnerStatus, object_ref};
use crate::status::report::Kept;
use crate::{
    Blueprint, KnownObject, Lifecycle, ObjectIdentity, ObjectRef, Removal, RemovalReason,
    TemplateSource, TemplateState,
};

/// A step of this walk.
pub(crate) struct CurrentStep<'r> {
    pub(crate) status: &'r ResourceStatus,
    /// The object it stands for, where that is known although the step failed.
    pub(crate) target: Option<&'r ObjectRef>,
    /// Whether it was submitted or handed an input through.
    pub(crate) is_settled: bool,
    /// How its template's objects are held; `None` without a template.
    pub(crate) lifecycle: Option<Lifecycle>,
}

/// Key and value of the label by which objects of this walk's blueprint are told from those of others.
#[derive(Clone, Copy)]
pub(crate) struct BlueprintLabel<'r> {
    pub(crate) key: &'static str,
    pub(crate) name: &'r str,
}

/// What orphans are told from.
pub(crate) struct Orphans<'r> {
    pub(crate) blueprint: BlueprintLabel<'r>,
    pub(crate) current: Vec<CurrentStep<'r>>,
    pub(crate) known: &'r [KnownObject],
    pub(crate) templates: &'r dyn TemplateSource,
}

/// The objects that some step stands for.
type Current<'c> = BTreeSet<ObjectIdentity<'c>>;

/// What becomes of objects that no step stands for.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// They are deleted.
    pub(crate) removals: Vec<Removal>,
    /// They stay for now, and why.
    pub(crate) kept: Vec<Kept>,
}

impl<'r> Orphans<'r> {
    pub(crate) fn new(
        blueprint: &'r Blueprint,
        current: Vec<CurrentStep<'r>>,
        known: &'r [KnownObject],
        templates: &'r dyn TemplateSource,
    ) -> Self {
        Self {
            blueprint: BlueprintLabel {
                key: blueprint.family.blueprint_name_label(),
                name: blueprint.name.as_str(),
            },
            current,
            known,
            templates,
        }
    }

    /// The orphans: all of them are deleted, or, while a step has no known place, all of them are kept.
    pub(crate) fn find(&self, previous: &OwnerStatus) -> Found {
        let objects: Vec<ObjectRef> = self.current.iter().flat_map(CurrentStep::objects).collect();
        let current = objects.iter().map(ObjectRef::identity).collect();
        let orphans = self.all(previous, &current);
        let unplaced: Vec<&str> = self
            .current
            .iter()
            .filter(|step| !step.is_placed())
            .map(|step| step.status.name.as_str())
            .collect();
        if unplaced.is_empty() {
            return Found {
                removals: orphans,
                kept: Vec::new(),
            };
        }
        let why = format!(
            "kept until it is known which object resource(s) [{}] stand for: one may go on with it",
            unplaced.join(", ")
        );
        let keep = |removal| Kept {
            removal,
            why: why.clone(),
        };
        Found {
            removals: Vec::new(),
            kept: orphans.into_iter().map(keep).collect(),
        }
    }

    /// The orphans, those status remembers first. `current` is what the steps stand for.
    fn all(&self, previous: &OwnerStatus, current: &Current<'_>) -> Vec<Removal> {
        let mut removals: Vec<Removal> = Vec::new();
        let mut add = |resource: &str, object: ObjectRef| {
            if !removals
                .iter()
                .any(|removal| removal.object.is_same(&object))
            {
                removals.push(Removal {
                    resource: ResourceName::from(resource),
                    object,
                    reason: RemovalReason::Orphan,
                });
            }
        };
        for (entry, object) in previous.stamped_refs() {
            if !current.contains(&object.identity()) && self.remembered_is_orphan(entry, &object) {
                add(&entry.name, self.with_uid(object));
            }
        }
        for known in self.known {
            if !current.contains(&known.object.identity()) && self.known_is_orphan(known) {
                add(known.label(labels::RESOURCE_NAME), known.object.clone());
            }
        }
        for object in previous.pending_refs() {
            // What the caches know was judged above. They may not hold every kind, so the others are tried again.
            if self.known(&object).is_none() && !current.contains(&object.identity()) {
                add("", object);
            }
        }
        removals
    }

    fn remembered_is_orphan(&self, entry: &ResourceStatus, object: &ObjectRef) -> bool {
        let known = self.known(object);
        if known.is_some_and(|known| known.terminating) {
            return false;
        }
        let same_family = |step: &CurrentStep<'_>| {
            step.status.name == entry.name
                && step.status.template_ref == entry.template_ref
                && match (known, &entry.template_ref) {
                    (Some(known), _) => self.is_member(known, step),
                    (None, Some(template)) => step.is_immutable() && self.is_immutable(template),
                    (None, None) => false,
                }
        };
        !self.current.iter().any(same_family)
    }

    fn known_is_orphan(&self, known: &KnownObject) -> bool {
        let name = known.label(labels::RESOURCE_NAME);
        if known.terminating || name.is_empty() {
            return false;
        }
        match self.current.iter().find(|step| step.status.name == name) {
            None => true,
            Some(step) => step.is_settled && !self.is_member(known, step),
        }
    }

    /// Whether the object is a member of the step's family, which retention takes care of. Under another blueprint, or with
    /// another lifecycle, a step has a family of its own, though name and template be the same
    /// (docs/behaviour/deletion.md#orphans); upstream keeps what
    /// it had before for ever.
    fn is_member(&self, known: &KnownObject, step: &CurrentStep<'_>) -> bool {
        // Labels may have been stripped; nothing is deleted for that.
        let blueprint = known.label(self.blueprint.key);
        step.is_immutable()
            && known.is_held_as(step.lifecycle)
            && known.is_of_template(step)
            && (blueprint.is_empty() || blueprint == self.blueprint.name)
    }

    fn known(&self, object: &ObjectRef) -> Option<&KnownObject> {
        self.known.iter().find(|known| known.object.is_same(object))
    }

    fn with_uid(&self, object: ObjectRef) -> ObjectRef {
        let uid = self
            .known(&object)
            .and_then(|known| known.object.uid.clone());
        ObjectRef {
            uid: uid.or(object.uid),
            ..object
        }
    }

    /// A template that is gone makes nothing: upstream gives up all cleaning then
    /// (docs/behaviour/deletion.md#orphans).
    fn is_immutable(&self, template: &TemplateRef) -> bool {
        let kind = template.kind.as_deref().map(str::parse::<TemplateKind>);
        let (Some(Ok(kind)), Some(name)) = (kind, &template.name) else {
            return false;
        };
        match self.templates.template(kind, name) {
            TemplateState::Found(template) => template.lifecycle.is_immutable(),
            TemplateState::Missing | TemplateState::Unreadable(_) => false,
        }
    }
}

impl CurrentStep<'_> {
    /// What the step stands for, and what it would write to.
    fn objects(&self) -> impl Iterator<Item = ObjectRef> {
        let stamped = self.status.stamped_ref.as_ref().and_then(object_ref);
        stamped.into_iter().chain(self.target.cloned())
    }

    /// Whether it is known which object the step stands for. One that was not rendered may stand for any; so may one whose
    /// name is generated, as long as it has no member.
    fn is_placed(&self) -> bool {
        self.is_settled || self.target.is_some()
    }

    fn is_immutable(&self) -> bool {
        self.lifecycle.is_some_and(Lifecycle::is_immutable)
    }
}

impl KnownObject {
    fn label(&self, key: &str) -> &str {
        self.labels.get(key).map_or("", String::as_str)
    }

    fn is_held_as(&self, lifecycle: Option<Lifecycle>) -> bool {
        lifecycle.map(Lifecycle::as_str) == Some(self.label(labels::TEMPLATE_LIFECYCLE))
    }

    /// The Go controller leaves the template's name empty for steps with options.
    fn is_of_template(&self, step: &CurrentStep<'_>) -> bool {
        let template = step.status.template_ref.clone().unwrap_or_default();
        let name = self.label(labels::CLUSTER_TEMPLATE_NAME);
        template.kind.as_deref() == Some(self.label(labels::TEMPLATE_KIND))
            && (name.is_empty() || template.name.as_deref() == Some(name))
    }
}

#[cfg(test)]
mod tests;
