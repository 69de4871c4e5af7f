//! What is filled in and what is refused when a PodIntent or a ClusterPodConvention is stored.
//!
//! It works on JSON as it arrives: what is of another type than it should be is the schema's to
//! refuse.

mod url;

use std::collections::HashSet;

use api_types::Selector;
use api_types::selector::{CompiledSelector, subdomain_errors};
use serde_json::{Value, json};

use crate::convention::{MOST_TIMEOUT_SECONDS, Priority, SelectorTarget};
use crate::intent::DEFAULT_SERVICE_ACCOUNT;

const PRIORITY: &str = r#"The priority value provided is invalid. Accepted priority values include \"Early\" or \"Normal\" or \"Late\". The default value is set to \"Normal\""#;
const TARGET: &str = r#"The value provided for the selectorTarget field is invalid. Accepted selectorTarget values include \"PodIntent\" and \"PodTemplateSpec\". The default value is set to \"PodTemplateSpec\""#;
const CLIENT_CONFIG: &str = "spec.webhook.clientConfig";
const HTTPS_PORT: u16 = 443;
/// Errors that are told at once. Who wrote more mistakes than that reads no further, and each names
/// the value that it is about.
const MOST_ERRORS: usize = 20;

/// The operations of a JSON patch (RFC 6902) that fill in what a PodIntent leaves out.
pub fn intent_defaults(intent: &Value) -> Vec<Value> {
    let spec = &intent["spec"];
    let account = json!(DEFAULT_SERVICE_ACCOUNT);
    filled(spec, "/spec", "serviceAccountName", &account)
        .into_iter()
        .collect()
}

