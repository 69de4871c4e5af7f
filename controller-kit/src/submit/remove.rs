//! Deleting what is no longer wanted, with the owner's rights.

use http::StatusCode;
use realizer::{ObjectRef, Removal, SubmitFailure};

use super::error::SubmitError;
use super::failure::{OwnerRequestError, refused};
use super::requests::Deleted;
use super::{Applicant, Submitter};
use crate::cluster::chain;
use crate::mapper::{ABSENT_FOR, Kind, Served};
use crate::stamped::{ObjectKey, Projection, Stamped};
use crate::tokens::Account;

/// What came of a deletion that nobody refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The API server took it.
    Accepted,
    /// None was sent: the object is gone, on its way out, or never was the applicant's.
    Needless,
}

impl Submitter {
    /// Deletes a cluster-scoped object whose owner is gone. One whose owner is there is an orphan, or has another
    /// [`RemovalReason`](realizer::RemovalReason), and goes by [`Submitter::remove`].
    ///
    /// # Errors
    /// The text says why it is still there: there is no token, or the request was refused.
    pub async fn remove_left_behind(
        &self,
        account: &Account,
        served: &Served,
        object: &Stamped,
    ) -> Result<(), String> {
        let deleted = self.delete(account, served, &object.key, &object.uid);
        deleted.await.map_err(|error| chain(&error))
    }

    /// Deletes an object that belongs to the applicant, for whatever [`RemovalReason`](realizer::RemovalReason).
    ///
    /// # Errors
    /// The outer error ends the reconcile (no token); the inner one says why this object is still there.
    pub async fn remove(
        &self,
        applicant: &Applicant<'_>,
        removal: &Removal,
    ) -> Result<Result<Deletion, SubmitFailure>, SubmitError> {
        match self.try_remove(applicant, removal).await {
            Ok(deletion) => Ok(Ok(deletion)),
            Err(error) => Ok(Err(refused(&error.refusal(ToString::to_string)?))),
        }
    }

    /// Deletes exactly this object. The watch knows at once: otherwise a reconcile before it tells would delete the object,
    /// and say so, again.
    async fn delete(
        &self,
        account: &Account,
        served: &Served,
        key: &ObjectKey,
        uid: &str,
    ) -> Result<(), OwnerRequestError> {
        match self.requests.of(account, served).delete(key, uid).await? {
            Deleted::Gone => self.watches.deleted(&served.kind, key, uid),
            Deleted::Going(body) => self.watches.going(&served.kind, &body),
        }
        Ok(())
    }

    async fn try_remove(
        &self,
        applicant: &Applicant<'_>,
        removal: &Removal,
    ) -> Result<Deletion, OwnerRequestError> {
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
    ) -> Result<Deletion, OwnerRequestError> {
        let key = ObjectKey::new(&reference.namespace, &reference.name);
        let Some(served) = self.mapper.served_in_any_version(kind).await? else {
            // With its definition, all objects of a kind are gone. A watch that ended with it may not have seen them go.
            if let Some(uid) = &reference.uid {
                self.watches.deleted(kind, &key, uid);
            }
            return Ok(Deletion::Needless);
        };
        let uid = self
            .uid_of_ours(applicant, reference, &key, &served)
            .await?;
        let Some(uid) = uid else {
            return Ok(Deletion::Needless);
        };
        self.delete(&applicant.account, &served, &key, &uid).await?;
        self.refusals.forget_owner(applicant.uid);
        Ok(Deletion::Accepted)
    }

    /// The uid of the object, if the owner controls it and it is not on its way out. A reference may come from a status that somebody else could write, and
    /// an object of the same name that belongs to somebody else is not ours to delete.
    async fn uid_of_ours(
        &self,
        applicant: &Applicant<'_>,
        reference: &ObjectRef,
        key: &ObjectKey,
        served: &Served,
    ) -> Result<Option<Box<str>>, OwnerRequestError> {
        let namespace = &*key.namespace;
        if !namespace.is_empty() && namespace != applicant.namespace.as_str() {
            return Ok(None);
        }
        let is_wanted = |found: &Stamped| {
            let is_meant = reference.uid.as_ref().is_none_or(|uid| **uid == *found.uid);
            is_meant && found.belongs_to(applicant.kind, &applicant.key(), applicant.uid)
        };
        let held = self.watches.get(&served.kind, key);
        if let Some(held) = held.filter(|held| is_wanted(held)) {
            return Ok((!held.terminating).then(|| held.uid.clone()));
        }
        let client = self.requests.of(&applicant.account, served);
        let live = client.get(key).await?;
        let manager = self.watches.field_manager();
        let live = live
            .map(|live| Stamped::from_value(&live, &served.kind, &Projection::default(), manager));
        let live = live.filter(|live| is_wanted(live) && !live.terminating);
        Ok(live.map(|live| live.uid))
    }
}
