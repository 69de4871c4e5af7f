//! One submission under way.

use realizer::Submission;
use submission::Manifest;

use super::{Applicant, Source, Submitter};
use crate::stamped::ObjectKey;

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

impl<'a> Attempt<'a> {
    /// What is sent for the rendering.
    pub(super) fn manifest(self) -> Manifest<'a> {
        Manifest {
            owner: self.applicant.facts(),
            submission: self.submission,
            namespaced: self.source.served().namespaced,
        }
    }

    /// Where the object is.
    pub(super) fn key(self) -> ObjectKey {
        self.applicant.key_of(self.submission, self.source.served())
    }
}
