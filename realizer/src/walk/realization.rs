//! The ask/feed machine: one walk over the steps of a blueprint for one owner.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::environment::site::{Flow, Site};
use crate::step::end::{StepEnd, StepResult};
use crate::template::context::ResolvedInputs;
use crate::template::judgement::Trial;
use crate::template::outputs::Output;
use crate::template::stamp;
use crate::walk::conclusion::Conclusion;
use crate::walk::guarding::Stage;
use crate::walk::prepare::{Asked, Begun, Preparing, Withheld};
use crate::{
    Ask, AskFeed, Blueprint, KnownObject, Looked, Observation, Owner, Rendered, StatusKey,
    SubmitFailureKind, Template, TemplateSource,
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
/// let mut realization = Realization::new(&owner, &blueprint, &templates, now, StatusKey::NONE);
/// loop {
///     match realization.next() {
///         Ask::Render(_) => realization.record_rendered(Err("no ytt here".to_owned().into())),
///         Ask::Submit(submission) => {
///             assert_eq!(submission.object["metadata"]["name"], "app-sink");
///             let observed = Observed::of(submission.object);
///             realization.record_observed(Observation::Object { observed, write: Write::Created });
///         }
///         Ask::Look(_) => realization.record_looked(Ok(Vec::new())),
///         Ask::Done => break,
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
    pub(crate) key: StatusKey,
    /// By index of the step.
    pub(crate) results: Vec<Option<StepResult>>,
    /// By index of the step; what later steps take.
    pub(crate) outputs: Vec<Option<Output>>,
    /// By index of the step; what validations would take if every deployment before them was done and validated.
    pub(crate) prospects: Vec<Option<Output>>,
    /// By index of the step; deployment and validation steps only.
    pub(crate) flows: Vec<Option<Flow>>,
    /// By index of the step; environments only.
    pub(crate) sites: Vec<Option<Site>>,
    /// By index of the step; validations only.
    pub(crate) trials: Vec<Option<Trial>>,
    /// Position in `blueprint.order`.
    position: usize,
    /// What was asked and not answered yet, with the index of the step.
    pub(crate) outstanding: Option<(usize, Asked)>,
}

impl<'a> Realization<'a> {
    /// Starts a walk. `now` is for transition times, `key` for digests of secret values.
    pub fn new(
        owner: &'a Owner,
        blueprint: &'a Blueprint,
        templates: &'a dyn TemplateSource,
        now: Timestamp,
        key: StatusKey,
    ) -> Self {
        let steps = blueprint.steps.len();
        Self {
            owner,
            blueprint,
            templates,
            now: Time(now),
            key,
            results: (0..steps).map(|_| None).collect(),
            outputs: vec![None; steps],
            prospects: vec![None; steps],
            flows: vec![None; steps],
            sites: vec![None; steps],
            trials: vec![None; steps],
            position: 0,
            outstanding: None,
        }
    }

    /// Ends the walk. `known` are the objects of this owner (controller owner reference with its uid) in the shell's
    /// caches; by them orphans are found that status has forgotten.
    ///
    /// Steps that were not reached keep what they have.
    pub fn conclude(self, known: &[KnownObject]) -> Conclusion<'a> {
        Conclusion::of(self, known)
    }

    /// A validation takes what it would have if all before it succeeded: so its object is found, and judged, even while
    /// its input is not there any more.
    fn preparing(&self, step: usize) -> Preparing<'_> {
        let spec = &self.blueprint.steps[step];
        let outputs = if spec.validates() {
            &self.prospects
        } else {
            &self.outputs
        };
        self.preparing_with(step, ResolvedInputs::of(spec, outputs))
    }

    pub(crate) fn preparing_with<'s>(
        &'s self,
        step: usize,
        inputs: ResolvedInputs<'s>,
    ) -> Preparing<'s> {
        Preparing {
            owner: self.owner,
            blueprint: self.blueprint,
            templates: self.templates,
            step: &self.blueprint.steps[step],
            inputs,
            key: &self.key,
        }
    }

    /// What a validation, or a deployment that stamps nothing, hands on of what goes in.
    fn begin_flow(&mut self, step: usize) {
        let spec = &self.blueprint.steps[step];
        if !spec.validates() {
            return;
        }
        self.flows[step] = Some(self.inbound(step));
        self.prospects[step] = ResolvedInputs::of(spec, &self.prospects)
            .deployment()
            .cloned();
    }

    fn finish_step(&mut self, step: usize, template: Option<Arc<Template>>, end: StepEnd) {
        self.results[step] = Some(StepResult {
            template,
            end,
            wanted: None,
        });
    }

    pub(crate) fn withhold_step(
        &mut self,
        step: usize,
        template: Arc<Template>,
        withheld: Box<Withheld>,
    ) {
        let Withheld { error, wanted } = *withheld;
        self.results[step] = Some(StepResult {
            template: Some(template),
            end: StepEnd::Failed(error),
            wanted,
        });
    }
}

