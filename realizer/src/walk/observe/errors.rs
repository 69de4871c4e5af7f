//! What is said of a step whose object was not submitted, or does not hold the outputs.

use api_types::ConditionStatus;
use serde_json::json;
use template_language::go_format;

use super::Observing;
use crate::step::error::StepError;
use crate::template::goodness::NotDone;
use crate::template::health::Health;
use crate::template::outputs::ReadError;
use crate::template::stamp;
use crate::values::redaction;
use crate::{Observed, Submission, SubmitFailure, SubmitFailureKind};

impl Observing<'_> {
    /// What the object holds is as much the other writer's as ours.
    pub(super) fn undone(&self, submission: &Submission) -> StepError {
        let taint = self.taint.clone();
        let taint = taint.and(&redaction::of_object(&submission.object));
        StepError::Undone {
            object: taint.scrub(stamp::display_name(&submission.object)),
            resource: self.step.clone(),
            blueprint: self.blueprint.clone(),
        }
    }

    pub(super) fn failed(&self, submission: &Submission, failure: &SubmitFailure) -> StepError {
        // A template may put a secret value into the name, too; and what it puts into a Secret is one.
        let taint = self.taint.clone();
        let taint = taint.and(&redaction::of_object(&submission.object));
        let object = taint.scrub(stamp::display_name(&submission.object));
        let (resource, blueprint) = (self.step.clone(), self.blueprint.clone());
        let cause = taint.scrub(failure.message.as_str());
        match failure.kind {
            SubmitFailureKind::Contested => StepError::Contested {
                object,
                resource,
                blueprint,
                cause,
            },
            SubmitFailureKind::List => StepError::List {
                namespace: object.split('/').next().unwrap_or_default().to_owned(),
                labels: taint.scrub(go_format::display(&json!(submission.family))),
                cause,
            },
            kind @ (SubmitFailureKind::Forbidden
            | SubmitFailureKind::Rejected
            | SubmitFailureKind::Unavailable
            | SubmitFailureKind::TooLarge
            | SubmitFailureKind::TooOften
            | SubmitFailureKind::AnswerTooLarge
            | SubmitFailureKind::Stale) => StepError::Apply {
                kind,
                object,
                resource,
                blueprint,
                cause,
            },
        }
    }

    /// The message when outputs cannot be read (docs/behaviour/status.md#submitted); it names the
    /// object that was submitted last.
    pub(super) fn unreadable(
        &self,
        error: &ReadError,
        observed: &Observed,
        health: &Health,
    ) -> String {
        let step = self.step;
        match error {
            ReadError::Path { path, .. }
            | ReadError::Hopeless { path, .. }
            | ReadError::NotDone(NotDone::Path { path, .. }) => {
                missing_value(path, observed, health.status)
            }
            ReadError::NotDone(
                NotDone::Condition(cause)
                | NotDone::Hopeless(cause)
                | NotDone::Refused(cause)
                | NotDone::Unavailable(cause),
            ) => format!("resource [{step}] condition not met: {cause}"),
            ReadError::NotDone(NotDone::Failed(cause)) => {
                format!("resource [{step}] failed condition met: {cause}")
            }
            ReadError::NotDone(NotDone::ObservedGeneration { .. }) => format!(
                "resource [{step}] cannot satisfy observedCompletion without observedGeneration in object status"
            ),
            ReadError::Changed => {
                let next = if self.template.lifecycle.is_immutable() {
                    "delete it, and it is made again"
                } else {
                    "its outputs are read once it has been changed back and is good again"
                };
                format!(
                    "resource [{step}] condition not met: object [{}] does not hold what is rendered, because somebody \
                     else changed it; {next}",
                    stamp::display_name(&observed.object)
                )
            }
            ReadError::Doubtful => format!(
                "resource [{step}] condition not met: somebody else changed object [{}] while these were its inputs, and it \
                 does not tell whether it made what it reports before it was changed back; its outputs are read with the \
                 next inputs, or once it has been deleted and is good again",
                stamp::display_name(&observed.object)
            ),
            ReadError::Foreign { fields } => {
                let fields = match &fields[..] {
                    [] => "managed fields do not say which".to_owned(),
                    fields => fields.join(", "),
                };
                format!(
                    "resource [{step}] condition not met: others have set fields of object [{}] that are not rendered: \
                     {fields}; remove them from the object, or render them, or set spec.foreignFields of the template to Allow",
                    stamp::display_name(&observed.object)
                )
            }
            // Nothing is tried for a run: what it was made with is remembered, or not known.
            ReadError::ForeignUnknown { cause } if self.template.lifecycle.is_immutable() => {
                format!(
                    "resource [{step}] condition not met: whether others have set fields of object [{}] is not known: {cause}",
                    stamp::display_name(&observed.object)
                )
            }
            ReadError::ForeignUnknown { cause } => format!(
                "resource [{step}] condition not met: whether others have set fields of object [{}] is found by an apply as \
                 dry run, and that failed: {cause}",
                stamp::display_name(&observed.object)
            ),
            ReadError::NoObject | ReadError::NoDeployment => format!(
                "unable to retrieve outputs from stamped object [{}] of type [{}] for resource [{step}] in supply \
                 chain [{}]: {error}",
                stamp::display_name(&observed.object),
                qualified(observed),
                self.blueprint
            ),
        }
    }
}

fn missing_value(path: &str, observed: &Observed, health: ConditionStatus) -> String {
    let metadata = |field: &str| {
        observed.object["metadata"][field]
            .as_str()
            .unwrap_or_default()
    };
    let object = format!("[{}/{}]", qualified(observed), metadata("name"));
    let place = if observed.namespaced {
        format!(" in namespace [{}]", metadata("namespace"))
    } else {
        String::new()
    };
    match health {
        ConditionStatus::True => {
            format!(
                "cannot read value [{path}] from healthy object {object}{place}, contact Platform Eng"
            )
        }
        ConditionStatus::False => format!(
            "cannot read value [{path}] from unhealthy object {object}{place}, examine object, particularly whether \
             it is receiving proper inputs"
        ),
        ConditionStatus::Unknown => {
            format!("waiting to read value [{path}] from object {object}{place}")
        }
    }
}

fn qualified(observed: &Observed) -> &str {
    observed
        .qualified_resource
        .as_deref()
        .unwrap_or(api_types::status::UNKNOWN_RESOURCE)
}
