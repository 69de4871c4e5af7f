//! Warnings: what is admitted and will not work, or not as meant.

use std::collections::BTreeSet;

use template_language::jsonpath;

use super::steps::Steps;
use super::{Violation, loops};
use crate::blueprint::{
    BlueprintResource, BlueprintSpec, DeclaredInput, InputReference, InputSlot,
};
use crate::runnable::ClusterRunTemplateSpec;
use crate::templates::{
    ClusterDeploymentTemplateSpec, ClusterDeploymentValidationTemplateSpec, CompletionCondition,
    HealthMatchField, HealthRule, TemplateKind, TemplateSpec,
};

pub(super) fn supply_chain(spec: &BlueprintSpec) -> Vec<String> {
    // All others are refused (docs/behaviour/admission.md#supply-chains).
    blueprint(spec, |slot| slot == InputSlot::Success)
}

pub(super) fn delivery(spec: &BlueprintSpec) -> Vec<String> {
    blueprint(spec, |_| true)
}

/// `warns_of` are the inputs that are admitted whoever provides them.
fn blueprint(spec: &BlueprintSpec, warns_of: fn(InputSlot) -> bool) -> Vec<String> {
    let mut warnings = broken_keys(spec);
    warnings.extend(lent_everywhere(spec));
    warnings.extend(unusable_inputs(spec, warns_of));
    warnings.extend(repeated_inputs(spec));
    warnings.extend(loops::warnings(&spec.resources));
    warnings
}

/// Admission parses these keys as they stand (docs/behaviour/admission.md#fields), selection with
/// the braces: what fails there selects nobody.
fn broken_keys(spec: &BlueprintSpec) -> Vec<String> {
    let of_owner = spec.selector_match_fields.iter();
    let mut warnings: Vec<String> = of_owner
        .filter_map(|field| broken_path("spec.selectorMatchFields[].key", &field.key))
        .collect();
    for resource in &spec.resources {
        let list = format!(
            "spec.resources[{}].templateRef.options[].selector.matchFields[].key",
            resource.name
        );
        let options = resource.template_ref.options.iter();
        let fields = options.flat_map(|option| &option.selector.match_fields);
        warnings.extend(fields.filter_map(|field| broken_path(&list, &field.key)));
    }
    warnings
}

/// A service account of a fixed namespace is lent to whoever may create an owner that is selected: labels alone keep nobody out,
/// in no namespace.
fn lent_everywhere(spec: &BlueprintSpec) -> Option<String> {
    let account = spec.service_account_ref.as_ref()?;
    let namespace = account.namespace.as_deref().filter(|it| !it.is_empty())?;
    let limits_namespaces = spec.selector_match_fields.iter().any(|field| {
        let key = field.key.trim_matches(['{', '}']).trim_start_matches('.');
        key == "metadata.namespace" && field.operator == "In"
    });
    let allowed = spec.allowed_namespaces.as_ref();
    let limits_labels = allowed.is_some_and(|allowed| !allowed.is_empty());
    (!limits_namespaces && !limits_labels).then(|| {
        format!(
            "spec.serviceAccountRef: service account [{}] of namespace [{namespace}] is lent to every namespace in which somebody \
            creates a matching object; limit the namespaces by their labels in spec.allowedNamespaces: {{matchLabels: {{...}}}}, or \
            by name in spec.selectorMatchFields: {{key: metadata.namespace, operator: In, values: [...]}}",
            account.name
        )
    })
}

fn yields_revision(kind: TemplateKind) -> bool {
    match kind {
        TemplateKind::Source | TemplateKind::Deployment | TemplateKind::Validation => true,
        TemplateKind::Image | TemplateKind::Config | TemplateKind::Plain => false,
    }
}

/// Deliveries were never checked for inputs that nobody provides
/// (docs/behaviour/admission.md#deliveries); refusing them now would break users.
fn unusable_inputs(spec: &BlueprintSpec, warns_of: fn(InputSlot) -> bool) -> Vec<String> {
    let steps = Steps::of(&spec.resources);
    let mut warnings = Vec::new();
    for resource in &spec.resources {
        let inputs = resource.inputs().filter(|input| warns_of(input.slot));
        warnings.extend(inputs.filter_map(|input| unusable(&steps, resource, input)));
    }
    warnings
}

fn unusable(
    steps: &Steps<'_>,
    resource: &BlueprintResource,
    declared: DeclaredInput<'_>,
) -> Option<String> {
    // All three kinds of step yield a url and a revision (docs/behaviour/kinds.md#delivery).
    let revisions =
        "ClusterSourceTemplate, ClusterDeploymentTemplate or ClusterDeploymentValidationTemplate";
    let (fits, wanted): (fn(TemplateKind) -> bool, _) = match declared.slot {
        InputSlot::Source | InputSlot::Deployment => (yields_revision, revisions),
        InputSlot::Image => (|_| false, revisions),
        InputSlot::Config => (
            |kind| kind == TemplateKind::Config,
            TemplateKind::Config.as_str(),
        ),
        InputSlot::Success => (|_| true, ""),
    };
    let (list, resource) = (declared.slot.list(), resource.name.clone());
    let input = InputReference {
        name: declared.slot.name_of(declared.name).to_owned(),
        resource: declared.resource.to_owned(),
    };
    let violation = match steps.named(declared.resource) {
        None => Violation::UnknownProvider {
            list,
            resource,
            input,
        },
        Some(provider) if provider.template_ref.template_kind().is_some_and(fits) => return None,
        Some(_) => Violation::WrongProvider {
            list,
            resource,
            input,
            kind: wanted,
        },
    };
    Some(violation.to_string())
}

