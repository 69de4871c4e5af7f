//! Renews this replica's place in the Lease that all of them share, and says what follows for what it works on.
//!
//! It is the Lease by which one of them would lead. As long as they share, it is held in a name of theirs, so that a
//! replica that does not share waits as for any leader; and they wait for one that leads.

mod beats;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use beats::Beats;

use super::{Identity, MOST_REPLICAS, Myself, OwnShare, Record};
use crate::cluster::chain;
use crate::lease::{
    Decision, Leadership, LeaseSettings, LeaseSettingsError, Observed, first, held, released,
};
use crate::metrics::Metrics;
use crate::shutdown::Tasks;

/// Who holds the Lease while replicas share. No pod has such a name.
pub const TOGETHER: &str = "carto.run/replicas";

/// Where the record stands.
pub const RECORD: &str = "carto.run/replicas";

/// Those that hear of something at the same time are spread over so much for each of them.
const SPREAD: Duration = Duration::from_millis(50);

/// How often one attempt looks again after a conflict: as many others may be faster.
const ATTEMPTS: usize = MOST_REPLICAS;

struct Replica {
    leases: Api<Lease>,
    /// In the name of all.
    settings: LeaseSettings,
    me: Myself,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    metrics: Arc<Metrics>,
    publish: watch::Sender<bool>,
    share: Arc<OwnShare>,
    /// The Lease, while somebody holds it alone.
    observed: Option<Observed>,
    heard: Heard,
    /// When its turn is among those that are to do something at the same time: from 0 to 1.
    turn: f64,
    /// The record as it was written last.
    seen: Seen,
    /// When the last successful renewal was sent. `None`: nothing is worked on.
    renewed: Option<Instant>,
    /// Whether it has been in a record, of which others than this process must then know.
    was_in: bool,
    /// Why it is kept out, which is logged once.
    said: Option<&'static str>,
}

/// What is remembered of a record.
#[derive(Default)]
struct Seen {
    /// Number of the newest view.
    view: u64,
    /// How many share the owners.
    replicas: u32,
}

/// What came of a renewal.
enum Renewed {
    /// The replica works.
    Works {
        /// When the next of the others will have been silent for long.
        silence: Option<Instant>,
    },
    /// Others do.
    Waits,
}

/// When which replica was heard of last, by our own clock.
#[derive(Default)]
struct Heard(BTreeMap<Identity, (String, u64, Instant)>);

impl Heard {
    /// Those that have been silent for longer than they, and we, are patient; and when the next one will have been.
    fn silent(
        &mut self,
        record: &Record,
        settings: &LeaseSettings,
        now: Instant,
    ) -> (BTreeSet<Identity>, Option<Instant>) {
        self.0.retain(|name, _| record.replica(name).is_some());
        let (mut silent, mut next) = (BTreeSet::new(), None);
        for (name, entry) in record.replicas() {
            let since = match self.0.get(name) {
                Some((process, beat, since))
                    if *process == entry.process && *beat == entry.beat =>
                {
                    *since
                }
                _ => {
                    let heard = (entry.process.clone(), entry.beat, now);
                    self.0.insert(name.clone(), heard);
                    now
                }
            };
            let due = since + settings.duration.max(entry.patience());
            if due <= now {
                silent.insert(name.clone());
            } else {
                next = Some(next.map_or(due, |next: Instant| next.min(due)));
            }
        }
        (silent, next)
    }
}

/// Takes part: works as long as it may on its share.
///
/// # Errors
/// [`LeaseSettings::check`].
pub(crate) fn take_part(
    client: &kube::Client,
    settings: LeaseSettings,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    metrics: Arc<Metrics>,
    (tasks, share): (&Tasks, Arc<OwnShare>),
) -> Result<Leadership, LeaseSettingsError> {
    settings.check()?;
    let (publish, state) = watch::channel(false);
    let ended = CancellationToken::new();
    let replica = Replica::new(client, settings, clock, metrics, (publish, share));
    tasks.spawn("shared-lease", replica.run(ended.clone()));
    Ok(Leadership::told_by(state, ended))
}

impl Replica {
    fn new(
        client: &kube::Client,
        mut settings: LeaseSettings,
        clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
        metrics: Arc<Metrics>,
        (publish, share): (watch::Sender<bool>, Arc<OwnShare>),
    ) -> Self {
        metrics.leader(false);
        let process = RandomState::new().hash_one(std::process::id());
        let me = Myself {
            name: settings.identity.as_str().into(),
            process: format!("{process:016x}"),
            patience: settings.duration,
        };
        TOGETHER.clone_into(&mut settings.identity);
        Self {
            leases: Api::namespaced(client.clone(), &settings.namespace),
            settings,
            me,
            clock,
            metrics,
            publish,
            share,
            observed: None,
            heard: Heard::default(),
            turn: f64::from(u8::try_from(process % 256).unwrap_or(0)) / 256.0,
            seen: Seen::default(),
            renewed: None,
            was_in: false,
            said: None,
        }
    }

