//! One walk of the engine over an owner, as a controller would do it, but nothing is written: what the controller would send
//! is sent as a dry run, or compared with what is there.

mod immutable;
mod member;
mod mutable;

use std::collections::BTreeMap;
use std::sync::Arc;

use realizer::{
    Ask, AskFeed, FoundObject, KnownObject, Looked, Needed, ObjectChoice, ObjectQuery, ObjectRef,
    Observation, Observed, Submission, SubmitFailure, SubmitFailureKind, Unread,
};
use serde_json::Value;
use submission::{Belonging, Holder, Kind, Manifest, OwnerFacts, StepObjects, owner_of};

use super::findings::{Findings, Told};
use super::world::{Rights, Served, World, all_of, in_words};

/// For whom it is rehearsed.
pub(super) struct Rehearsal<'r> {
    pub(super) world: &'r mut World,
    pub(super) owner: OwnerFacts<'r>,
    /// The label by which the objects of such owners are found.
    pub(super) label: &'static str,
    pub(super) field_manager: &'static str,
    pub(super) rights: Rights,
    pub(super) is_live_owner: &'r (dyn Fn(&str, &str, &str) -> bool + Send + Sync),
    pub(super) has_step: &'r (dyn Fn(&str) -> bool + Send + Sync),
    pub(super) steps: StepObjects<'r>,
    pub(super) kinds: Vec<Kind>,
    pub(super) findings: Findings,
}

fn seen(object: Value, served: &Served) -> Observed {
    let version = text(&object, "resourceVersion").parse().unwrap_or(0);
    Observed {
        qualified_resource: Some(served.qualified()),
        namespaced: served.namespaced,
        version,
        ..Observed::of(object)
    }
}

fn text<'o>(object: &'o Value, field: &str) -> &'o str {
    object["metadata"][field].as_str().unwrap_or_default()
}

fn failed(kind: SubmitFailureKind, message: String) -> SubmitFailure {
    SubmitFailure { kind, message }
}

/// What becomes of a step for which a request was refused.
fn refused(during: &str, error: &kube::Error) -> SubmitFailure {
    let kind = match error {
        kube::Error::Api(status) => match status.code {
            403 => SubmitFailureKind::Forbidden,
            429 | 502..=504 => SubmitFailureKind::Unavailable,
            _ => SubmitFailureKind::Rejected,
        },
        _ => SubmitFailureKind::Unavailable,
    };
    failed(kind, format!("{during}: {}", in_words(error)))
}

