//! One walk over the steps of a blueprint for one owner.
//!
//! [`realization`] is the machine: it asks for one thing after another and is answered. [`prepare`] brings a step to its
//! rendering: it chooses the template, renders it and decorates the object. Between the rendering and its submission stand
//! the gates of the step ([`gate`]): each looks at what is there and lets the rendering pass, or holds it. [`lock`] is that
//! of environments, [`validation`] that of validations, [`updates`] that of updates that wait, [`unconfirmed`] that of
//! steps into which an output goes that only status knows, [`family`] that of other immutable objects. [`observe`] makes the end
//! of the step from what became of the submission, and of the objects that the rules read beside it ([`others`]). [`keep`] says
//! which outputs are kept outside of status. [`conclusion`] ends the walk: it says what is to be deleted ([`orphans`])
//! and what to report.

pub(crate) mod conclusion;
mod doubt;
mod family;
mod gate;
mod keep;
mod lock;
mod observe;
mod orphans;
mod others;
mod prepare;
pub(crate) mod realization;
mod unconfirmed;
mod updates;
mod validation;

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::ProvenanceInput;
use api_types::runnable::RunResult;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::step::end::{StepEnd, StepResult};
use crate::step::state::Steps;
use crate::template::context::ResolvedInputs;
use crate::template::others::Others;
use crate::template::outputs::Output;
use crate::template::params::Param;
use crate::template::provenance::{self, Basis};
use crate::template::runs;
use crate::template::stamp;
use crate::walk::observe::Observing;
use crate::walk::prepare::{HeldStep, Preparing};
use crate::{
    Blueprint, KnownArtifacts, Observation, Observed, Owner, StatusKey, Submission, SubmitFailure,
    Template, TemplateSource,
};

/// What a walk goes by, and what it knows of its steps.
struct Walk<'a> {
    owner: &'a Owner,
    blueprint: &'a Blueprint,
    templates: &'a dyn TemplateSource,
    now: Time,
    key: StatusKey,
    steps: Steps<'a>,
    /// The Artifacts of the owner.
    artifacts: KnownArtifacts,
    /// Whether more may have been handed on than the status tells.
    is_status_behind: bool,
}

/// A step that has a template.
#[derive(Clone)]
struct At {
    /// Index of the step.
    step: usize,
    template: Arc<Template>,
}

