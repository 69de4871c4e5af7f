//! Requirements on the fields of owners (docs/behaviour/admission.md#fields).

use template_language::jsonpath;

use super::Violation;
use crate::selector::{FieldOperator, FieldRequirement};

/// Whose fields are selected by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Workload,
    Deliverable,
}

const SHARED_KEYS: [&str; 10] = [
    "spec.source",
    "spec.source.git",
    "spec.source.git.url",
    "spec.source.git.ref",
    "spec.source.git.ref.branch",
    "spec.source.git.ref.tag",
    "spec.source.git.ref.commit",
    "spec.source.image",
    "spec.source.subPath",
    "spec.serviceAccountName",
];
const WORKLOAD_KEYS: [&str; 2] = ["spec.build", "spec.image"];
const SHARED_PREFIXES: [&str; 2] = ["spec.params", "metadata"];
const WORKLOAD_PREFIXES: [&str; 4] = [
    "spec.build.env",
    "spec.env",
    "spec.resources",
    "spec.serviceClaims",
];

pub(super) fn check_all(requirements: &[FieldRequirement], owner: Owner) -> Result<(), Violation> {
    requirements
        .iter()
        .try_for_each(|requirement| check(requirement, owner))
}

fn check(requirement: &FieldRequirement, owner: Owner) -> Result<(), Violation> {
    let key = &requirement.key;
    check_values(requirement)?;
    if !is_selectable(key, owner) {
        return Err(Violation::FieldKey { key: key.clone() });
    }
    // Without the braces a path is literal text to the parser, so that only brace constructs can fail here.
    jsonpath::check_unwrapped(key).map_err(|text| Violation::FieldPath {
        key: key.clone(),
        text,
    })
}

fn check_values(requirement: &FieldRequirement) -> Result<(), Violation> {
    let operator = requirement.operator.clone();
    match (requirement.field_operator(), requirement.values.is_empty()) {
        (Some(FieldOperator::Exists | FieldOperator::DoesNotExist), false) => {
            Err(Violation::FieldValuesUnexpected { operator })
        }
        (Some(FieldOperator::In | FieldOperator::NotIn), true) => {
            Err(Violation::FieldValuesMissing { operator })
        }
        (None, _) => Err(Violation::FieldOperator { operator }),
        _ => Ok(()),
    }
}

/// The prefix is compared as plain text, so that `spec.paramsfoo` passes, as it always did.
fn is_selectable(key: &str, owner: Owner) -> bool {
    let of_workload = owner == Owner::Workload;
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| key.starts_with(prefix));
    SHARED_KEYS.contains(&key)
        || starts(&SHARED_PREFIXES)
        || (of_workload && (WORKLOAD_KEYS.contains(&key) || starts(&WORKLOAD_PREFIXES)))
}
