//! Objects that somebody else has changed, of rules that do not ask about the whole spec
//! (docs/behaviour/attribution.md#doubtful).
//!
//! Such a rule compares some fields with what the object reports of them. What its controller has made while another field was
//! somebody else's is reported as made from the same inputs, also after the field was changed back.

use api_types::AppliedObject;
use serde_json::Value;

use super::Observing;
use crate::step::end::{Memory, StepEnd};
use crate::template::outputs::ReadError;
use crate::values::{canonical, redaction};
use crate::{Observed, Submission, Write};

/// The most inputs that are doubted at a time.
const MOST_DOUBTS: usize = 16;

/// What a digest of secret values is keyed for.
const PURPOSE: &str = "doubtful";

impl Observing<'_> {
    /// What status is to know of the values of an object, where the rule does not tell when they were others.
    pub(super) fn values_of(&self, observed: &Observed) -> Option<String> {
        let compares = self.basis.is_some() && self.template.goodness.compares();
        let values = observed.values.clone().filter(|_| compares);
        self.told(values, self.is_tainted(Some(observed)))
    }

    /// As [`Self::values_of`], of what a walk left there. While a write is held back, others' values are in it.
    pub(super) fn values_left_in(&self, uid: &str, observed: &Observed) -> Option<String> {
        if observed.digest.is_some() {
            return self.values_of(observed);
        }
        self.applied_before(uid)?.values.clone()
    }

    pub(super) fn applied_before(&self, uid: &str) -> Option<&AppliedObject> {
        let applied = self.previous.and_then(|entry| entry.applied.as_ref());
        applied.filter(|applied| applied.uid == uid)
    }

    /// A digest as status has it. One of secret values is keyed, or whoever reads it could try guesses.
    fn told(&self, digest: Option<String>, is_secret: bool) -> Option<String> {
        if is_secret {
            let keyed = self.key.digest(PURPOSE, &digest?)?;
            Some(canonical::short(&keyed))
        } else {
            digest
        }
    }

    /// Whether status has this digest. A Secret may have come in, or gone, since it was written.
    fn tells(&self, told: &str, digest: &str) -> bool {
        let is_told = |is_secret| {
            let now = self.told(Some(digest.to_owned()), is_secret);
            now.as_deref() == Some(told)
        };
        is_told(false) || is_told(true)
    }

    /// Digest of what the rule compares: the present inputs.
    fn compared(&self, object: &Value) -> Option<String> {
        let wanted = self.basis.as_ref()?.rule_inputs().wanted;
        self.template.goodness.compared(object, wanted)
    }

    fn is_secret(&self, object: &Value) -> bool {
        !self.taint.is_none() || redaction::is_secret(object)
    }

    /// The inputs of which others may have had something made: those that are rendered, those that the object asks for, and
    /// those that it reports.
    fn doubts(&self, submission: &Submission, observed: &Observed) -> Vec<String> {
        let object = &observed.object;
        let reported = self.template.goodness.reported(object);
        let compared = [&submission.object, object].map(|object| self.compared(object));
        let doubts = compared.into_iter().chain([reported]).flatten();
        doubts
            .filter_map(|doubt| self.told(Some(doubt), self.is_secret(object)))
            .collect()
    }

    /// The inputs with which the object held values of somebody else.
    pub(super) fn doubts_about(&self, uid: &str) -> &[String] {
        let applied = self.applied_before(uid);
        applied.map_or(&[], |applied| &applied.doubtful)
    }

    /// Whether what the object reports of its present inputs may have been made from values of somebody else.
    pub(super) fn is_doubtful(&self, object: &Value) -> bool {
        let doubts = self.doubts_about(uid_of(object));
        // Of more inputs nothing is kept, so it may be any of them.
        let is_any = || doubts.len() >= MOST_DOUBTS;
        let is_one = || {
            let compared = self.compared(object);
            compared.is_some_and(|compared| doubts.iter().any(|doubt| self.tells(doubt, &compared)))
        };
        !doubts.is_empty() && !self.template.goodness.has_observed(object) && (is_any() || is_one())
    }

    /// Whether an object holds values of somebody else, which status has to say before they are changed back. An object of
    /// which status knows nothing is no exception: a process that has made it may have been killed.
    pub(crate) fn is_to_be_doubted(&self, submission: &Submission, observed: &Observed) -> bool {
        let recorded = submission.recorded.applied.as_ref();
        let recorded = recorded.filter(|it| it.uid == uid_of(&observed.object));
        // It was applied when the template had no such rule. What it holds is not known, and nothing speaks against it.
        if recorded.is_some_and(|recorded| recorded.values.is_none() && recorded.state.is_some()) {
            return false;
        }
        let recorded = recorded.and_then(|recorded| recorded.values.as_ref());
        let values = observed.values.as_ref().zip(recorded);
        let is_as_left = values.is_some_and(|(values, recorded)| self.tells(recorded, values));
        if is_as_left || observed.is_as_left || observed.digest.as_ref() == Some(&submission.digest)
        {
            return false;
        }
        let known = self.doubts_about(uid_of(&observed.object));
        let mut doubts = self.doubts(submission, observed).into_iter();
        known.len() < MOST_DOUBTS && doubts.any(|doubt| !known.contains(&doubt))
    }

    /// An object that holds values of somebody else is left as it is until status says so.
    pub(crate) fn doubted(&self, submission: &Submission, observed: Observed) -> StepEnd {
        let doubts = self.doubts(submission, &observed);
        let uid = uid_of(&observed.object);
        let recorded = submission.recorded.applied.clone();
        let recorded = recorded.filter(|recorded| recorded.uid == uid);
        let mut applied = recorded.unwrap_or_else(|| AppliedObject {
            uid: uid.to_owned(),
            ..AppliedObject::default()
        });
        for doubt in doubts {
            if !applied.doubtful.contains(&doubt) {
                applied.doubtful.push(doubt);
            }
        }
        applied.doubtful.truncate(MOST_DOUBTS);
        let memory = Memory {
            applied: Some(applied),
            ..Memory::default()
        };
        let output = Err(ReadError::Changed);
        self.submitted(observed, Write::Unchanged, output, Vec::new(), memory)
    }
}

fn uid_of(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}
