//! The blueprint: a ClusterSupplyChain or a ClusterDelivery, compiled once per resourceVersion.

use std::collections::BTreeMap;

use api_types::blueprint::ServiceAccountRef;
use api_types::{
    BlueprintParam, BlueprintResource, BlueprintSpec, Condition, ConditionStatus, ConditionType,
    TemplateReference,
};
use serde::Deserialize;
use serde_json::Value;

use crate::graph;
use crate::matching::{MatchError, Matcher};
use crate::{Family, GraphWarning, Owner};

/// A compiled blueprint.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// ClusterSupplyChain or ClusterDelivery.
    pub family: Family,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`; empty when absent.
    pub uid: String,
    /// `metadata.generation`; 0 when absent.
    pub generation: i64,
    pub(crate) matcher: Matcher,
    pub(crate) params: Vec<BlueprintParam>,
    pub(crate) steps: Vec<BlueprintStep>,
    /// Indexes of `steps` in the order in which they are submitted.
    pub(crate) order: Vec<usize>,
    /// The condition `Ready` as read.
    pub(crate) ready: Option<Condition>,
    service_account: Option<ServiceAccountRef>,
    warnings: Vec<GraphWarning>,
}

/// One resource (step).
#[derive(Clone, Debug)]
pub(crate) struct BlueprintStep {
    pub(crate) name: String,
    pub(crate) template_kind: String,
    pub(crate) choice: TemplateChoice,
    pub(crate) params: Vec<BlueprintParam>,
    /// In the order of the status: sources, images, deployment, configs.
    pub(crate) inputs: Vec<Input>,
}

/// How a step finds its template.
#[derive(Clone, Debug)]
pub(crate) enum TemplateChoice {
    Named(String),
    Options(Vec<CompiledOption>),
}

/// One of several templates, for owners that match.
#[derive(Clone, Debug)]
pub(crate) struct CompiledOption {
    pub(crate) target: OptionTarget,
    pub(crate) matcher: Matcher,
}

/// What an option leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OptionTarget {
    /// The template of this name.
    Template(String),
    /// The local input of this name is handed through.
    PassThrough(String),
}

impl OptionTarget {
    /// How messages call the option.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Template(name) | Self::PassThrough(name) => name,
        }
    }
}

/// One declared input of a step.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) slot: InputSlot,
    /// The name templates use; empty for the deployment.
    pub(crate) local_name: String,
    /// The step that provides it.
    pub(crate) resource: String,
    /// Index of that step, if it exists.
    pub(crate) provider: Option<usize>,
}

/// Where an input appears in the templating context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputSlot {
    Source,
    Image,
    Deployment,
    Config,
}

/// An object that cannot be a blueprint; the API server holds no such object.
#[derive(Debug, thiserror::Error)]
pub enum BlueprintError {
    /// `metadata.name` is missing.
    #[error("object has no metadata.name")]
    NameMissing,
    /// The spec does not have the shape of the kind.
    #[error("spec of blueprint [{name}] cannot be read: {source}")]
    Shape {
        /// Name of the blueprint.
        name: String,
        /// What does not fit.
        source: serde_json::Error,
    },
}

impl Blueprint {
    /// Compiles a blueprint.
    ///
    /// Selectors and options that cannot be evaluated are no error here: they concern only some owners, and are in
    /// [`Blueprint::warnings`].
    ///
    /// ```
    /// use realizer::{Blueprint, Family};
    ///
    /// let object = serde_json::json!({
    ///     "metadata": {"name": "chain"},
    ///     "spec": {"selector": {"type": "web"}, "resources": [
    ///         {"name": "publish", "templateRef": {"kind": "ClusterTemplate", "name": "sink"},
    ///          "sources": [{"name": "code", "resource": "fetch"}]},
    ///     ]},
    /// });
    /// let blueprint = Blueprint::compile(Family::SupplyChain, &object)?;
    /// assert_eq!(blueprint.template_refs().collect::<Vec<_>>(), [("ClusterTemplate", "sink")]);
    /// assert_eq!(blueprint.warnings().len(), 1, "nothing provides [fetch]");
    /// # Ok::<(), realizer::BlueprintError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlueprintError`] when the object does not have the shape the schema asks for.
    pub fn compile(family: Family, object: &Value) -> Result<Self, BlueprintError> {
        let metadata = |field: &str| object.pointer(&format!("/metadata/{field}"));
        let name = metadata("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if name.is_empty() {
            return Err(BlueprintError::NameMissing);
        }
        let spec = match object.get("spec") {
            None | Some(Value::Null) => BlueprintSpec::default(),
            Some(spec) => {
                BlueprintSpec::deserialize(spec).map_err(|source| BlueprintError::Shape {
                    name: name.clone(),
                    source,
                })?
            }
        };
        let matcher = Matcher::new(&spec.owner_selector());
        let steps = compile_steps(&spec.resources);
        let mut warnings: Vec<GraphWarning> = matcher
            .broken()
            .as_ref()
            .map(selector_warning)
            .into_iter()
            .collect();
        warnings.extend(graph::warnings(&steps));
        Ok(Self {
            family,
            uid: metadata("uid")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            generation: metadata("generation").and_then(Value::as_i64).unwrap_or(0),
            order: graph::order(&steps),
            ready: read_ready(object),
            params: spec.params,
            service_account: spec
                .service_account_ref
                .filter(|account| !account.name.is_empty()),
            name,
            matcher,
            steps,
            warnings,
        })
    }

    /// Kind and name of every template named, options included, duplicates left out, in blueprint order.
    pub fn template_refs(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut refs: Vec<(&str, &str)> = Vec::new();
        for step in &self.steps {
            for name in step.template_names() {
                if !refs.contains(&(step.template_kind.as_str(), name)) {
                    refs.push((&step.template_kind, name));
                }
            }
        }
        refs.into_iter()
    }

    /// Namespace and name of the ServiceAccount whose rights are used for the owner (spec 3.9).
    ///
    /// The owner's own choice always wins and is always in its own namespace.
    pub fn service_account(&self, owner: &Owner) -> (String, String) {
        if let Some(name) = &owner.service_account_name {
            return (owner.namespace.clone(), name.clone());
        }
        match &self.service_account {
            Some(account) => {
                let namespace = account
                    .namespace
                    .clone()
                    .filter(|namespace| !namespace.is_empty());
                (
                    namespace.unwrap_or_else(|| owner.namespace.clone()),
                    account.name.clone(),
                )
            }
            None => (owner.namespace.clone(), "default".to_owned()),
        }
    }

    /// Whether an owner with these labels could be selected: the owners an event of this blueprint concerns.
    ///
    /// An owner without labels never is (spec 2.3).
    pub fn could_match(&self, owner_labels: &BTreeMap<String, String>) -> bool {
        !owner_labels.is_empty() && self.matcher.could_match(owner_labels)
    }

    /// Names of the resources (steps) in the order in which they are submitted: providers before consumers, ties in
    /// blueprint order.
    pub fn submission_order(&self) -> impl Iterator<Item = &str> {
        self.order
            .iter()
            .map(|&step| self.steps[step].name.as_str())
    }

    /// Whether its own `Ready` is True, without which nothing is realized.
    pub fn is_ready(&self) -> bool {
        self.ready
            .as_ref()
            .is_some_and(|ready| ready.status == ConditionStatus::True)
    }

    /// Whether it has a resource (step) of this name.
    pub fn has_resource(&self, name: &str) -> bool {
        self.steps.iter().any(|step| step.name == name)
    }

    /// What is wrong with the graph and the selector.
    pub fn warnings(&self) -> &[GraphWarning] {
        &self.warnings
    }
}

