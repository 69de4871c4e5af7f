//! ClusterSupplyChain and ClusterDelivery (docs/behaviour/admission.md#supply-chains,
//! docs/behaviour/admission.md#deliveries).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Violation;
use super::field::{self, Owner};
use super::option::{check_reference, is_given};
use super::steps::Steps;
use crate::blueprint::{BlueprintResource, BlueprintSpec, InputReference, InputSlot};
use crate::params::BlueprintParam;
use crate::selector::{CompiledSelector, LabelSelector};
use crate::templates::TemplateKind;

pub(super) fn supply_chain(spec: &BlueprintSpec, raw: &Value) -> Result<(), Violation> {
    check_selector_and_params(spec, Owner::Workload)?;
    if let Some((_, resource)) = repeated_name(&spec.resources) {
        return Err(Violation::DuplicateResource {
            resource: resource.name.clone(),
        });
    }
    check_templates(spec, raw, Owner::Workload, |resource, kind| match kind {
        TemplateKind::Source => Some(&resource.sources),
        TemplateKind::Image => Some(&resource.images),
        TemplateKind::Config => Some(&resource.configs),
        TemplateKind::Plain | TemplateKind::Deployment | TemplateKind::Validation => None,
    })?;
    let steps = Steps::of(&spec.resources);
    spec.resources
        .iter()
        .try_for_each(|resource| check_inputs(resource, &steps))
}

pub(super) fn delivery(spec: &BlueprintSpec, raw: &Value) -> Result<(), Violation> {
    check_selector_and_params(spec, Owner::Deliverable)?;
    if let Some((index, resource)) = repeated_name(&spec.resources) {
        return Err(Violation::ResourceTwice {
            index,
            resource: resource.name.clone(),
        });
    }
    check_templates(spec, raw, Owner::Deliverable, |resource, kind| match kind {
        TemplateKind::Source => Some(&resource.sources),
        TemplateKind::Config => Some(&resource.configs),
        TemplateKind::Image
        | TemplateKind::Plain
        | TemplateKind::Deployment
        | TemplateKind::Validation => None,
    })?;
    spec.resources.iter().try_for_each(check_deployment)
}

fn check_selector_and_params(spec: &BlueprintSpec, owner: Owner) -> Result<(), Violation> {
    if spec.owner_selector().is_empty() {
        return Err(Violation::NoOwnerSelector);
    }
    if let Some(param) = broken_param(&spec.params) {
        return Err(Violation::Param {
            param: param.name.clone(),
        });
    }
    for resource in &spec.resources {
        if let Some(param) = broken_param(&resource.params) {
            return Err(Violation::ResourceParam {
                resource: resource.name.clone(),
                param: param.name.clone(),
            });
        }
    }
    CompiledSelector::from_parts(&spec.selector, &[]).map_err(Violation::OwnerLabels)?;
    CompiledSelector::from_parts(&BTreeMap::new(), &spec.selector_match_expressions)
        .map_err(Violation::OwnerExpressions)?;
    field::check_all(&spec.selector_match_fields, owner)?;
    check_allowed_namespaces(spec)
}

fn check_allowed_namespaces(spec: &BlueprintSpec) -> Result<(), Violation> {
    let allowed = spec.allowed_namespaces.as_ref();
    let compiled = allowed.map(LabelSelector::compile).transpose();
    compiled.map(drop).map_err(Violation::AllowedNamespaces)
}

fn broken_param(params: &[BlueprintParam]) -> Option<&BlueprintParam> {
    params.iter().find(|param| param.setting().is_none())
}

fn repeated_name(resources: &[BlueprintResource]) -> Option<(usize, &BlueprintResource)> {
    let mut names = BTreeSet::new();
    resources
        .iter()
        .enumerate()
        .find(|(_, resource)| !names.insert(&resource.name))
}

