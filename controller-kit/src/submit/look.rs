//! What the cluster holds in the place of an object, without writing anything.

use realizer::{Looked, Observed, Submission};
use submission::Holder;

use super::attempt::Attempt;
use super::failure::{Failure, contested, during};
use super::{Applicant, Listed, Source, SubmitError, Submitter};
use crate::stamped::{Projection, Stamped};

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
        let observed = match held {
            Some(held) => Some(self.observed_as_left(&held).await?),
            None => None,
        };
        Ok((observed.into_iter().collect(), Listed::default()))
    }

    /// An object holds what we wrote, whatever is remembered of it, if an apply changes nothing: a reply was lost, or a process
    /// was killed before it wrote the status.
    async fn observed_as_left(self, held: &Stamped) -> Result<Observed, Failure> {
        let mut observed = self.observed(held);
        let is_asked = self.submission.asks_whose_values && observed.digest.is_none();
        if is_asked && self.is_rendered_in(held).await? {
            observed.digest = Some(self.submission.digest.clone());
        }
        Ok(observed)
    }

    async fn is_rendered_in(self, held: &Stamped) -> Result<bool, Failure> {
        let object = self.manifest().applied(true).object;
        match self.client().try_apply(&object).await {
            Ok(answer) => {
                let applied = self.project(&answer.body);
                Ok(applied.uid == held.uid && applied.values == held.values)
            }
            Err(error) => match during("dry run", error) {
                Failure::Reconcile(error) => Err(Failure::Reconcile(error)),
                _ => Ok(false),
            },
        }
    }
}
