//! Where an environment may be.

use serde_json::{Value, json};

use crate::environment::annotation_path;
use crate::owner::owner_status::object_ref;
use crate::template::stamp;
use crate::values::canonical;
use crate::walk::{At, Walk};
use crate::{Labels, Lifecycle, ObjectRef, Precondition, Recorded, Submission};

impl Walk<'_> {
    /// A template may render another name, or another kind, for each revision; the environment is then where the step
    /// wrote last.
    pub(super) fn other_places(&self, step: usize, rendering: &Submission) -> Vec<Submission> {
        let mut places = Vec::new();
        if rendering.lifecycle == Lifecycle::Mutable {
            places.push(Submission {
                lifecycle: Lifecycle::Immutable,
                ..rendering.clone()
            });
        }
        let here = stamp::reference(&rendering.object);
        let is_elsewhere = |last: &ObjectRef| {
            here.as_ref().is_some_and(|here| {
                (&here.api_version, &here.kind, &here.name)
                    != (&last.api_version, &last.kind, &last.name)
            })
        };
        if let Some(last) = self.last_place(step).filter(is_elsewhere) {
            places.push(Submission {
                object: self.stand_in(&last),
                lifecycle: Lifecycle::Mutable,
                ..rendering.clone()
            });
        }
        places
    }

    /// Where the step wrote last, by status.
    fn last_place(&self, step: usize) -> Option<ObjectRef> {
        let name = &self.blueprint.steps[step].name;
        let entry = self.owner.status.resource(name)?;
        object_ref(entry.stamped_ref.as_ref()?)
    }

    /// Enough of an object to look at it.
    fn stand_in(&self, object: &ObjectRef) -> Value {
        json!({
            "apiVersion": object.api_version,
            "kind": object.kind,
            "metadata": {"namespace": self.owner.namespace, "name": object.name},
        })
    }

    /// What to look at while nothing can be put into an environment: its validations go on, and what they say must not wait
    /// for the next revision. None for other steps.
    pub(in crate::walk) fn place_to_read(&self, at: &At) -> Option<Submission> {
        let is_environment = self.blueprint.is_environment(at.step);
        let last = self.last_place(at.step).filter(|_| is_environment)?;
        let mut reads = at.template.reads().to_vec();
        reads.push(annotation_path());
        let object = self.stand_in(&last);
        Some(Submission {
            resource: self.blueprint.steps[at.step].name.clone(),
            digest: canonical::digest(&object),
            name_seed: None,
            basis: None,
            object,
            lifecycle: Lifecycle::Mutable,
            family: Labels::new(),
            reads: reads.into(),
            precondition: Precondition::None,
            recorded: Recorded::default(),
            adopt: false,
            refuses_foreign_fields: false,
            asks_whose_values: false,
        })
    }
}
