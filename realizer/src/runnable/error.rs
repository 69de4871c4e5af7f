//! Why a Runnable does not run, and the one place that decides what follows from it
//! (docs/behaviour/runnables.md#conditions).

use api_types::{ConditionStatus, Reason};
use serde_json::json;
use template_language::go_format;

use super::{Runnable, SelectError, selection};
use crate::ErrorKind;
use crate::SubmitFailureKind;
use crate::owner::lineage;
use crate::step::error::Verdict;

/// Why nothing was asked for a Runnable at all. Its runs and outputs stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRun {
    /// Too many owners in a row were stamped for one another; how many may be.
    StampedTooDeep(usize),
    /// It is larger than what is run; how large, and how large it may be, in bytes.
    TooLarge(usize, usize),
    /// The ServiceAccount could not be read; the inner error, for example `ServiceAccount "sa" not found`.
    ServiceAccount {
        /// Its name.
        name: String,
        /// The inner error.
        cause: String,
    },
    /// No token for it; the whole message, for example `fetch token: …`.
    ServiceAccountToken(String),
    /// The API server did not carry out what was asked of it, a token or a list; what it said.
    Unavailable(String),
    /// The ClusterRunTemplate does not exist.
    TemplateMissing,
    /// The ClusterRunTemplate could not be read; why.
    TemplateUnreadable(String),
}

/// Why a Runnable does not run, or its outputs are not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RunError {
    /// It did not come to a run.
    NotRun(NotRun),
    /// No object is selected.
    Selector(SelectError),
    /// The template could not be rendered.
    /// `passes_by_itself` as in [`RenderFailure`](crate::RenderFailure).
    Stamp {
        cause: String,
        passes_by_itself: bool,
    },
    /// The API server refused the run.
    Apply {
        kind: SubmitFailureKind,
        object: String,
        cause: String,
    },
    /// The runs could not be listed.
    List { cause: String },
    /// An output cannot be read.
    Output { path: String, cause: String },
    /// Other runs are in the way; their names.
    Held { going: Vec<String> },
}

/// The run that a message is about.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// `<plural>[.<group>]`, or `<nil>`-like when unknown.
    pub(super) resource: String,
    pub(super) name: String,
}

impl RunError {
    /// The one total function from an error to condition and retry; the reason is the metric label.
    pub(super) fn verdict(&self) -> Verdict {
        use ErrorKind::{Infrastructure, NotYet, UserMustFix};
        match self {
            Self::NotRun(why) => why.verdict(),
            // The selected object is watched; that a kind or a right comes is not.
            Self::Stamp {
                passes_by_itself: true,
                ..
            } => Verdict::new(Infrastructure, Reason::TemplateStampFailure),
            Self::Selector(SelectError::None | SelectError::Many)
            | Self::Stamp {
                passes_by_itself: false,
                ..
            } => Verdict::new(UserMustFix, Reason::TemplateStampFailure),
            Self::Selector(SelectError::Discovery(_) | SelectError::List { .. }) => {
                Verdict::new(UserMustFix, Reason::TemplateStampFailure).slowly()
            }
            Self::Apply { kind, .. } => {
                Verdict::of_submission(*kind, Reason::StampedObjectRejectedByAPIServer)
            }
            Self::List { .. } => Verdict::new(Infrastructure, Reason::FailedToListCreatedObjects),
            // Nothing but the run can make it readable, and its events come anyway.
            Self::Output { .. } => Verdict::new(NotYet, Reason::OutputPathNotSatisfied).but_false(),
            Self::Held { .. } => Verdict::new(NotYet, Reason::WaitingForRun),
        }
    }

