//! What the cluster holds in the place of an object, without writing anything.

use realizer::{Looked, Observed, Submission};
use submission::Holder;

use super::attempt::Attempt;
use super::failure::{Failure, contested};
use super::{Applicant, Listed, Source, SubmitError, Submitter};
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
            let attempt = Attempt {
                submitter: self,
                applicant,
                submission,
                source: &source,
            };
            attempt.look().await
        };
        match looked.await {
            Ok((observed, listed)) => Ok((Ok(observed), listed)),
            Err(failure) => Ok((Err(failure.of_step()?), Listed::default())),
        }
    }
}

impl Attempt<'_> {
    async fn look(self) -> Result<(Vec<Observed>, Listed), Failure> {
        if self.submission.lifecycle.is_immutable() {
            let found = self.find().await?;
            let listed = matches!(self.source, Source::Live(..)).then(|| found.clone());
            let members = self.recognised(self.members(found)).await?;
            let observed = members.iter().map(|member| member.observed(self.served()));
            return Ok((observed.collect(), Listed(listed)));
        }
        let held = self.held().await?;
        if let Some(held) = &held
            && let Holder::Contested(message) = self.holder(held)
        {
            return Err(contested(message));
        }
        let observed = held.map(|held| self.observed(&held));
        Ok((observed.into_iter().collect(), Listed::default()))
    }
}
