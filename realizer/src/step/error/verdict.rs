//! The one place that decides what follows from an error: condition, reason and retry.

use api_types::{ConditionStatus, Reason};

use super::{StepError, ValidationError, WaitsFor};
use crate::template::goodness::NotDone;
use crate::template::outputs::ReadError;
use crate::{ErrorKind, Retry, SubmitFailureKind};

/// What follows from an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) kind: ErrorKind,
    pub(crate) status: ConditionStatus,
    pub(crate) reason: Reason,
    pub(crate) retry: Retry,
}

impl StepError {
    /// The one total function from an error to condition and retry
    /// (docs/behaviour/status.md#submitted); the reason is the metric label.
    pub(crate) fn verdict(&self) -> Verdict {
        use ErrorKind::{Infrastructure, NotYet, UserMustFix};
        let (kind, reason) = match self {
            Self::ResolveOption { .. } => (UserMustFix, Reason::ResolveTemplateOptionsError),
            Self::OptionsMatch { .. } => (UserMustFix, Reason::TemplateOptionsMatchError),
            Self::GetTemplate { .. } => (Infrastructure, Reason::TemplateObjectRetrievalFailure),
            Self::TemplateVanished { .. } | Self::NotReached { .. } => {
                (Infrastructure, Reason::UnknownError)
            }
            Self::Stamp { waits_for, .. } => return stamp_verdict(*waits_for),
            Self::InputsMissing { starved: None, .. } | Self::MayBeNewer { .. } => {
                (NotYet, Reason::InputsNotReady)
            }
            Self::InputsMissing {
                starved: Some(_), ..
            } => {
                return Verdict::new(UserMustFix, Reason::InputsNotReady).but_unknown();
            }
            Self::Apply { kind, .. } => {
                return Verdict::of_submission(*kind, Reason::TemplateRejectedByAPIServer);
            }
            Self::List { .. } => (Infrastructure, Reason::FailedToListCreatedObjects),
            Self::Contested { .. } => {
                return Verdict::new(UserMustFix, Reason::ObjectContested).slowly();
            }
            // The shell says when it looks again.
            Self::Undone { .. } => (UserMustFix, Reason::ObjectUndone),
            Self::Retrieve { error, .. } => return retrieve_verdict(error),
            Self::Validation { error, .. } => match error {
                ValidationError::Begins | ValidationError::Running => {
                    (NotYet, Reason::ValidationRunning)
                }
                ValidationError::Failed => (UserMustFix, Reason::ValidationFailed),
                ValidationError::TimedOut => (UserMustFix, Reason::ValidationTimedOut),
            },
            Self::PassThrough { declared: true, .. } => (NotYet, Reason::PassThrough),
            Self::PassThrough {
                declared: false, ..
            } => (UserMustFix, Reason::PassThrough),
        };
        Verdict::new(kind, reason)
    }
}

fn stamp_verdict(waits_for: WaitsFor) -> Verdict {
    let verdict = |kind| Verdict::new(kind, Reason::TemplateStampFailure);
    match waits_for {
        // False although only its input is missing, as upstream
        // (docs/behaviour/examples.md#late-output); nobody is warned about it.
        WaitsFor::Inputs => verdict(ErrorKind::NotYet).but_false(),
        WaitsFor::Edit | WaitsFor::Blueprint => verdict(ErrorKind::UserMustFix),
        WaitsFor::Retry => verdict(ErrorKind::Infrastructure),
    }
}

fn retrieve_verdict(error: &ReadError) -> Verdict {
    use ErrorKind::{NotYet, UserMustFix};
    match error {
        ReadError::Path { .. }
        | ReadError::NotDone(NotDone::Path {
            is_hopeless: false, ..
        }) => Verdict::new(NotYet, Reason::MissingValueAtPath),
        // Unknown as upstream, which takes them for values that are not there yet.
        ReadError::Hopeless { .. }
        | ReadError::NotDone(NotDone::Path {
            is_hopeless: true, ..
        }) => Verdict::new(UserMustFix, Reason::MissingValueAtPath).but_unknown(),
        ReadError::NotDone(NotDone::Hopeless(_)) => {
            Verdict::new(UserMustFix, Reason::ConditionNotMet).but_unknown()
        }
        ReadError::NotDone(NotDone::Unavailable(_)) => {
            Verdict::new(ErrorKind::Infrastructure, Reason::ApiServerUnavailable)
        }
        ReadError::NotDone(NotDone::Condition(_)) | ReadError::Changed | ReadError::Doubtful => {
            Verdict::new(NotYet, Reason::ConditionNotMet)
        }
        ReadError::NotDone(NotDone::Failed(_)) => {
            Verdict::new(UserMustFix, Reason::FailedConditionMet)
        }
        // Nothing that is watched tells when a right comes that is missing, nor when the API server adds something else or takes
        // what it has refused.
        ReadError::NotDone(NotDone::Refused(_))
        | ReadError::Foreign { .. }
        | ReadError::ForeignUnknown { .. } => Verdict::new(UserMustFix, Reason::ConditionNotMet)
            .but_unknown()
            .slowly(),
        // False as upstream, also as long as nothing is wrong yet.
        ReadError::NotDone(NotDone::ObservedGeneration { has_status, .. }) => {
            let kind = if *has_status { UserMustFix } else { NotYet };
            Verdict::new(kind, Reason::TemplateStampFailure).but_false()
        }
        // Nothing to judge yet, or no deployment yet; False as upstream.
        ReadError::NoObject | ReadError::NoDeployment => {
            Verdict::new(NotYet, Reason::UnknownError).but_false()
        }
    }
}

impl Verdict {
    pub(crate) fn new(kind: ErrorKind, reason: Reason) -> Self {
        let (status, retry) = match kind {
            ErrorKind::UserMustFix => (ConditionStatus::False, Retry::AwaitChange),
            ErrorKind::NotYet => (ConditionStatus::Unknown, Retry::AwaitChange),
            ErrorKind::Infrastructure => (ConditionStatus::False, Retry::Backoff),
        };
        Self {
            kind,
            status,
            reason,
            retry,
        }
    }

    /// What follows when the cluster does not come to hold an object; `refused` is the reason where there is no better one.
    pub(crate) fn of_submission(failure: SubmitFailureKind, refused: Reason) -> Self {
        use ErrorKind::{Infrastructure, UserMustFix};
        match failure {
            SubmitFailureKind::Forbidden | SubmitFailureKind::Contested => {
                Self::new(UserMustFix, refused).slowly()
            }
            SubmitFailureKind::Unavailable => {
                Self::new(Infrastructure, Reason::ApiServerUnavailable)
            }
            SubmitFailureKind::TooLarge => Self::new(UserMustFix, Reason::RenderingTooLarge),
            SubmitFailureKind::TooOften => Self::new(UserMustFix, Reason::CreatedTooOften).slowly(),
            SubmitFailureKind::AnswerTooLarge => {
                Self::new(UserMustFix, Reason::AnswerTooLarge).slowly()
            }
            SubmitFailureKind::Rejected | SubmitFailureKind::Stale | SubmitFailureKind::List => {
                Self::new(Infrastructure, refused)
            }
        }
    }

    pub(crate) fn but_false(self) -> Self {
        Self {
            status: ConditionStatus::False,
            ..self
        }
    }

    fn but_unknown(self) -> Self {
        Self {
            status: ConditionStatus::Unknown,
            ..self
        }
    }

    /// A right is missing, a quota is used up, or someone else has to let go: nothing that is watched tells when.
    pub(crate) fn slowly(self) -> Self {
        Self {
            retry: Retry::Slow,
            ..self
        }
    }
}
