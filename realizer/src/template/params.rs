//! Merging parameters (docs/behaviour/context.md#params).

use std::borrow::Cow;
use std::collections::BTreeMap;

use api_types::params::ParamSetting;
use api_types::{BlueprintParam, OwnerParam, TemplateParam};
use serde_json::Value;

static NULL: Value = Value::Null;

/// A parameter as a template gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Param<'p> {
    /// The value.
    pub value: Cow<'p, Value>,
    /// Who gave it.
    pub origin: Origin,
    /// Whether the owner cannot override it: what the owner gives under this name is disregarded.
    pub is_fixed: bool,
}

/// Who gave the value of a parameter, lowest precedence first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The template has it as a default.
    Template,
    /// The blueprint, for all its steps.
    Blueprint,
    /// The step of the blueprint.
    Step,
    /// The owner.
    Owner,
}

impl<'p> Param<'p> {
    fn new(value: &'p Value, origin: Origin, is_fixed: bool) -> Self {
        Self {
            value: Cow::Borrowed(value),
            origin,
            is_fixed,
        }
    }

    /// With a value of its own.
    pub(crate) fn into_owned(self) -> Param<'static> {
        Param {
            value: Cow::Owned(self.value.into_owned()),
            origin: self.origin,
            is_fixed: self.is_fixed,
        }
    }
}

/// All parameters by name.
///
/// Lowest first: the template's defaults; the blueprint's; the step's, which replace the blueprint's of the same name
/// with its protection; the owner's, unless the last of blueprint and step gave a `value` instead of a `default`.
/// Within one list, later duplicates win.
pub(crate) fn merge<'p>(
    template: &'p [TemplateParam],
    blueprint: &'p [BlueprintParam],
    step: &'p [BlueprintParam],
    owner: &'p [OwnerParam],
) -> BTreeMap<&'p str, Param<'p>> {
    let mut merged = BTreeMap::new();
    for param in template {
        let default = Param::new(&param.default, Origin::Template, false);
        merged.insert(param.name.as_str(), default);
    }
    for (params, origin) in [(blueprint, Origin::Blueprint), (step, Origin::Step)] {
        for param in params {
            let (value, is_fixed) = setting(param);
            merged.insert(&param.name, Param::new(value, origin, is_fixed));
        }
    }
    for param in owner {
        let before = merged.get(param.name.as_str());
        if before.is_none_or(|before| !before.is_fixed) {
            let given = Param::new(&param.value, Origin::Owner, false);
            merged.insert(&param.name, given);
        }
    }
    merged
}

/// The value, and whether the owner cannot override it.
fn setting(param: &BlueprintParam) -> (&Value, bool) {
    match param.setting() {
        Some(ParamSetting::Fixed(value)) => (value, true),
        Some(ParamSetting::Default(value)) => (value, false),
        // Neither or both: the webhook admits no such blueprint, and neither kills the Go controller.
        None => (
            param
                .value
                .as_ref()
                .or(param.default.as_ref())
                .unwrap_or(&NULL),
            param.value.is_some(),
        ),
    }
}

#[cfg(test)]
mod tests;
