//! The ask/feed machine: one walk over the steps of a blueprint for one owner.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::status::explanation::Explanation;
use crate::step::end::{StepEnd, StepResult};
use crate::step::state::Steps;
use crate::template::stamp::WantedLabels;
use crate::walk::conclusion::Conclusion;
use crate::walk::gate::{AfterLook, Passage, Progress};
use crate::walk::lock;
use crate::walk::others::{self, Reading, Waiting};
use crate::walk::prepare::{HeldStep, StartOutcome};
use crate::walk::{At, Walk};
use crate::{
    Ask, AskFeed, Blueprint, FoundObject, KnownArtifacts, KnownObject, Looked, Observation, Owner,
    Rendered, StatusKey, Submission, SubmitFailureKind, Template, TemplateSource, YttCall,
    weigh_blueprints,
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
/// #     fn template(&self, _: api_types::TemplateKind, _: &str) -> TemplateState { TemplateState::Found(Arc::clone(&self.0)) }
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
///         Ask::Read(_) => realization.record_read(Err(Unread::Missing).into()),
///         Ask::Done => break,
///     }
/// }
/// let conclusion = realization.conclude(&[]);
/// assert!(conclusion.removals().is_empty());
/// assert_eq!(conclusion.report(&[]).reason, "Ready");
/// ```
pub struct Realization<'a> {
    walk: Walk<'a>,
    /// Position in `blueprint.order`.
    position: usize,
    /// What was asked and not answered yet.
    question: Option<Question>,
}

/// What the shell was asked about a step, and what is needed when it answers.
enum Question {
    Render {
        at: At,
        labels: WantedLabels,
        call: Box<YttCall>,
    },
    /// A gate has to know what is at this place.
    Look {
        place: Box<Submission>,
        then: Box<dyn AfterLook>,
        passage: Box<Passage>,
    },
    /// What is in an environment, though nothing can be put into it now, and why not.
    Read {
        at: At,
        place: Box<Submission>,
        because: Box<HeldStep>,
    },
    Submit {
        submission: Box<Submission>,
        passage: Box<Passage>,
    },
    /// The rules have to know another object.
    Other(Box<Reading>),
}

