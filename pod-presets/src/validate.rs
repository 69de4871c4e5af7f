//! What is wrong with a preset, in the words of Kubernetes.
//!
//! What is found here is also what the CRDs refuse as far as one object decides it. The webhook says it better, and knows what
//! a pod may hold: a preset that no pod can have would have all pods that it selects refused.

mod containers;
mod error;
mod volumes;

use conventions::pod::Part;
use serde_json::{Value, json};

use crate::origin::Origin;
use crate::preset::{ConflictPolicy, Mode, list_of, most_of};
use crate::target::ContainerType;

pub use error::FieldError;

/// What a cluster allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The spec of a preset may be changed.
    pub mutable: bool,
}

/// Errors that are told at once.
const MOST_ERRORS: usize = 20;
const IMMUTABLE: &str = "field is immutable: delete the preset and create it again, or run the controller with --mutable-presets";
/// Where the token of the service account is, in each container that has one.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What is wrong with the object of a preset that is created, or that takes the place of `old`. Nothing, mostly.
///
/// ```
/// use pod_presets::{Options, validate};
/// use serde_json::json;
///
/// let preset = json!({
///     "apiVersion": "settings.carto.run/v1alpha1",
///     "kind": "PodPreset",
///     "metadata": {"name": "a"},
///     "spec": {"selector": {"matchLabels": {"a": "b"}}, "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
/// });
/// let errors = validate(&preset, None, Options::default());
/// assert_eq!(errors[0].to_string(), r#"spec.volumeMounts[0].name: Not found: "v""#);
/// ```
pub fn validate(object: &Value, old: Option<&Value>, options: Options) -> Vec<FieldError> {
    let origin = match origin_of(object) {
        Ok(origin) => origin,
        Err(errors) => return errors,
    };
    let mut errors = Vec::new();
    if let Some(old) = old {
        // Whatever is stored: who takes a finalizer away does not have to mend it.
        if crate::same::same(&old["spec"], &object["spec"]) {
            return errors;
        }
        if !options.mutable {
            errors.push(FieldError::forbidden("spec", IMMUTABLE));
        }
    }
    errors.extend(problems(object, origin));
    errors.truncate(MOST_ERRORS);
    errors
}

/// What its author may not have meant, though it is allowed.
pub fn warnings(object: &Value) -> Vec<String> {
    let spec = &object["spec"];
    let mut warnings = Vec::new();
    let mounted: Vec<&str> = items(spec, Part::VolumeMount)
        .map(|mount| text(&mount["name"]))
        .collect();
    for (index, volume) in items(spec, Part::Volume).enumerate() {
        let name = text(&volume["name"]);
        if !mounted.contains(&name) {
            let field = format!("spec.volumes[{index}]");
            warnings.push(format!("{field}: no volumeMount of this preset mounts it"));
        }
    }
    for (index, mount) in items(spec, Part::VolumeMount).enumerate() {
        let field = format!("spec.volumeMounts[{index}]");
        if text(&mount["mountPath"]).trim_end_matches('/') == TOKEN_PATH {
            warnings.push(format!("{field}.mountPath: pods have the token of their service account there, unless they say they do not want it: it is a conflict"));
        }
        if mount["mountPropagation"] == "Bidirectional" {
            warnings.push(format!("{field}.mountPropagation: a pod with a container that is not privileged will be refused"));
        }
    }
    warnings.truncate(MOST_ERRORS);
    warnings
}

/// Which kind an object is of.
pub(crate) fn origin_of(object: &Value) -> Result<Origin, Vec<FieldError>> {
    let [version, kind] = ["apiVersion", "kind"].map(|field| text(&object[field]));
    Origin::of(version, kind).ok_or_else(|| {
        let value = json!(format!("{version} {kind}"));
        vec![FieldError::invalid("kind", &value, "it is no pod preset")]
    })
}

/// All that is wrong with the object as it is.
pub(crate) fn problems(object: &Value, origin: Origin) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = Vec::new();
    name_errors(&object["metadata"], origin, &mut errors);
    if !spec.is_object() {
        errors.push(FieldError::required("spec", ""));
        return errors;
    }
    selector_errors(spec, origin, &mut errors);
    let parts = [
        Part::Volume,
        Part::EnvVar,
        Part::EnvFromSource,
        Part::VolumeMount,
    ];
    if parts.iter().all(|part| items(spec, *part).next().is_none()) {
        let field = "spec.volumes.env.envFrom.volumeMounts";
        errors.push(FieldError::required(field, "must specify at least one"));
    }
    for part in parts {
        let before = errors.len();
        type_errors(spec, part, &mut errors);
        if errors.len() == before {
            part_errors(spec, part, &mut errors);
        }
        errors.truncate(MOST_ERRORS);
    }
    choice_errors(spec, &mut errors);
    errors.truncate(MOST_ERRORS);
    errors
}

