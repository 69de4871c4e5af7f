//! What rules go by: the stamped object, and what stands beside it.

use std::borrow::Cow;

use serde_json::Value;

use super::NotDone;
use crate::template::others::ReadObject;
use crate::values::field_path::FieldPath;
use crate::values::redaction::{Taint, Veil};

/// What rules go by beside the stamped object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RuleInputs<'a> {
    /// What the context holds of each input that the object reports, as [`Goodness::contexts`].
    pub(crate) wanted: &'a [Option<Value>],
    /// The other objects, as [`Goodness::others`]; none where nobody has asked for them yet.
    pub(crate) others: &'a [ReadObject],
    /// Whether all that rules go by is as it was when they found the object good. The other objects are not read then.
    pub(crate) are_as_when_good: bool,
}

/// What conditions go by.
#[derive(Clone, Copy)]
pub(crate) struct Evidence<'a> {
    pub(super) object: &'a Value,
    pub(super) veil: Veil<'a>,
    pub(super) others: &'a [ReadObject],
}

/// Why something is not known, by what makes it known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// It comes by itself.
    Awaited,
    /// Somebody who corrects a path.
    Hopeless,
    /// Somebody who corrects which objects there are.
    Several,
    /// A right.
    Refused,
    /// An answer of the API server.
    Unavailable,
    /// Something else: whatever it is, nothing follows from it yet.
    Unasked,
}

impl<'a> Evidence<'a> {
    /// `inputs` is what all inputs of the step taint with.
    pub(crate) fn of(object: &'a Value, inputs: &'a Taint, others: &'a [ReadObject]) -> Self {
        Self {
            object,
            veil: Veil::over(object, inputs),
            others,
        }
    }

    /// The value at a path of another object, or why there is none.
    pub(super) fn of_other(
        self,
        other: usize,
        path: &FieldPath,
    ) -> Result<Cow<'a, Value>, (String, Unknown)> {
        match self.others.get(other) {
            Some(object) => object.value(path),
            None => Err((
                "another object is not read yet".to_owned(),
                Unknown::Unasked,
            )),
        }
    }

    pub(super) fn shown_other(self, other: usize) -> &'a str {
        self.others.get(other).map_or("", ReadObject::shown)
    }
}

impl Unknown {
    pub(super) fn not_done(self, why: String) -> NotDone {
        match self {
            Self::Awaited | Self::Unasked => NotDone::Condition(why),
            Self::Hopeless | Self::Several => NotDone::Hopeless(why),
            Self::Refused => NotDone::Refused(why),
            Self::Unavailable => NotDone::Unavailable(why),
        }
    }
}
