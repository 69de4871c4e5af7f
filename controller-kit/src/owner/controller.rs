//! The parts of an owner controller, and which event wakes whom.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use realizer::{Blueprint, Family, OwnerEvent, Retry, blueprint_status};
use tokio::time::Instant;
use tracing::warn;

use super::report::write_status;
use super::{AccountEntry, Awaited, BlueprintEntry, OwnerEntry, TemplateEntry, Templates, Waiters};
use crate::cluster::{Cluster, encode};
use crate::events::{EventRecorder, InvolvedObject};
use crate::metrics::Metrics;
use crate::reflect::{Change, Entry, Reflector};
use crate::scheduler::{Lane, Next, OwnerKey, Scheduler};
use crate::stamped::ObjectKey;
use crate::submit::Submitter;
use crate::tokens::{Account, TokenCache};
use crate::ytt::Ytt;

/// One edit of a blueprint or template arrives as several events; its owners are woken once.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// Rights take a moment to reach the authorizer's cache after the event.
pub(super) const RIGHTS_SETTLE: Duration = Duration::from_millis(200);
/// A definition is served a moment after it is established.
const DEFINITION_SETTLE: Duration = Duration::from_millis(200);

/// Where the time of day comes from.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What an owner controller is made of.
pub struct Parts<B> {
    /// Workloads or Deliverables.
    pub family: Family,
    /// Requests with the controller's identity.
    pub cluster: Cluster,
    /// The owners.
    pub owners: Arc<Reflector<OwnerEntry>>,
    /// The blueprints.
    pub blueprints: Arc<Reflector<B>>,
    /// The templates.
    pub templates: Arc<Templates>,
    /// The service accounts.
    pub accounts: Arc<Reflector<AccountEntry>>,
    /// Writes stamped objects.
    pub submitter: Arc<Submitter>,
    /// Tokens of service accounts.
    pub tokens: Arc<TokenCache>,
    /// Renders ytt templates.
    pub ytt: Arc<Ytt>,
    /// Sends events.
    pub events: EventRecorder,
    /// Queue of owners.
    pub scheduler: Arc<Scheduler>,
    /// Queue of blueprints.
    pub blueprint_scheduler: Arc<Scheduler>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Time of day.
    pub clock: Clock,
    /// Our field manager.
    pub field_manager: &'static str,
}

/// Reconciles the owners of one family and the blueprints they use.
pub struct OwnerController<B> {
    pub(super) family: Family,
    pub(super) cluster: Cluster,
    pub(super) owners: Arc<Reflector<OwnerEntry>>,
    pub(super) blueprints: Arc<Reflector<B>>,
    pub(super) templates: Arc<Templates>,
    pub(super) accounts: Arc<Reflector<AccountEntry>>,
    pub(super) submitter: Arc<Submitter>,
    pub(super) ytt: Arc<Ytt>,
    pub(super) events: EventRecorder,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Clock,
    pub(super) field_manager: &'static str,
    pub(super) waiters: Waiters,
    /// Since when an owner has a status that is not written yet.
    pub(super) pending: Mutex<HashMap<OwnerKey, Instant>>,
    tokens: Arc<TokenCache>,
    scheduler: Arc<Scheduler>,
    blueprint_scheduler: Arc<Scheduler>,
}

