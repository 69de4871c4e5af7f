//! Deleting what is no longer wanted, with the owner's rights.

use std::sync::Arc;

use http::StatusCode;
use realizer::{ObjectRef, Removal, SubmitFailure};

use super::failure::{OwnerRequestError, SubmitError, Unavailable, kind_of};
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
        let (name, uid) = (&object.key.name, &object.uid);
        match self.requests.delete(account, served, "", name, uid).await {
            Ok(Deleted::Gone) => {
                self.watches.deleted(&served.kind, &object.key, uid);
                Ok(())
            }
            Ok(Deleted::Going(body)) => {
                self.watches.going(&served.kind, &body);
                Ok(())
            }
            Err(OwnerRequestError::Token(error)) => Err(chain(&error)),
            Err(OwnerRequestError::Request(error)) => Err(error.to_string()),
        }
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
            Err(OwnerRequestError::Token(error)) => Err(SubmitError::Token(error)),
            Err(OwnerRequestError::Request(error)) if error.passes_by_itself() => {
                let why = Unavailable::of(&error, error.to_string());
                Err(SubmitError::Unavailable(why.into()))
            }
            Err(OwnerRequestError::Request(error)) => Ok(Err(SubmitFailure {
                kind: kind_of(&error),
                message: error.to_string(),
            })),
        }
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
        let Some(served) = self.mapper.served_in_any_version(kind).await? else {
            // With its definition, all objects of a kind are gone. A watch that ended with it may not have seen them go.
            if let Some(uid) = &reference.uid {
                let key = ObjectKey::new(&reference.namespace, &reference.name);
                self.watches.deleted(kind, &key, uid);
            }
            return Ok(Deletion::Needless);
        };
        let (account, namespace, name) =
            (&applicant.account, &reference.namespace, &reference.name);
        let Some(uid) = self.uid_of_ours(applicant, reference, &served).await? else {
            return Ok(Deletion::Needless);
        };
        let deleted = self
            .requests
            .delete(account, &served, namespace, name, &uid)
            .await?;
        // Otherwise a reconcile before the watch tells would delete it, and say so, again.
        match deleted {
            Deleted::Gone => {
                let key = ObjectKey::new(namespace, name);
                self.watches.deleted(&served.kind, &key, &uid);
            }
            Deleted::Going(body) => self.watches.going(&served.kind, &body),
        }
        self.refusals.forget_owner(applicant.uid);
        Ok(Deletion::Accepted)
    }

    /// The uid of the object, if the owner controls it and it is not on its way out. A reference may come from a status that somebody else could write, and
    /// an object of the same name that belongs to somebody else is not ours to delete.
    async fn uid_of_ours(
        &self,
        applicant: &Applicant<'_>,
        reference: &ObjectRef,
        served: &Arc<Served>,
    ) -> Result<Option<Box<str>>, OwnerRequestError> {
        let namespace = reference.namespace.as_str();
        if !namespace.is_empty() && namespace != applicant.namespace.as_str() {
            return Ok(None);
        }
        let is_wanted = |found: &Stamped| {
            let is_meant = reference.uid.as_ref().is_none_or(|uid| **uid == *found.uid);
            is_meant && found.belongs_to(applicant.kind, &applicant.key(), applicant.uid)
        };
        let key = ObjectKey::new(namespace, &reference.name);
        let held = self.watches.get(&served.kind, &key);
        if let Some(held) = held.filter(|held| is_wanted(held)) {
            return Ok((!held.terminating).then(|| held.uid.clone()));
        }
        let live = self
            .requests
            .get(&applicant.account, served, namespace, &reference.name)
            .await?;
        let manager = self.watches.field_manager();
        let live = live
            .map(|live| Stamped::from_value(&live, &served.kind, &Projection::default(), manager));
        let live = live.filter(|live| is_wanted(live) && !live.terminating);
        Ok(live.map(|live| live.uid))
    }
}
