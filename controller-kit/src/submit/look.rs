//! What the cluster holds in the place of an object, without writing anything.

use realizer::{Looked, Submission};

use super::holder::{Holder, holder};
use super::{Applicant, Listed, Source, SubmitError, Submitter, failure};
use crate::stamped::Projection;

impl Submitter {
    /// The live object, or the members of its family; `needed` are the paths that the template reads.
    ///
    /// Sends nothing where the kind can be watched. What is there and belongs to somebody else is not shown, no more than it
    /// would be written: whoever names another owner's object must not learn what it says.
    ///
    /// # Errors
    /// As [`Self::submit`]: a token is needed where the kind cannot be watched.
    pub async fn look(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        needed: &Projection,
    ) -> Result<(Looked, Listed), SubmitError> {
        let looked = async {
            let source = self.source(submission, needed).await?;
            if submission.lifecycle.is_immutable() {
                let found = self.find(applicant, submission, &source).await?;
                let listed = matches!(source, Source::Live(..)).then(|| found.clone());
                let members = Self::members(applicant, submission, &source, found);
                let members = self
                    .recognised(applicant, submission, &source, members)
                    .await?;
                let observed = members
                    .iter()
                    .map(|member| member.observed(source.served()));
                return Ok((observed.collect(), Listed(listed)));
            }
            let held = self.held(applicant, submission, &source).await?;
            if let Some(held) = &held
                && let Holder::Contested(message) = holder(applicant, submission, held)
            {
                return Err(failure::contested(message));
            }
            let observed = held.map(|held| self.verified(applicant, submission, &source, &held));
            Ok((observed.into_iter().collect(), Listed::default()))
        };
        match looked.await {
            Ok((observed, listed)) => Ok((Ok(observed), listed)),
            Err(failure::Failure::Token(error)) => Err(SubmitError::Token(error)),
            Err(failure::Failure::Behind) => Err(SubmitError::Behind),
            Err(failure::Failure::Unavailable(why)) => Err(SubmitError::Unavailable(why)),
            Err(
                failure::Failure::Step(step)
                | failure::Failure::Unserved(step)
                | failure::Failure::Refused(step, _)
                | failure::Failure::Braked(step, _),
            ) => Ok((Err(step), Listed::default())),
        }
    }
}
