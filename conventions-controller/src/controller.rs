//! What the controller is made of, and whom each event wakes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use api_types::ConditionStatus;
use controller_kit::cluster::Cluster;
use controller_kit::events::{EventRecorder, InvolvedObject};
use controller_kit::metrics::Metrics;
use controller_kit::reflect::{Change, Reflector, Watched};
use controller_kit::scheduler::{Lane, Scheduler};
use controller_kit::stamped::ObjectKey;
use controller_kit::status::StatusWriter;
use controller_kit::waiting::WaitIndex;
use convention_client::Clients;
use image_registry::Images;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::warn;

use crate::authority::{Authorities, RequestEntry};
use crate::entries::{AccountEntry, ConventionEntry, IntentEntry, SecretEntry, StoredConvention};
use crate::kept::KeptPasses;
use crate::metrics::ConventionMetrics;
use crate::patience::Patience;
use crate::presets::{TemplatePresets, Touches};
use crate::remembered::Remembered;
use crate::resync::Resync;
use crate::rollout::Rollout;
use crate::room::AnswersRoom;
use crate::trouble::Troubles;

/// The kind that is reconciled.
pub(crate) const INTENTS: Watched = conventions_kind("PodIntent", "podintents");
/// The kind that says by what.
pub(crate) const CONVENTIONS: Watched =
    conventions_kind("ClusterPodConvention", "clusterpodconventions");

const fn conventions_kind(kind: &'static str, plural: &'static str) -> Watched {
    Watched {
        group: conventions::GROUP,
        version: conventions::VERSION,
        kind,
        plural,
    }
}

/// What a PodIntent depends on, beside conventions, which are found by its labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Dependency {
    /// A ServiceAccount: that it comes, or has other pull secrets.
    Account(ObjectKey),
    /// A Secret: that it comes, changes or goes.
    Secret(ObjectKey),
    /// A Certificate of cert-manager: that it is known who signed it, or another one did.
    Certificate(ObjectKey),
}

/// What is watched.
#[derive(Default)]
pub(crate) struct Stores {
    pub(crate) intents: Arc<Reflector<IntentEntry>>,
    pub(crate) conventions: Arc<Reflector<StoredConvention>>,
    pub(crate) accounts: Arc<Reflector<AccountEntry>>,
    pub(crate) secrets: Arc<Reflector<SecretEntry>>,
    pub(crate) requests: Arc<Reflector<RequestEntry>>,
}

/// What the operator chose about images.
pub(crate) struct Options {
    /// Whether images are resolved once more at the end.
    pub(crate) resolve_at_end: bool,
    /// What of the flags decides what a template becomes.
    pub(crate) resolution: String,
    /// What a request with bills of materials may have.
    pub(crate) most_request_bytes: u64,
}

/// Reconciles PodIntents.
pub(crate) struct IntentController {
    pub(crate) stores: Stores,
    pub(crate) cluster: Cluster,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) dependencies: WaitIndex<Dependency>,
    pub(crate) statuses: StatusWriter,
    pub(crate) events: EventRecorder,
    pub(crate) clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    pub(crate) resync: Resync,
    pub(crate) rollout: Rollout,
    pub(crate) images: Images,
    pub(crate) clients: Clients,
    pub(crate) answers: AnswersRoom,
    pub(crate) metrics: Arc<ConventionMetrics>,
    pub(crate) authorities: Authorities,
    pub(crate) patience: Patience,
    /// Whether any PodIntent has been reconciled. Before, all of them wait for that anyway.
    pub(crate) has_begun: AtomicBool,
    /// Says which of the times this is that this replica works,
    pub(crate) replica: Arc<Metrics>,
    /// and which one it was when it last looked.
    pub(crate) term: AtomicU64,
    /// Told of each change that the counts may have changed with.
    pub(crate) counts_changed: Arc<Notify>,
    pub(crate) options: Options,
    /// Nothing if presets are not served.
    pub(crate) presets: Option<TemplatePresets>,
    /// What the statuses say that were written last: their events are not news.
    pub(crate) written: Mutex<HashMap<ObjectKey, u64>>,
    /// What could not be written yet.
    pub(crate) kept: KeptPasses,
    /// What webhooks answered that need not be asked again.
    pub(crate) remembered: Remembered,
    /// What is in the way, and since when.
    pub(crate) troubles: Troubles,
}