impl Question {
    fn ask(&self) -> Ask {
        match self {
            Self::Render { call, .. } => Ask::Render((**call).clone()),
            Self::Look { place, .. } | Self::Read { place, .. } => Ask::Look((**place).clone()),
            Self::Submit { submission, .. } => Ask::Submit((**submission).clone()),
            Self::Other(reading) => Ask::Read(reading.asked().clone()),
        }
    }
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
        Self {
            walk: Walk {
                owner,
                blueprint,
                templates,
                now: Time(now),
                key,
                steps: Steps::new(blueprint),
                artifacts: KnownArtifacts::default(),
                is_status_behind: false,
            },
            position: 0,
            question: None,
        }
    }

    /// With the Artifacts of the owner; none are known otherwise.
    #[must_use]
    pub fn with_artifacts(mut self, artifacts: KnownArtifacts) -> Self {
        self.walk.artifacts = artifacts;
        self
    }

    /// Says that more may have been handed on than the owner's status tells: this process has not written it since, or has
    /// just started. Where an output is known from the status alone, objects that hold something else than what it makes of
    /// them are left as they are.
    #[must_use]
    pub fn with_status_behind(mut self) -> Self {
        self.walk.is_status_behind = true;
        self
    }

    /// Ends the walk. `known` are the objects of this owner (controller owner reference with its uid) in the shell's
    /// caches; by them orphans are found that status has forgotten.
    ///
    /// Steps that were not reached keep what they have.
    pub fn conclude(self, known: &[KnownObject]) -> Conclusion<'a> {
        Conclusion::of(self.walk, known)
    }

    /// Ends the walk and tells why the owner is as it is. `blueprints` are those among which its own was chosen.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use realizer::*;
    /// # use serde_json::json;
    /// use realizer::explanation::{Cause, Match, Origin, StepError};
    /// use realizer::offline::{Cluster, drive};
    ///
    /// # struct Templates(Arc<Template>);
    /// # impl TemplateSource for Templates {
    /// #     fn template(&self, _: api_types::TemplateKind, _: &str) -> TemplateState { TemplateState::Found(Arc::clone(&self.0)) }
    /// # }
    /// # let templates = Templates(Arc::new(Template::compile(&json!({
    /// #     "apiVersion": "carto.run/v1alpha1", "kind": "ClusterImageTemplate", "metadata": {"name": "image"},
    /// #     "spec": {"imagePath": ".status.image", "params": [{"name": "builder", "default": "small"}],
    /// #         "template": {"apiVersion": "kpack.io/v1alpha2", "kind": "Image",
    /// #             "metadata": {"name": "$(workload.metadata.name)$"}, "spec": {"builder": "$(params.builder)$"}}},
    /// # })).unwrap()));
    /// # let chain = |name: &str, selector: serde_json::Value| {
    /// #     let object = json!({"metadata": {"name": name}, "spec": {"selector": selector,
    /// #         "params": [{"name": "builder", "value": "large"}], "resources": [
    /// #         {"name": "build", "templateRef": {"kind": "ClusterImageTemplate", "name": "image"}}]}});
    /// #     Arc::new(Blueprint::compile(Family::SupplyChain, &object).unwrap())
    /// # };
    /// # let owner = Owner::parse(Family::SupplyChain, Arc::new(json!({
    /// #     "metadata": {"namespace": "dev", "name": "app", "uid": "u", "labels": {"type": "web"}}}))).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// let blueprints = [chain("web", json!({"type": "web"})), chain("api", json!({"type": "api"}))];
    /// let Selection::One(blueprint) = select_blueprint(&owner, &blueprints) else { unreachable!() };
    /// let mut realization = Realization::new(&owner, blueprint, &templates, now, StatusKey::NONE);
    /// drive(&mut realization, &mut Cluster::default());
    /// let explanation = realization.explain(&blueprints);
    ///
    /// let Ok(Match::No(unmet)) = &explanation.candidates[1].fit else { unreachable!() };
    /// assert_eq!(unmet.to_string(), "label [type] must be one of [api], but is [web]");
    /// let build = &explanation.steps[0];
    /// assert!(matches!(build.cause(), Some(Cause::Error(StepError::Retrieve { .. }))));
    /// assert_eq!(build.params["builder"].origin, Origin::Blueprint);
    /// let first = explanation.first.unwrap();
    /// assert!(first.message.starts_with("waiting to read value [.status.image]"));
    /// ```
    pub fn explain(self, blueprints: &'a [Arc<Blueprint>]) -> Explanation<'a> {
        let Walk {
            owner, blueprint, ..
        } = self.walk;
        let steps = 0..blueprint.steps.len();
        let given: Vec<_> = steps.map(|step| self.walk.given(step)).collect();
        let mut explanation = self.conclude(&[]).into_explanation();
        explanation.candidates = weigh_blueprints(owner, blueprints);
        let steps = explanation.steps.iter_mut().zip(&blueprint.steps);
        for ((step, spec), (waits_for, params)) in steps.zip(given) {
            step.waits_for = waits_for;
            step.options = spec.weigh_options(owner);
            step.params = params;
        }
        explanation
    }

    /// Takes a step as far as that goes without the shell.
    fn start(&mut self, step: usize) {
        self.walk.steps.begin(step);
        match self.walk.preparing(step).start() {
            StartOutcome::Ytt(template, labels, call) => {
                let at = At { step, template };
                self.question = Some(Question::Render { at, labels, call });
            }
            StartOutcome::Rendered(template, rendering) => {
                self.rendered(At { step, template }, *rendering);
            }
            StartOutcome::PassedThrough(output) => {
                self.settle_without_object(step, None, StepEnd::PassedThrough(output));
            }
            StartOutcome::Failed(template, error) => {
                self.settle_without_object(step, template, StepEnd::Failed(error));
            }
            StartOutcome::HeldStep(template, withheld) => {
                self.withhold(At { step, template }, withheld);
            }
        }
    }

    fn settle_without_object(
        &mut self,
        step: usize,
        template: Option<Arc<Template>>,
        end: StepEnd,
    ) {
        let result = StepResult::without_object(template, end);
        self.walk.settle(step, result);
    }

    fn rendered(&mut self, at: At, rendering: Submission) {
        let (passage, progress) = Passage::begin(&mut self.walk, at, rendering);
        self.go_on(Box::new(passage), progress);
    }

    fn go_on(&mut self, passage: Box<Passage>, progress: Progress) {
        match progress {
            Progress::Look(place, then) => {
                self.question = Some(Question::Look {
                    place: Box::new(place),
                    then,
                    passage,
                });
            }
            Progress::Submit(submission) => {
                self.question = Some(Question::Submit {
                    submission: Box::new(submission),
                    passage,
                });
            }
            Progress::Held(result) => self.walk.settle(passage.at().step, result),
            Progress::Withheld(because) => self.withhold(passage.at().clone(), because),
        }
    }

    /// Nothing is submitted for a step. What is in an environment is read all the same.
    fn withhold(&mut self, at: At, because: Box<HeldStep>) {
        match self.walk.place_to_read(&at) {
            Some(place) => {
                self.question = Some(Question::Read {
                    at,
                    place: Box::new(place),
                    because,
                });
            }
            None => self.walk.settle(at.step, at.withheld(*because)),
        }
    }

    /// The cluster has answered; what the rules read beside that is asked for before anything follows.
    fn consider(&mut self, waiting: Waiting) {
        let step = waiting.begin(&mut self.walk);
        self.follow(step);
    }

    fn follow(&mut self, step: others::Step) {
        let waiting = match step {
            others::Step::Ask(reading) => {
                self.question = Some(Question::Other(reading));
                return;
            }
            others::Step::Known(waiting) => *waiting,
        };
        match waiting {
            Waiting::Looked {
                place,
                then,
                mut passage,
                looked,
            } => {
                let progress = passage.found(&mut self.walk, then, *place, looked);
                self.go_on(passage, progress);
            }
            Waiting::Read {
                at,
                because,
                looked,
                ..
            } => self.read(&at, *because, looked),
            Waiting::Observed {
                submission,
                passage,
                observation,
            } => self.observed(&submission, passage, *observation),
        }
    }

    fn observed(
        &mut self,
        submission: &Submission,
        mut passage: Box<Passage>,
        observation: Observation,
    ) {
        if is_stale(&observation)
            && let Some(progress) = passage.begin_again(&mut self.walk)
        {
            return self.go_on(passage, progress);
        }
        let result = passage.end(&mut self.walk, submission, observation);
        self.walk.settle(passage.at().step, result);
    }

    fn read(&mut self, at: &At, because: HeldStep, looked: Looked) {
        let found = looked.unwrap_or_default();
        let found = found.first();
        let kept = found.and_then(|found| lock::stays(&mut self.walk, at, found));
        let result = StepResult {
            kept,
            ..at.withheld(because)
        };
        self.walk.settle(at.step, result);
    }
}

