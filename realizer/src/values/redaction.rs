//! Keeping Secret values out of everything that is shown.
//!
//! What came from a Secret is known by its texts: a step that takes an output with such texts searches for them in all it
//! says, and in what it hands on, whatever kind of object it stamps in between. Without such an input nothing is searched.

use serde_json::Value;

use crate::StatusKey;
use crate::values::canonical;

mod spellings;
mod taint;
mod texts;

pub(crate) use taint::Taint;

/// What is shown instead.
pub(crate) const REDACTED: &str = "<redacted>";

/// Where a Secret has values; what kubectl keeps of one that was applied stands in an annotation.
const VALUES_AT: [&str; 3] = [
    "/data",
    "/stringData",
    "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
];

/// Whether an object is a core/v1 Secret, whose values must not be shown.
pub(crate) fn is_secret(object: &Value) -> bool {
    object["apiVersion"] == "v1" && object["kind"] == "Secret"
}

/// The texts in the values of a Secret, wherever such an object holds them; of any other object none.
pub(crate) fn of_object(object: &Value) -> Taint {
    if !is_secret(object) {
        return Taint::NONE;
    }
    Taint::of(VALUES_AT.iter().filter_map(|place| object.pointer(place)))
}

/// What of an observed object must not be shown.
#[derive(Clone, Copy)]
pub(crate) struct Veil<'t> {
    /// Nothing of it may be: it is a Secret itself.
    all: bool,
    /// What its step was given of Secrets.
    inputs: &'t Taint,
}

impl<'t> Veil<'t> {
    pub(crate) fn over(object: &Value, inputs: &'t Taint) -> Self {
        Self {
            all: is_secret(object),
            inputs,
        }
    }

    pub(crate) fn hides_all(self) -> bool {
        self.all
    }

    /// Whether values that are told side by side are hidden: with one of them all, since the other may be what the secret was
    /// before.
    pub(crate) fn hides(self, values: [&Value; 2]) -> bool {
        self.all || !self.inputs.carried_by(values).is_none()
    }
}

/// What the name of an object is derived from if its rendering holds secret values; see
/// [`Submission::name_seed`](crate::Submission::name_seed). Without a key, runs are told apart by their numbers alone.
pub(crate) fn name_seed(object: &Value, inputs: &Taint, key: &StatusKey) -> Option<String> {
    if inputs.is_none() && !is_secret(object) {
        return None;
    }
    let digest = canonical::digest(object);
    Some(key.digest("name", &digest).unwrap_or_default())
}

#[cfg(test)]
mod tests;
