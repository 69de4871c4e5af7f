//! The blueprint: a ClusterSupplyChain or a ClusterDelivery, compiled once per resourceVersion.
//!
//! [`Blueprint`] is the object compiled, [`steps`] are its resources. [`graph`] orders them and says what is wrong with
//! their inputs. [`select`] finds the one blueprint that an owner gets.

pub(crate) mod graph;
mod namespaces;
pub(crate) mod select;
mod steps;

use std::collections::BTreeMap;

use api_types::artifact::MOST_RETAINED;
use api_types::blueprint::ServiceAccountRef;
use api_types::names::{NameError, ObjectName, ResourceName};
use api_types::{
    BlueprintParam, BlueprintSpec, Condition, ConditionStatus, ConditionType, TemplateKind,
};
use serde::Deserialize;
use serde_json::Value;

use crate::values::matching::{MatchError, Matcher};
use crate::{Family, GraphWarning, Owner};

use namespaces::AllowedNamespaces;
pub(crate) use steps::{BlueprintStep, Input, OptionTarget, TemplateChoice};

/// The ServiceAccount that is used where nobody names one, as in Kubernetes.
pub const DEFAULT_SERVICE_ACCOUNT: &str = "default";

/// A compiled blueprint.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// ClusterSupplyChain or ClusterDelivery.
    pub family: Family,
    /// `metadata.name`.
    pub name: ObjectName,
    /// `metadata.uid`; empty when absent.
    pub uid: String,
    /// `metadata.generation`; 0 when absent.
    pub generation: i64,
    pub(crate) matcher: Matcher,
    pub(crate) params: Vec<BlueprintParam>,
    /// How many of the outputs of each step are kept as Artifacts.
    pub(crate) retain: usize,
    pub(crate) steps: Vec<BlueprintStep>,
    /// Indexes of `steps` in the order in which they are submitted.
    pub(crate) order: Vec<usize>,
    /// By index of the step: for an environment, the deployment and validation steps behind it, in submission order; empty
    /// for every other step.
    pub(crate) downstream: Vec<Vec<usize>>,
    /// The condition `Ready` as read.
    pub(crate) ready: Option<Condition>,
    service_account: Option<ServiceAccountRef>,
    allowed_namespaces: AllowedNamespaces,
    warnings: Vec<GraphWarning>,
}

/// An object that cannot be a blueprint; the API server holds no such object.
#[derive(Debug, thiserror::Error)]
pub enum BlueprintError {
    /// `metadata.name` is missing.
    #[error("object has no metadata.name")]
    NameMissing,
    /// `metadata.name` is none.
    #[error("metadata.name: {0}")]
    Name(#[from] NameError),
    /// The spec does not have the shape of the kind.
    #[error("spec of blueprint [{name}] cannot be read: {source}")]
    Shape {
        /// Name of the blueprint.
        name: ObjectName,
        /// What does not fit.
        source: serde_json::Error,
    },
}

impl Blueprint {
    /// Compiles a blueprint.
    ///
    /// Selectors that cannot be evaluated are no error here, since they concern only some owners: the blueprint's own is in
    /// [`Blueprint::warnings`], an option's is told by the step of the owner for which it is evaluated.
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
    /// let sink = (api_types::TemplateKind::Plain, "sink");
    /// assert_eq!(blueprint.template_refs().collect::<Vec<_>>(), [sink]);
    /// assert_eq!(blueprint.warnings().len(), 1, "nothing provides [fetch]");
    /// # Ok::<(), realizer::BlueprintError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BlueprintError`] when the object does not have the shape the schema asks for.
    pub fn compile(family: Family, object: &Value) -> Result<Self, BlueprintError> {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            return Err(BlueprintError::NameMissing);
        }
        let name = ObjectName::try_from(name)?;
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
        let steps = steps::compile(&spec.resources);
        let order = graph::order(&steps);
        let mut warnings: Vec<GraphWarning> = matcher
            .broken()
            .as_ref()
            .map(selector_warning)
            .into_iter()
            .collect();
        warnings.extend(graph::warnings(&steps));
        Ok(Self {
            family,
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            generation: metadata["generation"].as_i64().unwrap_or(0),
            downstream: graph::downstream(&steps, &order),
            order,
            ready: read_ready(object),
            params: spec.params,
            retain: spec.artifacts.and_then(|it| it.retain).map_or(0, retained),
            service_account: spec
                .service_account_ref
                .filter(|account| !account.name.is_empty()),
            allowed_namespaces: AllowedNamespaces::new(spec.allowed_namespaces.as_ref()),
            name,
            matcher,
            steps,
            warnings,
        })
    }