    async fn run(mut self, done: CancellationToken) {
        let mut beats = Beats::new(&self.leases, &self.settings.name);
        let mut next = Instant::now();
        loop {
            // One that is early, because somebody was silent, moves no other: all that hear of it would renew as one ever after.
            let now = Instant::now();
            if next <= now {
                next = now + self.settings.retry;
            }
            let silence = tokio::select! {
                biased;
                () = done.cancelled() => break,
                silence = self.attempt() => silence,
            };
            tokio::select! {
                biased;
                () = done.cancelled() => break,
                () = self.rest(next, silence, &mut beats) => {}
            }
        }
        self.leave().await;
    }

    /// Waits for the next renewal: not a moment longer than the deadline, and hardly later than somebody has been silent for
    /// long, or another view is there. All hear of that at the same time, so each waits a little of its own.
    async fn rest(&mut self, next: Instant, mut silence: Option<Instant>, beats: &mut Beats) {
        let share = self.share.clone();
        let mut stops = std::pin::pin!(share.stops());
        loop {
            let own = SPREAD.mul_f64(self.turn) * self.seen.replicas;
            let early = silence.map(|at| at + own);
            let wake = [self.deadline(), early].into_iter().flatten();
            let wake = wake.fold(next, Instant::min);
            tokio::select! {
                biased;
                // Others wait to be told.
                () = &mut stops => return,
                () = tokio::time::sleep_until(wake) => return,
                record = beats.next(), if self.renewed.is_some() => {
                    let now = Instant::now();
                    let (silent, later) = self.heard.silent(&record, &self.settings, now);
                    let is_news = !silent.is_empty() || record.newest().number != self.seen.view;
                    let soonest = silence.map_or(now, |at| at.min(now));
                    silence = if is_news { Some(soonest) } else { later };
                }
            }
        }
    }

    /// One renewal. A request may not outlive the time for which the replica may work. Returns when the next of the others
    /// will have been silent for long.
    async fn attempt(&mut self) -> Option<Instant> {
        let started = Instant::now();
        let limit = self
            .deadline()
            .map_or(self.settings.renew_deadline, |deadline| {
                deadline.saturating_duration_since(started)
            });
        let mut silence = None;
        match tokio::time::timeout(limit, self.step()).await {
            Ok(Ok(Renewed::Works { silence: next })) => silence = next,
            Ok(Ok(Renewed::Waits)) => self.renewed = None,
            Ok(Err(error)) => {
                warn!(lease = %self.settings.name, error = %chain(&error), "lease not renewed");
                self.lapse_when_late();
            }
            Err(_) => self.lapse_when_late(),
        }
        self.notify();
        silence
    }

    /// When work ends unless the Lease is renewed.
    fn deadline(&self) -> Option<Instant> {
        self.renewed
            .map(|renewed| renewed + self.settings.renew_deadline)
    }

