//! What is done for an owner that a blueprint realizes: what ends it early, and with whose rights the rest is done.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use realizer::{
    Blueprint, Outcome, Owner, Realization, Selection, Unrealized, report_unrealized,
    select_blueprint,
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    BlueprintFamily, LiveOwners, OwnerController, OwnerShell, Realized, Realizes, StepObjects,
    Subject, Walk, namespaces,
};
use crate::mapper::Kind;
use crate::stamped::ObjectKey;
use crate::submit::{Applicant, SubmitError};
use crate::tokens::Account;

/// What the caches say about an owner.
pub struct Dereferenced {
    owner: Owner,
    /// All that there are, by name.
    blueprints: Vec<Arc<Blueprint>>,
}

/// An owner that can be realized.
struct Validated {
    blueprint: Arc<Blueprint>,
    account: Account,
}

impl<F: BlueprintFamily> Realizes for OwnerController<F> {
    type Owner = Dereferenced;

    fn shell(&self) -> &Arc<OwnerShell> {
        &self.shell
    }

    fn dereference(&self, key: &ObjectKey) -> Option<Dereferenced> {
        let parse = |object| Owner::parse(F::FAMILY, object);
        let mut owner = self.shell.read(key, parse, Owner::is_terminating)?;
        owner.stamped_for = self.shell.stamped_for(key);
        let blueprints = self.blueprints.all().into_iter();
        let blueprints = blueprints.filter_map(|(_, entry)| entry.blueprint.as_ref().ok().cloned());
        let mut blueprints: Vec<Arc<Blueprint>> = blueprints.collect();
        blueprints.sort_by(|left, right| left.name.cmp(&right.name));
        Some(Dereferenced { owner, blueprints })
    }

    fn subject<'o>(&self, dereferenced: &'o Dereferenced) -> Subject<'o> {
        (&dereferenced.owner).into()
    }

    async fn realize(&self, dereferenced: &Dereferenced, now: Timestamp) -> Option<Realized> {
        match self.validate(dereferenced, now).await {
            Ok(validated) => {
                let owner = &dereferenced.owner;
                let mut realized = self.submit(owner, &validated, now).await?;
                if validated.blueprint.asks_for_namespaces() {
                    let key = ObjectKey::of_owner(&owner.namespace, &owner.name);
                    realized.awaited.push(namespaces::awaited(&key));
                }
                Some(realized)
            }
            Err(realized) => {
                let owner = &dereferenced.owner;
                let key = ObjectKey::of_owner(&owner.namespace, &owner.name);
                self.shell.selections.retain(&key, &[]);
                Some(*realized)
            }
        }
    }

    fn stamped_kinds(&self) -> BTreeSet<Kind> {
        self.templates.stamped_kinds()
    }
}