impl BlueprintStep {
    /// The templates it may use; pass-through options name none.
    pub(crate) fn template_names(&self) -> impl Iterator<Item = &str> {
        let (named, options): (Option<&str>, &[CompiledOption]) = match &self.choice {
            TemplateChoice::Named(name) => (Some(name), &[]),
            TemplateChoice::Options(options) => (None, options),
        };
        named
            .into_iter()
            .chain(options.iter().filter_map(|option| match &option.target {
                OptionTarget::Template(name) => Some(name.as_str()),
                OptionTarget::PassThrough(_) => None,
            }))
    }
}

fn compile_steps(resources: &[BlueprintResource]) -> Vec<BlueprintStep> {
    let index: BTreeMap<&str, usize> = resources
        .iter()
        .enumerate()
        .rev()
        .map(|(index, resource)| (resource.name.as_str(), index))
        .collect();
    resources
        .iter()
        .map(|resource| BlueprintStep {
            name: resource.name.clone(),
            template_kind: resource.template_ref.kind.clone(),
            choice: compile_choice(&resource.template_ref),
            params: resource.params.clone(),
            inputs: compile_inputs(resource, &index),
        })
        .collect()
}

fn compile_choice(reference: &TemplateReference) -> TemplateChoice {
    if reference.options.is_empty() {
        return TemplateChoice::Named(reference.name.clone().unwrap_or_default());
    }
    let options = reference.options.iter().map(|option| {
        let named = option.name.clone().filter(|name| !name.is_empty());
        CompiledOption {
            target: match (&option.pass_through, named) {
                (Some(input), None) => OptionTarget::PassThrough(input.clone()),
                (_, named) => OptionTarget::Template(named.unwrap_or_default()),
            },
            matcher: Matcher::new(&option.selector),
        }
    });
    TemplateChoice::Options(options.collect())
}

fn compile_inputs(resource: &BlueprintResource, index: &BTreeMap<&str, usize>) -> Vec<Input> {
    let input = |slot, local_name: &str, provider: &str| Input {
        slot,
        local_name: local_name.to_owned(),
        resource: provider.to_owned(),
        provider: index.get(provider).copied(),
    };
    let listed = |slot, references: &[api_types::InputReference]| -> Vec<Input> {
        references
            .iter()
            .map(|reference| input(slot, &reference.name, &reference.resource))
            .collect()
    };
    let mut inputs = listed(InputSlot::Source, &resource.sources);
    inputs.extend(listed(InputSlot::Image, &resource.images));
    inputs.extend(
        resource
            .deployment
            .iter()
            .map(|deployment| input(InputSlot::Deployment, "", &deployment.resource)),
    );
    inputs.extend(listed(InputSlot::Config, &resource.configs));
    inputs
}

fn selector_warning(error: &MatchError) -> GraphWarning {
    GraphWarning::Selector {
        message: error.to_string(),
    }
}

fn read_ready(object: &Value) -> Option<Condition> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions
        .iter()
        .filter_map(|condition| Condition::deserialize(condition).ok())
        .find(|condition| condition.is(ConditionType::Ready))
}

#[cfg(test)]
mod tests;
