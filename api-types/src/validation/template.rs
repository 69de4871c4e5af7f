//! Templates and run templates (spec 7.5, 7.6).

use serde_json::Value;

use super::Violation;
use super::option::is_given;
use crate::go_text;
use crate::runnable::ClusterRunTemplateSpec;
use crate::templates::{ClusterDeploymentTemplateSpec, HealthMatch, HealthRule, TemplateSpec};

pub(super) fn template(
    spec: &TemplateSpec,
    deployment: Option<&ClusterDeploymentTemplateSpec>,
) -> Result<(), Violation> {
    match (&spec.template, is_given(spec.ytt.as_ref())) {
        (None, false) => return Err(Violation::NoTemplateBody),
        (Some(_), true) => return Err(Violation::TemplateAndYtt),
        (Some(object), false) => check_object(object)?,
        (None, true) => {}
    }
    match &spec.health_rule {
        // With a health rule the retention policy is not looked at, and objects that were admitted so must stay so;
        // there is a warning instead.
        Some(rule) => check_health_rule(rule)?,
        None if spec.lifecycle.is_mutable() && spec.retention_policy.is_some() => {
            return Err(Violation::RetentionOfMutable);
        }
        None => {}
    }
    match deployment {
        Some(spec) if spec.observed_matches.is_empty() == spec.observed_completion.is_none() => {
            Err(Violation::Observed)
        }
        _ => Ok(()),
    }
}

pub(super) fn run_template(spec: &ClusterRunTemplateSpec) -> Result<(), Violation> {
    let object = spec.template.as_ref().unwrap_or(&Value::Null);
    check_object(object)?;
    match object.as_object() {
        None => Err(Violation::RunTemplateObject {
            object: go_text::value(object),
        }),
        // Without a spec the Go controller stamped a new object on every reconcile (#587).
        Some(fields) if !fields.contains_key("spec") => Err(Violation::RunTemplateWithoutSpec {
            object: go_text::value(object),
        }),
        Some(_) => Ok(()),
    }
}

fn check_object(object: &Value) -> Result<(), Violation> {
    let text_at = |pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    if text_at("/kind").is_empty() {
        let text = format!("Object 'Kind' is missing in '{}'", go_text::json(object));
        return Err(Violation::TemplateObject { text });
    }
    if !text_at("/metadata/namespace").is_empty() {
        return Err(Violation::TemplateNamespace);
    }
    Ok(())
}

fn check_health_rule(rule: &HealthRule) -> Result<(), Violation> {
    let given = [
        rule.always_healthy.is_some(),
        is_given(rule.single_condition_type.as_ref()),
        rule.multi_match.is_some(),
    ];
    match given.into_iter().filter(|given| *given).count() {
        0 => return Err(Violation::NoHealthRule),
        1 => {}
        _ => return Err(Violation::SeveralHealthRules),
    }
    let Some(sides) = &rule.multi_match else {
        return Ok(());
    };
    for (side, rules) in [("unhealthy", &sides.unhealthy), ("healthy", &sides.healthy)] {
        if is_empty(rules) {
            return Err(Violation::EmptyHealthMatch { side });
        }
    }
    Ok(())
}

fn is_empty(rules: &HealthMatch) -> bool {
    rules.match_conditions.is_empty() && rules.match_fields.is_empty()
}
