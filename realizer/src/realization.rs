//! The ask/feed machine: one walk over the steps of a blueprint for one owner.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::conclusion::Conclusion;
use crate::context::ResolvedInputs;
use crate::observe::Observing;
use crate::outputs::Output;
use crate::prepare::{Asked, Begun, Preparing, Withheld};
use crate::step_end::{StepEnd, StepResult};
use crate::{
    Blueprint, KnownObject, Looked, Observation, Owner, Rendered, Step, Template, TemplateSource, stamp,
};

/// One walk over the steps of a blueprint for one owner.
///
/// Steps are taken in topological order, one submission at a time, because one may stamp what the next one's object
/// uses. An error in one step does not stop the walk.
///
/// ```
/// # use std::sync::Arc;
/// # use realizer::*;
/// # struct Templates(Arc<Template>);
/// # impl TemplateSource for Templates {
/// #     fn template(&self, _: &str, _: &str) -> TemplateState { TemplateState::Found(Arc::clone(&self.0)) }
/// # }
/// # let template = Template::compile(&serde_json::json!({
/// #     "apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate", "metadata": {"name": "sink"},
/// #     "spec": {"template": {"apiVersion": "v1", "kind": "ConfigMap",
/// #         "metadata": {"name": "$(workload.metadata.name)$-sink"}}},
/// # })).unwrap();
/// # let blueprint = Blueprint::compile(Family::SupplyChain, &serde_json::json!({
/// #     "metadata": {"name": "chain"}, "spec": {"selector": {"type": "web"}, "resources": [
/// #         {"name": "publish", "templateRef": {"kind": "ClusterTemplate", "name": "sink"}}]},
/// # })).unwrap();
/// # let owner = Owner::parse(Family::SupplyChain, Arc::new(serde_json::json!({
/// #     "metadata": {"namespace": "dev", "name": "app", "uid": "u"}}))).unwrap();
/// # let templates = Templates(Arc::new(template));
/// # let now = jiff::Timestamp::UNIX_EPOCH;
/// let mut realization = Realization::new(&owner, &blueprint, &templates, now);
/// loop {
///     match realization.next_step() {
///         Step::Render(_) => realization.record_rendered(Err("no ytt here".to_owned())),
///         Step::Submit(submission) => {
///             assert_eq!(submission.object["metadata"]["name"], "app-sink");
///             let observed = Observed {
///                 object: submission.object,
///                 qualified_resource: Some("configmaps".to_owned()),
///                 namespaced: true,
///                 sequence: 0,
///                 digest: None,
///                 version: 0,
///                 terminating: false,
///             };
///             realization.record_observed(Observation::Object { observed, write: Write::Created });
///         }
///         Step::Look(_) => realization.record_looked(Ok(Vec::new())),
///         Step::Done => break,
///     }
/// }
/// let conclusion = realization.conclude(&[]);
/// assert!(conclusion.removals().is_empty());
/// assert_eq!(conclusion.report(&[]).reason, "Ready");
/// ```
pub struct Realization<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) blueprint: &'a Blueprint,
    pub(crate) templates: &'a dyn TemplateSource,
    pub(crate) now: Time,
    /// By index of the step.
    pub(crate) results: Vec<Option<StepResult>>,
    /// By index of the step; what later steps take.
    outputs: Vec<Option<Output>>,
    /// Position in `blueprint.order`.
    position: usize,
    /// What was asked and not answered yet, with the index of the step.
    outstanding: Option<(usize, Asked)>,
}

impl<'a> Realization<'a> {
    /// Starts a walk. `now` is for transition times.
    pub fn new(
        owner: &'a Owner,
        blueprint: &'a Blueprint,
        templates: &'a dyn TemplateSource,
        now: Timestamp,
    ) -> Self {
        let steps = blueprint.steps.len();
        Self {
            owner,
            blueprint,
            templates,
            now: Time(now),
            results: (0..steps).map(|_| None).collect(),
            outputs: vec![None; steps],
            position: 0,
            outstanding: None,
        }
    }