impl Walk<'_> {
    /// A validation takes what it would have if all before it succeeded: so its object is found, and judged, even while
    /// its input is not there any more.
    fn preparing(&self, step: usize) -> Preparing<'_> {
        let inputs = if self.blueprint.steps[step].validates() {
            self.steps.prospective_inputs(step)
        } else {
            self.steps.inputs(step)
        };
        self.preparing_with(step, inputs)
    }

    fn preparing_with<'s>(&'s self, step: usize, inputs: ResolvedInputs<'s>) -> Preparing<'s> {
        Preparing {
            owner: self.owner,
            blueprint: self.blueprint,
            templates: self.templates,
            step: &self.blueprint.steps[step],
            inputs,
            key: &self.key,
        }
    }

    fn observing<'s>(&'s self, at: &'s At) -> Observing<'s> {
        let spec = &self.blueprint.steps[at.step];
        let status = &self.owner.status;
        let attributed = at.template.is_attributed();
        let (basis, deployment) = self.basis_of_update(at).map_or_else(
            || {
                let deployment = self.steps.inputs(at.step).deployment().cloned();
                (attributed.then(|| self.basis(at)), deployment)
            },
            |(basis, deployment)| (Some(basis), deployment),
        );
        Observing {
            now: &self.now,
            basis,
            deployment,
            blueprint: &self.blueprint.name,
            step: &spec.name,
            template: &at.template,
            taint: self.steps.taint(at.step),
            key: &self.key,
            previous: status.resource(&spec.name),
            recorded: runs::recorded_of(status, self.blueprint, &spec.name, &at.template),
        }
    }

    /// What the outputs of a step are made from.
    fn basis(&self, at: &At) -> Basis {
        let preparing = self.preparing_with(at.step, self.steps.inputs(at.step));
        Basis {
            others: self.others_of(at),
            ..preparing.basis(&at.template)
        }
    }

    fn others_of(&self, at: &At) -> Others {
        self.steps.others(at.step).cloned().unwrap_or_default()
    }

    /// What goes into a step whose outputs are tied to what made them.
    fn inputs_of_attributed(&self, step: usize) -> Vec<ProvenanceInput> {
        let template = self
            .steps
            .result(step)
            .and_then(|result| result.template.as_ref());
        match template.filter(|template| template.is_attributed()) {
            Some(_) => self.steps.inputs(step).provenance(&self.key),
            None => Vec::new(),
        }
    }

    /// What goes on downstream while the object of a step is not good: its last good outputs. What is in an environment is
    /// said by its record alone.
    fn last_good(&self, step: usize, template: &Template) -> Option<Output> {
        let status = &self.owner.status;
        let name = &self.blueprint.steps[step].name;
        let may = status.is_of(&self.blueprint.name) && !self.blueprint.is_environment(step);
        let entry = status.resource(name).filter(|_| may)?;
        provenance::last_good(entry, template, &self.steps.taint(step), &self.artifacts)
    }

    /// How a step ended, and what it hands on all the same.
    fn settle(&mut self, step: usize, result: StepResult) {
        let result = self.weigh_updates(step, result);
        let template = result.template.as_ref();
        let attributed = template.filter(|template| template.is_attributed());
        let lacks = attributed.filter(|_| result.output().is_none());
        let earlier = lacks.and_then(|_| result.end.earlier().cloned());
        let last_good = || lacks.and_then(|template| self.last_good(step, template));
        let last_good = if earlier.is_none() { last_good() } else { None };
        let is_unconfirmed = self.is_status_behind
            && match (&last_good, lacks) {
                (Some(output), Some(template)) => {
                    !self.is_borne_out(step, template, &result, output)
                }
                _ => {
                    matches!(result.end, StepEnd::PassedThrough(_))
                        && !self.steps.unconfirmed_providers(step).is_empty()
                }
            };
        let kept = earlier.or(last_good).or_else(|| result.kept.clone());
        self.steps.settle(step, StepResult { kept, ..result });
        if is_unconfirmed {
            self.steps.mark_unconfirmed(step);
        }
    }

    /// Whether the object, as we made it, reports these outputs still, or status tells how every run has ended: the step has
    /// come to nothing newer then.
    fn is_borne_out(
        &self,
        step: usize,
        template: &Template,
        result: &StepResult,
        output: &Output,
    ) -> bool {
        match &result.end {
            StepEnd::Submitted(submitted) if template.lifecycle.is_immutable() => {
                self.has_told_all_runs(step, &submitted.observed)
            }
            StepEnd::Submitted(submitted) => {
                let observed = &submitted.observed;
                submitted.is_of_present
                    && observed.unchanged
                    && output.is_reported(template, &observed.object, &self.steps.taint(step))
            }
            StepEnd::PassedThrough(_) | StepEnd::Failed(_) => false,
        }
    }

    /// Whether status knows this run, and how it and all before it have ended.
    fn has_told_all_runs(&self, step: usize, newest: &Observed) -> bool {
        let entry = self.owner.status.resource(&self.blueprint.steps[step].name);
        let runs = entry.map_or(&[][..], |entry| &entry.runs);
        let uid = newest.object["metadata"]["uid"].as_str();
        runs.iter().any(|run| Some(run.uid.as_str()) == uid)
            && runs.iter().all(|run| run.result != RunResult::Running)
    }

    /// The steps whose outputs a step misses, and the parameters that its template has.
    fn given(&self, step: usize) -> (Vec<String>, BTreeMap<String, Param<'static>>) {
        let preparing = self.preparing_with(step, self.steps.inputs(step));
        let missing = preparing.inputs.missing.iter();
        let mut waits_for: Vec<String> = missing.map(|input| input.resource.to_string()).collect();
        waits_for.dedup();
        let result = self.steps.result(step);
        let template = result.and_then(|result| result.template.as_ref());
        let params = template.map(|template| preparing.params(template));
        let params = params.into_iter().flatten();
        let params = params.map(|(name, param)| (name.to_owned(), param.into_owned()));
        (waits_for, params.collect())
    }

    /// The end of a step whose place could not be looked at.
    fn not_seen(&self, at: &At, looked: &Submission, failure: SubmitFailure) -> StepResult {
        let observing = self.observing(at);
        at.ended(
            observing.observe(looked, Observation::Failed(failure)),
            looked,
        )
    }
}

impl At {
    /// The step ended so, with this object.
    fn ended(&self, end: StepEnd, submission: &Submission) -> StepResult {
        StepResult {
            template: Some(Arc::clone(&self.template)),
            end,
            target: stamp::reference(&submission.object),
            kept: None,
        }
    }

    /// The step was not submitted.
    fn withheld(&self, withheld: HeldStep) -> StepResult {
        StepResult {
            template: Some(Arc::clone(&self.template)),
            end: StepEnd::Failed(withheld.error),
            target: withheld.target,
            kept: None,
        }
    }
}
