//! Writes the statuses of presets.
//!
//! What a replica has counted it adds itself, every few seconds: counts of several come together in
//! the status, where each writes only over what it has read. All else is said by the replica that
//! leads. So a preset costs a write every few seconds for each replica, at the most, however many
//! pods are created ([ADR 26](../../../docs/adr/0026-presets-are-served-by-every-replica.md)).

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use controller_kit::cluster::{Call, Cluster, Identity, RequestError, chain};
use controller_kit::metrics::Metrics;
use controller_kit::process::{Process, Synced, Work};
use jiff::Timestamp;
use parking_lot::Mutex;
use pod_presets::Origin;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::counts::{Counted, Counts};
use super::entries::PresetEntry;
use super::kinds::watched;
use super::metrics::PresetMetrics;
use super::restart::Restarter;
use super::stale::{self, Staleness};
use super::status::{Known, Led, status_after};
use super::{News, Stores};
use crate::args::PresetArgs;

/// Between two rounds of counts.
const ROUND: Duration = Duration::from_secs(5);
/// Changes that come together are one round.
const GATHER: Duration = Duration::from_millis(200);
/// Between two writes: a thousand presets that are created at once are not a thousand writes at
/// once.
const APART: Duration = Duration::from_millis(20);

/// Writes the statuses.
pub(super) struct Reporter {
    cluster: Cluster,
    field_manager: &'static str,
    stores: Arc<Stores>,
    counts: Arc<Counts>,
    news: Arc<News>,
    metrics: Arc<Metrics>,
    leads: AtomicBool,
    staleness: Mutex<Option<Staleness>>,
    /// What was tried last, by uid. A status that the API server does not store as it is, because
    /// its definition of the kind is an older one, or refuses is not tried again and again.
    tried: Mutex<HashMap<Box<str>, u64>>,
}

impl Reporter {
    pub(super) fn new(
        process: &Process,
        stores: &Arc<Stores>,
        counts: &Arc<Counts>,
        news: &Arc<News>,
    ) -> Arc<Self> {
        Arc::new(Self {
            cluster: process.cluster.clone(),
            field_manager: process.program.field_manager,
            stores: stores.clone(),
            counts: counts.clone(),
            news: news.clone(),
            metrics: process.metrics.clone(),
            leads: AtomicBool::new(false),
            staleness: Mutex::default(),
            tried: Mutex::default(),
        })
    }

    /// Begins to report. Counts are added by every replica, from now on.
    pub(super) fn start(
        self: Arc<Self>,
        process: &Process,
        args: &PresetArgs,
        metrics: &Arc<PresetMetrics>,
        synced: Synced,
        restarter: Option<Restarter>,
        work: &mut Work,
    ) {
        let (keeping, reporter) = (self.clone(), self);
        process
            .tasks
            .spawn_until_stopped("preset-report", async move {
                synced.wait().await;
                keeping.keep().await;
            });
        let follows_pods = args.report_stale_pods;
        let (process, metrics) = (process.clone(), metrics.clone());
        work.does_beside(async move {
            reporter.leads.store(true, Ordering::Release);
            reporter.news.presets.notify_one();
            if !follows_pods {
                return;
            }
            let (stale, owners) = watch::channel(Arc::default());
            let following = stale::follow(&process, &reporter.stores, &metrics, |mut found| {
                stale.send_replace(Arc::new(std::mem::take(&mut found.owners)));
                *reporter.staleness.lock() = Some(found);
                reporter.news.presets.notify_one();
            });
            match restarter {
                Some(restarter) => {
                    tokio::join!(following, restarter.keep(&process, owners));
                }
                None => following.await,
            }
        });
    }