    /// What is needed next. Asked again without an answer in between, it says the same again.
    pub fn next_step(&mut self) -> Step {
        loop {
            if let Some((_, asked)) = &self.outstanding {
                return asked.ask.clone();
            }
            let Some(&step) = self.blueprint.order.get(self.position) else {
                return Step::Done;
            };
            self.position += 1;
            match self.preparing(step).begin() {
                Begun::Asked(asked) => self.outstanding = Some((step, asked)),
                Begun::PassedThrough(output) => {
                    self.outputs[step] = Some(output.clone());
                    self.finish_step(step, None, StepEnd::PassedThrough(output));
                }
                Begun::Failed(template, error) => {
                    self.finish_step(step, template, StepEnd::Failed(error));
                }
                Begun::Withheld(template, withheld) => {
                    self.withhold_step(step, template, withheld);
                }
            }
        }
    }

    /// Answers [`Step::Render`]; without one outstanding, nothing happens.
    pub fn record_rendered(&mut self, rendered: Rendered) {
        let Some((step, asked)) = self
            .outstanding
            .take_if(|(_, asked)| matches!(asked.ask, Step::Render(_)))
        else {
            return;
        };
        match self
            .preparing(step)
            .submit(&asked.template, &asked.labels, rendered)
        {
            Ok(submission) => {
                self.outstanding = Some((
                    step,
                    Asked {
                        ask: Step::Submit(submission),
                        ..asked
                    },
                ));
            }
            Err(withheld) => self.withhold_step(step, asked.template, withheld),
        }
    }

    /// Answers [`Step::Look`]; without one outstanding, nothing happens.
    pub fn record_looked(&mut self, looked: Looked) {
        drop(looked);
    }

    /// Answers [`Step::Submit`]; without one outstanding, nothing happens.
    pub fn record_observed(&mut self, observation: Observation) {
        let Some((step, asked)) = self
            .outstanding
            .take_if(|(_, asked)| matches!(asked.ask, Step::Submit(_)))
        else {
            return;
        };
        let Step::Submit(submission) = &asked.ask else {
            return;
        };
        let spec = &self.blueprint.steps[step];
        let observing = Observing {
            blueprint: &self.blueprint.name,
            step: &spec.name,
            template: &asked.template,
            inputs: ResolvedInputs::of(spec, &self.outputs),
        };
        let end = observing.observe(submission, observation);
        self.outputs[step] = end.output().cloned();
        let wanted = stamp::reference(&submission.object);
        self.results[step] = Some(StepResult {
            template: Some(asked.template),
            end,
            wanted,
        });
    }

    /// Ends the walk. `known` are the objects of this owner (controller owner reference with its uid) in the shell's
    /// caches; by them orphans are found that status has forgotten.
    ///
    /// Steps that were not reached keep what they have.
    pub fn conclude(self, known: &[KnownObject]) -> Conclusion<'a> {
        Conclusion::of(self, known)
    }

    fn preparing(&self, step: usize) -> Preparing<'_> {
        let spec = &self.blueprint.steps[step];
        Preparing {
            owner: self.owner,
            blueprint: self.blueprint,
            templates: self.templates,
            step: spec,
            inputs: ResolvedInputs::of(spec, &self.outputs),
        }
    }

    fn finish_step(&mut self, step: usize, template: Option<Arc<Template>>, end: StepEnd) {
        self.results[step] = Some(StepResult {
            template,
            end,
            wanted: None,
        });
    }

    fn withhold_step(&mut self, step: usize, template: Arc<Template>, withheld: Box<Withheld>) {
        let Withheld { error, wanted } = *withheld;
        self.results[step] = Some(StepResult {
            template: Some(template),
            end: StepEnd::Failed(error),
            wanted,
        });
    }
}

impl crate::AskFeed for Realization<'_> {
    fn next_step(&mut self) -> Step {
        Self::next_step(self)
    }

    fn record_rendered(&mut self, rendered: Rendered) {
        Self::record_rendered(self, rendered);
    }

    fn record_looked(&mut self, looked: Looked) {
        Self::record_looked(self, looked);
    }

    fn record_observed(&mut self, observation: Observation) {
        Self::record_observed(self, observation);
    }
}