fn is_stale(observation: &Observation) -> bool {
    matches!(observation, Observation::Failed(failure) if failure.kind == SubmitFailureKind::Stale)
}

impl AskFeed for Realization<'_> {
    fn next(&mut self) -> Ask {
        loop {
            if let Some((_, asked)) = &self.outstanding {
                return asked.ask.clone();
            }
            let Some(&step) = self.blueprint.order.get(self.position) else {
                return Ask::Done;
            };
            self.position += 1;
            self.begin_flow(step);
            match self.preparing(step).begin() {
                Begun::Asked(asked) => self.outstanding = Some((step, self.guarded(step, *asked))),
                Begun::PassedThrough(output) => {
                    self.outputs[step] = Some(output.clone());
                    self.prospects[step] = Some(output.clone());
                    if self.blueprint.steps[step].deploys() {
                        self.flows[step] = Some(self.inbound(step));
                    }
                    self.finish_step(step, None, StepEnd::PassedThrough(output));
                }
                Begun::Failed(template, error) => {
                    self.finish_step(step, template, StepEnd::Failed(error));
                }
                Begun::Withheld(template, withheld) => self.leave_step(step, template, withheld),
            }
        }
    }

    fn record_rendered(&mut self, rendered: Rendered) {
        let Some((step, asked)) = self
            .outstanding
            .take_if(|(_, asked)| matches!(asked.ask, Ask::Render(_)))
        else {
            return;
        };
        match self
            .preparing(step)
            .submit(&asked.template, &asked.labels, rendered)
        {
            Ok(submission) => {
                let asked = Asked {
                    ask: Ask::Submit(submission),
                    ..asked
                };
                self.outstanding = Some((step, self.guarded(step, asked)));
            }
            Err(withheld) => self.leave_step(step, asked.template, withheld),
        }
    }

    fn record_observed(&mut self, observation: Observation) {
        let Some((step, mut asked)) = self
            .outstanding
            .take_if(|(_, asked)| matches!(asked.ask, Ask::Submit(_)))
        else {
            return;
        };
        if is_stale(&observation) {
            let Some(refused) = self.decide_again(step, asked) else {
                return;
            };
            asked = refused;
        }
        let Ask::Submit(submission) = &asked.ask else {
            return;
        };
        let template = &asked.template;
        let end = match &asked.stage {
            Stage::Deploying { record, .. } => {
                self.deployed(step, template, submission, record, observation)
            }
            Stage::Validating => self.validated(step, template, submission, observation),
            Stage::Plain | Stage::Family | Stage::Searching { .. } | Stage::Staying(_) => self
                .observing(step, template)
                .observe(submission, observation),
        };
        self.outputs[step] = end.output().cloned();
        if asked.stage.is_plain() {
            self.prospects[step].clone_from(&self.outputs[step]);
        }
        let wanted = stamp::reference(&submission.object);
        self.results[step] = Some(StepResult {
            template: Some(asked.template),
            end,
            wanted,
        });
    }

    fn record_looked(&mut self, looked: Looked) {
        self.looked_at(looked);
    }
}
