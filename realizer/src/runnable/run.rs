//! The ask/feed machine of a Runnable.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::attempt::Attempts;
use super::conclusion::RunConclusion;
use super::error::RunError;
use super::plan::{Plan, RunFacts};
use super::submission::{run_labels, step};
use super::{RunTemplate, Runnable, SelectError};
use crate::template::body::Drawn;
use crate::template::context::Context;
use crate::template::stamp::WantedLabels;
use crate::values::redaction::{self, Taint};
use crate::{
    Ask, AskFeed, FoundObject, Looked, Observation, Observed, Recorded, Rendered, StatusKey,
    Submission, Write,
};

/// The object that a Runnable selects: none without a selector.
pub type Selected = Result<Option<Arc<Value>>, SelectError>;

/// One walk for one Runnable: what it is rendered from is rendered, compared with the runs there are, and submitted if a
/// run is missing.
///
/// ```
/// # use std::sync::Arc;
/// # use realizer::*;
/// # use realizer::runnable::*;
/// # use serde_json::json;
/// # let template = RunTemplate::compile(&json!({"metadata": {"name": "tests"}, "spec": {"template": {
/// #     "apiVersion": "tekton.dev/v1", "kind": "TaskRun", "metadata": {"generateName": "test-"},
/// #     "spec": {"revision": "$(runnable.spec.inputs.revision)$"}}}})).unwrap();
/// # let runnable = Runnable::parse(Arc::new(json!({
/// #     "metadata": {"namespace": "dev", "name": "app", "uid": "u"},
/// #     "spec": {"runTemplateRef": {"name": "tests"}, "inputs": {"revision": "abc"}}}))).unwrap();
/// # let now = jiff::Timestamp::UNIX_EPOCH;
/// let mut run = Run::new(&runnable, &template, Ok(None), now, StatusKey::NONE);
/// loop {
///     match run.next() {
///         Ask::Render(_) => run.record_rendered(Err("no ytt here".to_owned().into())),
///         Ask::Look(_) => run.record_looked(Ok(Vec::new())),
///         Ask::Read(_) => run.record_read(Err(Unread::Missing).into()),
///         Ask::Submit(submission) => {
///             assert_eq!(submission.object["spec"]["revision"], "abc");
///             let submitted = Observed {
///                 sequence: submission.recorded.position.sequence,
///                 digest: Some(submission.digest),
///                 ..Observed::of(submission.object)
///             };
///             let members = vec![submitted.clone()];
///             run.record_observed(Observation::Family { submitted, members, write: Write::Created });
///         }
///         Ask::Done => break,
///     }
/// }
/// let outcome = run.conclude().report(&[]);
/// assert_eq!(outcome.ready, api_types::ConditionStatus::Unknown);
/// ```
pub struct Run<'a> {
    pub(super) runnable: &'a Runnable,
    pub(super) template: &'a RunTemplate,
    pub(super) now: Timestamp,
    selected: Option<Arc<Value>>,
    /// What of the selected object must not be shown.
    pub(super) taint: Taint,
    pub(super) key: StatusKey,
    pub(super) labels: WantedLabels,
    state: State,
}

#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each walk, and it is not moved about"
)]
enum State {
    /// Nothing was asked yet.
    Fresh,
    /// Something was asked, and not answered yet.
    Asked(Ask),
    /// It is over.
    Over(End),
}

/// How a walk ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    /// It is known which runs there are.
    Looked {
        /// All runs, oldest first.
        runs: Vec<Observed>,
        /// Digest of what was rendered.
        rendering: String,
        came_to: CameTo,
    },
    /// Nothing was submitted.
    Failed(RunError),
}

/// What became of a rendering.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CameTo {
    /// Its run is in the cluster.
    Submitted {
        submitted: Box<Observed>,
        write: Write,
    },
    /// Other runs are in the way.
    Held(Vec<String>),
    /// The newest run has ended, and somebody deleted it: what it came to holds.
    Rested,
}

