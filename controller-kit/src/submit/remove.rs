//! Deleting what is no longer wanted, with the owner's rights.

use http::StatusCode;
use realizer::{ObjectRef, Removal};

use super::failure::{OwnerRequestError, SubmitError};
use super::{Applicant, Submitter};
use crate::mapper::{ABSENT_FOR, Kind};
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
        match self.remove_as_served(applicant, reference, &kind).await {
            Err(OwnerRequestError::Request(error)) if error.is(StatusCode::NOT_FOUND) => {
                // Discovery shows a version for a moment longer than the server serves it.
                tokio::time::sleep(ABSENT_FOR).await;
                self.watches.forget_group(kind.group());
                self.remove_as_served(applicant, reference, &kind).await
            }
            outcome => outcome,
        }
    }

    /// Objects outlive the version they were made in: their kind may be served in another one. A 404 is told of the path.
    async fn remove_as_served(
        &self,
        applicant: &Applicant<'_>,
        reference: &ObjectRef,
        kind: &Kind,
    ) -> Result<(), OwnerRequestError> {
        let Some(served) = self.mapper.served_in_any_version(kind).await? else {
            // With its definition, all objects of a kind are gone. A watch that ended with it may not have seen them go.
            if let Some(uid) = &reference.uid {
                let key = ObjectKey::new(&reference.namespace, &reference.name);
                self.watches.deleted(kind, &key, uid);
            }
            return Ok(());
        };
        let (account, namespace, name) =
            (&applicant.account, &reference.namespace, &reference.name);
        let uid = if let Some(uid) = &reference.uid {
            Some(uid.clone())
        } else {
            let live = self.requests.get(account, &served, namespace, name).await?;
            live.filter(|live| is_controlled_by(live, applicant.uid))
                .and_then(|live| live["metadata"]["uid"].as_str().map(str::to_owned))
        };
        let Some(uid) = uid else {
            return Ok(());
        };
        let gone = self
            .requests
            .delete(account, &served, namespace, name, &uid)
            .await?;
        if gone {
            // Otherwise a reconcile before the watch tells would delete it, and say so, again.
            self.watches
                .deleted(kind, &ObjectKey::new(namespace, name), &uid);
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
