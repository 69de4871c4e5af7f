//! From a step to what is submitted for it: template, parameters, rendering, decoration.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::InputSlot;
use serde_json::{Value, json};

use crate::blueprint::{BlueprintStep, OptionTarget, TemplateChoice};
use crate::step::error::{StepError, WaitsFor};
use crate::template::body::Drawn;
use crate::template::context::{Context, ResolvedInputs};
use crate::template::others::{NamedObject, Others, ReadObject, Text};
use crate::template::outputs::Output;
use crate::template::params::{self, Param};
use crate::template::provenance::{self, Basis};
use crate::template::stamp::WantedLabels;
use crate::template::{runs, stamp};
use crate::values::{canonical, matching, redaction};
use crate::{
    Blueprint, ObjectQuery, ObjectRef, Owner, Position, Precondition, Recorded, RenderFailure,
    Rendered, StatusKey, Submission, SubmitFailureKind, Template, TemplateSource, TemplateState,
    YttCall,
};

/// One step about to be submitted.
pub(crate) struct Preparing<'r> {
    pub(crate) owner: &'r Owner,
    pub(crate) blueprint: &'r Blueprint,
    pub(crate) templates: &'r dyn TemplateSource,
    pub(crate) step: &'r BlueprintStep,
    pub(crate) inputs: ResolvedInputs<'r>,
    pub(crate) key: &'r StatusKey,
}

/// What it came to when a step was rendered as far as that goes without the shell.
pub(crate) enum StartOutcome {
    /// The shell has to run ytt.
    Ytt(Arc<Template>, WantedLabels, Box<YttCall>),
    /// It is rendered.
    Rendered(Arc<Template>, Box<Submission>),
    /// An input became the output.
    PassedThrough(Output),
    /// It failed, with the template if that was found.
    Failed(Option<Arc<Template>>, StepError),
    /// It was rendered, as far as that went, and is not submitted.
    HeldStep(Arc<Template>, Box<HeldStep>),
}

/// Why a step is not submitted.
#[derive(Clone, Debug)]
pub(crate) struct HeldStep {
    pub(crate) error: StepError,
    /// The object that it would have written to.
    pub(crate) target: Option<ObjectRef>,
}

