//! The resources (steps) of a blueprint.

use std::collections::BTreeMap;

use api_types::names::ResourceName;
use api_types::templates::UnknownTemplateKind;
use api_types::{BlueprintParam, BlueprintResource, InputSlot, TemplateKind, TemplateReference};

use crate::values::matching::{Candidate, Matched, Matcher};

/// One resource (step).
#[derive(Clone, Debug)]
pub(crate) struct BlueprintStep {
    pub(crate) name: ResourceName,
    /// Of the template and of all options. The API server may hold a blueprint with a kind that nobody knows.
    pub(crate) template_kind: Result<TemplateKind, UnknownTemplateKind>,
    pub(crate) choice: TemplateChoice,
    pub(crate) params: Vec<BlueprintParam>,
    /// In the order of the status: sources, images, deployment, configs, dependsOn.
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
    /// The name templates use; empty for the deployment and for the success of a step.
    pub(crate) local_name: String,
    /// The step that provides it.
    pub(crate) resource: ResourceName,
    /// Index of that step, if it exists.
    pub(crate) provider: Option<usize>,
}

impl Input {
    /// How messages call it.
    pub(crate) fn shown(&self) -> String {
        self.slot.name_of(&self.local_name).to_owned()
    }
}

impl BlueprintStep {
    /// Whether it deploys: what it writes to is an environment if validations are behind it.
    pub(crate) fn deploys(&self) -> bool {
        self.template_kind == Ok(TemplateKind::Deployment)
    }

    /// Whether it validates what is deployed.
    pub(crate) fn validates(&self) -> bool {
        self.template_kind == Ok(TemplateKind::Validation)
    }

    /// The steps whose deployment it takes, as deployment or cast into a source.
    pub(crate) fn deployment_providers(&self) -> impl Iterator<Item = usize> {
        self.inputs
            .iter()
            .filter(|input| matches!(input.slot, InputSlot::Deployment | InputSlot::Source))
            .filter_map(|input| input.provider)
    }

    /// What each option says of an owner; nothing where the template is named.
    pub(crate) fn weigh_options<'a>(&'a self, owner: &'a impl Matched) -> Vec<Candidate<'a>> {
        let options: &[CompiledOption] = match &self.choice {
            TemplateChoice::Named(_) => &[],
            TemplateChoice::Options(options) => options,
        };
        let options = options.iter().map(|option| Candidate {
            name: option.target.name(),
            fit: option.matcher.matches(owner),
        });
        options.collect()
    }

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

/// Compiles the resources of a blueprint; inputs know the index of their provider.
pub(super) fn compile(resources: &[BlueprintResource]) -> Vec<BlueprintStep> {
    let index: BTreeMap<&str, usize> = resources
        .iter()
        .enumerate()
        .rev()
        .map(|(index, resource)| (resource.name.as_str(), index))
        .collect();
    resources
        .iter()
        .map(|resource| BlueprintStep {
            name: resource.name.as_str().into(),
            template_kind: resource.template_ref.kind.parse(),
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
    let inputs = resource.inputs().map(|input| Input {
        slot: input.slot,
        local_name: input.name.to_owned(),
        resource: input.resource.into(),
        provider: index.get(input.resource).copied(),
    });
    inputs.collect()
}