impl<F: BlueprintFamily> OwnerController<F> {
    async fn validate(
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
            Selection::NotFound(skipped) => {
                return unrealized(Unrealized::NotFound(skipped), Vec::new());
            }
            Selection::Multiple(names) => {
                return unrealized(Unrealized::Multiple(names), Vec::new());
            }
            Selection::Broken(why) => {
                return unrealized(Unrealized::BlueprintUnreadable(why), Vec::new());
            }
        };
        self.let_in(owner, &blueprint, now).await?;
        if !blueprint.is_ready() {
            return unrealized(Unrealized::BlueprintNotReady(&blueprint), Vec::new());
        }
        let most = self.shell.limits.stamping_depth();
        if owner.stamped_for.len() > most {
            return unrealized(Unrealized::StampedTooDeep(&blueprint, most), Vec::new());
        }
        let key = ObjectKey::of_owner(&owner.namespace, &owner.name);
        let (size, most) = (self.shell.size_of(&key), self.shell.limits.owner_bytes());
        if size > most {
            return unrealized(Unrealized::TooLarge(&blueprint, size, most), Vec::new());
        }
        let accounts = &self.shell.account_args;
        let used = blueprint.service_account(owner, accounts.default_name());
        if accounts.no_lent_accounts && used.0 != owner.namespace.as_str() {
            return unrealized(Unrealized::LentAccountRefused(&blueprint, used), Vec::new());
        }
        let (namespace, name) = &used;
        match self.shell.account(&key, namespace, name) {
            Ok(account) => Ok(Validated { blueprint, account }),
            Err(awaited) => unrealized(
                Unrealized::ServiceAccount(
                    &blueprint,
                    used.clone(),
                    format!("ServiceAccount \"{name}\" not found"),
                ),
                vec![awaited],
            ),
        }
    }

    /// Whether the blueprint is for owners of this namespace.
    async fn let_in(
        &self,
        owner: &Owner,
        blueprint: &Blueprint,
        now: Timestamp,
    ) -> Result<(), Box<Realized>> {
        if !blueprint.asks_for_namespaces() {
            return Ok(());
        }
        let key = ObjectKey::of_owner(&owner.namespace, &owner.name);
        let labels = self.shell.namespaces.labels(&key).await;
        let (why, overload) = match labels {
            Ok(Ok(labels)) => match blueprint.unmet_by_namespace(&labels) {
                None => return Ok(()),
                Some(unmet) => (Unrealized::NamespaceNotAllowed(blueprint, unmet), None),
            },
            Ok(Err(refusal)) => {
                let unread = format!(
                    "its labels cannot be read; grant the controller list and watch of namespaces ({refusal})"
                );
                (Unrealized::NamespaceNotAllowed(blueprint, unread), None)
            }
            Err(unavailable) => {
                let overload = self.shell.outages.met(&key, &unavailable, Instant::now());
                let why = Unrealized::Unavailable(blueprint, unavailable.failure.message);
                (why, Some(overload))
            }
        };
        let awaited = vec![namespaces::awaited(&key)];
        Err(Box::new(Realized {
            overload,
            ..Realized::unrealized(report_unrealized(owner, why, now), awaited)
        }))
    }

    /// `None` when the owner has been changed and this process has not seen that yet.
    async fn submit(
        &self,
        owner: &Owner,
        validated: &Validated,
        now: Timestamp,
    ) -> Option<Realized> {
        let live_owners = LiveOwners::new(&self.shell);
        let is_live_owner =
            |namespace: &str, name: &str, uid: &str| live_owners.has(namespace, name, uid);
        let blueprint = &validated.blueprint;
        let step_objects = StepObjects::of(owner.object());
        let wanted_by_step = |step: &str, object: &Value| {
            blueprint.has_resource(step) && step_objects.wants(step, object)
        };
        let applicant = Applicant {
            kind: F::FAMILY.owner_kind(),
            plural: F::FAMILY.owner_plural(),
            namespace: &owner.namespace,
            name: &owner.name,
            uid: &owner.uid,
            generation: owner.generation,
            now,
            stamped_for: &owner.stamped_for,
            account: validated.account.clone(),
            is_live_owner: &is_live_owner,
            wanted_by_step: &wanted_by_step,
        };
        let reads = |kind: &Kind| self.templates.reads(kind);
        let mut walk = Walk::new(&self.shell, &applicant, &live_owners, &step_objects, &reads);
        match self.walk(owner, blueprint, now, &mut walk).await {
            Ok(outcome) => Some(walk.realized(outcome)),
            Err(SubmitError::Behind) => None,
            Err(SubmitError::Unavailable(unavailable)) => {
                let why = Unrealized::Unavailable(blueprint, unavailable.failure.message);
                Some(walk.realized(report_unrealized(owner, why, now)))
            }
            Err(SubmitError::Token(error)) => {
                let why = Unrealized::ServiceAccountToken(blueprint, crate::cluster::chain(&error));
                let mut realized = walk.realized(report_unrealized(owner, why, now));
                // The account may be fine and the API server not: looked at again, slowly.
                realized.again = Some(crate::submit::SLOW_READ);
                Some(realized)
            }
        }
    }

    async fn walk(
        &self,
        owner: &Owner,
        blueprint: &Blueprint,
        now: Timestamp,
        walk: &mut Walk<'_>,
    ) -> Result<Outcome, SubmitError> {
        let key = self.shell.status_keys.now();
        let artifacts = walk.artifacts(owner, blueprint.retains()).await?;
        let is_known = artifacts.is_some();
        let mut realization = Realization::new(owner, blueprint, &*self.templates, now, key)
            .with_artifacts(artifacts.unwrap_or_default());
        let owner_key = ObjectKey::of_owner(&owner.namespace, &owner.name);
        if !self.shell.told.begin_walk(&owner_key, &owner.uid) {
            realization = realization.with_status_behind();
        }
        if is_known {
            walk.drive(&mut realization, &self.ytt).await?;
        }
        walk.watch_remembered(owner.previous_refs()).await;
        walk.retain_selections();
        let known = walk.known_objects();
        let mut conclusion = realization.conclude(&known);
        conclusion.shell.unwatched = walk.unwatched();
        conclusion.shell.unkept = walk.keep(conclusion.artifacts()).await?;
        let removed = walk.remove(conclusion.removals()).await?;
        conclusion.shell.absent = removed.absent;
        Ok(conclusion.report(&removed.failed))
    }
}
