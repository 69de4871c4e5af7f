//! The five steps.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api_types::EventReason;
use jiff::Timestamp;
use realizer::{
    Blueprint, Conclusion, KnownObject, Looked, Observation, Outcome, Owner, Realization, Removal,
    Selection, Step, Submission, SubmitFailureKind, Unrealized, report_unrealized,
    select_blueprint,
};
use serde_json::Value;
use tracing::{Instrument as _, info_span, warn};

use super::claims::Claims;
use super::controller::OwnerController;
use super::report::Realized;
use super::{Awaited, BlueprintFamily};
use crate::mapper::Kind;
use crate::scheduler::{Next, OwnerKey};
use crate::stamped::{ObjectKey, Projection};
use crate::submit::{Applicant, SubmitError};
use crate::tokens::Account;

/// What the caches say about an owner.
struct Dereferenced {
    owner: Owner,
    blueprints: Vec<Arc<Blueprint>>,
}

/// An owner that can be realized.
struct Validated {
    blueprint: Arc<Blueprint>,
    account: Account,
}

impl<F: BlueprintFamily> OwnerController<F> {
    /// Reconciles one owner. Nothing is sent when nothing changed.
    pub async fn reconcile(&self, key: &OwnerKey) -> Next {
        let span = info_span!("reconcile", owner = F::FAMILY.owner_kind(), namespace = %key.namespace, name = %key.name);
        async {
            let Some(dereferenced) = self.dereference(key) else {
                self.shell.forget(key);
                return Next::Done;
            };
            let now = (self.shell.clock)();
            let rights_changes = self.shell.waiters.rights_changes();
            let realized = match self.validate(&dereferenced, now) {
                Ok(validated) => self.realize(&dereferenced.owner, &validated, now).await,
                Err(realized) => *realized,
            };
            let next = self
                .shell
                .report(key, (&dereferenced.owner).into(), realized, rights_changes)
                .await;
            self.shell.forget_if_gone(key, &dereferenced.owner.uid);
            next
        }
        .instrument(span)
        .await
    }

    fn dereference(&self, key: &OwnerKey) -> Option<Dereferenced> {
        let entry = self
            .shell
            .owners
            .get(&ObjectKey::new(&key.namespace, &key.name))?;
        let object = Arc::new(entry.object());
        let owner = match Owner::parse(F::FAMILY, object) {
            Ok(owner) => owner,
            Err(error) => {
                warn!(error = %crate::cluster::chain(&error), "this object cannot be read and is left alone; correct or delete it");
                return None;
            }
        };
        if owner.is_terminating() {
            // Its objects go with it; writing more would fight the garbage collector.
            return None;
        }
        let mut blueprints: Vec<Arc<Blueprint>> = self
            .blueprints
            .all()
            .into_iter()
            .filter_map(|(_, entry)| entry.blueprint.as_ref().ok().cloned())
            .collect();
        blueprints.sort_by(|left, right| left.name.cmp(&right.name));
        Some(Dereferenced { owner, blueprints })
    }

