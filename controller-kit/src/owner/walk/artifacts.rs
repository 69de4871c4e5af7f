//! What a walk has to do with the Artifacts of its owner: it knows them before it begins, and writes them before it reports.

use std::collections::BTreeSet;

use api_types::artifact::ARTIFACT;
use realizer::{ArtifactWrite, KnownArtifacts, Owner};

use super::Walk;
use crate::owner::artifacts;
use crate::submit::{SLOW_READ, SubmitError, Unavailable};

impl Walk<'_> {
    /// What is kept of the outputs of an owner. `None`: that cannot be said now, and the walk ends early.
    ///
    /// # Errors
    /// When that lasts.
    pub async fn artifacts(
        &mut self,
        owner: &Owner,
        retains: bool,
    ) -> Result<Option<KnownArtifacts>, SubmitError> {
        match self.shell.artifacts.of(owner, retains).await {
            Ok(artifacts) => {
                if artifacts.trouble.is_some() {
                    self.await_artifacts();
                }
                Ok(Some(artifacts))
            }
            Err(unavailable) => match self.bear("", unavailable.clone().into())? {
                Some(failure) => Err(Unavailable {
                    failure,
                    ..unavailable
                }
                .into()),
                None => Ok(None),
            },
        }
    }

    /// An owner whose outputs cannot be kept waits for what hinders that.
    fn await_artifacts(&mut self) {
        self.awaited.push(artifacts::installed());
        self.await_rights();
        self.look_again(SLOW_READ);
    }

    /// Writes what is to be kept before the status says so, with the rights of the controller. Says what was not.
    ///
    /// # Errors
    /// When the owner may be in another shard by now.
    pub async fn keep(
        &mut self,
        writes: &[ArtifactWrite],
    ) -> Result<BTreeSet<String>, SubmitError> {
        let (owner, uid) = (self.applicant.key(), self.applicant.uid);
        let not_written = || writes.iter().map(|write| write.name.clone()).collect();
        if writes.is_empty() || self.is_broken_off() {
            return Ok(not_written());
        }
        if !self.shell.is_still_ours(&owner, uid).await {
            return Err(SubmitError::Behind);
        }
        match self.shell.artifacts.write(&owner, writes).await {
            Ok(unkept) => {
                if !unkept.is_empty() {
                    self.await_artifacts();
                }
                Ok(unkept)
            }
            Err(unavailable) => {
                self.bear(ARTIFACT, unavailable.into())?;
                Ok(not_written())
            }
        }
    }
}
