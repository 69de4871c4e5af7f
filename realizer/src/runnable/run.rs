//! The ask/feed machine of a Runnable.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::labels;
use api_types::names::ResourceName;
use jiff::Timestamp;
use serde_json::Value;

use super::attempt::{self, Attempts};
use super::conclusion::RunConclusion;
use super::error::RunError;
use super::plan::{Plan, RunFacts};
use super::{RunTemplate, Runnable, SelectError, history};
use crate::template::body::Drawn;
use crate::template::context::Context;
use crate::template::stamp::{WantedLabels, check_submittable, decorate, display_name};
use crate::values::canonical;
use crate::values::redaction::{self, Taint};
use crate::{
    Ask, AskFeed, Lifecycle, Looked, Observation, Observed, Precondition, Rendered, StatusKey,
    Submission, SubmitFailure, SubmitFailureKind, Told, Write,
};

/// What stands for the name of a step, which a Runnable does not have.
pub(super) fn step() -> ResourceName {
    "run".into()
}

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
///         Ask::Submit(submission) => {
///             assert_eq!(submission.object["spec"]["revision"], "abc");
///             let submitted = Observed {
///                 sequence: submission.told.position.sequence,
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
    key: StatusKey,
    labels: WantedLabels,
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
    /// The run is in the cluster; all runs, oldest first.
    Submitted {
        submitted: Box<Observed>,
        runs: Vec<Observed>,
        write: Write,
        rendering: String,
    },
    /// Other runs are in the way.
    Held {
        going: Vec<String>,
        runs: Vec<Observed>,
        rendering: String,
    },
    /// The newest run has ended, and somebody deleted it: what it came to holds.
    Rested {
        runs: Vec<Observed>,
        rendering: String,
    },
    /// Nothing was submitted.
    Failed(RunError),
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

    /// A text without the values of a selected Secret.
    pub(super) fn shown(&self, text: &str) -> String {
        self.taint.scrub(text)
    }

    /// The digest that a run with this rendering is known by: with values of a Secret in it, under the key of the
    /// installation, since status tells it.
    fn digest(&self, object: &Value) -> String {
        let digest = canonical::digest(object);
        if self.taint.is_none() && !redaction::is_secret(object) {
            return digest;
        }
        let keyed = self.key.digest("run", &digest);
        keyed.map_or(digest, |keyed| attempt::marked(&keyed))
    }

    /// The digest of a run as status tells it; without a key, that of a run with values of a Secret in it is not told.
    pub(super) fn told_digest(&self, run: &Observed) -> Option<String> {
        let is_secret = || !self.taint.is_none() || redaction::is_secret(&run.object);
        let digest = run.digest.clone()?;
        let is_tellable = attempt::is_marked(&digest) || !(is_secret() || self.was_secret(run));
        is_tellable.then_some(digest)
    }

    /// Whether a run was rendered from a Secret: its digest says so, or was not told.
    pub(super) fn was_secret(&self, run: &Observed) -> bool {
        let told = || history::record_of(&self.runnable.status.runs, run);
        run.digest.as_deref().is_some_and(attempt::is_marked)
            || told().is_some_and(|told| told.uid.is_some() && told.digest.is_none())
    }

    fn begin(&mut self) {
        match self.template.body.draw(self.context(), &step()) {
            Drawn::Rendered(rendered) => self.look(rendered),
            Drawn::Ytt(call) => self.state = State::Asked(Ask::Render(*call)),
        }
    }

    fn context(&self) -> Context<'_> {
        Context::of_run(self.runnable.views(), self.selected.as_deref())
    }

    fn look(&mut self, rendered: Rendered) {
        self.state = match self.submission(rendered) {
            Ok(submission) => State::Asked(Ask::Look(submission)),
            Err(error) => State::Over(End::Failed(error)),
        };
    }

    fn submission(&self, rendered: Rendered) -> Result<Submission, RunError> {
        let object = rendered
            .and_then(|rendering| {
                decorate(rendering, self.runnable.identity(), &self.labels)
                    .map_err(|error| error.to_string().into())
            })
            .map_err(|failure| RunError::Stamp {
                cause: self.shown(&failure.message),
                passes_by_itself: failure.passes_by_itself,
            })?;
        let mut labels =
            check_submittable(&object, Lifecycle::Immutable, &self.labels).map_err(|error| {
                let cause = error.to_string();
                self.refused(&object, SubmitFailureKind::Rejected, &cause)
            })?;
        labels.retain(|key, _| *key == labels::RUNNABLE_NAME);
        Ok(Submission {
            resource: step(),
            name_seed: redaction::name_seed(&object, &self.taint, &self.key),
            digest: self.digest(&object),
            basis: self.template.body.basis(|| self.context()),
            object,
            lifecycle: Lifecycle::Immutable,
            family: labels,
            reads: self.template.reads(),
            precondition: Precondition::None,
            told: Told {
                runs: history::known(&self.runnable.status.runs),
                ..Told::default()
            },
            adopt: false,
        })
    }

    fn refused(&self, object: &Value, kind: SubmitFailureKind, cause: &str) -> RunError {
        RunError::Apply {
            kind,
            object: self.shown(&name_or_prefix(object)),
            cause: self.shown(cause),
        }
    }

    fn failed(&self, submission: &Submission, failure: &SubmitFailure) -> End {
        End::Failed(match failure.kind {
            SubmitFailureKind::List => RunError::List {
                cause: self.shown(&failure.message),
            },
            kind @ (SubmitFailureKind::Forbidden
            | SubmitFailureKind::Rejected
            | SubmitFailureKind::Unavailable
            | SubmitFailureKind::Contested
            | SubmitFailureKind::TooLarge
            | SubmitFailureKind::TooOften
            | SubmitFailureKind::AnswerTooLarge
            | SubmitFailureKind::Stale) => self.refused(&submission.object, kind, &failure.message),
        })
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
        let situation = self.situation(&attempts, &runs);
        match situation.plan() {
            Plan::Submit { number, position } => State::Asked(Ask::Submit(Submission {
                digest: attempts.digest(number).to_owned(),
                told: Told {
                    position,
                    ..submission.told
                },
                // Another attempt at the same is not caused by a status of ours.
                basis: submission.basis.map(|basis| format!("{basis} {number}")),
                ..submission
            })),
            Plan::Rest => State::Over(End::Rested { runs, rendering }),
            Plan::Hold(going) => State::Over(End::Held {
                going,
                runs,
                rendering,
            }),
        }
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
            Err(failure) => State::Over(self.failed(&submission, &failure)),
        };
    }

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
                self.state = State::Over(self.failed(submission, &failure));
                return;
            }
        };
        self.state = State::Over(End::Submitted {
            submitted: Box::new(submitted),
            runs,
            write,
            rendering: self.digest(&submission.object),
        });
    }
}

/// The labels of a run (docs/behaviour/stamping.md#labels).
fn run_labels(runnable: &Runnable, template: &RunTemplate) -> WantedLabels {
    let mut labels = family(runnable);
    labels.insert(labels::RUN_TEMPLATE_NAME, template.name.to_string());
    labels
}

/// The label that all runs of a Runnable have, whatever they were stamped from
/// (docs/behaviour/runnables.md#runs).
pub(super) fn family(runnable: &Runnable) -> WantedLabels {
    BTreeMap::from([(labels::RUNNABLE_NAME, runnable.name.to_string())])
}

/// `<ns>/<name>`, or the prefix of a name that is generated.
fn name_or_prefix(object: &Value) -> String {
    let prefix = object.pointer("/metadata/generateName");
    match prefix.and_then(Value::as_str) {
        Some(prefix) if object.pointer("/metadata/name").is_none() => {
            format!("{}{prefix}", display_name(object))
        }
        _ => display_name(object),
    }
}
