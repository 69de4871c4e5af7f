//! What the controllers of all owners have in common: stores, queue, rights, and which event wakes whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use realizer::{Family, OwnerEvent, lineage};
use tokio::time::Instant;
use tracing::{Span, error_span};

use super::dependencies::RIGHTS_SETTLE;
use super::{
    AccountEntry, Artifacts, Dependency, DependencyIndex, Namespaces, OtherShards, Outages,
    OwnerEntry, Scopes, Settling, Shard, ToldOwners,
};
use crate::args::{AccountArgs, LimitArgs};
use crate::cluster::Cluster;
use crate::events::{EventRecorder, InvolvedObject};
use crate::mapper::Kind;
use crate::metrics::Metrics;
use crate::reflect::{Change, Reflector, Watched};
use crate::scheduler::{Lane, Scheduler};
use crate::selections::Selections;
use crate::stamped::ObjectKey;
use crate::status::StatusWriter;
use crate::status_key::StatusKeys;
use crate::submit::Submitter;
use crate::time_of_day::Clock;
use crate::tokens::{Account, TokenCache};

/// A definition is served a moment after it is established.
const DEFINITION_SETTLE: Duration = Duration::from_millis(200);

/// The kind whose objects own what is stamped for them.
#[derive(Debug, Clone, Copy)]
pub struct OwnerKind {
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in URLs.
    pub plural: &'static str,
    /// The label with the owner's name on stamped objects, by which they are watched.
    pub name_label: &'static str,
    /// The span of one reconcile, by which all its lines tell whose they are. It is there at every level, or lines about
    /// errors would have no owner where nothing else is logged.
    pub span: fn(&ObjectKey) -> Span,
}

impl OwnerKind {
    /// The kind, as it is watched.
    pub(crate) fn watched(&self) -> Watched {
        Watched::carto(self.kind, self.plural)
    }
}

impl From<Family> for OwnerKind {
    fn from(family: Family) -> Self {
        Self {
            kind: family.owner_kind(),
            plural: family.owner_plural(),
            name_label: family.owner_name_label(),
            span: match family {
                Family::SupplyChain => |key| error_span!("reconcile", workload = %key),
                Family::Delivery => |key| error_span!("reconcile", deliverable = %key),
            },
        }
    }
}

/// What every controller of owners is made of.
pub struct OwnerShell {
    /// Workloads, Deliverables or Runnables.
    pub kind: OwnerKind,
    /// Requests with the controller's identity.
    pub cluster: Cluster,
    /// The owners of our shard.
    pub owners: Arc<Reflector<OwnerEntry>>,
    /// The service accounts.
    pub accounts: Arc<Reflector<AccountEntry>>,
    /// Writes stamped objects.
    pub submitter: Arc<Submitter>,
    /// What owners select without stamping it.
    pub selections: Selections,
    /// Tokens of service accounts.
    pub tokens: Arc<TokenCache>,
    /// Sends events.
    pub events: EventRecorder,
    /// Queue of owners.
    pub scheduler: Arc<Scheduler>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Time of day.
    pub clock: Clock,
    /// Our field manager.
    pub field_manager: &'static str,
    /// Owners that wait for something outside.
    pub dependencies: Arc<DependencyIndex>,
    /// Writes their statuses.
    pub statuses: StatusWriter,
    /// Owners whose requests are not carried out.
    pub outages: Outages,
    /// Owners whose statuses tell all that was handed on.
    pub told: ToldOwners,
    /// Owners on their way to Ready.
    pub settling: Settling,
    /// Which kinds are cluster-scoped, of those that templates name.
    pub scopes: Scopes,
    /// The key for digests of secret values.
    pub status_keys: StatusKeys,
    /// Which service accounts are taken for them.
    pub account_args: AccountArgs,
    /// What one owner may ask for.
    pub limits: LimitArgs,
    /// Which owners are taken.
    pub shard: Shard,
    /// What is known of those that are not.
    pub other_shards: OtherShards,
    /// The outputs that are kept for them.
    pub artifacts: Artifacts,
    /// The labels of their namespaces.
    pub namespaces: Namespaces,
}

impl OwnerShell {
    /// A stamped object of this owner changed: it goes on.
    pub(crate) fn stamped_changed(scheduler: &Scheduler, namespace: &str, name: &str) {
        scheduler.wake(ObjectKey::new(namespace, name), Lane::Progress, None);
    }

