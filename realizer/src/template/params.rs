//! Merging parameters (docs/behaviour/context.md#params).

use std::collections::BTreeMap;

use api_types::params::ParamSetting;
use api_types::{BlueprintParam, OwnerParam, TemplateParam};
use serde_json::Value;

static NULL: Value = Value::Null;

/// The values of all parameters by name.
///
/// Lowest first: the template's defaults; the blueprint's; the step's, which replace the blueprint's of the same name
/// with its protection; the owner's, unless the last of blueprint and step gave a `value` instead of a `default`.
/// Within one list, later duplicates win.
pub(crate) fn merge<'p>(
    template: &'p [TemplateParam],
    blueprint: &'p [BlueprintParam],
    step: &'p [BlueprintParam],
    owner: &'p [OwnerParam],
) -> BTreeMap<&'p str, &'p Value> {
    let mut merged: BTreeMap<&str, &Value> = template
        .iter()
        .map(|param| (param.name.as_str(), &param.default))
        .collect();
    let mut protected: BTreeMap<&str, bool> = BTreeMap::new();
    for param in blueprint.iter().chain(step) {
        let (value, fixed) = setting(param);
        merged.insert(&param.name, value);
        protected.insert(&param.name, fixed);
    }
    for param in owner {
        if !protected.get(param.name.as_str()).copied().unwrap_or(false) {
            merged.insert(&param.name, &param.value);
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