impl Rehearsal<'_> {
    /// Answers the machine until it asks no more.
    pub(super) async fn drive(&mut self, machine: &mut (dyn AskFeed + Send)) {
        loop {
            match machine.next() {
                Ask::Render(call) => {
                    let why = "its template is a program for ytt, and none is run on your machine";
                    self.findings
                        .unjudged
                        .push(self.told(call.resource.as_str(), why));
                    machine.record_rendered(Err(why.to_owned().into()));
                }
                Ask::Look(submission) => machine.record_looked(self.look(&submission).await),
                Ask::Submit(submission) => {
                    machine.record_observed(self.submit(&submission).await);
                }
                Ask::Read(query) => machine.record_read(self.read(&query).await),
                Ask::Done => return,
            }
        }
    }

    fn told(&self, step: &str, text: impl Into<String>) -> Told {
        Told::new(self.owner, step, text)
    }

    async fn served(&mut self, submission: &Submission) -> Result<(Kind, Served), SubmitFailure> {
        let kind = Kind::of(&submission.object);
        let kind = kind.ok_or_else(|| {
            failed(
                SubmitFailureKind::Rejected,
                "the rendering has no kind".to_owned(),
            )
        })?;
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind.clone());
        }
        let served = self.world.served(&kind).await;
        let served = served.map_err(|why| failed(SubmitFailureKind::Rejected, why))?;
        Ok((kind, served))
    }

    async fn look(&mut self, submission: &Submission) -> Looked {
        let (kind, served) = self.served(submission).await?;
        if submission.lifecycle.is_immutable() {
            let members = self.members(submission, &kind, &served).await?;
            let observed = members
                .iter()
                .map(|member| member.observed(&served, self.field_manager));
            return Ok(observed.collect());
        }
        let held = self.held(submission, &kind, &served).await?;
        let Some(held) = held else {
            return Ok(Vec::new());
        };
        if let Holder::Contested(message) = self.holder(submission, &held) {
            return Err(failed(SubmitFailureKind::Contested, message));
        }
        Ok(vec![seen(held, &served)])
    }

    async fn submit(&mut self, submission: &Submission) -> Observation {
        self.steps.walk(&submission.resource, &submission.object);
        let submitted = match self.served(submission).await {
            Ok((kind, served)) if submission.lifecycle.is_immutable() => {
                self.submit_immutable(submission, &kind, &served).await
            }
            Ok((kind, served)) => self.submit_mutable(submission, &kind, &served).await,
            Err(failure) => Err(failure),
        };
        submitted.unwrap_or_else(|failure| {
            let refusal = self.told(submission.resource.as_str(), failure.message.clone());
            self.findings.refused.push(refusal);
            Observation::Failed(failure)
        })
    }

    fn is_owners(&self, object: &Value) -> bool {
        let namespace = Arc::from(text(object, "namespace"));
        let (controller, owner_namespace) = owner_of(&object["metadata"], &namespace);
        let belonging = Belonging {
            namespace: &namespace,
            owner_namespace: &owner_namespace,
            controller: controller.as_ref(),
        };
        let owner = self.owner;
        belonging.is_of(owner.kind, owner.namespace, owner.name, owner.uid)
    }

    fn manifest<'m>(&'m self, submission: &'m Submission, served: &Served) -> Manifest<'m> {
        Manifest {
            owner: self.owner,
            submission,
            namespaced: served.namespaced,
        }
    }

    async fn read(&mut self, query: &ObjectQuery) -> FoundObject {
        self.found(query).await.into()
    }

    async fn found(&mut self, query: &ObjectQuery) -> Result<Arc<Value>, Unread> {
        if query.needed != Needed::Value {
            return Err(Unread::Unneeded);
        }
        let kind = Kind::new(&query.api_version, &query.kind);
        let found = self
            .select(&kind, &query.namespace, &query.choice)
            .await
            .map_err(|failure| match failure.kind {
                SubmitFailureKind::Forbidden => Unread::Refused(failure.message),
                _ => Unread::Unserved(failure.message),
            })?;
        match &found[..] {
            [] => Err(Unread::Missing),
            [object] => Ok(Arc::new(object.clone())),
            several => {
                let names = several.iter().map(|object| text(object, "name").to_owned());
                Err(Unread::Several(names.collect()))
            }
        }
    }

    /// The objects that are chosen, with the owner's rights.
    pub(super) async fn select(
        &mut self,
        kind: &Kind,
        namespace: &str,
        choice: &ObjectChoice,
    ) -> Result<Vec<Value>, SubmitFailure> {
        let served = self.world.served(kind).await;
        let served = served.map_err(|why| failed(SubmitFailureKind::Rejected, why))?;
        let api = served.api(&self.rights.client, namespace);
        let found = match choice {
            ObjectChoice::Name(name) => api.get_opt(name).await.map(|found| {
                let found = found.and_then(|object| serde_json::to_value(object).ok());
                found.into_iter().collect()
            }),
            ObjectChoice::Labels(labels) => {
                let labels: Vec<String> = labels
                    .iter()
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect();
                let params = kube::api::ListParams::default().labels(&labels.join(","));
                all_of(&api, params).await
            }
        };
        found.map_err(|error| refused("unable to list from api server", &error))
    }

    /// The objects of this owner of all kinds that it came by, and of those that its status remembers.
    pub(super) async fn known_objects(&mut self, remembered: Vec<ObjectRef>) -> Vec<KnownObject> {
        for object in remembered {
            let kind = Kind::new(&object.api_version, &object.kind);
            if !self.kinds.contains(&kind) {
                self.kinds.push(kind);
            }
        }
        let mut known = Vec::new();
        for kind in self.kinds.clone() {
            let Ok(served) = self.world.served(&kind).await else {
                continue;
            };
            let listed = self.world.stamped(&kind, &served, self.label).await;
            let listed = listed.as_ref().as_ref().map_or(&[][..], Vec::as_slice);
            let owned = listed.iter().filter(|object| self.is_owners(object));
            known.extend(owned.map(|object| KnownObject {
                object: ObjectRef {
                    api_version: kind.api_version.clone(),
                    kind: kind.kind.clone(),
                    namespace: text(object, "namespace").to_owned(),
                    name: text(object, "name").to_owned(),
                    qualified_resource: Some(served.qualified()),
                    uid: Some(text(object, "uid").to_owned()),
                },
                labels: labels_of(object),
                terminating: object["metadata"]["deletionTimestamp"].is_string(),
            }));
        }
        known
    }
}

fn labels_of(object: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(object["metadata"]["labels"].clone()).unwrap_or_default()
}
