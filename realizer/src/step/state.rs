//! What a walk knows of its steps.
//!
//! There is one [`StepState`] for each step, and only the transitions in this file change it: one for each thing that can
//! happen to a step. A walk asks for what it needs by index of the step.

use std::collections::{BTreeMap, BTreeSet};

use api_types::InputSlot;

use crate::Blueprint;
use crate::environment::Record;
use crate::environment::state::{Arrivals, EnvironmentState};
use crate::step::end::{StepEnd, StepResult};
use crate::step::error::StepError;
use crate::template::context::ResolvedInputs;
use crate::template::judgement::ValidationState;
use crate::template::others::Others;
use crate::template::outputs::Output;
use crate::template::updates::{Arrived, Weighed};
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
    arrivals: Option<Arrivals>,
    /// Environments only.
    environment: Option<EnvironmentState>,
    /// Validations only.
    validation: Option<ValidationState>,
    /// What its rules read beside the stamped object; none before they were asked for.
    others: Option<Others>,
    /// Where updates wait: the one that is applied, and those that wait.
    updates: Option<Arrived>,
    /// What follows from how the applied one went.
    weighed: Option<Weighed>,
    /// Whether what it hands on is known from a status that may be behind.
    is_unconfirmed: bool,
    /// Whether its object was found to hold what such outputs make of it, or not to be there.
    is_confirmed: bool,
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
        let arrivals = self.inbound(step);
        let prospect = self.prospective_inputs(step).deployment().cloned();
        let state = &mut self.states[step];
        state.arrivals = Some(arrivals);
        state.prospect = prospect;
    }

    /// An environment holds this arrival: either what comes in now, or an earlier one.
    pub(crate) fn find_arrival(
        &mut self,
        step: usize,
        record: Record,
        found: EnvironmentState,
        is_incoming: bool,
    ) {
        let nearest = BTreeMap::from([(step, record.clone())]);
        let mut lineage = nearest.clone();
        if is_incoming {
            lineage.extend(self.inbound(step).lineage);
        }
        let state = &mut self.states[step];
        state.prospect = record.output();
        state.arrivals = Some(Arrivals { nearest, lineage });
        state.environment = Some(EnvironmentState {
            record: Some(record),
            ..found
        });
    }

    /// It cannot be said what an environment holds.
    pub(crate) fn find_unclear(&mut self, step: usize, found: EnvironmentState) {
        self.states[step].environment = Some(found);
    }

    /// A validation was looked at.
    pub(crate) fn judge(&mut self, step: usize, state: ValidationState) {
        self.states[step].validation = Some(state);
    }

    /// The objects that its rules read were asked for.
    pub(crate) fn find_others(&mut self, step: usize, others: Others) {
        self.states[step].others = Some(others);
    }

    /// They go with another rendering than the one that is read now.
    pub(crate) fn forget_others(&mut self, step: usize) {
        self.states[step].others = None;
    }

    /// An update is on its way to the object.
    pub(crate) fn take_up(&mut self, step: usize, updates: Arrived) {
        self.states[step].updates = Some(updates);
    }

    /// The walk is done with it. Its renderings may be large.
    pub(crate) fn put_down(&mut self, step: usize) -> Option<Arrived> {
        self.states[step].updates.take()
    }

    /// It is known how the update went.
    pub(crate) fn weigh(&mut self, step: usize, weighed: Weighed) {
        self.states[step].weighed = Some(weighed);
    }

    /// What a step hands on is known from status alone, and something newer may have been handed on.
    pub(crate) fn mark_unconfirmed(&mut self, step: usize) {
        self.states[step].is_unconfirmed = true;
    }

    /// The object of a step holds nothing newer than what goes in.
    pub(crate) fn confirm(&mut self, step: usize) {
        self.states[step].is_confirmed = true;
    }

    /// The providers of a step of which it is not known whether something newer than what they hand on was handed on.
    pub(crate) fn unconfirmed_providers(&self, step: usize) -> Vec<usize> {
        let inputs = self.blueprint.steps[step].inputs.iter();
        let values = inputs.filter(|input| input.slot != InputSlot::Success);
        let mut providers: Vec<usize> = values
            .filter_map(|input| input.provider)
            .filter(|&provider| self.states[provider].is_unconfirmed)
            .collect();
        providers.sort_unstable();
        providers.dedup();
        providers
    }

    /// Whether no object holds anything newer than what status tells.
    pub(crate) fn is_all_confirmed(&self) -> bool {
        (0..self.states.len()).all(|step| {
            let is_passed_through = || {
                let result = self.result(step);
                result.is_some_and(|result| matches!(result.end, StepEnd::PassedThrough(_)))
            };
            self.states[step].is_confirmed
                || self.unconfirmed_providers(step).is_empty()
                // Status tells what is to come before these two are changed.
                || self.blueprint.is_environment(step)
                || self.blueprint.steps[step].validates()
                || is_passed_through()
        })
    }

    /// A step has ended. This is the one place where what it hands on is set.
    pub(crate) fn settle(&mut self, step: usize, result: StepResult) {
        let spec = &self.blueprint.steps[step];
        let is_passed_through = matches!(result.end, StepEnd::PassedThrough(_));
        if is_passed_through && spec.deploys() {
            self.states[step].arrivals = Some(self.inbound(step));
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
        ResolvedInputs::of(&self.blueprint.steps[step], output, |provider| {
            self.is_good(provider)
        })
    }

    /// The inputs that a validation would have if every deployment before it was done and validated.
    pub(crate) fn prospective_inputs(&self, step: usize) -> ResolvedInputs<'_> {
        let prospect = |provider: usize| self.states.get(provider)?.prospect.as_ref();
        ResolvedInputs::of(&self.blueprint.steps[step], prospect, |provider| {
            self.is_good(provider)
        })
    }

    /// Whether a step is good as it is rendered now. What it hands on may be of an earlier rendering.
    fn is_good(&self, step: usize) -> bool {
        let mut asked = BTreeSet::new();
        let mut next = vec![step];
        while let Some(step) = next.pop() {
            if !asked.insert(step) {
                continue;
            }
            let Some(result) = self.result(step).filter(|result| result.is_good()) else {
                return false;
            };
            next.extend(self.good_by(step, &result.end));
        }
        true
    }

    /// The steps that must be good as well: those whose outputs are passed through, which may be kept from before, and the
    /// environments of a validation, which may hold an earlier arrival.
    fn good_by(&self, step: usize, end: &StepEnd) -> Vec<usize> {
        let spec = &self.blueprint.steps[step];
        let arrivals = self.arrivals(step).filter(|_| spec.validates());
        match (end, arrivals) {
            (StepEnd::PassedThrough(_), _) => spec
                .inputs
                .iter()
                .filter_map(|input| input.provider)
                .collect(),
            (_, Some(arrivals)) => arrivals.nearest.keys().copied().collect(),
            (StepEnd::Submitted(_) | StepEnd::Failed(_), None) => Vec::new(),
        }
    }

    /// What of the inputs of a step came from Secrets: of those that are there, and for a validation of those that it would
    /// have. What is in an environment stays secret while something else waits for it.
    pub(crate) fn taint(&self, step: usize) -> Taint {
        let mut taint = self.inputs(step).taint();
        if self.blueprint.steps[step].validates() {
            taint = taint.and(&self.prospective_inputs(step).taint());
        }
        let found = self.environment(step);
        let record = found.and_then(|found| found.record.as_ref());
        match record.and_then(Record::output) {
            Some(output) => taint.and(&output.taint),
            None => taint,
        }
    }

    /// What goes into a step from the environments before it.
    fn inbound(&self, step: usize) -> Arrivals {
        let mut inbound = Arrivals::default();
        for provider in self.blueprint.steps[step].deployment_providers() {
            if let Some(arrivals) = self.arrivals(provider) {
                inbound.nearest.extend(arrivals.nearest.clone());
                inbound.lineage.extend(arrivals.lineage.clone());
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

    pub(crate) fn arrivals(&self, step: usize) -> Option<&Arrivals> {
        self.states[step].arrivals.as_ref()
    }

    pub(crate) fn environment(&self, step: usize) -> Option<&EnvironmentState> {
        self.states[step].environment.as_ref()
    }

    pub(crate) fn others(&self, step: usize) -> Option<&Others> {
        self.states[step].others.as_ref()
    }

    pub(crate) fn taken_up(&self, step: usize) -> Option<&Arrived> {
        self.states[step].updates.as_ref()
    }

    /// How it went and what follows, at the end of the walk.
    pub(crate) fn take_weighed(&mut self) -> Vec<Option<Weighed>> {
        let states = self.states.iter_mut();
        states.map(|state| state.weighed.take()).collect()
    }

    pub(crate) fn validation(&self, step: usize) -> Option<&ValidationState> {
        self.states[step].validation.as_ref()
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

#[cfg(test)]
mod tests;