/// The same for a ClusterPodConvention.
///
/// ```
/// use conventions::admission::convention_defaults;
/// use serde_json::json;
///
/// let convention = json!({"spec": {"priority": "Late", "webhook": {"clientConfig": {"service": {"name": "a"}}}}});
/// assert_eq!(convention_defaults(&convention), [
///     json!({"op": "add", "path": "/spec/webhook/clientConfig/service/port", "value": 443}),
///     json!({"op": "add", "path": "/spec/selectorTarget", "value": "PodTemplateSpec"}),
/// ]);
/// ```
pub fn convention_defaults(convention: &Value) -> Vec<Value> {
    let spec = &convention["spec"];
    let service = &spec["webhook"]["clientConfig"]["service"];
    let of_spec = |field: &str, value: &str| filled(spec, "/spec", field, &json!(value));
    let path = "/spec/webhook/clientConfig/service";
    [
        of_spec("priority", Priority::default().as_str()),
        filled(service, path, "port", &json!(HTTPS_PORT)),
        of_spec("selectorTarget", SelectorTarget::default().as_str()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Fills a field in unless it says something. Without what it is in there is nothing to fill in.
fn filled(within: &Value, path: &str, field: &str, value: &Value) -> Option<Value> {
    let is_empty = match within.as_object()?.get(field) {
        None | Some(Value::Null) => true,
        Some(present) => present == "",
    };
    is_empty.then(|| json!({"op": "add", "path": format!("{path}/{field}"), "value": value}))
}

/// Why a PodIntent is refused, if it is.
///
/// ```
/// use conventions::admission::intent_refusal;
/// use serde_json::json;
///
/// let intent = json!({"spec": {"imagePullSecrets": [{"name": ""}]}});
/// assert_eq!(intent_refusal(&intent).unwrap(), "spec.imagePullSecrets[0].name: Required value");
/// ```
pub fn intent_refusal(intent: &Value) -> Option<String> {
    let secrets = items(&intent["spec"]["imagePullSecrets"]).enumerate();
    let nameless = secrets.filter(|(_, secret)| text(&secret["name"]).is_empty());
    let required = |(index, _)| required(&format!("spec.imagePullSecrets[{index}].name"), "");
    all(nameless.map(required).take(MOST_ERRORS).collect())
}

/// Why a ClusterPodConvention is refused, if it is.
///
/// ```
/// use conventions::admission::convention_refusal;
/// use serde_json::json;
///
/// assert_eq!(convention_refusal(&json!({"spec": {}})).unwrap(), "spec.webhook: Required value");
/// ```
pub fn convention_refusal(convention: &Value) -> Option<String> {
    let spec = &convention["spec"];
    let mut errors = Vec::new();
    for (index, selector) in items(&spec["selectors"]).enumerate() {
        if errors.len() == MOST_ERRORS {
            break;
        }
        let typed = serde_json::from_value::<Selector>(selector.clone());
        if typed.is_ok_and(|selector| CompiledSelector::new(&selector).is_err()) {
            errors.push(invalid(&format!("spec.selectors[{index}]"), selector, ""));
        }
    }
    let priorities = Priority::ALL.map(Priority::as_str);
    errors.extend(not_among(spec, "priority", &priorities, PRIORITY));
    errors.extend(mechanism_errors(spec));
    let targets = SelectorTarget::ALL.map(SelectorTarget::as_str);
    errors.extend(not_among(spec, "selectorTarget", &targets, TARGET));
    all(errors)
}

/// An empty text is filled in, or read as what is filled in.
fn not_among(spec: &Value, field: &str, known: &[&str], detail: &str) -> Option<String> {
    let said = spec[field].as_str().filter(|said| !said.is_empty())?;
    let is_known = known.contains(&said);
    (!is_known).then(|| invalid(&format!("spec.{field}"), &spec[field], detail))
}

/// Either a webhook is asked, or presets are applied.
fn mechanism_errors(spec: &Value) -> Vec<String> {
    let (webhook, presets) = (&spec["webhook"], &spec["podPresets"]);
    match (webhook.is_object(), presets.is_object()) {
        (false, false) => vec![required("spec.webhook", "")],
        (true, true) => {
            let detail = "expected exactly one, got both";
            vec![required("spec.[webhook, podPresets]", detail)]
        }
        (true, false) => webhook_errors(webhook),
        (false, true) => Vec::new(),
    }
}

fn webhook_errors(webhook: &Value) -> Vec<String> {
    let config = &webhook["clientConfig"];
    let mut errors = match (config["url"].as_str(), config["service"].is_object()) {
        (None, false) => vec![exactly_one("neither")],
        (Some(_), true) => vec![exactly_one("both")],
        (Some(url), false) => url::errors(url, &format!("{CLIENT_CONFIG}.url")),
        (None, true) => service_errors(&config["service"]),
    };
    let certificate = &webhook["certificate"];
    if certificate.is_object() {
        errors.extend(["namespace", "name"].into_iter().filter_map(|field| {
            let missing = text(&certificate[field]).is_empty();
            missing.then(|| required(&format!("spec.webhook.certificate.{field}"), ""))
        }));
    }
    if let Some(seconds) = webhook["timeoutSeconds"].as_i64()
        && !(1..=i64::from(MOST_TIMEOUT_SECONDS)).contains(&seconds)
    {
        let detail = format!("must be between 1 and {MOST_TIMEOUT_SECONDS}, inclusive");
        let field = "spec.webhook.timeoutSeconds";
        errors.push(invalid(field, &json!(seconds), &detail));
    }
    errors
}

fn exactly_one(got: &str) -> String {
    let detail = format!("expected exactly one, got {got}");
    required(&format!("{CLIENT_CONFIG}.[url, service]"), &detail)
}

fn service_errors(service: &Value) -> Vec<String> {
    let field = |name: &str| format!("{CLIENT_CONFIG}.service.{name}");
    let missing = |name: &str| text(&service[name]).is_empty();
    let mut errors: Vec<String> = ["name", "namespace"]
        .into_iter()
        .filter(|name| missing(name))
        .map(|name| required(&field(name), ""))
        .collect();
    if let Some(port) = service["port"].as_i64()
        && !(1..=65535).contains(&port)
    {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(invalid(&field("port"), &json!(port), detail));
    }
    if let Some(path) = service["path"].as_str() {
        errors.extend(path_errors(path, &field("path")));
    }
    errors
}

fn path_errors(path: &str, field: &str) -> Vec<String> {
    if path.is_empty() || path == "/" {
        return Vec::new();
    }
    let refused = |detail: &str| invalid(field, &json!(path), detail);
    let mut errors = Vec::new();
    let segments = path.strip_prefix('/').unwrap_or_else(|| {
        errors.push(refused("must start with a '/'"));
        path
    });
    let segments = segments.strip_suffix('/').unwrap_or(segments);
    for (index, segment) in segments.split('/').enumerate() {
        if errors.len() >= MOST_ERRORS {
            break;
        }
        if segment.is_empty() {
            errors.push(refused(&format!("segment[{index}] may not be empty")));
            continue;
        }
        let reasons = subdomain_errors(segment).into_iter();
        errors.extend(reasons.map(|reason| refused(&format!("segment[{index}]: {reason}"))));
    }
    errors
}

fn required(field: &str, detail: &str) -> String {
    with_detail(format!("{field}: Required value"), detail)
}

fn invalid(field: &str, value: &Value, detail: &str) -> String {
    with_detail(format!("{field}: Invalid value: {value}"), detail)
}

fn with_detail(error: String, detail: &str) -> String {
    if detail.is_empty() {
        error
    } else {
        format!("{error}: {detail}")
    }
}

/// Several errors stand in brackets; each once, and no more than somebody reads.
fn all(mut errors: Vec<String>) -> Option<String> {
    let mut seen = HashSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    errors.truncate(MOST_ERRORS);
    let mut told = errors;
    match told.len() {
        0 => None,
        1 => told.pop(),
        _ => Some(format!("[{}]", told.join(", "))),
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