fn name_errors(metadata: &Value, origin: Origin, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "metadata.name";
    let name = text(&metadata["name"]);
    if name.is_empty() {
        // The API server makes it up where there is a generateName.
        if text(&metadata["generateName"]).is_empty() {
            errors.push(FieldError::required(
                FIELD,
                "name or generateName is required",
            ));
        }
        return;
    }
    for reason in api_types::selector::subdomain_errors(name) {
        errors.push(FieldError::invalid(FIELD, &json!(name), &reason));
    }
    let longest = origin.longest_name();
    if name.len() > longest {
        let reason = format!("must be no more than {longest} characters: pods are marked with it");
        errors.push(FieldError::invalid(FIELD, &json!(name), &reason));
    }
}

/// An empty selector is no way to say "all pods": it is more often a mistake.
fn selector_errors(spec: &Value, origin: Origin, errors: &mut Vec<FieldError>) {
    let selector = &spec["selector"];
    let is_empty = ["matchLabels", "matchExpressions"].iter().all(|field| {
        let value = &selector[field];
        let is_empty_map = value.as_object().is_none_or(serde_json::Map::is_empty);
        is_empty_map && value.as_array().is_none_or(Vec::is_empty)
    });
    match (is_empty, spec["allPods"] == true) {
        (true, false) => errors.push(FieldError::required(
            "spec.selector",
            "must not be empty; allPods: true is for every pod",
        )),
        (false, true) => errors.push(FieldError::forbidden(
            "spec.selector",
            "may not be specified when allPods is true",
        )),
        _ => {}
    }
    errors.extend(
        crate::preset::selector(selector, "spec.selector")
            .err()
            .into_iter()
            .flatten(),
    );
    if origin == Origin::Cluster {
        let field = "spec.namespaceSelector";
        let selector = &spec["namespaceSelector"];
        if selector.is_null() {
            errors.push(FieldError::required(field, "{} is for every namespace"));
        }
        errors.extend(
            crate::preset::selector(selector, field)
                .err()
                .into_iter()
                .flatten(),
        );
    }
}

/// Types and required fields, as the schema has them.
fn type_errors(spec: &Value, part: Part, errors: &mut Vec<FieldError>) {
    let list = list_of(part);
    let items = match &spec[list] {
        Value::Null => return,
        Value::Array(items) => items,
        other => {
            let text = "must be a list";
            return errors.push(FieldError::invalid(
                &format!("spec.{list}"),
                &kind_of(other),
                text,
            ));
        }
    };
    let most = most_of(part);
    if items.len() > most {
        let problem = format!("Too many: {}: must have at most {most} items", items.len());
        return errors.push(FieldError::of(&format!("spec.{list}"), &problem));
    }
    for (index, item) in items.iter().enumerate() {
        if let Err(fault) = part.check(item, &format!("spec.{list}[{index}]")) {
            errors.push(FieldError::of(&fault.field, &fault.problem));
        }
        if errors.len() >= MOST_ERRORS {
            return;
        }
    }
}

fn part_errors(spec: &Value, part: Part, errors: &mut Vec<FieldError>) {
    match part {
        Part::Volume => volumes::volume_errors(spec, errors),
        Part::VolumeMount => volumes::mount_errors(spec, errors),
        Part::EnvVar => containers::env_errors(spec, errors),
        Part::EnvFromSource => containers::env_from_errors(spec, errors),
    }
}

fn choice_errors(spec: &Value, errors: &mut Vec<FieldError>) {
    let mut unless_known = |field: &str, value: &Value, known: &[&str]| {
        let is_known = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty() || known.contains(&text.as_str()),
            _ => false,
        };
        if !is_known {
            errors.push(FieldError::unsupported(field, value, known));
        }
    };
    let policies = ConflictPolicy::ALL.map(ConflictPolicy::as_str);
    unless_known("spec.conflictPolicy", &spec["conflictPolicy"], &policies);
    let modes = Mode::ALL.map(Mode::as_str);
    unless_known("spec.mode", &spec["mode"], &modes);
    let types = ContainerType::ALL.map(ContainerType::as_str);
    let given = spec["containers"]["types"].as_array().into_iter().flatten();
    for (index, type_) in given.enumerate() {
        unless_known(&format!("spec.containers.types[{index}]"), type_, &types);
    }
}

fn kind_of(value: &Value) -> Value {
    json!(match value {
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        _ => "number",
    })
}

fn items(spec: &Value, part: Part) -> impl Iterator<Item = &Value> {
    spec[list_of(part)].as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
