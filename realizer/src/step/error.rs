//! Why a step is not realized.

mod verdict;

use api_types::names::{ObjectName, ResourceName};

use crate::blueprint::graph::joined;
use crate::template::goodness::NotDone;
use crate::template::outputs::ReadError;
use crate::{ErrorKind, SubmitFailureKind};

pub(crate) use verdict::Verdict;

/// Why a step is not realized. Display is the condition's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The selector of an option cannot be evaluated.
    #[error(
        "get template name from resource: find matching template option: error matching against template option \
         [{option}] for resource [{resource}] in supply chain [{blueprint}]: {cause}"
    )]
    ResolveOption {
        /// Name of the option.
        option: String,
        /// The step.
        resource: ResourceName,
        /// The blueprint.
        blueprint: ObjectName,
        /// Why not.
        cause: String,
    },

    /// Not exactly one option matches.
    #[error(
        "get template name from resource: find matching template option: expected exactly 1 option to match, found \
         [{}] matching options {}for resource [{resource}] in supply chain [{blueprint}]",
        matching.len(),
        listed(matching)
    )]
    OptionsMatch {
        /// Names of the options that match best.
        matching: Vec<String>,
        /// The step.
        resource: ResourceName,
        /// The blueprint.
        blueprint: ObjectName,
    },

    /// The template cannot be used.
    #[error(
        "unable to get template [{template}] for resource [{resource}] in supply chain [{blueprint}]: {cause}"
    )]
    GetTemplate {
        /// Name of the template.
        template: String,
        /// The step.
        resource: ResourceName,
        /// The blueprint.
        blueprint: ObjectName,
        /// Why not.
        cause: String,
    },

    /// There is no such template, though there was when the blueprint was looked at.
    #[error(
        "failed to get cluster template [{{Kind:{kind} Name:{template}}}]: resource does not match a known template"
    )]
    TemplateVanished {
        /// Kind of the template.
        kind: String,
        /// Name of the template.
        template: String,
    },

    /// The template cannot be rendered.
    #[error(
        "unable to stamp object for resource [{resource}] for template [{template}] in supply chain [{blueprint}]: \
         {cause}"
    )]
    Stamp {
        /// `<kind>/<name>` of the template.
        template: String,
        /// The step.
        resource: ResourceName,
        /// The blueprint.
        blueprint: ObjectName,
        /// Why not.
        cause: String,
        /// What makes it succeed.
        waits_for: WaitsFor,
    },

    /// Declared inputs are not there.
    #[error("waiting for input(s) [{}] of resource [{resource}]: not available from resource(s) [{}]{}",
        inputs.join(", "), joined(providers, ", "), and(starved.as_deref()))]
    InputsMissing {
        /// The step.
        resource: ResourceName,
        /// Local names of the inputs.
        inputs: Vec<String>,
        /// For each of them, the step that provides it.
        providers: Vec<ResourceName>,
        /// Why the blueprint will never provide them, if it will not.
        starved: Option<String>,
    },

    /// What goes in is known from status only, and the object may hold something newer.
    #[error(
        "object [{object}] of resource [{resource}] is left as it is: resource(s) [{0}] hand on what status knows as good \
         last, and the object holds something else, which may be newer; waiting for resource(s) [{0}] to be good. \
         To have it made anew at once, delete it",
        joined(providers, ", ")
    )]
    MayBeNewer {
        /// `<namespace>/<name>` of the object.
        object: String,
        /// The step.
        resource: ResourceName,
        /// The steps that are not good.
        providers: Vec<ResourceName>,
    },

    /// The API server did not take the object.
    #[error(
        "unable to apply object [{object}] for resource [{resource}] in supply chain [{blueprint}]: {cause}"
    )]
    Apply {
        /// In which way it failed.
        kind: SubmitFailureKind,
        /// `<namespace>/<name>` of the object.
        object: String,
        /// The step.
        resource: ResourceName,
        /// The blueprint.
        blueprint: ObjectName,
        /// What the API server says.
        cause: String,
    },

    /// The objects that the step made before cannot be listed.
    #[error("unable to list objects in namespace [{namespace}] with labels [{labels}]: {cause}")]
    List {
        /// Where they were looked for.
        namespace: String,
        /// By which labels.
        labels: String,
        /// What the API server says.
        cause: String,
    },

    /// The shell says to whom the object belongs.
    #[error(
        "unable to apply object [{object}] for resource [{resource}] in supply chain [{blueprint}]: {cause}"
    )]
    Contested {
        /// `<namespace>/<name>` of the object.
        object: String,
        /// The step.
        resource: ResourceName,
        /// The blueprint.
        blueprint: ObjectName,
        /// To whom.
        cause: String,
    },

    /// The object does not stay as it is applied.
    #[error(
        "object [{object}] of resource [{resource}] in supply chain [{blueprint}] does not stay as rendered: another \
         writer keeps undoing it; stop that writer, or take the fields that it sets out of the template"
    )]
    Undone {
        /// `<namespace>/<name>` of the object.
        object: String,
        /// The step.
        resource: ResourceName,
        /// The blueprint.
        blueprint: ObjectName,
    },

    /// Outputs are not readable from a submitted object.
    #[error("{message}")]
    Retrieve {
        /// Why not.
        error: ReadError,
        /// What the condition says; chosen by the health of the object.
        message: String,
    },

    /// A validation has not succeeded for what is deployed.
    #[error("{}", error.message(resource, revision, environment, cause))]
    Validation {
        /// How far it is.
        error: ValidationError,
        /// The step.
        resource: ResourceName,
        /// What is validated.
        revision: String,
        /// Names of the environments in which that is.
        environment: String,
        /// What the object of the validation says.
        cause: String,
        /// Whether an event about the environment tells of it.
        has_environment_event: bool,
    },

    /// The input that is to become the output is not there.
    #[error("unable to find passthrough [{input}] in []")]
    PassThrough {
        /// Local name of the input.
        input: String,
        /// Whether the step declares it.
        declared: bool,
    },

    /// The walk ended before its end.
    #[error("resource [{resource}] was not reached")]
    NotReached {
        /// The step.
        resource: ResourceName,
    },
}