    /// Kind and name of every template named, options included, duplicates left out, in blueprint order. There is no template
    /// of a kind that is not known.
    pub fn template_refs(&self) -> impl Iterator<Item = (TemplateKind, &str)> {
        let mut refs: Vec<(TemplateKind, &str)> = Vec::new();
        for step in &self.steps {
            let Ok(kind) = step.template_kind else {
                continue;
            };
            for name in step.template_names() {
                if !refs.contains(&(kind, name)) {
                    refs.push((kind, name));
                }
            }
        }
        refs.into_iter()
    }

    /// Namespace and name of the ServiceAccount whose rights are used for the owner
    /// (docs/behaviour/service-accounts.md#which).
    ///
    /// The owner's own choice always wins and is always in its own namespace. Where neither names one, it is `default` there.
    pub fn service_account(&self, owner: &Owner, default: &str) -> (String, String) {
        if let Some(name) = &owner.service_account_name {
            return (owner.namespace.clone().into(), name.clone());
        }
        match &self.service_account {
            Some(account) => {
                let namespace = account
                    .namespace
                    .clone()
                    .filter(|namespace| !namespace.is_empty());
                (
                    namespace.unwrap_or_else(|| owner.namespace.clone().into()),
                    account.name.clone(),
                )
            }
            None => (owner.namespace.clone().into(), default.to_owned()),
        }
    }

    /// Whether it is for owners in namespaces with certain labels only, so that these have to be known.
    pub fn asks_for_namespaces(&self) -> bool {
        self.allowed_namespaces.ask()
    }

    /// What keeps owners out of a namespace with these labels, in words; nothing where they are let in
    /// (docs/behaviour/selection.md#namespaces).
    pub fn unmet_by_namespace(&self, labels: &BTreeMap<String, String>) -> Option<String> {
        self.allowed_namespaces.unmet_by(labels)
    }

    /// Whether an owner with these labels could be selected: the owners an event of this blueprint concerns.
    ///
    /// An owner without labels never is (docs/behaviour/selection.md#blueprint).
    pub fn could_match(&self, owner_labels: &BTreeMap<String, String>) -> bool {
        !owner_labels.is_empty() && self.matcher.could_match(owner_labels)
    }

    /// Names of the resources (steps) in the order in which they are submitted: providers before consumers, ties in
    /// blueprint order.
    pub fn submission_order(&self) -> impl Iterator<Item = &ResourceName> {
        self.order.iter().map(|&step| &self.steps[step].name)
    }

    /// The validation steps behind an environment, in submission order; empty for every other step.
    pub(crate) fn validations(&self, step: usize) -> impl Iterator<Item = usize> {
        self.downstream[step]
            .iter()
            .copied()
            .filter(|&step| self.steps[step].validates())
    }

    /// Whether a step has deployments or validations behind it, so that it may be changed only now and then.
    pub(crate) fn is_environment(&self, step: usize) -> bool {
        !self.downstream[step].is_empty()
    }

    /// Whether its own `Ready` is True, without which nothing is realized.
    pub fn is_ready(&self) -> bool {
        self.ready
            .as_ref()
            .is_some_and(|ready| ready.status == ConditionStatus::True)
    }

    /// Whether outputs are kept as Artifacts that nobody needs.
    pub fn retains(&self) -> bool {
        self.retain > 0
    }

    /// Whether it has a resource (step) of this name.
    pub fn has_resource(&self, name: &str) -> bool {
        self.steps.iter().any(|step| step.name == name)
    }

    /// The resources (steps) from which one takes outputs, or that must be good before it, each as often as it is named; none
    /// where there is no step of this name.
    pub fn providers(&self, name: &str) -> impl Iterator<Item = &str> {
        let step = self.steps.iter().find(|step| step.name == name);
        let inputs = step.into_iter().flat_map(|step| &step.inputs);
        inputs.map(|input| input.resource.as_str())
    }

    /// What is wrong with the graph and the selector.
    pub fn warnings(&self) -> &[GraphWarning] {
        &self.warnings
    }
}

fn retained(retain: u32) -> usize {
    usize::try_from(retain.min(MOST_RETAINED)).unwrap_or_default()
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