impl Preparing<'_> {
    /// Goes as far as it can without the shell.
    pub(crate) fn start(&self) -> StartOutcome {
        let name = match self.choose() {
            Ok(OptionTarget::Template(name)) => name,
            Ok(OptionTarget::PassThrough(input)) => {
                return match self.pass_through(&input) {
                    Ok(output) => StartOutcome::PassedThrough(output),
                    Err(error) => StartOutcome::Failed(None, error),
                };
            }
            Err(error) => return StartOutcome::Failed(None, error),
        };
        match self.fetch(&name) {
            Ok(template) => self.render(template),
            Err(error) => StartOutcome::Failed(None, error),
        }
    }

    /// The template, or the one option that matches best (docs/behaviour/selection.md#options).
    fn choose(&self) -> Result<OptionTarget, StepError> {
        let options = match &self.step.choice {
            TemplateChoice::Named(name) => return Ok(OptionTarget::Template(name.clone())),
            TemplateChoice::Options(options) => options,
        };
        let best = matching::best_matches(options.iter().map(|option| &option.matcher), self.owner)
            .map_err(|(index, error)| StepError::ResolveOption {
                option: options[index].target.name().to_owned(),
                resource: self.step.name.clone(),
                blueprint: self.blueprint.name.clone(),
                cause: error.to_string(),
            })?;
        match best[..] {
            [index] => Ok(options[index].target.clone()),
            _ => Err(StepError::OptionsMatch {
                matching: best
                    .iter()
                    .map(|&index| options[index].target.name().to_owned())
                    .collect(),
                resource: self.step.name.clone(),
                blueprint: self.blueprint.name.clone(),
            }),
        }
    }

    /// The named local input, from the slot that belongs to the step's template kind
    /// (docs/behaviour/selection.md#pass-through).
    fn pass_through(&self, input: &str) -> Result<Output, StepError> {
        let mut missing = self.inputs.missing.iter();
        if missing.any(|input| input.slot == InputSlot::Success) {
            return Err(self.held());
        }
        let slot = match &self.step.template_kind {
            Ok(kind) => InputSlot::of_pass_through(*kind),
            Err(_) => Some(InputSlot::Deployment),
        };
        let Some(slot) = slot else {
            return Ok(Output::NOTHING);
        };
        self.inputs
            .named(slot, input)
            .cloned()
            .ok_or_else(|| StepError::PassThrough {
                input: input.to_owned(),
                declared: self
                    .step
                    .inputs
                    .iter()
                    .any(|declared| declared.slot == slot && declared.local_name == input),
            })
    }

    fn fetch(&self, name: &str) -> Result<Arc<Template>, StepError> {
        let vanished = |kind: &str| StepError::TemplateVanished {
            kind: kind.to_owned(),
            template: name.to_owned(),
        };
        let kind = match &self.step.template_kind {
            Ok(kind) => *kind,
            Err(unknown) => return Err(vanished(&unknown.kind)),
        };
        match self.templates.template(kind, name) {
            TemplateState::Found(template) => Ok(template),
            TemplateState::Missing => Err(vanished(kind.as_str())),
            TemplateState::Unreadable(cause) => Err(StepError::GetTemplate {
                template: name.to_owned(),
                resource: self.step.name.clone(),
                blueprint: self.blueprint.name.clone(),
                cause,
            }),
        }
    }

    fn render(&self, template: Arc<Template>) -> StartOutcome {
        let labels = stamp::step_labels(self.owner, self.blueprint, &self.step.name, &template);
        let context = self.context(&template, &labels);
        let rendered = match template.body.draw(context, &self.step.name) {
            Drawn::Rendered(rendered) => rendered,
            Drawn::Ytt(call) => return StartOutcome::Ytt(template, labels, call),
        };
        match self.submit(&template, &labels, rendered) {
            Ok(submission) => StartOutcome::Rendered(template, Box::new(submission)),
            Err(withheld) => StartOutcome::HeldStep(template, withheld),
        }
    }

    fn context(&self, template: &Template, labels: &WantedLabels) -> Context<'_> {
        let params = self.params(template);
        let params = params.iter();
        let params = params.map(|(name, param)| (*name, &*param.value)).collect();
        Context::new(self.owner.views(), self.step, &params, &self.inputs, labels)
    }

    /// What the outputs of the step are made from, the rendering aside.
    pub(crate) fn basis(&self, template: &Template) -> Basis {
        let params = self.params(template);
        let params: BTreeMap<&str, &Value> = params
            .iter()
            .map(|(name, param)| (*name, &*param.value))
            .collect();
        let attribution = template.attribution.as_ref();
        Basis {
            template: attribution.map_or_else(String::new, |it| it.template.clone()),
            params: provenance::digest(&json!(params)),
            inputs: self.inputs.provenance(self.key),
            wanted: self.wanted(template),
            others: Others::default(),
        }
    }

    /// What to ask for of the objects that the rules read beside the stamped one. A text that is in `known` is as it says
    /// there.
    pub(crate) fn queries(
        &self,
        template: &Template,
        known: &BTreeMap<String, Value>,
    ) -> Vec<Result<ObjectQuery, ReadObject>> {
        let others = template.goodness.others();
        if others.is_empty() {
            return Vec::new();
        }
        let labels = stamp::step_labels(self.owner, self.blueprint, &self.step.name, template);
        let context = self.context(template, &labels);
        let value = |text: &Text| match known.get(&text.text) {
            Some(known) => Ok(known.clone()),
            None => context.render(&text.template),
        };
        let namespace = self.owner.namespace.as_str();
        let queries = others.iter();
        queries
            .map(|other| other.query(&self.step.name, namespace, &value))
            .collect()
    }

    /// What the context holds for the texts that name those objects.
    pub(crate) fn texts_of_others(&self, template: &Template) -> Vec<(String, Value)> {
        let mut texts = template
            .goodness
            .others()
            .iter()
            .flat_map(NamedObject::tagged)
            .peekable();
        if texts.peek().is_none() {
            return Vec::new();
        }
        let labels = stamp::step_labels(self.owner, self.blueprint, &self.step.name, template);
        let context = self.context(template, &labels);
        // What had no value has none later on either: it would be that of another update.
        let value = |text: &Text| {
            let value = context.render(&text.template).unwrap_or(Value::Null);
            (text.text.clone(), value)
        };
        texts.map(value).collect()
    }

    /// What the context holds of the inputs that the object reports.
    fn wanted(&self, template: &Template) -> Vec<Option<Value>> {
        let mut wanted = template.goodness.contexts().peekable();
        if wanted.peek().is_none() {
            return Vec::new();
        }
        let labels = stamp::step_labels(self.owner, self.blueprint, &self.step.name, template);
        let context = self.context(template, &labels);
        wanted
            .map(|input| context.render(&input.context).ok())
            .collect()
    }

    pub(crate) fn params<'p>(&'p self, template: &'p Template) -> BTreeMap<&'p str, Param<'p>> {
        params::merge(
            &template.params,
            &self.blueprint.params,
            &self.step.params,
            &self.owner.params,
        )
    }

    /// Makes a rendering an object to submit.
    ///
    /// With declared inputs missing, the step is rendered all the same: if that fails, the message is the one people
    /// know (docs/behaviour/examples.md#late-output); if it succeeds, the step is held, so that
    /// nothing is stamped from half of its inputs.
    pub(crate) fn submit(
        &self,
        template: &Template,
        labels: &WantedLabels,
        rendered: Rendered,
    ) -> Result<Submission, Box<HeldStep>> {
        let object = rendered
            .and_then(|rendering| {
                stamp::decorate(rendering, self.owner.identity(), labels)
                    .map_err(|error| error.to_string().into())
            })
            .map_err(|failure| {
                let error = self.stamp_error(template, &failure);
                Box::new(HeldStep {
                    error,
                    target: None,
                })
            })?;
        let withheld = |error| {
            let target = stamp::reference(&object);
            Box::new(HeldStep { error, target })
        };
        if !self.inputs.missing.is_empty() {
            return Err(withheld(self.held()));
        }
        let family = stamp::check_submittable(&object, template.lifecycle, labels)
            .map_err(|error| withheld(self.apply_error(&object, error.to_string())))?;
        Ok(Submission {
            resource: self.step.name.clone(),
            name_seed: redaction::name_seed(&object, &self.inputs.taint(), self.key),
            digest: canonical::digest(&object),
            basis: template.body.basis(|| self.context(template, labels)),
            object,
            lifecycle: template.lifecycle,
            family,
            reads: template.reads(),
            precondition: Precondition::None,
            recorded: self.recorded(template),
            adopt: template.adopt,
            refuses_foreign_fields: template.refuses_foreign_fields,
            asks_whose_values: false,
        })
    }

    fn recorded(&self, template: &Template) -> Recorded {
        let status = &self.owner.status;
        let entry = status.resource(&self.step.name);
        Recorded {
            applied: entry.and_then(|entry| entry.applied.clone()),
            runs: runs::known(runs::recorded_of(
                status,
                self.blueprint,
                &self.step.name,
                template,
            )),
            position: Position::default(),
        }
    }

    fn stamp_error(&self, template: &Template, failure: &RenderFailure) -> StepError {
        let starved = self.starved();
        let waits_for = if starved.is_some() {
            WaitsFor::Blueprint
        } else if !self.inputs.missing.is_empty() {
            WaitsFor::Inputs
        } else if failure.passes_by_itself {
            WaitsFor::Retry
        } else {
            WaitsFor::Edit
        };
        let cause = match starved {
            Some(why) => format!("{}; {why}", failure.message),
            None => failure.message.clone(),
        };
        StepError::Stamp {
            template: format!("{}/{}", template.kind, template.name),
            resource: self.step.name.clone(),
            blueprint: self.blueprint.name.clone(),
            cause: self.inputs.taint().scrub(cause),
            waits_for,
        }
    }

    /// Why inputs that are missing will never come, if the blueprint itself says so.
    fn starved(&self) -> Option<String> {
        if self.inputs.missing.is_empty() {
            return None;
        }
        let mut warnings = self.blueprint.warnings().iter();
        let why = warnings.find(|warning| warning.starves(&self.step.name))?;
        Some(why.to_string())
    }

    pub(crate) fn held(&self) -> StepError {
        let missing = self.inputs.missing.iter();
        StepError::InputsMissing {
            resource: self.step.name.clone(),
            inputs: missing.clone().map(|input| input.shown()).collect(),
            providers: missing.map(|input| input.resource.clone()).collect(),
            starved: self.starved(),
        }
    }

    /// For an environment that would tell a secret revision.
    pub(crate) fn keyless(&self, template: &Template) -> StepError {
        let failure = RenderFailure {
            message: "the revision comes from a Secret, and it can be kept in the environment only under the key that \
                      digests of secret values have, which the controller does not know"
                .to_owned(),
            passes_by_itself: true,
        };
        self.stamp_error(template, &failure)
    }

    fn apply_error(&self, object: &Value, cause: String) -> StepError {
        let taint = self.inputs.taint();
        StepError::Apply {
            kind: SubmitFailureKind::Rejected,
            object: taint.scrub(stamp::display_name(object)),
            resource: self.step.name.clone(),
            blueprint: self.blueprint.name.clone(),
            cause: taint.scrub(cause),
        }
    }
}
