//! `observedMatches`: two values that must be equal.

use std::borrow::Cow;

use api_types::templates::{ObservedMatch, OtherObject};
use serde_json::Value;

use super::{Evidence, NotDone, position, shown, shown_problem};
use crate::values::field_path::FieldPath;

#[derive(Clone, Debug)]
pub(super) struct PathPair {
    input: FieldPath,
    output: FieldPath,
    /// Which of the other objects `output` is read from.
    other: Option<usize>,
}

impl PathPair {
    pub(super) fn new(pair: &ObservedMatch, others: &[&OtherObject]) -> Self {
        let object = pair.object.as_ref();
        Self {
            input: FieldPath::new(&pair.input),
            output: FieldPath::new(&pair.output),
            other: object.map(|object| position(others, object)),
        }
    }

    /// What is read on the stamped object, or on one of the others.
    pub(super) fn paths(&self, on: Option<usize>) -> impl Iterator<Item = &FieldPath> {
        let input = on.is_none().then_some(&self.input);
        let output = (self.other == on).then_some(&self.output);
        input.into_iter().chain(output)
    }

    /// Whether it is read on another object.
    pub(super) fn reads_others(&self) -> bool {
        self.other.is_some()
    }

    /// Whether it matches, or could with some value in the other object.
    pub(super) fn can_match(&self, evidence: Evidence<'_>) -> bool {
        match self.other {
            Some(_) => self.input.read(evidence.object).is_ok(),
            None => self.check(evidence).is_ok(),
        }
    }

    /// What is compared, as far as the object has it.
    pub(super) fn input(&self, object: &Value) -> Value {
        self.input.read(object).map_or(Value::Null, Cow::into_owned)
    }

    /// What the stamped object reports of that; what another one does is not its word.
    pub(super) fn output(&self, object: &Value) -> Value {
        if self.other.is_some() {
            return self.input(object);
        }
        self.output
            .read(object)
            .map_or(Value::Null, Cow::into_owned)
    }

    /// Compares deeply: comparing two maps or lists killed the Go controller.
    pub(super) fn check(&self, evidence: Evidence<'_>) -> Result<(), NotDone> {
        let Evidence { object, veil, .. } = evidence;
        let side = |name: &str, path: &FieldPath| {
            path.read(object).map_err(|problem| {
                let text = format!(
                    "could not find value on {name} [{}]: {}",
                    path.text(),
                    shown_problem(&problem, veil.hides_all())
                );
                NotDone::unread(&problem, text)
            })
        };
        let input = side("input", &self.input)?;
        if let Some(other) = self.other {
            return self.check_other(&input, other, evidence);
        }
        let output = side("output", &self.output)?;
        if input == output {
            return Ok(());
        }
        let hidden = veil.hides([&input, &output]);
        Err(NotDone::Condition(format!(
            "input [{}] and output [{}] do not match: {} != {}",
            self.input.text(),
            self.output.text(),
            shown(&input, hidden),
            shown(&output, hidden)
        )))
    }

    /// What another object holds is not shown.
    fn check_other(
        &self,
        input: &Value,
        other: usize,
        evidence: Evidence<'_>,
    ) -> Result<(), NotDone> {
        match evidence.of_other(other, &self.output) {
            Ok(output) if *input == *output => Ok(()),
            Ok(_) => Err(NotDone::Condition(format!(
                "input [{}] and output [{}] of object [{}] do not match",
                self.input.text(),
                self.output.text(),
                evidence.shown_other(other)
            ))),
            Err((why, unknown)) => Err(unknown.not_done(format!(
                "could not find value on output [{}]: {why}",
                self.output.text()
            ))),
        }
    }
}
