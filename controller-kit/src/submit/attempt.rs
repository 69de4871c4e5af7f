//! One submission under way.

use realizer::Submission;
use serde_json::Value;

use super::{Applicant, Source, Submitter, placing};

/// Who submits what, and by which means. How it goes on depends on the lifecycle: see `mutable` and `immutable`.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) submitter: &'a Submitter,
    pub(super) applicant: &'a Applicant<'a>,
    pub(super) submission: &'a Submission,
    pub(super) source: &'a Source,
}

impl Submitter {
    pub(super) fn attempt<'a>(
        &'a self,
        applicant: &'a Applicant<'a>,
        submission: &'a Submission,
        source: &'a Source,
    ) -> Attempt<'a> {
        Attempt {
            submitter: self,
            applicant,
            submission,
            source,
        }
    }
}

impl Attempt<'_> {
    /// The rendering at the place where it is going to be.
    pub(super) fn placed(self) -> Value {
        placing::placed(
            self.applicant,
            &self.submission.object,
            self.source.served(),
        )
    }
}