fn repeated_inputs(spec: &BlueprintSpec) -> Vec<String> {
    let mut warnings = Vec::new();
    for resource in &spec.resources {
        let mut names = BTreeSet::new();
        for input in resource
            .inputs()
            .filter(|input| input.slot != InputSlot::Success)
            .filter(|input| !names.insert((input.slot, input.name)))
        {
            warnings.push(format!(
                "resource [{}] has several {} named [{}]: the last one is used",
                resource.name,
                input.slot.list(),
                input.name
            ));
        }
    }
    warnings
}

/// Warnings about a template; `own_paths` are those its kind adds, each with the name of its field.
pub(super) fn template(spec: &TemplateSpec, own_paths: &[(&'static str, String)]) -> Vec<String> {
    let mut warnings: Vec<String> = own_paths
        .iter()
        .filter_map(|(field, path)| broken_path(field, path))
        .collect();
    warnings.extend(broken_health_rule(spec.health_rule.as_ref()));
    if spec.lifecycle.is_mutable() && spec.retention_policy.is_some() && spec.health_rule.is_some()
    {
        warnings.push("spec.retentionPolicy has no effect: the lifecycle is mutable".to_owned());
    }
    warnings
}

fn broken_health_rule(rule: Option<&HealthRule>) -> Vec<String> {
    let Some(sides) = rule.and_then(|rule| rule.multi_match.as_ref()) else {
        return Vec::new();
    };
    [("unhealthy", &sides.unhealthy), ("healthy", &sides.healthy)]
        .into_iter()
        .flat_map(|(side, rules)| rules.match_fields.iter().map(move |field| (side, field)))
        .flat_map(|(side, field)| broken_health_paths(side, field))
        .collect()
}

fn broken_health_paths(side: &str, field: &HealthMatchField) -> Vec<String> {
    let list = format!("spec.healthRule.multiMatch.{side}.matchFields[]");
    let key = broken_path(&format!("{list}.key"), &field.requirement.key);
    let message = field.message_path.as_ref().filter(|path| !path.is_empty());
    let message = message.and_then(|path| broken_path(&format!("{list}.messagePath"), path));
    key.into_iter().chain(message).collect()
}

/// The paths only a deployment template has.
pub(super) fn deployment_paths(
    spec: &ClusterDeploymentTemplateSpec,
) -> Vec<(&'static str, String)> {
    let rules = &spec.success;
    let mut paths = Vec::new();
    for pair in &rules.observed_matches {
        paths.push(("spec.observedMatches[].input", pair.input.clone()));
        paths.push(("spec.observedMatches[].output", pair.output.clone()));
    }
    let mut condition = |field, condition: &CompletionCondition| {
        // An empty one is refused.
        let keys = condition.keys().into_iter().filter(|key| !key.is_empty());
        paths.extend(keys.map(|key| (field, key.to_owned())));
    };
    if let Some(completion) = &rules.observed_completion {
        condition(
            "spec.observedCompletion.succeeded.key",
            &completion.succeeded,
        );
        if let Some(failed) = &completion.failed {
            condition("spec.observedCompletion.failed.key", failed);
        }
    }
    if let Some(failed) = &rules.failed {
        condition("spec.failed.key", failed);
    }
    paths
}

/// Warnings about a validation template.
pub(super) fn validation(spec: &ClusterDeploymentValidationTemplateSpec) -> Vec<String> {
    let own_paths = deployment_paths(&spec.deployment);
    let shared = &spec.deployment.template_spec;
    let mut warnings = template(shared, &own_paths);
    if shared.lifecycle.is_mutable() && !reads_deployment(shared) {
        warnings.push(
            "the template reads neither deployment nor sources, and its object is changed in place: what it says cannot \
             be told to belong to a revision; render $(deployment.revision)$ into its spec, or use lifecycle immutable \
             or tekton"
                .to_owned(),
        );
    }
    warnings
}

/// Whether the words occur in the template; one that reads them in a roundabout way is not warned about.
fn reads_deployment(spec: &TemplateSpec) -> bool {
    let text = match (&spec.template, &spec.ytt) {
        (Some(template), _) => template.to_string(),
        (None, Some(ytt)) => ytt.clone(),
        (None, None) => return true,
    };
    ["deployment", "source"]
        .iter()
        .any(|word| text.contains(word))
}

pub(super) fn run_template(spec: &ClusterRunTemplateSpec) -> Vec<String> {
    let outputs = spec.outputs.iter();
    outputs
        .filter_map(|(name, path)| broken_path(&format!("spec.outputs[{name}]"), path))
        .chain(broken_health_rule(spec.health_rule.as_ref()))
        .collect()
}

fn broken_path(field: &str, path: &str) -> Option<String> {
    let text = jsonpath::check_field(path).err()?;
    Some(format!("{field} [{path}] is not a valid path: {text}"))
}