    fn validate(
        &self,
        dereferenced: &Dereferenced,
        now: Timestamp,
    ) -> Result<Validated, Box<Realized>> {
        let owner = &dereferenced.owner;
        let unrealized = |why: Unrealized<'_>, awaited| {
            Err(Box::new(Realized::unrealized(
                report_unrealized(owner, why, now),
                awaited,
            )))
        };
        let blueprint = match select_blueprint(owner, &dereferenced.blueprints) {
            Selection::One(blueprint) => blueprint.clone(),
            Selection::LabelsMissing => return unrealized(Unrealized::LabelsMissing, Vec::new()),
            Selection::NotFound => return unrealized(Unrealized::NotFound, Vec::new()),
            Selection::Multiple(names) => {
                return unrealized(Unrealized::Multiple(names), Vec::new());
            }
            Selection::Broken(why) => {
                return unrealized(Unrealized::BlueprintUnreadable(why), Vec::new());
            }
        };
        if !blueprint.is_ready() {
            return unrealized(Unrealized::BlueprintNotReady(&blueprint), Vec::new());
        }
        let (namespace, name) = blueprint.service_account(owner);
        let key = ObjectKey::new(&namespace, &name);
        // Waits before it looks again: an account that comes in between would wake nobody.
        let wait = || {
            let owner = ObjectKey::new(&owner.namespace, &owner.name);
            self.shell
                .waiters
                .set(&owner, &[Awaited::Account(key.clone())]);
            self.shell.accounts.get(&key)
        };
        match self.shell.accounts.get(&key).or_else(wait) {
            Some(account) => Ok(Validated {
                blueprint,
                account: Account {
                    namespace,
                    name,
                    uid: account.uid.to_string(),
                },
            }),
            None => unrealized(
                Unrealized::ServiceAccount(
                    &blueprint,
                    format!("ServiceAccount \"{name}\" not found"),
                ),
                vec![Awaited::Account(key)],
            ),
        }
    }

    async fn realize(&self, owner: &Owner, validated: &Validated, now: Timestamp) -> Realized {
        let is_live_owner = |namespace: &str, name: &str, uid: &str| {
            self.shell
                .owners
                .get(&ObjectKey::new(namespace, name))
                .is_some_and(|entry| *entry.uid == *uid)
        };
        let blueprint = &validated.blueprint;
        let claims = Claims::of(owner.object());
        let wanted_by_step =
            |step: &str, object: &Value| blueprint.has_resource(step) && claims.wants(step, object);
        let applicant = Applicant {
            kind: F::FAMILY.owner_kind(),
            namespace: &owner.namespace,
            name: &owner.name,
            uid: &owner.uid,
            generation: owner.generation,
            account: validated.account.clone(),
            is_live_owner: &is_live_owner,
            wanted_by_step: &wanted_by_step,
        };
        let mut walk = Walk {
            again: None,
            awaited: Vec::new(),
            warnings: Vec::new(),
            unwatched: BTreeSet::new(),
            kinds: BTreeSet::new(),
            claims: &claims,
        };
        match self
            .walk(owner, blueprint, &applicant, now, &mut walk)
            .await
        {
            Ok(outcome) => Realized {
                outcome,
                again: walk.again,
                awaited: walk.awaited,
                warnings: walk.warnings,
            },
            Err(SubmitError::Token(error)) => {
                let why = Unrealized::ServiceAccountToken(blueprint, crate::cluster::chain(&error));
                let key = ObjectKey::new(&validated.account.namespace, &validated.account.name);
                let mut realized = Realized::unrealized(
                    report_unrealized(owner, why, now),
                    vec![Awaited::Account(key)],
                );
                // The account may be fine and the API server not: looked at again, slowly.
                realized.again = Some(crate::submit::SLOW_READ);
                realized
            }
        }
    }

    async fn walk(
        &self,
        owner: &Owner,
        blueprint: &Blueprint,
        applicant: &Applicant<'_>,
        now: Timestamp,
        walk: &mut Walk<'_>,
    ) -> Result<Outcome, SubmitError> {
        let mut realization = Realization::new(owner, blueprint, &*self.templates, now);
        loop {
            match realization.next_step() {
                Step::Render(call) => {
                    realization.record_rendered(self.ytt.render(&owner.namespace, &call).await);
                }
                Step::Look(submission) => {
                    let looked = self.look(applicant, &submission, walk).await?;
                    realization.record_looked(looked);
                }
                Step::Submit(submission) => {
                    let observation = self.submit(applicant, &submission, walk).await?;
                    realization.record_observed(observation);
                }
                Step::Done => break,
            }
        }
        self.watch_remembered(owner, walk).await;
        let known = self.known_objects(owner);
        walk.kinds.extend(
            known
                .iter()
                .map(|object| Kind::new(&object.object.api_version, &object.object.kind)),
        );
        self.shell
            .submitter
            .watches()
            .set_uses(&owner.uid, std::mem::take(&mut walk.kinds));
        let unwatched = std::mem::take(&mut walk.unwatched);
        let conclusion = realization.conclude(&known).with_unwatched(unwatched);
        let failed = self.remove(applicant, &conclusion).await?;
        if !failed.is_empty() {
            walk.await_rights(applicant);
            // Not every change of rights has an event: a policy or a webhook may have forbidden it.
            walk.look_again(crate::submit::SLOW_READ);
        }
        Ok(conclusion.report(&failed))
    }

    async fn submit(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        walk: &mut Walk<'_>,
    ) -> Result<Observation, SubmitError> {
        walk.claims.walk(&submission.resource, &submission.object);
        let kind = Kind::of(&submission.object);
        let needed = self.use_kind(applicant, submission, kind.as_ref());
        let submitted = self
            .shell
            .submitter
            .submit(applicant, submission, &needed)
            .await?;
        if let Observation::Failed(failure) = &submitted.observation {
            match failure.kind {
                SubmitFailureKind::Forbidden => walk.await_rights(applicant),
                SubmitFailureKind::Rejected | SubmitFailureKind::List => {
                    walk.awaited.extend(
                        kind.as_ref()
                            .map(|kind| Awaited::Group(kind.group().into())),
                    );
                }
                SubmitFailureKind::Contested => walk.look_again(crate::submit::SLOW_READ),
            }
        }
        if let Some(text) = submitted.unwatched {
            walk.unwatched.insert(text);
            walk.await_rights(applicant);
        }
        walk.kinds.extend(kind);
        if let Some(again) = submitted.again {
            walk.look_again(again);
        }
        walk.warnings.extend(submitted.warnings);
        Ok(submitted.observation)
    }

    /// Has the kind watched for this owner; returns the paths to keep of its objects.
    fn use_kind(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        kind: Option<&Kind>,
    ) -> Projection {
        let mut needed = Projection::new(submission.reads.iter().cloned());
        if let Some(kind) = kind {
            if !self.shell.submitter.watches().covers(kind, &needed) {
                needed.grow(&self.templates.reads(kind));
            }
            self.shell.submitter.watches().add_use(applicant.uid, kind);
        }
        needed
    }

    async fn look(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        walk: &mut Walk<'_>,
    ) -> Result<Looked, SubmitError> {
        let kind = Kind::of(&submission.object);
        let needed = self.use_kind(applicant, submission, kind.as_ref());
        let looked = self
            .shell
            .submitter
            .look(applicant, submission, &needed)
            .await?;
        walk.kinds.extend(kind);
        Ok(looked)
    }

    /// Kinds that status remembers and this walk did not come to: the step has gone, or failed early. After a restart
    /// nobody watches them, and of a family status names one member only; the others would never be found.
    async fn watch_remembered(&self, owner: &Owner, walk: &mut Walk<'_>) {
        for object in owner.previous_refs() {
            let kind = Kind::new(&object.api_version, &object.kind);
            if !walk.kinds.contains(&kind) {
                self.shell.submitter.watch(&kind).await;
                walk.kinds.insert(kind);
            }
        }
    }

    fn known_objects(&self, owner: &Owner) -> Vec<KnownObject> {
        let owned = self.shell.submitter.watches().owned_by(&owner.uid);
        owned
            .into_iter()
            .map(|(served, object)| KnownObject {
                object: object.reference(&served),
                labels: object.labels(),
                terminating: object.terminating,
            })
            .collect()
    }

    async fn remove(
        &self,
        applicant: &Applicant<'_>,
        conclusion: &Conclusion<'_>,
    ) -> Result<Vec<(Removal, String)>, SubmitError> {
        let mut failed = Vec::new();
        for removal in conclusion.removals() {
            if let Err(why) = self.shell.submitter.remove(applicant, removal).await? {
                failed.push((removal.clone(), why));
            }
        }
        Ok(failed)
    }
}

/// What one walk collects beside the outcome.
struct Walk<'c> {
    again: Option<Duration>,
    awaited: Vec<Awaited>,
    warnings: Vec<(EventReason, String)>,
    unwatched: BTreeSet<String>,
    kinds: BTreeSet<Kind>,
    claims: &'c Claims<'c>,
}

impl Walk<'_> {
    fn await_rights(&mut self, applicant: &Applicant<'_>) {
        // The binding is where the objects are, which is not where a lent account is; a role may be in either.
        for namespace in [applicant.namespace, &applicant.account.namespace] {
            let rights = Awaited::Rights(namespace.into());
            if !self.awaited.contains(&rights) {
                self.awaited.push(rights);
            }
        }
    }

    fn look_again(&mut self, after: Duration) {
        self.again = Some(self.again.map_or(after, |earlier| earlier.min(after)));
    }
}
