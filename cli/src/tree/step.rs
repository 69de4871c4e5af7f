//! The steps: what the blueprint declares, joined with what the status says of it.

use api_types::status::StampedRef;
use api_types::{
    BlueprintResource, BlueprintSpec, Condition, ConditionStatus, ConditionType, Provenance,
    TemplateReference, UnderWay,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use realizer::explanation::{ExplainedStep, Explanation};
use serde::Serialize;

use super::{Below, outputs};

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
    /// What it works on while its outputs are not current.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under_way: Option<UnderWay>,
    /// How many updates wait until the object is good or has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_updates: Option<usize>,
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
    /// `source`, `image`, `config`, `deployment` or `success`; absent when the blueprint could not be read.
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
    /// Whether the object has it as it is rendered now; absent where the template does not say when outputs are good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<bool>,
    /// What made it; as `current`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

/// Characters of an output's value that are shown.
const PREVIEW_CHARS: usize = 96;

impl Output {
    /// The beginning of the value on one line; a text of several lines starts behind YAML's `|`.
    pub fn first_line(&self) -> String {
        Self::line_of(&self.preview)
    }

    /// The same of a preview.
    pub(crate) fn line_of(preview: &str) -> String {
        let mut lines = preview.lines().peekable();
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

/// All steps that are explained. The blueprint knows the local names of inputs, and the template of a step without an entry.
pub(super) fn steps(explanation: &Explanation<'_>, blueprint: Option<&BlueprintSpec>) -> Vec<Step> {
    let entries: Vec<_> = explanation.steps.iter().map(|step| &step.entry).collect();
    let explained = explanation.steps.iter().zip(outputs::shown(&entries));
    explained
        .map(|(explained, outputs)| {
            let mut declared = blueprint.into_iter().flat_map(|spec| &spec.resources);
            let declared = declared.find(|step| step.name == explained.entry.name);
            step(explained, declared, outputs)
        })
        .collect()
}

fn step(
    ExplainedStep {
        entry, waits_for, ..
    }: &ExplainedStep<'_>,
    declared: Option<&BlueprintResource>,
    outputs: Vec<Output>,
) -> Step {
    let template = entry.template_ref.as_ref().map(|template| {
        let (kind, name) = (template.kind.as_deref(), template.name.as_deref());
        format!("{}/{}", kind.unwrap_or_default(), name.unwrap_or_default())
    });
    let told = || {
        let from = entry.inputs.iter().map(|input| Input {
            name: None,
            slot: None,
            from: input.name.clone(),
        });
        from.collect()
    };
    Step {
        name: entry.name.clone(),
        template: template.or_else(|| declared.map(|it| declared_template(&it.template_ref))),
        object: entry.stamped_ref.clone(),
        below: None,
        inputs: declared.map_or_else(told, declared_inputs),
        waiting_for: waits_for.clone(),
        outputs,
        under_way: entry.under_way.clone(),
        waiting_updates: entry
            .updates
            .as_ref()
            .map(|updates| updates.waiting.len())
            .filter(|waiting| *waiting > 0),
        conditions: entry.conditions.clone(),
    }
}

fn declared_template(reference: &TemplateReference) -> String {
    match &reference.name {
        Some(name) => format!("{}/{name}", reference.kind),
        None => format!("{} (one of {})", reference.kind, reference.options.len()),
    }
}

/// Every declared input, in the order of the status: sources, images, deployment, configs, dependsOn.
fn declared_inputs(step: &BlueprintResource) -> Vec<Input> {
    let inputs = step.inputs().map(|input| Input {
        name: Some(input.name.to_owned()).filter(|name| !name.is_empty()),
        slot: Some(input.slot.singular()),
        from: input.resource.to_owned(),
    });
    inputs.collect()
}
