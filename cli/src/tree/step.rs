//! The steps: what the blueprint declares, joined with what the status says of it.

use std::collections::BTreeSet;

use api_types::status::StampedRef;
use api_types::{
    BlueprintResource, BlueprintSpec, Condition, ConditionStatus, ConditionType, ResourceStatus,
    TemplateReference,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use realizer::Family;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::{Below, TreeError, outputs};

/// One step of the blueprint.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Name of the step.
    pub name: String,
    /// `<kind>/<name>` of the template; only the kind when it is chosen per owner and was not chosen yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The object that was last submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<StampedRef>,
    /// What that object says of itself, and what stands below it; only of kinds that are looked into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<Below>,
    /// What it takes, and from where.
    pub inputs: Vec<Input>,
    /// The steps whose outputs it takes and that have none yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<String>,
    /// What it gives.
    pub outputs: Vec<Output>,
    /// `ResourceSubmitted`, `Healthy`, `Ready`; empty when nothing was done about the step yet.
    pub conditions: Vec<Condition>,
}

/// One input of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Local name, as templates use it; absent when the blueprint could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `source`, `image`, `config` or `deployment`; absent when the blueprint could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<&'static str>,
    /// The step it comes from.
    pub from: String,
}

/// One output of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// `url`, `revision`, `image` or `config`.
    pub name: String,
    /// The first bytes of the value, as YAML; `<redacted>` when it comes from a Secret.
    pub preview: String,
    /// Digest of the whole value; empty, and absent in JSON, for the outputs of a Runnable, which are whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// When the value last changed.
    pub last_transition_time: Time,
}

/// Characters of an output's value that are shown.
const PREVIEW_CHARS: usize = 96;

impl Output {
    /// The beginning of the value on one line; a text of several lines starts behind YAML's `|`.
    pub fn first_line(&self) -> String {
        let mut lines = self.preview.lines().peekable();
        if lines
            .peek()
            .is_some_and(|line| line.starts_with(['|', '>']))
        {
            lines.next();
        }
        let line = lines.next().unwrap_or_default().trim_start();
        let cut = line.chars().count() > PREVIEW_CHARS || lines.next().is_some();
        let shown: String = line.chars().take(PREVIEW_CHARS).collect();
        if cut { format!("{shown} …") } else { shown }
    }
}

impl Step {
    /// Its condition of this type.
    pub fn condition(&self, type_: ConditionType) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.is(type_))
    }

    /// What its condition `Ready` says; unknown as long as there is none.
    pub fn status(&self) -> ConditionStatus {
        self.condition(ConditionType::Ready)
            .map_or(ConditionStatus::Unknown, |ready| ready.status)
    }
}

/// What the blueprint says about its steps.
pub(super) struct Declared {
    pub(super) spec: BlueprintSpec,
    /// Names of the steps in the order of submission.
    order: Vec<String>,
}

impl Declared {
    pub(super) fn read(family: Family, object: &Value) -> Result<Self, TreeError> {
        let compiled = realizer::Blueprint::compile(family, object)?;
        let order = compiled
            .submission_order()
            .map(ToString::to_string)
            .collect();
        let spec = BlueprintSpec::deserialize(&object["spec"]).map_err(|source| {
            realizer::BlueprintError::Shape {
                name: compiled.name.clone(),
                source,
            }
        })?;
        Ok(Self { spec, order })
    }

    /// The steps in the order of submission.
    fn steps(&self) -> impl Iterator<Item = &BlueprintResource> {
        self.order
            .iter()
            .filter_map(|name| self.spec.resources.iter().find(|step| &step.name == name))
    }
}

/// All steps in the order of submission; steps that the blueprint no longer has come last.
pub(super) fn steps(entries: Vec<ResourceStatus>, declared: Option<&Declared>) -> Vec<Step> {
    let mut reported = reported(entries);
    let mut steps: Vec<Step> = declared
        .into_iter()
        .flat_map(Declared::steps)
        .map(|declared| {
            let found = reported.iter().position(|step| step.name == declared.name);
            let step = found
                .map(|found| reported.remove(found))
                .unwrap_or_default();
            as_declared(step, declared)
        })
        .collect();
    steps.append(&mut reported);
    note_missing_inputs(&mut steps);
    steps
}

fn note_missing_inputs(steps: &mut [Step]) {
    let gives: BTreeSet<String> = steps
        .iter()
        .filter(|step| !step.outputs.is_empty())
        .map(|step| step.name.clone())
        .collect();
    for step in steps {
        let missing = step
            .inputs
            .iter()
            .filter(|input| input.from == step.name || !gives.contains(&input.from));
        step.waiting_for = missing.map(|input| input.from.clone()).collect();
        step.waiting_for.dedup();
    }
}

fn reported(entries: Vec<ResourceStatus>) -> Vec<Step> {
    let outputs = outputs::shown(&entries);
    entries
        .into_iter()
        .zip(outputs)
        .map(|(entry, outputs)| Step {
            name: entry.name,
            template: entry.template_ref.map(|template| {
                format!(
                    "{}/{}",
                    template.kind.unwrap_or_default(),
                    template.name.unwrap_or_default()
                )
            }),
            object: entry.stamped_ref,
            below: None,
            inputs: entry
                .inputs
                .into_iter()
                .map(|input| Input {
                    name: None,
                    slot: None,
                    from: input.name,
                })
                .collect(),
            waiting_for: Vec::new(),
            outputs,
            conditions: entry.conditions,
        })
        .collect()
}

/// The blueprint knows the local names of inputs, and the template of a step that has no entry yet.
fn as_declared(step: Step, declared: &BlueprintResource) -> Step {
    Step {
        name: declared.name.clone(),
        template: step
            .template
            .or_else(|| Some(declared_template(&declared.template_ref))),
        inputs: declared_inputs(declared),
        ..step
    }
}

fn declared_template(reference: &TemplateReference) -> String {
    match &reference.name {
        Some(name) => format!("{}/{name}", reference.kind),
        None => format!("{} (one of {})", reference.kind, reference.options.len()),
    }
}

/// Every declared input, in the order of the status: sources, images, deployment, configs.
fn declared_inputs(step: &BlueprintResource) -> Vec<Input> {
    let inputs = step.inputs().map(|input| Input {
        name: Some(input.name.to_owned()).filter(|name| !name.is_empty()),
        slot: Some(input.slot.singular()),
        from: input.resource.to_owned(),
    });
    inputs.collect()
}
