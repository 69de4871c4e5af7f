//! What others have set in the object of a step (docs/behaviour/attribution.md#foreign-fields).

use super::{Observing, Reading};
use crate::Observed;
use crate::template::foreign;
use crate::template::outputs::ReadError;

impl Observing<'_> {
    /// What the object says of itself is asked first: that it failed is known whoever has set fields of it.
    pub(super) fn refuse_foreign_fields(&self, reading: &Reading<'_>) -> Result<(), ReadError> {
        let Some(observed) = reading.observed else {
            return Ok(());
        };
        if reading.rendering.is_none() {
            let uid = observed.object["metadata"]["uid"].as_str();
            let known = uid.and_then(|uid| self.beside_before(uid));
            return foreign::refuse_in_held(observed, known);
        }
        if self.template.lifecycle.is_immutable() {
            foreign::refuse_in_run(observed)
        } else {
            foreign::refuse(observed)
        }
    }

    /// What the object holds beside the rendering if nobody else has set anything, or else what it held when nobody had: what
    /// was clean once was put there by the API server.
    pub(super) fn expected_beside(&self, uid: &str, observed: &Observed) -> Option<Vec<String>> {
        if !self.template.refuses_foreign_fields {
            return None;
        }
        let clean = observed
            .beside
            .as_ref()
            .filter(|beside| match &beside.expected {
                Some(Ok(expected)) => beside.are_all_in(expected),
                Some(Err(_)) | None => false,
            });
        let clean = clean.map(|beside| beside.values.clone());
        clean.or_else(|| self.beside_before(uid).map(<[String]>::to_vec))
    }

    /// What is remembered of that.
    fn beside_before(&self, uid: &str) -> Option<&[String]> {
        let applied = self.previous.and_then(|entry| entry.applied.as_ref());
        applied
            .filter(|applied| applied.uid == uid)?
            .beside
            .as_deref()
    }
}