/// What makes a rendering that failed succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// Somebody edits something.
    Edit,
    /// Declared inputs that are missing.
    Inputs,
    /// Inputs that the blueprint will never provide.
    Blueprint,
    /// Another try: the machine was in the way, not the template.
    Retry,
}

/// Why a validation has not succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationError {
    /// It begins with the next walk: first status has to say that the environment is kept for it.
    Begins,
    /// It has not ended.
    Running,
    /// It failed.
    Failed,
    /// Not ended in time; it may still succeed.
    TimedOut,
}

impl ValidationError {
    fn message(
        self,
        resource: &ResourceName,
        revision: &str,
        environment: &str,
        cause: &str,
    ) -> String {
        let place = if environment.is_empty() {
            String::new()
        } else {
            format!(" in environment [{environment}]")
        };
        let cause = if cause.is_empty() {
            String::new()
        } else {
            format!(": {cause}")
        };
        match self {
            Self::Begins => {
                format!("validation [{resource}] of revision [{revision}]{place} is about to begin")
            }
            Self::Running => format!(
                "validation [{resource}] of revision [{revision}]{place} has not ended{cause}"
            ),
            Self::Failed => {
                format!("validation [{resource}] failed for revision [{revision}]{place}{cause}")
            }
            Self::TimedOut => format!(
                "validation [{resource}] of revision [{revision}]{place} did not end in time{cause}"
            ),
        }
    }
}

fn and(more: Option<&str>) -> String {
    more.map_or_else(String::new, |more| format!("; {more}"))
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!("[{}] ", names.join(", "))
    }
}

impl StepError {
    /// Whether another event tells of it, about the environment or by the shell, so that no further one needs to.
    pub(crate) fn has_other_event(&self) -> bool {
        matches!(
            self,
            Self::Undone { .. }
                | Self::Validation {
                    has_environment_event: true,
                    ..
                }
        )
    }

    /// Whether nothing will change until somebody does something, as far as can be told.
    pub(crate) fn is_stuck(&self) -> bool {
        match self.verdict().kind {
            ErrorKind::UserMustFix => true,
            ErrorKind::NotYet => false,
            ErrorKind::Infrastructure => matches!(
                self,
                Self::Apply {
                    kind: SubmitFailureKind::Rejected,
                    ..
                }
            ),
        }
    }

    /// Whether it waits for what its object is to say.
    pub(crate) fn waits_for_object(&self) -> bool {
        matches!(self, Self::Retrieve { .. }) && !self.is_stuck()
    }

    /// Whether another step has to come first.
    pub(crate) fn waits_for_another_step(&self) -> bool {
        matches!(
            self,
            Self::InputsMissing { starved: None, .. }
                | Self::MayBeNewer { .. }
                | Self::PassThrough { declared: true, .. }
                | Self::Stamp {
                    waits_for: WaitsFor::Inputs,
                    ..
                }
        )
    }

    /// Why the outputs of a template can never be read as it stands. The condition's message does not say it: that is what
    /// upstream says while a value is awaited.
    pub(crate) fn unreadable(&self) -> Option<String> {
        let Self::Retrieve { error, .. } = self else {
            return None;
        };
        match error {
            ReadError::Hopeless { cause, .. } | ReadError::NotDone(NotDone::Hopeless(cause)) => {
                Some(cause.clone())
            }
            // Without the cause, which may quote the object.
            ReadError::NotDone(NotDone::Path {
                path,
                is_hopeless: true,
                ..
            }) => Some(format!("path [{path}] does not fit the object")),
            ReadError::NotDone(NotDone::ObservedGeneration {
                has_status: true, ..
            }) => Some(
                "the object has a status without observedGeneration, which observedCompletion asks for; use \
                 observedMatches instead"
                    .to_owned(),
            ),
            ReadError::Path { .. }
            | ReadError::NotDone(
                NotDone::Condition(_)
                | NotDone::Failed(_)
                | NotDone::Refused(_)
                | NotDone::Unavailable(_)
                | NotDone::ObservedGeneration { .. }
                | NotDone::Path { .. },
            )
            | ReadError::Changed
            | ReadError::Doubtful
            | ReadError::Foreign { .. }
            | ReadError::ForeignUnknown { .. }
            | ReadError::NoObject
            | ReadError::NoDeployment => None,
        }
    }
}

#[cfg(test)]
mod tests;
