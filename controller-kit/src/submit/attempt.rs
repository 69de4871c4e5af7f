//! One submission under way.

use std::sync::Arc;

use realizer::{Observation, Submission};
use serde_json::Value;
use submission::Manifest;

use super::failure::Failure;
use super::refused::{Attempted, Beside, Refused};
use super::requests::OwnerClient;
use super::source::missing_to_watch;
use super::{Applicant, Listed, SLOW_READ, Source, Submitted, Submitter, now};
use crate::mapper::Served;
use crate::stamped::{ObjectKey, Stamped};

/// Who submits what, and by which means. How it goes on depends on the lifecycle: see `mutable` and `immutable`.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) submitter: &'a Submitter,
    pub(super) applicant: &'a Applicant<'a>,
    pub(super) submission: &'a Submission,
    pub(super) source: &'a Source,
}

impl<'a> Attempt<'a> {
    /// What the API server refused for what it is, is not sent again as it is.
    pub(super) async fn submit(self, listed: Listed) -> Result<Submitted, Failure> {
        let Submitter {
            refusals, requests, ..
        } = self.submitter;
        let attempted = Attempted::of(self);
        let known = |attempted| refusals.known(attempted, || self.beside(), now());
        if let Some(refused) = attempted.and_then(known) {
            requests.avoided();
            return Err(Failure::Step(refused));
        }
        let outcome = if self.submission.lifecycle.is_immutable() {
            self.submit_immutable(listed).await
        } else {
            self.submit_mutable().await
        };
        if let (Some(attempted), Err(Failure::Refused(failure, why))) = (attempted, &outcome) {
            let refused = Refused {
                namespace: self.applicant.namespace.as_str(),
                failure,
                why: *why,
                beside: self.beside(),
            };
            refusals.learn(attempted, refused, now());
        }
        outcome
    }

    /// The objects of the owner, by their uids.
    fn beside(self) -> Beside {
        let owner = self.applicant;
        let owned = self.submitter.watches.owned_by(&owner.key(), owner.uid);
        Beside::of(owned.iter().map(|(_, object)| &*object.uid))
    }

    pub(super) fn served(self) -> &'a Arc<Served> {
        self.source.watch().served()
    }

    /// What is sent for the rendering.
    pub(super) fn manifest(self) -> Manifest<'a> {
        Manifest {
            owner: self.applicant.facts(),
            submission: self.submission,
            namespaced: self.served().namespaced,
        }
    }

    /// Where the object is.
    pub(super) fn key(self) -> ObjectKey {
        let name = &self.submission.object["metadata"]["name"];
        self.place(name.as_str().unwrap_or_default())
    }

    /// Where an object of the owner with this name is.
    pub(super) fn place(self, name: &str) -> ObjectKey {
        let namespace = if self.served().namespaced {
            self.applicant.namespace.as_str()
        } else {
            ""
        };
        ObjectKey::new(namespace, name)
    }

    /// With the rights of the owner.
    pub(super) fn client(self) -> OwnerClient<'a> {
        let requests = &self.submitter.requests;
        requests.of(&self.applicant.account, self.served())
    }

    /// The object as it will be kept: projected like the watch projects it.
    pub(super) fn project(self, value: &Value) -> Stamped {
        let manager = self.submitter.watches.field_manager();
        self.source.watch().project(value, manager)
    }

    /// What was read where the kind cannot be watched, with what is known of it besides.
    pub(super) fn recall(self, value: &Value) -> Arc<Stamped> {
        let mut live = self.project(value);
        let known = self.source.watch().get(&live.key);
        if let Some(known) = known.filter(|known| known.uid == live.uid) {
            live.remember(&known);
        }
        Arc::new(live)
    }

    /// Takes the reply to our own write into the cache.
    pub(super) fn keep(self, stamped: Stamped) -> Arc<Stamped> {
        self.source.watch().overlay(stamped.clone());
        Arc::new(stamped)
    }

    /// What was observed, and whether it has to be looked for again as nothing tells of it.
    pub(super) fn submitted(self, observation: Observation) -> Submitted {
        let mut submitted = Submitted::plain(observation);
        if let Source::Live(watch, why) = self.source {
            submitted.look_again(SLOW_READ);
            submitted.unwatched = Some(missing_to_watch(watch.served(), why));
        }
        submitted
    }
}