/// An answer to what was not asked leaves the question as it is.
impl AskFeed for Realization<'_> {
    fn next(&mut self) -> Ask {
        loop {
            if let Some(question) = &self.question {
                return question.ask();
            }
            let Some(&step) = self.walk.blueprint.order.get(self.position) else {
                return Ask::Done;
            };
            self.position += 1;
            self.start(step);
        }
    }

    fn record_rendered(&mut self, rendered: Rendered) {
        match self.question.take() {
            Some(Question::Render { at, labels, .. }) => {
                let preparing = self.walk.preparing(at.step);
                let submitted = preparing.submit(&at.template, &labels, rendered);
                match submitted {
                    Ok(submission) => self.rendered(at, submission),
                    Err(withheld) => self.withhold(at, withheld),
                }
            }
            other => self.question = other,
        }
    }

    fn record_looked(&mut self, looked: Looked) {
        match self.question.take() {
            Some(Question::Look {
                place,
                then,
                passage,
            }) => self.consider(Waiting::Looked {
                place,
                then,
                passage,
                looked,
            }),
            Some(Question::Read { at, place, because }) => self.consider(Waiting::Read {
                at,
                place,
                because,
                looked,
            }),
            other => self.question = other,
        }
    }

    fn record_observed(&mut self, observation: Observation) {
        match self.question.take() {
            Some(Question::Submit {
                submission,
                passage,
            }) => self.consider(Waiting::Observed {
                submission,
                passage,
                observation: Box::new(observation),
            }),
            other => self.question = other,
        }
    }

    fn record_read(&mut self, found: FoundObject) {
        match self.question.take() {
            Some(Question::Other(reading)) => {
                let step = reading.answered(&mut self.walk, found);
                self.follow(step);
            }
            other => self.question = other,
        }
    }
}

fn is_stale(observation: &Observation) -> bool {
    matches!(observation, Observation::Failed(failure) if failure.kind == SubmitFailureKind::Stale)
}
