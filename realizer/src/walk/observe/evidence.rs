//! What rules went by when they found an object good. As long as it is the same they come to the same, and nobody has to read
//! the other objects again, which takes the owner's rights (docs/behaviour/attribution.md#others).

use serde_json::{Value, json};

use super::{Observing, redaction};
use crate::values::canonical;
use crate::{Observed, Submission};

/// Counts up when the same would come to something else: what an older version of this program found good is judged anew.
const EDITION: u8 = 1;

impl Observing<'_> {
    /// Digest of all that the rules go by, if the other objects are there in these versions. None of secret values: it would
    /// confirm a guess to whoever reads the status. None of a run either: what it came to is kept once it has ended.
    pub(crate) fn evidence(
        &self,
        submission: &Submission,
        observed: &Observed,
        versions: &[String],
    ) -> Option<String> {
        let wanted = &self.basis.as_ref()?.wanted;
        // The rule is that of the template now, also of an update that came before it was changed.
        let rule = &self.template.attribution.as_ref()?.template;
        let object = &observed.object;
        let is_secret = !self.taint.is_none() || redaction::is_secret(object);
        if versions.is_empty() || is_secret || self.template.lifecycle.is_immutable() {
            return None;
        }
        let metadata = &object["metadata"];
        // A kind may be watched with more than this template reads, as others read it.
        let read = submission.reads.iter().map(|path| at(object, path));
        let digest = canonical::digest(&json!({
            "edition": EDITION,
            "rule": rule,
            "rendering": submission.digest,
            "object": [metadata["uid"], metadata["generation"]],
            "read": read.collect::<Vec<&Value>>(),
            "wanted": wanted,
            "others": versions,
        }));
        Some(canonical::short(&digest))
    }

    /// The same with the versions in which the other objects are there, as far as they were asked for.
    pub(super) fn evidence_so_far(
        &self,
        submission: &Submission,
        observed: &Observed,
    ) -> Option<String> {
        let others = &self.basis.as_ref()?.others;
        self.evidence(submission, observed, &others.versions)
    }

    /// Whether status says that the object was good by this.
    pub(crate) fn was_good_by(&self, evidence: &str, observed: &Observed) -> bool {
        let uid = observed.object["metadata"]["uid"].as_str();
        let applied = uid.and_then(|uid| self.applied_before(uid));
        applied.is_some_and(|applied| applied.good_by.as_deref() == Some(evidence))
    }
}

fn at<'o>(object: &'o Value, path: &[String]) -> &'o Value {
    path.iter().fold(object, |value, field| &value[field])
}
