//! Variables, and where they come from.

use conventions::pod::Part;
use serde_json::{Value, json};

use super::{FieldError, items, text};

const NAME_RULE: &str = "a valid environment variable name must consist only of printable ASCII characters other than '='";
const TOO_MANY: &str = "may not have more than one field specified at a time";

/// What a variable can be made of, beside labels and annotations.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

pub(super) fn env_errors(spec: &Value, errors: &mut Vec<FieldError>) {
    for (index, variable) in items(spec, Part::EnvVar).enumerate() {
        let field = format!("spec.env[{index}]");
        let name = text(&variable["name"]);
        let name_field = format!("{field}.name");
        if name.is_empty() {
            errors.push(FieldError::required(&name_field, ""));
        } else if !is_variable(name) {
            errors.push(FieldError::invalid(&name_field, &json!(name), NAME_RULE));
        }
        if variable["valueFrom"].is_object() {
            let has_value = !text(&variable["value"]).is_empty();
            value_from_errors(
                &variable["valueFrom"],
                has_value,
                &format!("{field}.valueFrom"),
                errors,
            );
        }
        if errors.len() >= super::MOST_ERRORS {
            return;
        }
    }
}

fn value_from_errors(from: &Value, has_value: bool, field: &str, errors: &mut Vec<FieldError>) {
    if has_value {
        let detail = "may not be specified when `value` is not empty";
        return errors.push(FieldError::invalid(field, &json!(""), detail));
    }
    match given(from) {
        0 => {
            let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
            return errors.push(FieldError::invalid(field, &json!(""), detail));
        }
        1 => {}
        _ => return errors.push(FieldError::invalid(field, &json!(""), TOO_MANY)),
    }
    for source in ["configMapKeyRef", "secretKeyRef"] {
        if from[source].is_object() {
            require(
                &from[source],
                &["name", "key"],
                &format!("{field}.{source}"),
                errors,
            );
        }
    }
    if from["resourceFieldRef"].is_object() {
        require(
            &from["resourceFieldRef"],
            &["resource"],
            &format!("{field}.resourceFieldRef"),
            errors,
        );
    }
    if from["fieldRef"].is_object() {
        field_ref_errors(&from["fieldRef"], &format!("{field}.fieldRef"), errors);
    }
}

fn field_ref_errors(reference: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let path = text(&reference["fieldPath"]);
    let field = format!("{field}.fieldPath");
    let of_map = ["metadata.labels['", "metadata.annotations['"]
        .iter()
        .any(|map| {
            path.strip_prefix(map)
                .is_some_and(|key| key.len() > 2 && key.ends_with("']"))
        });
    if path.is_empty() {
        errors.push(FieldError::required(&field, ""));
    } else if !of_map && !FIELDS.contains(&path) {
        errors.push(FieldError::unsupported(&field, &json!(path), &FIELDS));
    }
}

pub(super) fn env_from_errors(spec: &Value, errors: &mut Vec<FieldError>) {
    for (index, source) in items(spec, Part::EnvFromSource).enumerate() {
        let field = format!("spec.envFrom[{index}]");
        let prefix = text(&source["prefix"]);
        if !prefix.is_empty() && !is_variable(prefix) {
            let field = format!("{field}.prefix");
            errors.push(FieldError::invalid(&field, &json!(prefix), NAME_RULE));
        }
        let references = ["configMapRef", "secretRef"].map(|it| (it, &source[it]));
        let given: Vec<_> = references.iter().filter(|(_, it)| it.is_object()).collect();
        match given[..] {
            [] => {
                let detail = "must specify one of: `configMapRef` or `secretRef`";
                errors.push(FieldError::invalid(&field, &json!(""), detail));
            }
            [(name, reference)] => {
                require(reference, &["name"], &format!("{field}.{name}"), errors);
            }
            _ => errors.push(FieldError::invalid(&field, &json!(""), TOO_MANY)),
        }
        if errors.len() >= super::MOST_ERRORS {
            return;
        }
    }
}

/// Texts that must not be empty.
pub(super) fn require(value: &Value, texts: &[&str], field: &str, errors: &mut Vec<FieldError>) {
    let missing = texts.iter().filter(|name| text(&value[**name]).is_empty());
    errors.extend(missing.map(|name| FieldError::required(&format!("{field}.{name}"), "")));
}

/// How many fields say something, those of a newer Kubernetes among them.
pub(super) fn given(value: &Value) -> usize {
    let fields = value.as_object().into_iter().flatten();
    fields.filter(|(_, value)| !value.is_null()).count()
}

fn is_variable(name: &str) -> bool {
    name.bytes()
        .all(|byte| matches!(byte, b' '..=b'~') && byte != b'=')
}
