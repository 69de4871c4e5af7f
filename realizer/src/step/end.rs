//! How a step ended.

use std::sync::Arc;

use api_types::{AppliedObject, ConditionStatus, StampedRun};

use crate::step::error::StepError;
use crate::template::goodness::NotDone;
use crate::template::health::Health;
use crate::template::outputs::{Output, ReadError};
use crate::{ObjectRef, Observed, Removal, Template, Write};

/// A step that was dealt with, and the template it used if one was found.
pub(crate) struct StepResult {
    pub(crate) template: Option<Arc<Template>>,
    pub(crate) end: StepEnd,
    /// The object it stands for, where that is known although the step failed.
    pub(crate) target: Option<ObjectRef>,
    /// What is in an environment that nothing can be put into now. It is handed on although the step failed.
    pub(crate) kept: Option<Output>,
}

/// How a step ended.
pub(crate) enum StepEnd {
    /// Its object is in the cluster, whether or not this walk has written it.
    Submitted(Box<Submitted>),
    /// An input became its output.
    PassedThrough(Output),
    /// Nothing was submitted; what exists is left as it is.
    Failed(StepError),
}

/// An object in the cluster, and what was read from it.
pub(crate) struct Submitted {
    /// The object (of a family: the one that was submitted last).
    pub(crate) observed: Observed,
    pub(crate) write: Write,
    pub(crate) health: Health,
    pub(crate) output: Result<Output, StepError>,
    /// Whether that is of what is rendered now, and not of an earlier object or of one that is kept as it is.
    pub(crate) is_of_present: bool,
    /// The outputs of an update that came before the one that the step stands for. They are handed on.
    pub(crate) earlier: Option<Output>,
    /// Why the object is not what the step stands for, although it is there. Nothing that it holds is handed on.
    pub(crate) unsettled: Option<StepError>,
    /// Members of the family beyond the retention policy.
    pub(crate) superseded: Vec<Removal>,
    /// What the entry remembers of it.
    pub(crate) memory: Memory,
}

/// What a status entry remembers for the next walk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) applied: Option<AppliedObject>,
    pub(crate) runs: Vec<StampedRun>,
    /// Whether the object is gone, so that condition `Healthy` stays what it was.
    pub(crate) is_gone: bool,
}

impl StepResult {
    /// A step that stands for no object.
    pub(crate) fn without_object(template: Option<Arc<Template>>, end: StepEnd) -> Self {
        Self {
            template,
            end,
            target: None,
            kept: None,
        }
    }

    /// What later steps take.
    pub(crate) fn output(&self) -> Option<&Output> {
        self.end.output().or(self.kept.as_ref())
    }

    /// Whether it is good as it is rendered now: by the rule of its template or, where that has none, if it is healthy. Of
    /// what was passed through, the step that it comes from says it.
    pub(crate) fn is_good(&self) -> bool {
        let is_attributed = self.is_attributed();
        match &self.end {
            StepEnd::Submitted(submitted) => {
                let is_healthy = submitted.health.status == ConditionStatus::True;
                submitted.good().is_some()
                    && submitted.is_of_present
                    && (is_attributed || is_healthy)
            }
            StepEnd::PassedThrough(_) => true,
            StepEnd::Failed(_) => false,
        }
    }

    /// Whether its template says when outputs are good.
    pub(crate) fn is_attributed(&self) -> bool {
        let template = self.template.as_ref();
        template.is_some_and(|template| template.is_attributed())
    }

    /// Whether an immutable object was made.
    pub(crate) fn made_run(&self) -> bool {
        let is_immutable = |template: &Arc<Template>| template.lifecycle.is_immutable();
        match &self.end {
            StepEnd::Submitted(submitted) => {
                submitted.write == Write::Created
                    && self.template.as_ref().is_some_and(is_immutable)
            }
            StepEnd::PassedThrough(_) | StepEnd::Failed(_) => false,
        }
    }

    pub(crate) fn superseded(&self) -> &[Removal] {
        match &self.end {
            StepEnd::Submitted(submitted) => &submitted.superseded,
            StepEnd::PassedThrough(_) | StepEnd::Failed(_) => &[],
        }
    }
}

impl Submitted {
    /// The outputs, if they may be handed on.
    pub(crate) fn good(&self) -> Option<&Output> {
        let output = self.output.as_ref().ok();
        output.filter(|_| self.unsettled.is_none())
    }
}

impl StepEnd {
    /// Says whether what was read is of what is rendered now.
    pub(crate) fn of_present(mut self, is_of_present: bool) -> Self {
        if let Self::Submitted(submitted) = &mut self {
            submitted.is_of_present = is_of_present;
        }
        self
    }

    /// Whether nothing is read because others have set fields of the object, which is good otherwise.
    pub(crate) fn is_of_others(&self) -> bool {
        match self {
            Self::Submitted(submitted) => matches!(
                &submitted.output,
                Err(StepError::Retrieve {
                    error: ReadError::Foreign { .. }
                        | ReadError::ForeignUnknown { .. }
                        | ReadError::Doubtful,
                    ..
                })
            ),
            Self::PassedThrough(_) | Self::Failed(_) => false,
        }
    }

    pub(crate) fn output(&self) -> Option<&Output> {
        match self {
            Self::Submitted(submitted) => submitted.good(),
            Self::PassedThrough(output) => Some(output),
            Self::Failed(_) => None,
        }
    }

    /// The outputs of an update that came before.
    pub(crate) fn earlier(&self) -> Option<&Output> {
        match self {
            Self::Submitted(submitted) => submitted.earlier.as_ref(),
            Self::PassedThrough(_) | Self::Failed(_) => None,
        }
    }

    /// Whether its object says that it failed.
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            Self::Submitted(submitted) => matches!(
                &submitted.output,
                Err(StepError::Retrieve {
                    error: ReadError::NotDone(NotDone::Failed(_)),
                    ..
                })
            ),
            Self::PassedThrough(_) | Self::Failed(_) => false,
        }
    }

    pub(crate) fn into_error(self) -> Option<StepError> {
        match self {
            Self::Submitted(submitted) => {
                let Submitted {
                    unsettled, output, ..
                } = *submitted;
                unsettled.or_else(|| output.err())
            }
            Self::PassedThrough(_) => None,
            Self::Failed(error) => Some(error),
        }
    }
}