impl IntentController {
    /// A PodIntent appeared, changed or went. That its status says what was just written is no
    /// news.
    pub(crate) fn intent_changed(&self, change: &Change<'_, IntentEntry>) {
        let key = change.key;
        self.counts_changed.notify_one();
        let Some(after) = change.after else {
            self.scheduler.forget(key);
            return self.forget(key);
        };
        if change.before.is_some_and(|before| before.uid != after.uid) {
            self.forget(key);
        }
        let is_news = change.before.is_none_or(|before| {
            let is_ours = || self.written.lock().get(key) == Some(&after.said);
            before.uid != after.uid
                || before.content != after.content
                || (before.said != after.said && !is_ours())
        });
        if is_news {
            self.scheduler.wake(key.clone(), Lane::Fresh, None);
        }
    }

    /// A ClusterPodConvention appeared, changed or went: wakes those that it is for, before or
    /// after.
    pub(crate) fn convention_changed(&self, change: &Change<'_, StoredConvention>) {
        let entry = |stored: Option<&Arc<StoredConvention>>| stored.map(|it| it.0.clone());
        let (before, after) = (entry(change.before), entry(change.after));
        if let Some(error) = after.as_ref().and_then(|after| after.unreadable.as_ref()) {
            let convention = &*change.key.name;
            warn!(
                convention,
                error, "this ClusterPodConvention cannot be read; correct or delete it"
            );
        }
        self.counts_changed.notify_one();
        if let (Some(before), Some(after)) = (&before, &after)
            && is_same(before, after)
        {
            return;
        }
        // It may have been corrected.
        self.wake_in_turn(self.patience.forget(&change.key.name).into_iter().collect());
        let versions: Vec<Arc<ConventionEntry>> = before.into_iter().chain(after).collect();
        self.wake_concerned(|intent| {
            let labels = intent.selectable();
            versions.iter().any(|version| version.concerns(labels))
        });
    }

    /// Presets changed: wakes those whose templates they are for, if a convention applies them.
    pub(crate) fn presets_changed(&self, change: &dyn Touches) {
        let conventions = self.conventions();
        let applying: Vec<_> = { conventions.iter() }
            .filter(|it| it.applies_presets())
            .collect();
        if applying.is_empty() {
            return;
        }
        let all = self.stores.intents.all().into_iter();
        let concerned = all.filter(|(key, intent)| {
            let labels = intent.selectable();
            change.touches(key, &intent.template_labels)
                && applying.iter().any(|it| it.concerns(labels))
        });
        self.wake_in_turn_of(change.namespace(), concerned.map(|(key, _)| key).collect());
    }

    /// Wakes those PodIntents that something is for, at the pace that the operator chose.
    pub(crate) fn wake_concerned(&self, concerns: impl Fn(&IntentEntry) -> bool) {
        let all = self.stores.intents.all().into_iter();
        let concerned = all.filter(|(_, intent)| concerns(intent));
        self.wake_in_turn(concerned.map(|(key, _)| key).collect());
    }

    pub(crate) fn wake_in_turn(&self, concerned: Vec<ObjectKey>) {
        self.wake_in_turn_of(None, concerned);
    }

    /// The same for what can be changed by who may change things in this namespace only.
    fn wake_in_turn_of(&self, namespace: Option<&str>, concerned: Vec<ObjectKey>) {
        if !self.has_begun.load(Ordering::Acquire) {
            return;
        }
        let turns = match namespace {
            Some(namespace) => self.rollout.turns_in(namespace, concerned),
            None => self.rollout.turns(concerned),
        };
        for (key, delay) in turns {
            self.scheduler.wake(key, Lane::Fresh, Some(delay));
        }
    }

    /// A ServiceAccount appeared, changed or went.
    pub(crate) fn account_changed(&self, change: &Change<'_, AccountEntry>) {
        let secrets =
            |entry: Option<&Arc<AccountEntry>>| entry.map(|entry| entry.pull_secrets.clone());
        if secrets(change.before) != secrets(change.after) {
            let account = Dependency::Account(change.key.clone());
            let was_missing = change.before.is_none();
            self.wake_dependent(&change.key.namespace, &account, was_missing);
        }
    }

