//! What a controller does in its process.

use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use tokio::sync::watch as signal;
use tokio_util::sync::CancellationToken;

use super::{Process, Reconciled};
use crate::metrics::Metrics;
use crate::object_key::ObjectKey;
use crate::reflect::{Change, Entry, Events, Reflector, Watched, follow_if_installed};
use crate::scheduler::{Scheduler, Terms};
use crate::share::OwnShare;
use crate::shutdown::Tasks;
use crate::webhook::Admission;

/// Whether a part is ready; called on every probe, so it must be quick.
pub(super) type ReadyCheck = Box<dyn Fn() -> bool + Send + Sync>;

/// What a controller does: what it follows and serves from its start on, and what it works on while this replica leads.
#[derive(Default)]
pub struct Work {
    synced: Synced,
    needed: Vec<BoxFuture<'static, ()>>,
    queues: Vec<Queue>,
    beside: Vec<BoxFuture<'static, ()>>,
    pub(super) ready: Vec<(&'static str, ReadyCheck)>,
    pub(super) shard: Option<String>,
    pub(super) leads_nothing: bool,
    pub(super) share: Option<Arc<OwnShare>>,
    pub(super) admission: Option<Admission>,
}

impl Work {
    /// Follows a kind from now on, whether this replica leads or not. Before it was listed once, nothing is reconciled:
    /// what exists would look missing.
    pub fn follow<E: Entry>(
        &mut self,
        tasks: &Tasks,
        name: &'static str,
        store: &Arc<Reflector<E>>,
        events: Events,
        changed: impl Fn(Change<'_, E>) + Send + 'static,
    ) {
        self.synced.0.push(store.synced_signal());
        let following = store.clone().follow(events, tasks.token().clone(), changed);
        tasks.spawn(name, following);
    }

    /// The same for a kind that may not be installed. As long as it is not, nothing waits for it, and nothing is asked.
    pub fn follow_if_installed<E: Entry>(
        &mut self,
        process: &Process,
        name: &'static str,
        store: &Arc<Reflector<E>>,
        watched: Watched,
        changed: impl Fn(Change<'_, E>) + Send + Sync + 'static,
    ) {
        let known = signal::Sender::new(false);
        self.synced.0.push(known.subscribe());
        let client = process.cluster.controller().clone();
        let cancel = process.tasks.token().clone();
        let following = follow_if_installed(store.clone(), watched, client, cancel, known, changed);
        process.tasks.spawn(name, following);
    }

    /// Reconciles nothing before this has happened, either.
    pub fn needs(&mut self, happened: impl Future<Output = ()> + Send + 'static) {
        self.needed.push(Box::pin(happened));
    }

    /// Reconciles what this queue hands out.
    pub fn reconciles(&mut self, queue: Queue) {
        self.queues.push(queue);
    }

    /// Does this beside the queues, until the shutdown.
    pub fn does_beside(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.beside.push(Box::pin(work));
    }

    /// Is ready only when `check` says so, too. It is called on every probe, and must be quick.
    pub fn is_ready_when(
        &mut self,
        name: &'static str,
        check: impl Fn() -> bool + Send + Sync + 'static,
    ) {
        self.ready.push((name, Box::new(check)));
    }

    /// Other processes do the other parts, each led by a Lease of its own, which is named of its shard.
    pub fn is_of_shard(&mut self, name: &str) {
        self.shard = Some(name.to_owned());
    }

    /// Is the same in every replica, so that none has to lead.
    pub(crate) fn leads_nothing(&mut self) {
        self.leads_nothing = true;
    }

    /// Other replicas take a share, too, and none of them leads.
    pub fn shares(&mut self, share: &Arc<OwnShare>) {
        self.share = Some(share.clone());
    }

    /// Serves admission webhooks, whether this replica leads or not.
    pub fn admits(&mut self, admission: Admission) {
        self.admission = Some(admission);
    }

    /// Whether all that is followed by now was listed once, for what is served before anything is reconciled.
    pub fn synced(&self) -> Synced {
        self.synced.clone()
    }

    /// A check for the readiness probe.
    pub(super) fn synced_check(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let synced = self.synced.clone();
        move || synced.is_synced()
    }

    /// Works on all queues on these terms. Returns when no reconcile runs any more.
    pub(super) async fn run(self, terms: &Terms, metrics: &Arc<Metrics>) {
        tokio::select! {
            // A process that was never synced is to end all the same.
            () = terms.shutdown.cancelled() => return,
            () = async {
                self.synced.wait().await;
                join_all(self.needed).await;
            } => {}
        }
        let queues = self
            .queues
            .into_iter()
            .map(|queue| queue.run(terms, metrics));
        tokio::join!(
            join_all(queues),
            until(&terms.shutdown, join_all(self.beside))
        );
    }
}

async fn until<T>(shutdown: &CancellationToken, work: impl Future<Output = T>) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        _ = work => {}
    }
}

/// What has to be listed once before anything is reconciled. What may be absent counts as listed if it is.
#[derive(Clone, Default)]
pub struct Synced(Vec<signal::Receiver<bool>>);

impl Synced {
    /// Whether all of it was.
    pub fn is_synced(&self) -> bool {
        self.0.iter().all(|synced| *synced.borrow())
    }

    /// Waits until all of it was.
    pub async fn wait(&self) {
        for synced in &self.0 {
            // The sender lives as long as the store, which the controller holds.
            let _ = synced.clone().wait_for(|synced| *synced).await;
        }
    }
}

/// A queue and what is done with its keys.
pub struct Queue {
    scheduler: Arc<Scheduler>,
    kind: &'static str,
    reconcile: Arc<dyn Fn(ObjectKey) -> BoxFuture<'static, Reconciled> + Send + Sync>,
}

impl Queue {
    /// Reconciles the objects of `kind` that `scheduler` names.
    pub fn new<R>(
        scheduler: &Arc<Scheduler>,
        kind: &'static str,
        reconcile: impl Fn(ObjectKey) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Reconciled> + Send + 'static,
    {
        Self {
            scheduler: scheduler.clone(),
            kind,
            reconcile: Arc::new(move |key| Box::pin(reconcile(key))),
        }
    }

    async fn run(self, terms: &Terms, metrics: &Arc<Metrics>) {
        let Self {
            scheduler,
            kind,
            reconcile,
        } = self;
        crate::scheduler::run(scheduler, terms.clone(), move |key| {
            let (metrics, reconcile) = (metrics.clone(), reconcile.clone());
            async move {
                let mut timer = metrics.reconcile_timer(kind);
                let reconciled = reconcile(key).await;
                timer.outcome(reconciled.outcome);
                reconciled.next
            }
        })
        .await;
    }
}