    async fn keep(&self) {
        let mut rounds = tokio::time::interval(ROUND);
        rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = rounds.tick() => self.report(self.counts.take_due(Instant::now())).await,
                () = self.news.presets.notified() => {
                    tokio::time::sleep(GATHER).await;
                    self.report(HashMap::new()).await;
                }
            }
        }
    }

    /// Writes what is new of every preset, up to the first that the API server cannot write; the
    /// rest waits for the next round.
    async fn report(&self, mut counted: HashMap<Box<str>, Counted>) {
        // One that has led may stand by again.
        let leads = self.leads.load(Ordering::Acquire) && self.metrics.term().is_some();
        if !leads && counted.is_empty() {
            return;
        }
        let all = self.all();
        for (origin, entry) in &all {
            let counted_of_it = counted.remove(&entry.uid).unwrap_or_default();
            let is_due = leads || !counted_of_it.is_nothing();
            if is_due && !self.report_on(*origin, entry, counted_of_it, leads).await {
                return self.give_back(counted);
            }
        }
        // What is left was counted of presets that are gone.
        let there: HashSet<&str> = all.iter().map(|(_, entry)| &*entry.uid).collect();
        self.tried.lock().retain(|uid, _| there.contains(&**uid));
    }

    fn all(&self) -> Vec<(Origin, Arc<PresetEntry>)> {
        let of = |origin| {
            let all = self.stores.of(origin).all().into_iter();
            all.map(move |(_, entry)| (origin, entry))
        };
        Origin::ALL.into_iter().flat_map(of).collect()
    }

    fn give_back(&self, counted: HashMap<Box<str>, Counted>) {
        for (uid, counted) in counted {
            self.counts.give(uid, counted);
        }
    }

    /// Whether the API server writes statuses at all.
    async fn report_on(
        &self,
        origin: Origin,
        entry: &PresetEntry,
        counted: Counted,
        leads: bool,
    ) -> bool {
        let Some(status) = self.news_of(entry, counted.clone(), leads) else {
            return true;
        };
        let digest = digest(entry, &status);
        if self.tried.lock().get(&entry.uid) == Some(&digest) {
            // The watch has not brought what came of it.
            if !counted.is_nothing() {
                self.counts.give(entry.uid.clone(), counted);
            }
            return true;
        }
        tokio::time::sleep(APART).await;
        let written = self.write(origin, entry, &status).await;
        let is_answered = written.as_ref().err().is_none_or(is_of_this_status);
        if is_answered {
            self.tried.lock().insert(entry.uid.clone(), digest);
        }
        written.map_or_else(|error| self.failed(entry, counted, &error), |()| true)
    }

    /// The same, after a write that failed.
    fn failed(&self, entry: &PresetEntry, counted: Counted, error: &RequestError) -> bool {
        let (preset, code) = (&*entry.name, error.code().map(|code| code.as_u16()));
        match code {
            // It is gone, and its counts with it.
            Some(404) => true,
            // Somebody wrote since; what was counted is added to what the watch brings.
            Some(409 | 422) => {
                debug!(preset, error = %chain(error), "somebody else wrote the status of a preset");
                self.counts.give(entry.uid.clone(), counted);
                true
            }
            // A policy of somebody's, an object at the limit of its size, or a right that is missing
            // for one group: others' statuses can be written all the same.
            Some(code) if code < 500 && code != 429 => {
                warn!(preset, error = %chain(error), "the status of a preset is refused");
                self.counts.give(entry.uid.clone(), counted);
                true
            }
            // It may have been carried out: to count twice would be worse than not at all.
            _ => {
                warn!(preset, error = %chain(error), "the status of a preset may not be written");
                false
            }
        }
    }

    /// The status, if it says anything new.
    fn news_of(&self, entry: &PresetEntry, counted: Counted, leads: bool) -> Option<Value> {
        let before = &entry.status;
        let staleness = self.staleness.lock();
        let stale = staleness.as_ref().map(|stale| stale.of(entry));
        let led = leads.then(|| Led {
            stale: stale.as_ref(),
            now: self.now(),
        });
        let after = status_after(entry, Known { counted, led });
        (after != *before).then(|| json!(after))
    }

    fn now(&self) -> Timestamp {
        (self.cluster.clock())()
    }

    /// Only over what was read.
    async fn write(
        &self,
        origin: Origin,
        entry: &PresetEntry,
        status: &Value,
    ) -> Result<(), RequestError> {
        let namespace = Some(&*entry.namespace).filter(|it| !it.is_empty());
        let path = format!("{}/status", watched(origin).path(namespace, &entry.name));
        let operations = json!([
            {"op": "test", "path": "/metadata/uid", "value": entry.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": entry.version},
            {"op": "add", "path": "/status", "value": status},
        ]);
        let call = Call::json_patch(&path, self.field_manager, &operations);
        self.cluster
            .send(Identity::Controller, call)
            .await
            .map(drop)
    }
}

/// Whether the same would be refused again.
fn is_of_this_status(error: &RequestError) -> bool {
    let code = error.code().map(|code| code.as_u16());
    code.is_some_and(|code| code < 500 && !matches!(code, 401 | 403 | 429))
}

/// Of a status, and of the version that it is written over.
fn digest(entry: &PresetEntry, status: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&entry.version, status).hash(&mut hasher);
    hasher.finish()
}
