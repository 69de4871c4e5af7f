//! Templates and run templates (docs/behaviour/admission.md#templates,
//! docs/behaviour/admission.md#run-templates).

use serde_json::Value;

use super::option::is_given;
use super::{Violation, success};
use crate::duration::parse_duration;
use crate::runnable::ClusterRunTemplateSpec;
use crate::templates::{
    ClusterDeploymentTemplateSpec, ClusterDeploymentValidationTemplateSpec, HealthMatch,
    HealthRule, Lifecycle, SuccessRules, TemplateSpec,
};
use template_language::go_format;

/// A template that is no deployment.
pub(super) fn template(spec: &TemplateSpec, rules: &SuccessRules) -> Result<(), Violation> {
    shared(spec)?;
    success::optional(rules, spec.lifecycle)
}

pub(super) fn deployment(spec: &ClusterDeploymentTemplateSpec) -> Result<(), Violation> {
    shared(&spec.template_spec)?;
    success::of_deployment(&spec.success, spec.template_spec.lifecycle)
}

fn shared(spec: &TemplateSpec) -> Result<(), Violation> {
    check_body(spec.template.as_ref(), spec.ytt.as_ref(), check_object)?;
    match &spec.health_rule {
        // With a health rule the retention policy is not looked at, and objects that were admitted so must stay so;
        // there is a warning instead.
        Some(rule) => check_health_rule(rule)?,
        None if spec.lifecycle.is_mutable() && spec.retention_policy.is_some() => {
            return Err(Violation::RetentionOfMutable);
        }
        None => {}
    }
    Ok(())
}

/// The rules of a deployment template, but for runs a health rule suffices: each run belongs to one revision, so nothing
/// needs to be observed to tell old from new.
pub(super) fn validation(spec: &ClusterDeploymentValidationTemplateSpec) -> Result<(), Violation> {
    let template = &spec.deployment.template_spec;
    let rules = &spec.deployment.success;
    shared(template)?;
    let matches = !rules.observed_matches.is_empty();
    let completion = rules.observed_completion.is_some();
    let judged_by_health = match template.lifecycle {
        Lifecycle::Mutable => false,
        Lifecycle::Immutable => template.health_rule.is_some(),
        Lifecycle::Tekton => true,
    };
    match (matches, completion) {
        (true, true) => return Err(Violation::Observed),
        (false, false) if !judged_by_health => return Err(Violation::Observed),
        _ => {}
    }
    if rules.failed.is_some() && !matches {
        return Err(Violation::FailedWithoutMatches);
    }
    success::of_validation(rules)?;
    match &spec.timeout {
        Some(timeout) if parse_duration(timeout).is_none() => Err(Violation::Timeout {
            timeout: timeout.clone(),
        }),
        _ => Ok(()),
    }
}

pub(super) fn run_template(spec: &ClusterRunTemplateSpec) -> Result<(), Violation> {
    check_body(spec.template.as_ref(), spec.ytt.as_ref(), check_run)?;
    spec.health_rule.as_ref().map_or(Ok(()), check_health_rule)
}

fn check_body(
    template: Option<&Value>,
    ytt: Option<&String>,
    check: fn(&Value) -> Result<(), Violation>,
) -> Result<(), Violation> {
    match (template, is_given(ytt)) {
        (None, false) => Err(Violation::NoTemplateBody),
        (Some(_), true) => Err(Violation::TemplateAndYtt),
        (Some(object), false) => check(object),
        (None, true) => Ok(()),
    }
}

fn check_run(object: &Value) -> Result<(), Violation> {
    check_object(object)?;
    match object.as_object() {
        None => Err(Violation::RunTemplateObject {
            object: go_format::display_exact(object),
        }),
        // Without a spec the Go controller stamped a new object on every reconcile (#587).
        Some(fields) if !fields.contains_key("spec") => Err(Violation::RunTemplateWithoutSpec {
            object: go_format::display_exact(object),
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
    // Kubernetes finds neither group nor kind where the version has two slashes.
    if text_at("/kind").is_empty() || text_at("/apiVersion").matches('/').count() > 1 {
        let text = format!("Object 'Kind' is missing in '{}'", go_format::json(object));
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
