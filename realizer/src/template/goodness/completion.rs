//! `observedCompletion`: the values by which an object says that it is done.

use api_types::templates::{ObservedCompletion, OtherObject};
use serde_json::Value;
use template_language::go_format;

use super::condition::{Condition, Expected, Possible, Truth};
use super::dependence::Dependence;
use super::{Evidence, NotDone, Unknown, Wording, shown, shown_problem};
use crate::values::field_path::{FieldPath, PathProblem};

#[derive(Clone, Debug)]
pub(super) struct Completion {
    succeeded: Condition,
    failed: Option<Condition>,
}

/// Which generation of an object there is, and of which its status speaks.
#[derive(Clone, Debug)]
pub(super) struct Generation {
    generation: FieldPath,
    observed: FieldPath,
}

impl Completion {
    pub(super) fn new(
        completion: &ObservedCompletion,
        reads_scalars: bool,
        others: &[&OtherObject],
    ) -> Self {
        let failed = completion.failed.as_ref();
        Self {
            succeeded: Condition::new(&completion.succeeded, reads_scalars, others),
            failed: failed.map(|failed| Condition::new(failed, reads_scalars, others)),
        }
    }

    /// See [`Condition::paths`].
    pub(super) fn paths(&self, on: Option<usize>) -> impl Iterator<Item = &FieldPath> {
        let conditions = [Some(&self.succeeded), self.failed.as_ref()];
        let conditions = conditions.into_iter().flatten();
        conditions.flat_map(move |condition| condition.paths(on))
    }

    /// Whether anything is read on the stamped object: only then must that have observed its generation.
    pub(super) fn reads_stamped(&self) -> bool {
        self.paths(None).next().is_some()
    }

    /// Whether it depends on other objects, as the stamped one is.
    pub(super) fn needs_others(&self, evidence: Evidence<'_>, wording: Wording) -> bool {
        let failed = self.failed.as_ref();
        match failed.map(|failed| failed.needs_others_to_fail(evidence, wording)) {
            Some(Dependence::Others) => true,
            Some(Dependence::Ended) => false,
            Some(Dependence::Nothing) | None => {
                matches!(self.succeeded.can_hold(evidence), Possible::Depends { .. })
            }
        }
    }

    pub(super) fn check(&self, evidence: Evidence<'_>, wording: Wording) -> Result<(), NotDone> {
        if let Some(failed) = &self.failed {
            failed.check_failed(evidence, wording)?;
        }
        self.succeeded.check_succeeded(evidence, wording)
    }
}

impl Generation {
    pub(super) fn new() -> Self {
        Self {
            generation: FieldPath::new("metadata.generation"),
            observed: FieldPath::new("status.observedGeneration"),
        }
    }

    pub(super) fn paths(&self) -> [&FieldPath; 2] {
        [&self.generation, &self.observed]
    }

    /// Whether the object says of which generation its status speaks.
    pub(super) fn is_told(&self, object: &Value) -> bool {
        self.observed.read(object).is_ok()
    }

    /// Whether what status says is about the present spec, as far as it says so at all.
    pub(super) fn is_current(&self, object: &Value) -> bool {
        !self.is_told(object) || self.check(object).is_ok()
    }

    pub(super) fn check(&self, object: &Value) -> Result<(), NotDone> {
        let generation = self
            .generation
            .read(object)
            .map_err(|problem| NotDone::Path {
                path: self.generation.text().to_owned(),
                cause: format!("failed to evaluate metadata.generation: {problem}"),
                is_hopeless: false,
            })?;
        let observed =
            self.observed
                .read(object)
                .map_err(|problem| NotDone::ObservedGeneration {
                    problem,
                    has_status: has_status(object),
                })?;
        if generation == observed {
            return Ok(());
        }
        Err(NotDone::Condition(format!(
            "status.observedGeneration does not equal metadata.generation: {} != {}",
            go_format::display_exact(&observed),
            go_format::display_exact(&generation)
        )))
    }
}

/// What follows where a condition says that an object succeeded or failed. A single value is told in the words of the Go
/// controller.
impl Condition {
    /// The value shown is the one the template asks for, so it is no secret. The cause of a path error may quote the data.
    pub(super) fn check_failed(
        &self,
        evidence: Evidence<'_>,
        wording: Wording,
    ) -> Result<(), NotDone> {
        if let Self::Value(expected) = self {
            return expected.check_failed(evidence.object, wording);
        }
        match self.can_hold(evidence) {
            Possible::Yes => Err(NotDone::Failed(format!(
                "{}failure condition holds: {self}",
                wording.subject
            ))),
            // It may have failed.
            Possible::Depends { why, unknown } => Err(unknown.not_done(why)),
            Possible::No => match self.of(evidence) {
                // Somebody has to correct a path.
                Truth::NotKnown {
                    why,
                    unknown: unknown @ Unknown::Hopeless,
                } => Err(unknown.not_done(why)),
                Truth::Holds | Truth::HoldsNot(_) | Truth::NotKnown { .. } => Ok(()),
            },
        }
    }

    fn check_succeeded(&self, evidence: Evidence<'_>, wording: Wording) -> Result<(), NotDone> {
        if let Self::Value(expected) = self {
            return expected.check_succeeded(evidence, wording);
        }
        let subject = wording.subject;
        match self.of(evidence) {
            Truth::Holds => Ok(()),
            Truth::HoldsNot(why) => Err(NotDone::Condition(format!(
                "{subject}success condition does not hold: {why}"
            ))),
            Truth::NotKnown { why, unknown } => Err(unknown.not_done(format!(
                "{subject}success condition is not known yet: {why}"
            ))),
        }
    }
}

impl Expected {
    fn check_failed(&self, object: &Value, wording: Wording) -> Result<(), NotDone> {
        let unread = |cause, is_hopeless| NotDone::Path {
            path: self.path.text().to_owned(),
            cause,
            is_hopeless,
        };
        match self.path.read(object) {
            Ok(value) if self.is(&value) => Err(NotDone::Failed(format!(
                "{}failure condition [{}] was: {}",
                wording.subject,
                self.path.text(),
                self.value
            ))),
            Ok(_) | Err(PathProblem::Absent(_)) => Ok(()),
            Err(PathProblem::EmptyList(cause)) => Err(unread(cause, false)),
            Err(PathProblem::Broken(cause)) => Err(unread(cause, true)),
        }
    }

    fn check_succeeded(&self, evidence: Evidence<'_>, wording: Wording) -> Result<(), NotDone> {
        let Evidence { object, veil, .. } = evidence;
        let path = self.path.text();
        let value = self.path.read(object).map_err(|problem| {
            let text = format!(
                "failed to evaluate succeededCondition.Key [{path}]: {}",
                shown_problem(&problem, veil.hides_all())
            );
            NotDone::unread(&problem, text)
        })?;
        if self.is(&value) {
            return Ok(());
        }
        Err(NotDone::Condition(format!(
            "{}success condition [{path}] was: {}, expected: {}",
            wording.subject,
            shown(&value, veil.hides_all()),
            self.value
        )))
    }
}

/// Whether anything of the status is there, as far as the rules read it. Some kinds begin with an empty one.
fn has_status(object: &Value) -> bool {
    match object.get("status") {
        None | Some(Value::Null) => false,
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(_) => true,
    }
}