    /// An object that owners may wait for went, or is not whose it was.
    pub(crate) fn object_moved(
        scheduler: &Scheduler,
        dependencies: &DependencyIndex,
        kind: &Kind,
        key: &ObjectKey,
    ) {
        for owner in dependencies.take(&Dependency::Object(kind.clone(), key.clone())) {
            scheduler.wake(owner, Lane::Fresh, None);
        }
    }

    /// An owner appeared, changed or went.
    pub(crate) fn owner_changed(&self, change: &Change<'_, OwnerEntry>) {
        let key = change.key;
        let replaced =
            |before: &OwnerEntry| change.after.is_none_or(|after| after.uid != before.uid);
        if let Some(before) = change.before.filter(|before| replaced(before)) {
            self.submitter
                .watches()
                .set_uses(&before.uid, BTreeSet::new());
            self.dependencies.set(key, &[]);
            self.forget(key);
        }
        if let (Some(before), Some(after)) = (change.before, change.after)
            && before.uid == after.uid
            && before.generation != after.generation
            // Who stands by does not see when it becomes Ready.
            && let Some(term) = self.metrics.term()
        {
            self.settling.begin_term(term);
            self.settling.begin(key, after.generation, (self.clock)());
        }
        match (change.before, change.after) {
            // Nobody else deletes what it made outside of namespaces.
            (_, None) if !self.has_left_behind(key) => self.scheduler.forget(key),
            (Some(before), Some(after)) if !after.differs(before) => {}
            (_, None | Some(_)) => self.scheduler.wake(key.clone(), Lane::Fresh, None),
        }
    }

    /// A service account appeared, was replaced or went.
    pub(crate) fn account_changed(&self, change: &Change<'_, AccountEntry>) {
        let same = matches!((change.before, change.after), (Some(before), Some(after)) if before.uid == after.uid);
        if same {
            return;
        }
        if let Some(before) = change.before {
            let account = Account::new(change.key, &before.uid);
            self.tokens.invalidate(&account);
        }
        let awaited = Dependency::Account(change.key.clone());
        self.wake_all(self.dependencies.take(&awaited), None);
        if change.after.is_some() {
            self.rights_changed(Some(&change.key.namespace));
        }
    }

    /// A Role or RoleBinding in a namespace, or a cluster-wide one (`None`), changed.
    pub(crate) fn rights_changed(&self, namespace: Option<&str>) {
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        self.submitter.forget_refusals(namespace);
        self.artifacts.forget_refusals();
        let concerned = if let Some(namespace) = namespace {
            self.dependencies
                .take(&Dependency::Rights(namespace.into()))
        } else {
            // Ours, too: watches are over the whole cluster.
            self.submitter.watches().rights_changed();
            self.dependencies.take_all_rights()
        };
        self.wake_all(concerned, Some(RIGHTS_SETTLE));
    }

    /// A CustomResourceDefinition (`<plural>.<group>`) changed.
    pub(crate) fn definition_changed(&self, name: &str) {
        let group = name.split_once('.').map_or("", |(_, group)| group);
        self.submitter.forget_refusals(None);
        self.artifacts.forget_refusals();
        self.scopes.forget_group(group);
        self.submitter.watches().forget_group(group);
        self.wake_all(
            self.dependencies.take(&Dependency::Group(group.into())),
            Some(DEFINITION_SETTLE),
        );
    }

    /// CustomResourceDefinitions may have changed unseen.
    pub(crate) fn definitions_missed(&self) {
        self.submitter.forget_refusals(None);
        self.scopes.forget_all();
        self.submitter.watches().forget_definitions();
        self.wake_all(self.dependencies.take_all_groups(), Some(DEFINITION_SETTLE));
    }

    /// What all statuses show may have changed.
    pub(crate) fn wake_everyone(&self) {
        let owners = self.owners.all().into_iter().map(|(key, _)| key);
        self.wake_all(owners, None);
    }

    /// Wakes these owners.
    pub fn wake_all(&self, owners: impl IntoIterator<Item = ObjectKey>, delay: Option<Duration>) {
        for owner in owners {
            self.scheduler.wake(owner, Lane::Fresh, delay);
        }
    }

    /// An owner that went while it was reconciled was cleaned up before the reconcile took its notes.
    pub fn forget_if_gone(&self, key: &ObjectKey, uid: &str) {
        let present = self.owners.get(key);
        if present.as_ref().is_some_and(|present| *present.uid == *uid) {
            return;
        }
        self.submitter.watches().set_uses(uid, BTreeSet::new());
        if present.is_none() {
            self.dependencies.set(key, &[]);
            self.forget(key);
        }
    }

