//! Which step of an owner stands for which object, while the steps are walked.
//!
//! Two steps may render the same object, and then one of them must be refused. But a name may also move from one step to
//! another, or two may swap theirs: the label on the object then names a step that does not want it any more, and
//! refusing would hold both for ever.

use std::collections::BTreeMap;

use api_types::ResourceName;
use parking_lot::Mutex;
use serde_json::Value;

use crate::kind::Kind;

/// Group, kind and name; the namespace is the owner's. A version does not make another object.
type Place = [Box<str>; 3];

/// What the steps of one owner stand for.
#[derive(Debug)]
pub struct StepObjects<'o> {
    /// Step by step, as rendered in this walk.
    walked: Mutex<BTreeMap<Box<str>, Place>>,
    owner: &'o Value,
}

impl<'o> StepObjects<'o> {
    /// Nothing walked yet.
    pub fn of(owner: &'o Value) -> Self {
        Self {
            walked: Mutex::default(),
            owner,
        }
    }

    /// A step renders this object.
    pub fn walk(&self, step: &ResourceName, object: &Value) {
        if let Some(place) = place_of(object) {
            let mut walked = self.walked.lock();
            walked.insert(step.as_str().into(), place);
        }
    }

    /// Whether a step of the blueprint wants the object that bears its name. One that was not walked yet, or failed
    /// before it rendered anything, wants what it had; one of which nothing is known may want it.
    pub fn wants(&self, step: &str, object: &Value) -> bool {
        let walked = self.walked.lock();
        let place = walked.get(step).cloned().or_else(|| self.before(step));
        place.is_none_or(|place| place_of(object) == Some(place))
    }

    /// What the step stood for as the last status says.
    fn before(&self, step: &str) -> Option<Place> {
        let entries = self.owner["status"]["resources"].as_array()?;
        let stamped = &entries.iter().find(|entry| entry["name"] == step)?["stampedRef"];
        Some(place(&Kind::of(stamped)?, stamped["name"].as_str()?))
    }
}

fn place_of(object: &Value) -> Option<Place> {
    Some(place(
        &Kind::of(object)?,
        object["metadata"]["name"].as_str()?,
    ))
}

fn place(kind: &Kind, name: &str) -> Place {
    [kind.group().into(), kind.kind.as_str().into(), name.into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    }

    fn owner() -> Value {
        json!({"status": {"resources": [
            {"name": "a", "stampedRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "one"}},
            {"name": "unstamped"},
        ]}})
    }

    #[test]
    fn a_step_that_was_not_walked_wants_what_it_had() {
        let owner = owner();
        assert!(StepObjects::of(&owner).wants("a", &object("one")));
        assert!(!StepObjects::of(&owner).wants("a", &object("two")));
    }

    #[test]
    fn a_step_that_was_walked_wants_what_it_rendered() {
        let owner = owner();
        let step_objects = StepObjects::of(&owner);
        step_objects.walk(&"a".into(), &object("two"));
        assert!(!step_objects.wants("a", &object("one")));
        assert!(step_objects.wants("a", &object("two")));
    }

    #[test]
    fn a_step_of_which_nothing_is_known_may_want_it() {
        let owner = owner();
        assert!(StepObjects::of(&owner).wants("unstamped", &object("one")));
        assert!(StepObjects::of(&owner).wants("new", &object("one")));
    }
}