impl<'a> Run<'a> {
    /// Starts a walk. `now` is for transition times and for when to try again, `key` for digests of secret values.
    pub fn new(
        runnable: &'a Runnable,
        template: &'a RunTemplate,
        selected: Selected,
        now: Timestamp,
        key: StatusKey,
    ) -> Self {
        let (selected, state) = match selected {
            Ok(selected) => (selected, State::Fresh),
            Err(error) => (None, State::Over(End::Failed(RunError::Selector(error)))),
        };
        Self {
            runnable,
            template,
            now,
            taint: selected
                .as_deref()
                .map_or(Taint::NONE, redaction::of_object),
            key,
            selected,
            labels: run_labels(runnable, template),
            state,
        }
    }

    /// Ends the walk.
    pub fn conclude(self) -> RunConclusion<'a> {
        RunConclusion::of(self)
    }

    /// How it ended; one that was broken off ended with nothing.
    pub(super) fn end(&mut self) -> End {
        match std::mem::replace(&mut self.state, State::Fresh) {
            State::Over(end) => end,
            State::Fresh | State::Asked(_) => End::Failed(RunError::List {
                cause: "the walk was broken off".to_owned(),
            }),
        }
    }

    fn begin(&mut self) {
        match self.template.body.draw(self.context(), &step()) {
            Drawn::Rendered(rendered) => self.look(rendered),
            Drawn::Ytt(call) => self.state = State::Asked(Ask::Render(*call)),
        }
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context::of_run(self.runnable.views(), self.selected.as_deref())
    }

    fn look(&mut self, rendered: Rendered) {
        self.state = match self.submission(rendered) {
            Ok(submission) => State::Asked(Ask::Look(submission)),
            Err(error) => State::Over(End::Failed(error)),
        };
    }

    /// The runs there are, oldest first.
    pub(super) fn situation<'s>(
        &'s self,
        attempts: &'s Attempts,
        runs: &'s [Observed],
    ) -> RunFacts<'s> {
        RunFacts {
            runnable: self.runnable,
            template: self.template,
            attempts,
            runs,
            now: self.now,
        }
    }

    fn plan(&self, submission: Submission, runs: Vec<Observed>) -> State {
        let rendering = submission.digest.clone();
        let attempts = Attempts::of(&rendering, self.runnable.rerun.as_deref());
        let came_to = match self.situation(&attempts, &runs).plan() {
            Plan::Submit { number, position } => {
                return State::Asked(Ask::Submit(Submission {
                    digest: attempts.digest(number).to_owned(),
                    recorded: Recorded {
                        position,
                        ..submission.recorded
                    },
                    // Another attempt at the same is not caused by a status of ours.
                    basis: submission.basis.map(|basis| format!("{basis} {number}")),
                    ..submission
                }));
            }
            Plan::Rest => CameTo::Rested,
            Plan::Hold(going) => CameTo::Held(going),
        };
        State::Over(End::Looked {
            runs,
            rendering,
            came_to,
        })
    }
}

impl AskFeed for Run<'_> {
    fn next(&mut self) -> Ask {
        if matches!(self.state, State::Fresh) {
            self.begin();
        }
        match &self.state {
            State::Asked(step) => step.clone(),
            State::Fresh | State::Over(_) => Ask::Done,
        }
    }

    fn record_rendered(&mut self, rendered: Rendered) {
        if matches!(self.state, State::Asked(Ask::Render(_))) {
            self.look(rendered);
        }
    }

    fn record_looked(&mut self, looked: Looked) {
        let State::Asked(Ask::Look(submission)) = &self.state else {
            return;
        };
        let submission = submission.clone();
        self.state = match looked {
            Ok(runs) => self.plan(submission, runs),
            Err(failure) => State::Over(End::Failed(self.failed(&submission, &failure))),
        };
    }

    /// The rules of a ClusterRunTemplate ask for no other object.
    fn record_read(&mut self, _: FoundObject) {}

    fn record_observed(&mut self, observation: Observation) {
        let State::Asked(Ask::Submit(submission)) = &self.state else {
            return;
        };
        let (submitted, runs, write) = match observation {
            Observation::Family {
                submitted,
                members,
                write,
            } => (submitted, members, write),
            Observation::Object { observed, write } => (observed.clone(), vec![observed], write),
            Observation::Failed(failure) => {
                self.state = State::Over(End::Failed(self.failed(submission, &failure)));
                return;
            }
        };
        self.state = State::Over(End::Looked {
            runs,
            rendering: self.digest(&submission.object),
            came_to: CameTo::Submitted {
                submitted: Box::new(submitted),
                write,
            },
        });
    }
}