    /// Before each reconcile: what is remembered of an earlier time in which this replica worked is dropped.
    pub(crate) fn begin_term(&self) {
        if let Some(term) = self.metrics.term() {
            self.settling.begin_term(term);
            self.outages.begin_term(term);
            self.told.begin_term(term);
        }
    }

    /// Drops what is remembered of an owner that is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.selections.retain(key, &[]);
        self.settling.forget(key);
        self.told.forget(key);
        self.outages.ended(key);
        self.statuses.forget(key);
    }

    /// The owners that led to this one, the first one first: what its status says, or, as long as it has none, what it says
    /// itself or those of our kind whose references lead from one to the next, whichever is longer.
    pub fn stamped_for(&self, key: &ObjectKey) -> Vec<String> {
        let Some(mut owner) = self.owners.get(key) else {
            return Vec::new();
        };
        let mut found = owner.stamped_for.to_vec();
        if owner.is_lineage_recorded {
            return found;
        }
        let mut nearest_first = Vec::new();
        for _ in 0..lineage::MOST_ANCESTORS {
            let parent = owner.parent.as_ref();
            let Some(parent) = parent.filter(|parent| *parent.kind == *self.kind.kind) else {
                break;
            };
            let above = self
                .owners
                .get(&ObjectKey::new(&key.namespace, &parent.name));
            let Some(above) = above.filter(|above| above.uid == parent.uid) else {
                break;
            };
            nearest_first.push(parent.named());
            let way = above.stamped_for.iter().cloned();
            let way = way.chain(nearest_first.iter().rev().cloned()).collect();
            found = lineage::longer(found, lineage::bounded(way));
            owner = above;
        }
        found
    }

    /// The service account that an owner uses. The owner waits for what becomes of it from now on.
    ///
    /// # Errors
    /// When there is none: what the owner waits for.
    pub fn account(
        &self,
        owner: &ObjectKey,
        namespace: &str,
        name: &str,
    ) -> Result<Account, Dependency> {
        let key = ObjectKey::new(namespace, name);
        // Waits before it looks: an account that comes or goes in between would wake nobody.
        self.dependencies
            .add(owner, Dependency::Account(key.clone()));
        match self.accounts.get(&key) {
            Some(account) => Ok(Account::new(&key, &account.uid)),
            None => Err(Dependency::Account(key)),
        }
    }

    /// Sends events about one object.
    pub fn emit<'e>(
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

    /// How many owners there are, by what their conditions Ready say: status and reason.
    pub(crate) fn count_owners(&self) -> BTreeMap<(&'static str, &'static str), usize> {
        let mut counted = BTreeMap::new();
        self.owners.for_each(|owner| {
            let (ready, reason) = owner.ready;
            *counted.entry((ready.as_str(), reason)).or_default() += 1;
        });
        counted
    }

    /// In how many namespaces there are owners that fall to this replica, where replicas share them.
    fn count_namespaces(&self) -> usize {
        let Some(share) = &self.shard.share.0 else {
            return 0;
        };
        let owners = self.owners.all().into_iter();
        let namespaces: BTreeSet<_> = owners.map(|(key, _)| key.namespace).collect();
        let held = share.held();
        namespaces.iter().filter(|it| held.takes(it)).count()
    }

    /// Sets the gauges of what is held here whenever somebody looks.
    pub(crate) fn show_in_metrics(self: &Arc<Self>) {
        let shell = Arc::downgrade(self);
        self.metrics.before_gather(move |metrics| {
            let Some(shell) = shell.upgrade() else {
                return;
            };
            metrics.owners(shell.kind.kind, &shell.count_owners());
            let watches = shell.submitter.watches();
            metrics.refused(&watches.refused());
            metrics.stale(&watches.stale());
            metrics.tokens(shell.tokens.len());
            metrics.share_namespaces(shell.count_namespaces());
        });
    }

    /// Stops the watches of kinds that nobody uses any more.
    pub fn sweep(&self) {
        self.keep_only_accepted();
        let watches = self.submitter.watches();
        watches.sweep(Instant::now());
        watches.attend_only(|kind, key| self.dependencies.awaits(kind, key));
        self.selections
            .sweep(&|owner| self.owners.get(owner).is_some());
        self.metrics.stamped_objects(watches.object_count());
    }
}
