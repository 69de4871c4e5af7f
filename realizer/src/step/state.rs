//! What a walk knows of its steps.
//!
//! There is one [`StepState`] for each step, and only the transitions in this file change it: one for each thing that can
//! happen to a step. A walk asks for what it needs by index of the step.

use std::collections::BTreeMap;

use crate::Blueprint;
use crate::environment::Record;
use crate::environment::site::{Flow, Site};
use crate::step::end::{StepEnd, StepResult};
use crate::step::error::StepError;
use crate::template::context::ResolvedInputs;
use crate::template::judgement::Trial;
use crate::template::outputs::Output;
use crate::values::redaction::Taint;

/// The states of all steps of a blueprint.
pub(crate) struct Steps<'b> {
    blueprint: &'b Blueprint,
    /// By index of the step.
    states: Vec<StepState>,
}

/// What is known of one step.
#[derive(Default)]
struct StepState {
    /// How it ended; none before it has.
    result: Option<StepResult>,
    /// What later steps take.
    output: Option<Output>,
    /// What validations would take if every deployment before them was done and validated.
    prospect: Option<Output>,
    /// Deployment and validation steps only.
    flow: Option<Flow>,
    /// Environments only.
    site: Option<Site>,
    /// Validations only.
    trial: Option<Trial>,
}

impl<'b> Steps<'b> {
    pub(crate) fn new(blueprint: &'b Blueprint) -> Self {
        let states = blueprint.steps.iter().map(|_| StepState::default());
        Self {
            blueprint,
            states: states.collect(),
        }
    }

    /// The walk comes to a step. What a validation hands on, or a deployment that stamps nothing, is what goes in.
    pub(crate) fn begin(&mut self, step: usize) {
        if !self.blueprint.steps[step].validates() {
            return;
        }
        let flow = self.inbound(step);
        let prospect = self.prospective_inputs(step).deployment().cloned();
        let state = &mut self.states[step];
        state.flow = Some(flow);
        state.prospect = prospect;
    }

    /// An environment holds this arrival: either what comes in now, or an earlier one.
    pub(crate) fn find_arrival(
        &mut self,
        step: usize,
        record: Record,
        site: Site,
        is_incoming: bool,
    ) {
        let nearest = BTreeMap::from([(step, record.clone())]);
        let mut lineage = nearest.clone();
        if is_incoming {
            lineage.extend(self.inbound(step).lineage);
        }
        let state = &mut self.states[step];
        state.prospect = record.output();
        state.flow = Some(Flow { nearest, lineage });
        state.site = Some(Site {
            record: Some(record),
            ..site
        });
    }

    /// It cannot be said what an environment holds.
    pub(crate) fn find_unclear(&mut self, step: usize, site: Site) {
        self.states[step].site = Some(site);
    }

    /// A validation was looked at.
    pub(crate) fn judge(&mut self, step: usize, trial: Trial) {
        self.states[step].trial = Some(trial);
    }

    /// A step has ended. This is the one place where what it hands on is set.
    pub(crate) fn settle(&mut self, step: usize, result: StepResult) {
        let spec = &self.blueprint.steps[step];
        let is_passed_through = matches!(result.end, StepEnd::PassedThrough(_));
        if is_passed_through && spec.deploys() {
            self.states[step].flow = Some(self.inbound(step));
        }
        let is_plain = !spec.validates() && !self.blueprint.is_environment(step);
        let state = &mut self.states[step];
        state.output = result.output().cloned();
        if is_passed_through || is_plain {
            state.prospect.clone_from(&state.output);
        }
        state.result = Some(result);
    }

    /// The inputs of a step, as far as they are there.
    pub(crate) fn inputs(&self, step: usize) -> ResolvedInputs<'_> {
        let output = |provider: usize| self.states.get(provider)?.output.as_ref();
        ResolvedInputs::of(&self.blueprint.steps[step], output)
    }

    /// The inputs that a validation would have if every deployment before it was done and validated.
    pub(crate) fn prospective_inputs(&self, step: usize) -> ResolvedInputs<'_> {
        let prospect = |provider: usize| self.states.get(provider)?.prospect.as_ref();
        ResolvedInputs::of(&self.blueprint.steps[step], prospect)
    }

    /// What of the inputs of a step came from Secrets: of those that are there, and for a validation of those that it would
    /// have. What is in an environment stays secret while something else waits for it.
    pub(crate) fn taint(&self, step: usize) -> Taint {
        let mut taint = self.inputs(step).taint();
        if self.blueprint.steps[step].validates() {
            taint = taint.and(&self.prospective_inputs(step).taint());
        }
        let record = self.site(step).and_then(|site| site.record.as_ref());
        match record.and_then(Record::output) {
            Some(output) => taint.and(&output.taint),
            None => taint,
        }
    }

    /// What goes into a step from the environments before it.
    fn inbound(&self, step: usize) -> Flow {
        let mut inbound = Flow::default();
        for provider in self.blueprint.steps[step].deployment_providers() {
            if let Some(flow) = self.flow(provider) {
                inbound.nearest.extend(flow.nearest.clone());
                inbound.lineage.extend(flow.lineage.clone());
            }
        }
        inbound
    }

    pub(crate) fn blueprint(&self) -> &'b Blueprint {
        self.blueprint
    }

    pub(crate) fn result(&self, step: usize) -> Option<&StepResult> {
        self.states[step].result.as_ref()
    }

    pub(crate) fn flow(&self, step: usize) -> Option<&Flow> {
        self.states[step].flow.as_ref()
    }

    pub(crate) fn site(&self, step: usize) -> Option<&Site> {
        self.states[step].site.as_ref()
    }

    pub(crate) fn trial(&self, step: usize) -> Option<&Trial> {
        self.states[step].trial.as_ref()
    }

    /// How all steps ended, in blueprint order. A step that the walk did not come to failed.
    pub(crate) fn into_results(self) -> Vec<StepResult> {
        let not_reached = |step: usize| {
            let resource = self.blueprint.steps[step].name.clone();
            StepResult::without_object(None, StepEnd::Failed(StepError::NotReached { resource }))
        };
        let states = self.states.into_iter().enumerate();
        states
            .map(|(step, state)| state.result.unwrap_or_else(|| not_reached(step)))
            .collect()
    }
}
