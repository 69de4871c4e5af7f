//! What the cluster holds in the place of an object, without writing anything.

use realizer::{Looked, Submission};

use super::{Applicant, SubmitError, Submitter, failure};
use crate::stamped::Projection;

impl Submitter {
    /// The live object, or the members of its family; `needed` are the paths that the template reads.
    ///
    /// Sends nothing where the kind can be watched.
    ///
    /// # Errors
    /// As [`Self::submit`]: a token is needed where the kind cannot be watched.
    pub async fn look(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        needed: &Projection,
    ) -> Result<Looked, SubmitError> {
        let looked = async {
            let source = self.source(submission, needed).await?;
            let found = if submission.lifecycle.is_immutable() {
                self.members(applicant, submission, &source).await?
            } else {
                let held = self.held(applicant, submission, &source).await?;
                held.into_iter().collect()
            };
            let observed = found.iter().map(|held| held.observed(source.served()));
            Ok(observed.collect())
        };
        match looked.await {
            Ok(observed) => Ok(Ok(observed)),
            Err(failure::Failure::Token(error)) => Err(SubmitError::Token(error)),
            Err(failure::Failure::Step(step) | failure::Failure::Unserved(step)) => Ok(Err(step)),
        }
    }
}
