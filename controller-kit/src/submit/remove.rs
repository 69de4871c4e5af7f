//! Deleting what is no longer wanted, with the owner's rights.

use realizer::Removal;

use super::failure::{OwnerRequestError, SubmitError};
use super::{Applicant, Submitter};
use crate::mapper::Kind;
use crate::stamped::ObjectKey;

impl Submitter {
    /// Deletes an object that belongs to the applicant; one that is gone, or never was theirs, counts as deleted.
    ///
    /// # Errors
    /// The outer error ends the reconcile (no token); the inner text says why this object is still there.
    pub async fn remove(
        &self,
        applicant: &Applicant<'_>,
        removal: &Removal,
    ) -> Result<Result<(), String>, SubmitError> {
        match self.try_remove(applicant, removal).await {
            Ok(()) => Ok(Ok(())),
            Err(OwnerRequestError::Token(error)) => Err(SubmitError::Token(error)),
            Err(OwnerRequestError::Request(error)) => Ok(Err(error.to_string())),
        }
    }

    async fn try_remove(
        &self,
        applicant: &Applicant<'_>,
        removal: &Removal,
    ) -> Result<(), OwnerRequestError> {
        let reference = &removal.object;
        let kind = Kind::new(&reference.api_version, &reference.kind);
        let served = match self.mapper.served(&kind).await {
            Ok(served) => served,
            // With its definition, all objects of a kind are gone.
            Err(crate::mapper::MapError::NotServed(_)) => return Ok(()),
            Err(crate::mapper::MapError::Discovery(error)) => return Err(error.into()),
        };
        let uid = if let Some(uid) = &reference.uid {
            Some(uid.clone())
        } else {
            let live = self
                .requests
                .get(
                    &applicant.account,
                    &served,
                    &reference.namespace,
                    &reference.name,
                )
                .await?;
            live.filter(|live| is_controlled_by(live, applicant.uid))
                .and_then(|live| live["metadata"]["uid"].as_str().map(str::to_owned))
        };
        let Some(uid) = uid else {
            return Ok(());
        };
        let (namespace, name) = (&reference.namespace, &reference.name);
        let gone = self
            .requests
            .delete(&applicant.account, &served, namespace, name, &uid)
            .await?;
        if gone {
            // Otherwise a reconcile before the watch tells would delete it, and say so, again.
            self.watches
                .deleted(&kind, &ObjectKey::new(namespace, name), &uid);
        }
        Ok(())
    }
}

/// An object of the same name that belongs to somebody else is not ours to delete.
fn is_controlled_by(live: &serde_json::Value, uid: &str) -> bool {
    let references = live["metadata"]["ownerReferences"].as_array();
    references
        .into_iter()
        .flatten()
        .any(|reference| reference["controller"] == true && reference["uid"] == uid)
}
