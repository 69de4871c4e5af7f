//! Whether others have set fields beside what is rendered, where a template refuses that.
//!
//! The API server puts values there itself: defaults, and what admission adds. So it is asked, by an apply under another name as
//! a dry run, what it makes of the rendering alone. That is needed only when nothing else tells: an object that was just
//! created holds nothing of others, and one that holds beside the rendering what it held when that was asked before does not
//! either; status knows that after a restart.

use std::time::Duration;

use realizer::{Beside, Observation, Write};
use serde_json::Value;
use submission::{ValuesBeside, derived_name};

use crate::submit::attempt::Attempt;
use crate::submit::backoff::{KeyedBackoff, Repeatable, Spacing};
use crate::submit::failure::{Failure, during};
use crate::submit::{Submitted, now};

/// What somebody else has set, and what is refused, are asked for again only so often.
const SPACING: Spacing = Spacing {
    first: Duration::from_secs(15),
    longest: Duration::from_mins(5),
    calm: Duration::from_mins(15),
};

/// What the API server made of renderings alone, or why that is not known.
pub(in crate::submit) type KnownBeside = KeyedBackoff<Expected>;

/// What an object may hold beside the rendering, or why that is not known.
type Expected = Result<Vec<String>, String>;

pub(in crate::submit) fn nothing_known() -> KnownBeside {
    KeyedBackoff::new(SPACING)
}

impl Attempt<'_> {
    /// Says what the object would hold beside the rendering if nobody but the API server had touched it.
    ///
    /// # Errors
    /// What ends the reconcile: the machine is in the way. What is refused is told with the observation.
    pub(super) async fn expect_beside(
        self,
        mut submitted: Submitted,
    ) -> Result<Submitted, Failure> {
        let Observation::Object { observed, write } = &mut submitted.observation else {
            return Ok(submitted);
        };
        let is_as_rendered = observed.digest.as_ref() == Some(&self.submission.digest);
        if let Some(beside) = observed.beside.as_mut().filter(|_| is_as_rendered) {
            let uid = &observed.object["metadata"]["uid"];
            beside.expected = Some(self.expected(beside, uid, *write).await?);
        }
        Ok(submitted)
    }

    async fn expected(
        self,
        beside: &Beside,
        uid: &Value,
        write: Write,
    ) -> Result<Expected, Failure> {
        let place = (&self.served().kind, self.key());
        let asked = Repeatable::new(&place, &self.submission.digest);
        let known_beside = &self.submitter.known_beside;
        if write == Write::Created {
            let expected = Ok(beside.values.clone());
            known_beside.written(asked, now(), |_| expected.clone());
            return Ok(expected);
        }
        let recorded = self.submission.recorded.applied.as_ref();
        let recorded = recorded.filter(|recorded| *uid == recorded.uid);
        let recorded = recorded.and_then(|recorded| recorded.beside.clone());
        let recorded = recorded.unwrap_or_default();
        if beside.are_all_in(&recorded) {
            return Ok(Ok(recorded));
        }
        // A default that followed from an earlier rendering stays, and is no more foreign than it was.
        let with_recorded = |known: Expected| known.map(|known| [known, recorded.clone()].concat());
        if let Some((wait, known)) = known_beside.last(asked, now()) {
            let known = with_recorded(known);
            let is_clean = known.as_ref().is_ok_and(|known| beside.are_all_in(known));
            if is_clean || !wait.is_zero() {
                return Ok(known);
            }
        }
        let expected = self.ask_beside().await?;
        known_beside.written(asked, now(), |_| expected.clone());
        Ok(with_recorded(expected))
    }

    /// What the API server makes of the rendering where nothing is there.
    async fn ask_beside(self) -> Result<Expected, Failure> {
        let mut object = self.manifest().applied(false).object;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let (uid, step) = (self.applicant.uid, &self.submission.resource);
        let other = derived_name(&format!("{name}-"), uid, step, &self.submission.digest, 0);
        object["metadata"]["name"] = other.into();
        let manager = self.submitter.watches.field_manager();
        match self.client().try_apply(&object).await {
            Ok(answer) => Ok(Ok(ValuesBeside::of(&answer.body, manager)
                .digests()
                .collect())),
            Err(error) => match during("dry run", error) {
                Failure::Reconcile(error) => Err(Failure::Reconcile(error)),
                refused => Ok(Err(self.told(refused.of_step()))),
            },
        }
    }

    /// A refusal may quote what a Secret holds.
    fn told<E>(self, refused: Result<realizer::SubmitFailure, E>) -> String {
        let is_secret =
            self.served().kind.api_version == "v1" && self.served().kind.kind == "Secret";
        match refused {
            Ok(refused) if !is_secret => refused.message,
            Ok(_) | Err(_) => "dry run: the API server refused it".to_owned(),
        }
    }
}