impl<B> OwnerController<B>
where
    B: Entry + Borrow<BlueprintEntry>,
{
    /// Puts the parts together.
    pub fn new(parts: Parts<B>) -> Arc<Self> {
        let Parts {
            family,
            cluster,
            owners,
            blueprints,
            templates,
            accounts,
            submitter,
            tokens,
            ytt,
            events,
            scheduler,
            blueprint_scheduler,
            metrics,
            clock,
            field_manager,
        } = parts;
        Arc::new(Self {
            family,
            cluster,
            owners,
            blueprints,
            templates,
            accounts,
            submitter,
            ytt,
            events,
            metrics,
            clock,
            field_manager,
            waiters: Waiters::default(),
            pending: Mutex::default(),
            tokens,
            scheduler,
            blueprint_scheduler,
        })
    }

    /// A stamped object of this owner changed: the chain goes on.
    pub fn stamped_changed(scheduler: &Scheduler, namespace: &str, name: &str) {
        scheduler.wake(OwnerKey::new(namespace, name), Lane::Progress, None);
    }

    /// An owner appeared, changed or went.
    pub fn owner_changed(&self, change: &Change<'_, OwnerEntry>) {
        let key = OwnerKey::new(&*change.key.namespace, &*change.key.name);
        let replaced =
            |before: &OwnerEntry| change.after.is_none_or(|after| after.uid != before.uid);
        if let Some(before) = change.before.filter(|before| replaced(before)) {
            self.submitter
                .watches()
                .set_uses(&before.uid, std::collections::BTreeSet::new());
            self.waiters.set(change.key, &[]);
            self.pending
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&key);
        }
        match (change.before, change.after) {
            (_, None) => self.scheduler.forget(&key),
            (Some(before), Some(after)) if !after.differs(before) => {}
            (_, Some(_)) => self.scheduler.wake(key, Lane::Fresh, None),
        }
    }

    /// A blueprint changed: wakes the owners that it can concern, before or after.
    pub fn blueprint_changed(&self, change: &Change<'_, B>) {
        self.blueprint_scheduler
            .wake(OwnerKey::new("", &*change.key.name), Lane::Fresh, None);
        let compiled = |entry: Option<&Arc<B>>| {
            entry.and_then(|entry| (**entry).borrow().blueprint.as_ref().ok().cloned())
        };
        let (before, after) = (compiled(change.before), compiled(change.after));
        let status = |entry: Option<&Arc<B>>| entry.map(|entry| (**entry).borrow().status.clone());
        let same = match (&before, &after) {
            (Some(before), Some(after)) => {
                before.uid == after.uid
                    && before.generation == after.generation
                    && before.is_ready() == after.is_ready()
                    // As long as it is not, owners repeat why (spec 2.3).
                    && (after.is_ready() || status(change.before) == status(change.after))
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !same {
            let concerned: Vec<Arc<Blueprint>> = before.into_iter().chain(after).collect();
            self.wake_owners_of(&concerned);
        }
    }

    /// A template changed: wakes the blueprints that name it and the owners those concern.
    pub fn template_changed(&self, kind: &str, change: &Change<'_, TemplateEntry>) {
        let mut naming = Vec::new();
        for (key, entry) in self.blueprints.all() {
            if let Ok(blueprint) = &(*entry).borrow().blueprint
                && blueprint
                    .template_refs()
                    .any(|reference| reference == (kind, &*change.key.name))
            {
                self.blueprint_scheduler
                    .wake(OwnerKey::new("", &*key.name), Lane::Fresh, None);
                naming.push(blueprint.clone());
            }
        }
        self.wake_owners_of(&naming);
    }

    fn wake_owners_of(&self, blueprints: &[Arc<Blueprint>]) {
        if blueprints.is_empty() {
            return;
        }
        for (key, owner) in self.owners.all() {
            if blueprints
                .iter()
                .any(|blueprint| blueprint.could_match(&owner.labels))
            {
                self.scheduler.wake(
                    OwnerKey::new(&*key.namespace, &*key.name),
                    Lane::Fresh,
                    Some(DEBOUNCE),
                );
            }
        }
    }

    /// A service account appeared, was replaced or went.
    pub fn account_changed(&self, change: &Change<'_, AccountEntry>) {
        let same = matches!((change.before, change.after), (Some(before), Some(after)) if before.uid == after.uid);
        if same {
            return;
        }
        if let Some(before) = change.before {
            let key = change.key;
            self.tokens.invalidate(&Account {
                namespace: key.namespace.to_string(),
                name: key.name.to_string(),
                uid: before.uid.to_string(),
            });
        }
        self.wake_all(
            self.waiters.take(&Awaited::Account(change.key.clone())),
            None,
        );
        if change.after.is_some() {
            self.rights_changed(Some(&change.key.namespace));
        }
    }

    /// A Role or RoleBinding in a namespace, or a cluster-wide one (`None`), changed.
    pub fn rights_changed(&self, namespace: Option<&str>) {
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        let concerned = if let Some(namespace) = namespace {
            self.waiters.take(&Awaited::Rights(namespace.into()))
        } else {
            // Ours, too: watches are over the whole cluster.
            self.submitter.watches().forget_refused();
            self.waiters.take_all_rights()
        };
        self.wake_all(concerned, Some(RIGHTS_SETTLE));
    }

    /// A CustomResourceDefinition (`<plural>.<group>`) changed.
    pub fn definition_changed(&self, name: &str) {
        let group = name.split_once('.').map_or("", |(_, group)| group);
        self.submitter.watches().forget_group(group);
        self.wake_all(
            self.waiters.take(&Awaited::Group(group.into())),
            Some(DEFINITION_SETTLE),
        );
    }

    /// CustomResourceDefinitions may have changed unseen.
    pub fn definitions_missed(&self) {
        self.submitter.watches().forget_definitions();
        self.wake_all(self.waiters.take_all_groups(), Some(DEFINITION_SETTLE));
    }

    fn wake_all(&self, owners: impl IntoIterator<Item = ObjectKey>, delay: Option<Duration>) {
        for owner in owners {
            self.scheduler.wake(
                OwnerKey::new(&*owner.namespace, &*owner.name),
                Lane::Fresh,
                delay,
            );
        }
    }

    /// Wakes every owner: changes may have been missed.
    pub fn wake_everyone(&self) {
        self.wake_all(self.owners.all().into_iter().map(|(key, _)| key), None);
    }

    /// An owner that went while it was reconciled was cleaned up before the reconcile took its notes.
    pub(super) fn forget_if_gone(&self, key: &OwnerKey, uid: &str) {
        let object_key = ObjectKey::new(&key.namespace, &key.name);
        let present = self.owners.get(&object_key);
        if present.as_ref().is_some_and(|present| *present.uid == *uid) {
            return;
        }
        self.submitter
            .watches()
            .set_uses(uid, std::collections::BTreeSet::new());
        if present.is_none() {
            self.waiters.set(&object_key, &[]);
            self.forget(key);
        }
    }

    pub(super) fn forget(&self, key: &OwnerKey) {
        self.pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
    }

    /// Reports on one blueprint: whether its templates are there, and what is wrong with its graph.
    pub async fn reconcile_blueprint(&self, key: &OwnerKey) -> Next {
        let Some(entry) = self.blueprints.get(&ObjectKey::new("", &key.name)) else {
            return Next::Done;
        };
        let entry: &BlueprintEntry = (*entry).borrow();
        let blueprint = match &entry.blueprint {
            Ok(blueprint) => blueprint,
            Err(error) => {
                warn!(name = %key.name, error = %error, "this blueprint cannot be read and selects no owner; correct or delete it");
                return Next::Done;
            }
        };
        let outcome = blueprint_status(
            blueprint,
            &*self.templates,
            &entry.status,
            entry.generation,
            (self.clock)(),
        );
        if outcome.changed {
            let path = format!(
                "/apis/{}/{}/{}",
                api_types::API_VERSION,
                self.family.blueprint_plural(),
                encode(&key.name)
            );
            match write_status(
                &self.cluster,
                &path,
                &entry.uid,
                &outcome.status,
                self.field_manager,
            )
            .await
            {
                Ok(_) => self.emit_for_blueprint(key, entry, &outcome.events),
                Err(error) if error.is(http::StatusCode::NOT_FOUND) => return Next::Done,
                Err(error) => {
                    warn!(name = %key.name, error = %error, "failed to update status");
                    return Next::Backoff;
                }
            }
        }
        match outcome.retry {
            Retry::Backoff => Next::Backoff,
            Retry::Slow => Next::Slow,
            Retry::AwaitChange => Next::Done,
        }
    }

    fn emit_for_blueprint(&self, key: &OwnerKey, entry: &BlueprintEntry, events: &[OwnerEvent]) {
        let kind = self.family.blueprint_kind();
        let involved = InvolvedObject::of_ours(kind, "", &key.name, &entry.uid);
        self.emit(&involved, events);
    }

    /// Sends events about one object.
    pub(super) fn emit<'e>(
        &self,
        involved: &InvolvedObject,
        events: impl IntoIterator<Item = &'e OwnerEvent>,
    ) {
        for event in events {
            let (reason, message) = (&event.reason, &event.message);
            self.events
                .record(involved.clone(), event.warning, reason, message);
        }
    }

    /// The store of owners.
    pub fn owners(&self) -> &Arc<Reflector<OwnerEntry>> {
        &self.owners
    }

    /// The store of blueprints.
    pub fn blueprints(&self) -> &Arc<Reflector<B>> {
        &self.blueprints
    }

    /// The stores of templates.
    pub fn templates(&self) -> &Templates {
        &self.templates
    }

    /// The store of service accounts.
    pub fn accounts(&self) -> &Arc<Reflector<AccountEntry>> {
        &self.accounts
    }

    /// The counters.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The family that is reconciled.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The stamped objects held, for metrics.
    pub fn stamped_objects(&self) -> usize {
        self.submitter.watches().object_count()
    }

    /// Stops the watches of kinds that nobody uses any more.
    pub fn sweep(&self) {
        self.submitter.watches().sweep(Instant::now());
        self.metrics.stamped_objects(self.stamped_objects());
    }
}
