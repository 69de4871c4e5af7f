//! Whether other objects decide anything, as the stamped one is. If not, nobody has to read them.

use serde_json::Value;

use super::condition::{Condition, Possible};
use super::pair::PathPair;
use super::{Evidence, Readiness, Wording};
use crate::values::redaction::Taint;

/// What the check of `failed` depends on, as the stamped object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dependence {
    /// On what the other objects say.
    Others,
    /// On nothing else: it ends the check whatever they say.
    Ended,
    /// On nothing else: it does not hold, whatever they say.
    Nothing,
}

impl Condition {
    /// What [`Self::check_failed`] depends on. `evidence` has none of the other objects.
    pub(super) fn needs_others_to_fail(
        &self,
        evidence: Evidence<'_>,
        wording: Wording,
    ) -> Dependence {
        let ends = self.check_failed(evidence, wording).is_err();
        match (ends, self.can_hold(evidence)) {
            (_, Possible::Depends { .. }) => Dependence::Others,
            // What others say may decide, so that nobody asks about a path that does not fit.
            (true, Possible::No) if self.reads_others() => Dependence::Others,
            (true, Possible::No | Possible::Yes) => Dependence::Ended,
            (false, Possible::No | Possible::Yes) => Dependence::Nothing,
        }
    }
}

impl Readiness {
    /// See [`Goodness::needs_others`]. What [`Readiness::check`] comes to by the stamped object alone ends it here, too.
    pub(super) fn needs_others(&self, object: &Value, is_run: bool) -> bool {
        let inputs = Taint::NONE;
        let evidence = Evidence::of(object, &inputs, &[]);
        let failed = self.failed.as_ref();
        let failed = failed.filter(|_| self.generation.is_current(object));
        match failed.map(|failed| failed.needs_others_to_fail(evidence, self.wording)) {
            Some(Dependence::Others) => return true,
            Some(Dependence::Ended) => return false,
            Some(Dependence::Nothing) | None => {}
        }
        if self.check_generation_of_pairs(object).is_err()
            || !self.matches.iter().all(|pair| pair.can_match(evidence))
        {
            return false;
        }
        let completion = self.completion.as_ref();
        let completion = completion
            .filter(|it| self.check_generation_of(it, object, is_run).is_ok())
            .is_some_and(|it| it.needs_others(evidence, self.wording));
        completion || self.matches.iter().any(PathPair::reads_others)
    }
}