    fn lapse_when_late(&mut self) {
        if self
            .deadline()
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            self.renewed = None;
        }
    }

    /// Looks and writes until nobody was faster. Nothing when others work.
    async fn step(&mut self) -> Result<Renewed, kube::Error> {
        let mut conflict = None;
        for _ in 0..ATTEMPTS {
            match self.look_and_write().await {
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    conflict = Some(kube::Error::Api(status));
                }
                outcome => return outcome,
            }
        }
        conflict.map_or(Ok(Renewed::Waits), Err)
    }

    async fn look_and_write(&mut self) -> Result<Renewed, kube::Error> {
        let sent = Instant::now();
        let Some(lease) = self.leases.get_opt(&self.settings.name).await? else {
            let record = self.found(0, false);
            let record = record.renewed(&self.me, &BTreeSet::new(), None);
            let lease = bearing(&record, first(&self.settings, (self.clock)()));
            self.leases.create(&PostParams::default(), &lease).await?;
            return Ok(self.written(&record, sent, None));
        };
        // Nobody is heard of before that was asked for is answered.
        let now = Instant::now();
        let observed = Observed::update(self.observed.take(), lease, now);
        let Some(record) = self.record_in(&observed, now) else {
            self.share.forgotten();
            self.observed = Some(observed);
            return Ok(Renewed::Waits);
        };
        let (silent, next) = self.heard.silent(&record, &self.settings, now);
        if !self.may_be_in(&record, &silent) {
            self.share.forgotten();
            return Ok(Renewed::Waits);
        }
        let stopped = self.share.stopped();
        let renewed = record.renewed(&self.me, &silent, stopped.as_ref());
        let lease = held(&observed.lease, &self.settings, (self.clock)());
        let lease = bearing(&renewed, lease);
        self.replace(&lease).await?;
        for name in silent.iter().filter(|name| **name != self.me.name) {
            info!(replica = %name, "a replica has been silent for too long; the others take its share");
        }
        Ok(self.written(&renewed, sent, next))
    }

    /// Refused when somebody was faster.
    async fn replace(&self, lease: &Lease) -> Result<(), kube::Error> {
        let by = PostParams::default();
        let written = self.leases.replace(&self.settings.name, &by, lease).await;
        written.map(drop)
    }

    /// A record that nobody is in, as far as this process knows.
    fn found(&mut self, after: u64, is_lost: bool) -> Record {
        if is_lost || self.was_in {
            warn!(lease = %self.settings.name, annotation = RECORD, "there is no record of the replicas that share the owners, or none that can be read; it is made anew, and nothing is worked on until whoever was in it has been silent for long");
            self.share.forgotten();
            Record::founded_anew(after)
        } else {
            Record::founded(after)
        }
    }

    /// The record of those who share; nothing while somebody works alone.
    fn record_in(&mut self, observed: &Observed, now: Instant) -> Option<Record> {
        let transitions = observed.lease.spec.as_ref();
        let transitions = transitions.and_then(|spec| spec.lease_transitions);
        let after = u64::try_from(transitions.unwrap_or(0)).unwrap_or(0);
        match observed.decide(&self.settings, now) {
            Decision::Wait => None,
            Decision::Acquire => {
                // Whoever was in a record before has been silent for as long as who held it since.
                self.was_in = false;
                self.share.forgotten();
                Some(Record::founded(after))
            }
            Decision::Renew => {
                let record = record_of(&observed.lease.metadata);
                Some(record.unwrap_or_else(|| self.found(after, true)))
            }
        }
    }

    /// Whether this process may be, or come, in.
    fn may_be_in(&mut self, record: &Record, silent: &BTreeSet<Identity>) -> bool {
        let Some(entry) = record.replica(&self.me.name) else {
            self.share.forgotten();
            let has_room = !record.is_full() || !silent.is_empty();
            if !has_room && self.says("no room") {
                warn!("{MOST_REPLICAS} replicas share the owners already; this one waits");
            }
            return has_room;
        };
        if entry.process == self.me.process {
            return true;
        }
        self.share.forgotten();
        // After a restart the process before is not there any more. One that comes later has its name in vain.
        let is_taken = self.was_in && !silent.contains(&self.me.name);
        if is_taken && self.says("taken") {
            error!(identity = %self.me.name, "another process has the identity of this one, and works in its place; give each replica its own --lease-identity");
        }
        !is_taken
    }

    /// Whether this is news: it is so at every renewal.
    fn says(&mut self, what: &'static str) -> bool {
        self.said.replace(what) != Some(what)
    }

    fn written(&mut self, record: &Record, sent: Instant, silence: Option<Instant>) -> Renewed {
        self.was_in = true;
        self.said = None;
        self.renewed = Some(sent);
        self.share.seen(record, sent + self.settings.renew_deadline);
        let replicas = record.replicas().count();
        self.seen = Seen {
            view: record.newest().number,
            replicas: u32::try_from(replicas).unwrap_or(u32::MAX),
        };
        self.metrics.replicas(replicas);
        Renewed::Works { silence }
    }

    fn notify(&self) {
        let works = self.renewed.is_some();
        if !works {
            self.share.lapsed();
        }
        let changed = self
            .publish
            .send_if_modified(|state| std::mem::replace(state, works) != works);
        if changed {
            self.metrics.leader(works);
            self.metrics.lease_transition(works);
            if works {
                info!(lease = %self.settings.name, identity = %self.me.name, "shares the owners with the other replicas");
            } else {
                warn!(lease = %self.settings.name, identity = %self.me.name, "has no share of the owners any more");
            }
        }
    }

    /// Gives its share to the others, when all work has ended. If that fails, they wait until it has been silent for long.
    async fn leave(&mut self) {
        if self.renewed.take().is_none() {
            return;
        }
        self.notify();
        let settings = self.settings.clone();
        settings.released_by(self.give_back()).await;
    }

    async fn give_back(&mut self) -> Result<(), kube::Error> {
        loop {
            let now = Instant::now();
            let Some(lease) = self.leases.get_opt(&self.settings.name).await? else {
                return Ok(());
            };
            let observed = Observed::update(None, lease, now);
            let is_ours = observed.decide(&self.settings, now) == Decision::Renew;
            let record = self.record_in(&observed, now).filter(|_| is_ours);
            let process =
                |record: &Record| record.replica(&self.me.name).map(|it| it.process.clone());
            let Some(record) = record.filter(|it| process(it).as_ref() == Some(&self.me.process))
            else {
                return Ok(());
            };
            let record = record.left(&self.me.name);
            let lease = if record.replicas().next().is_none() {
                released(&observed.lease, (self.clock)())
            } else {
                observed.lease
            };
            let lease = bearing(&record, lease);
            match self.replace(&lease).await {
                Err(kube::Error::Api(status)) if status.is_conflict() => {}
                written => return written,
            }
        }
    }
}

fn record_of(lease: &ObjectMeta) -> Option<Record> {
    let text = lease.annotations.as_ref()?.get(RECORD)?;
    Record::parse(text)
}

/// The Lease with the record in it. Its transitions count the views.
fn bearing(record: &Record, mut lease: Lease) -> Lease {
    let annotations = lease.metadata.annotations.get_or_insert_default();
    annotations.insert(RECORD.to_owned(), record.text());
    let view = i32::try_from(record.newest().number).unwrap_or(i32::MAX);
    if let Some(spec) = &mut lease.spec {
        spec.lease_transitions = Some(view);
    }
    lease
}

#[cfg(test)]
mod tests;
