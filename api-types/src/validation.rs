//! What is admitted: the rules of the Go controller's webhooks, with its texts and its order, and warnings beside them.
//!
//! An error is a verdict and never changes: existing users compare it. A warning never is a verdict; it says what will
//! not work although it is admitted. Workload, Deliverable and Runnable are not validated beyond their schemas.
//!
//! ```text
//!  object ──▶ validate ──▶ blueprint.rs ── option.rs ── field.rs      error: the first violation
//!                     └──▶ template.rs                                warnings: hints.rs, tags.rs
//! ```

mod blueprint;
mod field;
mod hints;
mod loops;
mod option;
mod steps;
mod success;
mod tags;
mod template;
mod violation;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::blueprint::BlueprintSpec;
use crate::runnable::ClusterRunTemplateSpec;
use crate::templates::{
    ClusterConfigTemplateSpec, ClusterDeploymentTemplateSpec,
    ClusterDeploymentValidationTemplateSpec, ClusterImageTemplateSpec, ClusterSourceTemplateSpec,
    ClusterTemplateSpec, TemplateKind, TemplateSpec,
};

pub use violation::Violation;

/// What is to be said about an object before it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why the object is refused: the first violation, with the Go controller's text. `None` admits it.
    pub error: Option<String>,
    /// What will not work although the object is admitted, in the order of the object.
    pub warnings: Vec<String>,
}

/// Says whether an object of a kind of this group is admitted; kinds without rules are.
///
/// The object is expected to satisfy the schema of its kind, as it does when the API server asks a webhook; a `null` is
/// an absent field, as to the API server. One that cannot be decoded is refused with the decoder's text.
///
/// ```
/// use api_types::validation::validate;
/// use serde_json::json;
///
/// let chain = json!({"metadata": {"name": "chain"}, "spec": {"resources": []}});
/// let verdict = validate("ClusterSupplyChain", &chain);
/// assert_eq!(
///     verdict.error.as_deref(),
///     Some("error validating clustersupplychain [chain]: at least one selector, selectorMatchExpression, \
///           selectorMatchField must be specified"),
/// );
/// ```
pub fn validate(kind: &str, object: &Value) -> Verdict {
    match verdict(kind, &without_nulls(object)) {
        Ok(verdict) => verdict,
        Err(error) => Verdict {
            error: Some(format!("invalid object: {error}")),
            warnings: Vec::new(),
        },
    }
}

/// The fields in which `null` is a value, or whose content is nobody's schema.
const ANY_JSON: [&str; 4] = ["template", "alwaysHealthy", "value", "default"];

/// Go writes a list that is not there as `null`. The API server drops it, but not everything that hands objects over is
/// the API server.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter_map(|(name, field)| match field {
                field if ANY_JSON.contains(&name.as_str()) => Some((name.clone(), field.clone())),
                Value::Null => None,
                field => Some((name.clone(), without_nulls(field))),
            })
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        scalar => scalar.clone(),
    }
}

impl Verdict {
    fn new(checked: Result<(), Violation>, warnings: Vec<String>) -> Self {
        let error = checked.err().map(|violation| violation.to_string());
        Self { error, warnings }
    }
}

fn verdict(kind: &str, object: &Value) -> Result<Verdict, serde_json::Error> {
    let mut verdict = match kind {
        "ClusterSupplyChain" | "ClusterDelivery" => blueprint_verdict(kind, object)?,
        "ClusterRunTemplate" => {
            let spec: ClusterRunTemplateSpec = spec_of(object)?;
            Verdict::new(template::run_template(&spec), hints::run_template(&spec))
        }
        _ => match kind.parse() {
            Ok(kind) => template_verdict(kind, object)?,
            Err(_) => Verdict::default(),
        },
    };
    verdict.warnings.extend(tags::warnings(kind, object));
    Ok(verdict)
}

fn blueprint_verdict(kind: &str, object: &Value) -> Result<Verdict, serde_json::Error> {
    let spec: BlueprintSpec = spec_of(object)?;
    let raw = &object["spec"];
    let verdict = if kind == "ClusterSupplyChain" {
        Verdict::new(
            blueprint::supply_chain(&spec, raw),
            hints::supply_chain(&spec),
        )
    } else {
        Verdict::new(blueprint::delivery(&spec, raw), hints::delivery(&spec))
    };
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    let (kind, name) = (kind.to_lowercase(), name.unwrap_or_default());
    let told = |text| format!("error validating {kind} [{name}]: {text}");
    Ok(Verdict {
        error: verdict.error.map(told),
        ..verdict
    })
}

fn template_verdict(kind: TemplateKind, object: &Value) -> Result<Verdict, serde_json::Error> {
    let with_paths = |spec: &TemplateSpec, rules, paths: &[(&'static str, String)]| {
        Verdict::new(
            template::template(spec, rules),
            hints::template(spec, paths),
        )
    };
    Ok(match kind {
        TemplateKind::Source => {
            let spec: ClusterSourceTemplateSpec = spec_of(object)?;
            let paths = [
                ("spec.urlPath", spec.url_path),
                ("spec.revisionPath", spec.revision_path),
            ];
            with_paths(&spec.template_spec, &spec.success, &paths)
        }
        TemplateKind::Image => {
            let spec: ClusterImageTemplateSpec = spec_of(object)?;
            let paths = [("spec.imagePath", spec.image_path)];
            with_paths(&spec.template_spec, &spec.success, &paths)
        }
        TemplateKind::Config => {
            let spec: ClusterConfigTemplateSpec = spec_of(object)?;
            let paths = [("spec.configPath", spec.config_path)];
            with_paths(&spec.template_spec, &spec.success, &paths)
        }
        TemplateKind::Plain => {
            let spec: ClusterTemplateSpec = spec_of(object)?;
            with_paths(&spec.template_spec, &spec.success, &[])
        }
        TemplateKind::Deployment => {
            let spec: ClusterDeploymentTemplateSpec = spec_of(object)?;
            let paths = hints::deployment_paths(&spec);
            let warnings = hints::template(&spec.template_spec, &paths);
            Verdict::new(template::deployment(&spec), warnings)
        }
        TemplateKind::Validation => {
            let spec: ClusterDeploymentValidationTemplateSpec = spec_of(object)?;
            Verdict::new(template::validation(&spec), hints::validation(&spec))
        }
    })
}

fn spec_of<S: DeserializeOwned>(object: &Value) -> Result<S, serde_json::Error> {
    S::deserialize(object.get("spec").unwrap_or(&Value::Null))
}