    /// The condition's message. `run` is the run that was submitted last.
    pub(super) fn message(&self, runnable: &Runnable, run: &Shown) -> String {
        let template = &runnable.run_template;
        let namespace = &runnable.namespace;
        match self {
            Self::NotRun(why) => not_run(why, runnable),
            Self::Selector(error) => selection::message(runnable.selector.as_ref(), error),
            Self::Stamp { cause, .. } => {
                format!("unable to stamp object for run template [{template}]: {cause}")
            }
            Self::Apply { object, cause, .. } => {
                format!("unable to apply object [{object}] for run template [{template}]: {cause}")
            }
            Self::List { cause } => format!(
                "unable to list objects in namespace [{namespace}] with labels [{}]: {cause}",
                go_format::display(&json!(super::submission::family(runnable)))
            ),
            Self::Output { path, cause } => {
                let Shown { resource, name } = run;
                format!(
                    "waiting to read value from resource [{resource}/{name}] in namespace [{namespace}]: unable to \
                     retrieve outputs from stamped object [{namespace}/{name}] of type [{resource}] for run template \
                     [{template}]: failed to evaluate path [{path}]: {cause}"
                )
            }
            Self::Held { going } => format!(
                "the run for the present inputs waits until [{}] is over, because spec.concurrency is {}",
                going.join(", "),
                runnable.concurrency.as_str()
            ),
        }
    }

    /// Whether nothing will change until somebody does something, as far as can be told. An object to select may come.
    pub(super) fn is_stuck(&self) -> bool {
        match self.verdict().kind {
            ErrorKind::UserMustFix => !matches!(self, Self::Selector(SelectError::None)),
            ErrorKind::NotYet => false,
            // The operator has to give the controller the right to ask for tokens.
            ErrorKind::Infrastructure => matches!(
                self,
                Self::NotRun(NotRun::ServiceAccountToken(_))
                    | Self::Apply {
                        kind: SubmitFailureKind::Rejected,
                        ..
                    }
            ),
        }
    }

    /// Whether somebody has to act.
    pub(super) fn is_warning(&self) -> bool {
        let verdict = self.verdict();
        verdict.kind != ErrorKind::NotYet && verdict.status == ConditionStatus::False
    }
}

impl NotRun {
    fn verdict(&self) -> Verdict {
        use ErrorKind::{Infrastructure, UserMustFix};
        match self {
            Self::StampedTooDeep(_) => Verdict::new(UserMustFix, Reason::StampedTooDeep),
            Self::TooLarge(..) => Verdict::new(UserMustFix, Reason::OwnerTooLarge),
            // Upstream sleeps after ServiceAccount errors and misses the fix; we look again slowly
            // (docs/behaviour/service-accounts.md#missing).
            Self::ServiceAccount { .. } => {
                Verdict::new(UserMustFix, Reason::ServiceAccountError).slowly()
            }
            // As of other owners: the controller may not ask for tokens, which whoever has a Runnable cannot mend.
            Self::ServiceAccountToken(_) => {
                Verdict::new(Infrastructure, Reason::ServiceAccountTokenError).slowly()
            }
            Self::Unavailable(_) => Verdict::new(Infrastructure, Reason::ApiServerUnavailable),
            Self::TemplateMissing | Self::TemplateUnreadable(_) => {
                Verdict::new(Infrastructure, Reason::RunTemplateNotFound)
            }
        }
    }
}

fn not_run(why: &NotRun, runnable: &Runnable) -> String {
    let template = &runnable.run_template;
    let unreadable = |cause: &str| {
        format!(
            "unable to get run template [{template}]: failed to get run template object from api server \
             [ClusterRunTemplate/{template}]: {cause}"
        )
    };
    match why {
        NotRun::StampedTooDeep(most) => {
            let own = lineage::named(super::KIND, runnable.name.as_str());
            crate::status::unrealized::too_deep(&runnable.stamped_for, &own, *most)
        }
        NotRun::TooLarge(size, most) => {
            crate::status::unrealized::too_large("runnable", *size, *most)
        }
        NotRun::ServiceAccount { name, cause } => {
            let account = (runnable.namespace.as_str(), name.as_str());
            crate::status::unrealized::no_service_account(account, cause)
        }
        NotRun::ServiceAccountToken(message) | NotRun::Unavailable(message) => message.clone(),
        NotRun::TemplateMissing => unreadable(&format!(
            "ClusterRunTemplate.{} \"{template}\" not found",
            api_types::GROUP
        )),
        NotRun::TemplateUnreadable(cause) => unreadable(cause),
    }
}
