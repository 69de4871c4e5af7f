//! How a step ended.

use std::sync::Arc;

use crate::error::StepError;
use crate::health::Health;
use crate::outputs::Output;
use crate::{ObjectRef, Observed, Removal, Template, Write};

/// A step that was dealt with, and the template it used if one was found.
pub(crate) struct StepResult {
    pub(crate) template: Option<Arc<Template>>,
    pub(crate) end: StepEnd,
    /// The object it stands for, where that is known although the step failed.
    pub(crate) wanted: Option<ObjectRef>,
}

/// How a step ended.
pub(crate) enum StepEnd {
    /// Its object is in the cluster.
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
    /// Members of the family beyond the retention policy.
    pub(crate) superseded: Vec<Removal>,
}

impl StepResult {
    pub(crate) fn superseded(&self) -> &[Removal] {
        match &self.end {
            StepEnd::Submitted(submitted) => &submitted.superseded,
            StepEnd::PassedThrough(_) | StepEnd::Failed(_) => &[],
        }
    }
}

impl StepEnd {
    pub(crate) fn output(&self) -> Option<&Output> {
        match self {
            Self::Submitted(submitted) => submitted.output.as_ref().ok(),
            Self::PassedThrough(output) => Some(output),
            Self::Failed(_) => None,
        }
    }

    pub(crate) fn into_error(self) -> Option<StepError> {
        match self {
            Self::Submitted(submitted) => submitted.output.err(),
            Self::PassedThrough(_) => None,
            Self::Failed(error) => Some(error),
        }
    }
}