fn check_option_names(resource: &BlueprintResource) -> Result<(), Violation> {
    let mut names = BTreeSet::new();
    for option in &resource.template_ref.options {
        let template = option.name.clone().unwrap_or_default();
        if !names.insert(template.clone()) {
            return Err(Violation::DuplicateOption {
                template,
                resource: resource.name.clone(),
            });
        }
    }
    Ok(())
}

/// The options of every step as written.
fn raw_options(raw: &Value) -> impl Iterator<Item = &Value> {
    let resources = raw["resources"].as_array().into_iter().flatten();
    resources.map(|resource| &resource["templateRef"]["options"])
}

/// Checks the templates of all steps; `inputs` gives the list of a step from which a kind can hand an input through.
fn check_templates(
    spec: &BlueprintSpec,
    raw: &Value,
    owner: Owner,
    inputs: impl Fn(&BlueprintResource, TemplateKind) -> Option<&Vec<InputReference>>,
) -> Result<(), Violation> {
    spec.resources.iter().try_for_each(check_option_names)?;
    let mut steps = spec.resources.iter().zip(raw_options(raw));
    steps.try_for_each(|(resource, options)| {
        check_reference(&resource.template_ref, options, owner)
            .and_then(|()| check_pass_through(resource, |kind| inputs(resource, kind)))
            .map_err(|violation| Violation::Resource {
                resource: resource.name.clone(),
                violation: Box::new(violation),
            })
    })
}

fn check_pass_through<'a>(
    resource: &'a BlueprintResource,
    inputs: impl Fn(TemplateKind) -> Option<&'a Vec<InputReference>>,
) -> Result<(), Violation> {
    let reference = &resource.template_ref;
    let handed_through = reference
        .options
        .iter()
        .filter(|option| is_given(option.pass_through.as_ref()));
    for input in handed_through.filter_map(|option| option.pass_through.as_ref()) {
        let Some(list) = reference.template_kind().and_then(&inputs) else {
            return Err(Violation::PassThroughKind {
                kind: reference.kind.clone(),
            });
        };
        if !list.iter().any(|known| known.name == *input) {
            return Err(Violation::PassThroughInput {
                input: input.clone(),
            });
        }
    }
    Ok(())
}

fn check_inputs(resource: &BlueprintResource, steps: &Steps<'_>) -> Result<(), Violation> {
    for declared in resource.inputs() {
        let kind = match declared.slot {
            InputSlot::Source => TemplateKind::Source,
            InputSlot::Image => TemplateKind::Image,
            InputSlot::Config => TemplateKind::Config,
            // Any kind of step may be waited for; one that is not there is a warning, as the field came later.
            InputSlot::Deployment | InputSlot::Success => continue,
        };
        let (list, resource) = (declared.slot.list(), resource.name.clone());
        let input = InputReference {
            name: declared.name.to_owned(),
            resource: declared.resource.to_owned(),
        };
        match steps.named(declared.resource) {
            None => {
                return Err(Violation::UnknownProvider {
                    list,
                    resource,
                    input,
                });
            }
            Some(provider) if provider.template_ref.kind != kind.as_str() => {
                return Err(Violation::WrongProvider {
                    list,
                    resource,
                    input,
                    kind: kind.as_str(),
                });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn check_deployment(resource: &BlueprintResource) -> Result<(), Violation> {
    let deploying = resource
        .template_ref
        .template_kind()
        .filter(|kind| kind.echoes_deployment())
        .map(TemplateKind::as_str);
    let resource_name = || resource.name.clone();
    match (deploying, &resource.deployment) {
        (Some(kind), None) => Err(Violation::DeploymentMissing {
            resource: resource_name(),
            kind,
        }),
        (None, Some(_)) => Err(Violation::DeploymentUnexpected {
            resource: resource_name(),
        }),
        (Some(kind), Some(_)) if !resource.configs.is_empty() => Err(Violation::ConfigUnexpected {
            resource: resource_name(),
            kind,
        }),
        _ => Ok(()),
    }
}