    /// A Secret appeared, changed or went.
    pub(crate) fn secret_changed(&self, change: &Change<'_, SecretEntry>) {
        let version = |entry: Option<&Arc<SecretEntry>>| entry.map(|entry| entry.version);
        if version(change.before) == version(change.after) {
            return;
        }
        let secret = Dependency::Secret(change.key.clone());
        let was_missing = change.before.is_none();
        self.wake_dependent(&change.key.namespace, &secret, was_missing);
        let both = change.before.into_iter().chain(change.after);
        let named = both.filter_map(|entry| entry.certificate.as_deref());
        for certificate in named.collect::<BTreeSet<_>>() {
            self.certificate_changed(&change.key.namespace, certificate);
        }
    }

    /// A CertificateRequest appeared, changed or went.
    pub(crate) fn request_changed(&self, change: &Change<'_, RequestEntry>) {
        let request = |entry: Option<&Arc<RequestEntry>>| entry.map(|entry| entry.0.clone());
        let (before, after) = (request(change.before), request(change.after));
        if before == after {
            return;
        }
        let both = before.into_iter().chain(after);
        for certificate in both.map(|it| it.certificate).collect::<BTreeSet<_>>() {
            self.certificate_changed(&change.key.namespace, &certificate);
        }
    }

    /// Another authority is a change of all conventions that trust it.
    fn certificate_changed(&self, namespace: &str, name: &str) {
        let certificate = ObjectKey::new(namespace, name);
        self.authorities.changed(&certificate);
        let certificate = Dependency::Certificate(certificate);
        let concerned = self.dependencies.waiting_for(&certificate);
        self.wake_in_turn(concerned.into_iter().collect());
    }

    /// What was missing is waited for; all else is a change like that of a convention.
    fn wake_dependent(&self, namespace: &str, on: &Dependency, was_missing: bool) {
        let dependent = self.dependencies.waiting_for(on).into_iter();
        if was_missing {
            dependent.for_each(|intent| self.scheduler.wake(intent, Lane::Fresh, None));
        } else {
            self.wake_in_turn_of(Some(namespace), dependent.collect());
        }
    }

    /// The conventions that there are, by name.
    pub(crate) fn conventions(&self) -> Vec<Arc<ConventionEntry>> {
        let all = self.stores.conventions.all().into_iter();
        let mut all: Vec<_> = all.map(|(_, it)| it.0.clone()).collect();
        all.sort_by(|left, right| left.name.cmp(&right.name));
        all
    }

    /// A PodIntent as events name it.
    pub(crate) fn involved(key: &ObjectKey, uid: &str) -> InvolvedObject {
        InvolvedObject::of(INTENTS, &key.namespace, &key.name, uid)
    }

    /// How many PodIntents there are, by what their conditions Ready say.
    pub(crate) fn count(&self) -> BTreeMap<(&'static str, &'static str), usize> {
        let mut counted = BTreeMap::new();
        self.stores.intents.for_each(|intent| {
            let (ready, reason) = intent.ready;
            *counted.entry((ready.as_str(), reason)).or_default() += 1;
        });
        counted
    }
}

/// Whether a PodIntent gets the same from both.
fn is_same(before: &ConventionEntry, after: &ConventionEntry) -> bool {
    let annotations = |entry: &ConventionEntry| {
        let annotations = entry.convention.metadata.annotations.as_ref();
        annotations.and_then(|it| it.get(conventions::INJECT_CA_FROM).cloned())
    };
    before.uid == after.uid
        && before.generation == after.generation
        && before.revision == after.revision
        && annotations(before) == annotations(after)
}

/// Ready of a status as it was stored.
pub(crate) fn ready_in(status: &conventions::PodIntentStatus) -> ConditionStatus {
    let ready = |it: &&api_types::Condition| it.is(api_types::ConditionType::Ready);
    let ready = status.conditions.iter().find(ready);
    ready.map_or(ConditionStatus::Unknown, |it| it.status)
}
