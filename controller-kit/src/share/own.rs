//! What this replica works on, for all who have to know: the watches, the queues and the Lease.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch as signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::excluded::{Excluded, Wanted, Watching};
use super::gained::{DueListing, Growth};
use super::{Numbered, Record, Share, Standing};
use crate::cluster::Fence;
use crate::reflect::Kept;

/// How long a reconcile in a namespace that another replica is to have may take to end. A request that hangs (an admission
/// webhook may take half a minute) must not keep the whole share from the other.
const GRACE: Duration = Duration::from_secs(5);

/// How long a replica that comes waits for all others to hand over, so that it lists once and not once for each: as long as
/// they may take, and their next renewals.
const HAND_OVER: Duration = Duration::from_secs(8);

/// What this replica works on. It begins with nothing.
pub struct OwnShare {
    state: Mutex<State>,
    /// Counts the changes of what is accepted or held.
    changes: signal::Sender<u64>,
    /// What is to be listed. Nobody lists anything before the first.
    due: signal::Sender<DueListing>,
    /// The newest listing of the owners that is complete.
    owners_listed: signal::Sender<u64>,
    /// Which namespaces there were when they were listed last, sorted.
    namespaces: signal::Sender<Arc<[Box<str>]>>,
    /// Something arrived from another one.
    met: Notify,
    ended: Notify,
    fence: Arc<Fence>,
}

struct State {
    standing: Standing,
    stopping_since: Option<Instant>,
    /// Since when others are to hand over what it waits for.
    waiting_since: Option<Instant>,
    /// What has been accepted without a break since it was last asked what is to be listed.
    kept: Share,
    /// Counts the changes of what is accepted.
    accepted: u64,
    under_way: HashMap<u64, UnderWay>,
    next: u64,
}

/// A reconcile.
struct UnderWay {
    namespace: Box<str>,
    dropped: CancellationToken,
}

/// Held while a reconcile is under way.
#[must_use = "the reconcile counts as ended when it is dropped"]
pub struct Permit {
    share: Arc<OwnShare>,
    number: u64,
    dropped: CancellationToken,
}

impl Permit {
    /// Ends when the reconcile has to.
    pub async fn dropped(&self) {
        self.dropped.cancelled().await;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.share.state.lock().under_way.remove(&self.number);
        self.share.ended.notify_waiters();
    }
}

impl State {
    fn is_lost(&self, namespace: &str) -> bool {
        !self.standing.held().takes(namespace)
    }

    fn has_lost_under_way(&self) -> bool {
        let mut under_way = self.under_way.values();
        under_way.any(|it| self.is_lost(&it.namespace))
    }

    fn drop_what_is_lost(&self) {
        let lost: Vec<&UnderWay> = self
            .under_way
            .values()
            .filter(|it| self.is_lost(&it.namespace))
            .collect();
        if !lost.is_empty() {
            warn!(
                reconciles = lost.len(),
                "reconciles of namespaces that fall to another replica are dropped"
            );
        }
        for it in &lost {
            it.dropped.cancel();
        }
    }
}

impl OwnShare {
    /// Of the replica with this name; nothing is written beyond what the fence allows.
    pub fn new(me: &str, fence: Arc<Fence>) -> Arc<Self> {
        fence.close();
        Arc::new(Self {
            state: Mutex::new(State {
                standing: Standing::new(me.into()),
                stopping_since: None,
                waiting_since: None,
                kept: Share::Nothing,
                accepted: 0,
                under_way: HashMap::new(),
                next: 0,
            }),
            changes: signal::Sender::new(0),
            due: signal::Sender::default(),
            owners_listed: signal::Sender::new(0),
            namespaces: signal::Sender::default(),
            met: Notify::new(),
            ended: Notify::new(),
            fence,
        })
    }

    /// Whether what arrives of this namespace is kept. It is as long as something is under way there, too: a reconcile whose
    /// objects are not held any more would miss them.
    pub fn accepts(&self, namespace: &str) -> bool {
        let state = self.state.lock();
        let mut under_way = state.under_way.values();
        under_way.any(|it| *it.namespace == *namespace)
            || state.standing.accepted().takes(namespace)
    }

    /// Whether this namespace is worked on: all that there is of it has been listed.
    pub fn holds(&self, namespace: &str) -> bool {
        self.state.lock().standing.held().takes(namespace)
    }

    /// How many replicas there are that take a share.
    pub fn replicas(&self) -> usize {
        self.state.lock().standing.accepted().replicas()
    }

    /// What is held, to be asked of many namespaces.
    pub(crate) fn held(&self) -> Share {
        self.state.lock().standing.held().clone()
    }

    /// The same of what is accepted.
    pub(crate) fn accepted(&self) -> Share {
        self.state.lock().standing.accepted().clone()
    }

    /// What watches have to show, and which changes made it so.
    pub(super) fn wanted(&self) -> ((u64, u64), Wanted) {
        let state = self.state.lock();
        let due = self.due_listing();
        let seen = (state.accepted, due.number);
        let under_way = state.under_way.values();
        let busy = under_way.map(|it| it.namespace.clone()).collect();
        let accepted = state.standing.accepted().clone();
        (
            seen,
            Wanted {
                accepted,
                due,
                busy,
            },
        )
    }

    /// Which changes those are.
    pub(super) fn wanted_changes(&self) -> (u64, u64) {
        (self.state.lock().accepted, self.due.borrow().number)
    }

    /// Begins a reconcile in a namespace, if it is held.
    pub fn enter(self: &Arc<Self>, namespace: &str) -> Option<Permit> {
        let mut state = self.state.lock();
        if state.is_lost(namespace) {
            return None;
        }
        let (number, dropped) = (state.next, CancellationToken::new());
        state.next += 1;
        let under_way = UnderWay {
            namespace: namespace.into(),
            dropped: dropped.clone(),
        };
        state.under_way.insert(number, under_way);
        Some(Permit {
            share: self.clone(),
            number,
            dropped,
        })
    }

    /// Tells of each change of what is accepted or held.
    pub(crate) fn changes(&self) -> signal::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The record as this replica has just written it; it is believed until then.
    pub(crate) fn seen(&self, record: &Record, until: Instant) {
        self.fence.close_at(until);
        self.change(|state| {
            let now = Instant::now();
            state.waiting_since = state
                .standing
                .may_wait(record)
                .then(|| state.waiting_since.unwrap_or(now));
            let waits = state
                .waiting_since
                .is_some_and(|since| since + HAND_OVER > now);
            state.standing.seen(record, waits);
            if !state.standing.is_stopping() {
                state.stopping_since = None;
            } else if state.stopping_since.is_none() {
                state.stopping_since = Some(now);
            }
        });
    }

    /// The Lease was not renewed in time.
    pub(crate) fn lapsed(&self) {
        self.fence.close();
        self.change(|state| {
            state.standing.lapsed();
            state.drop_what_is_lost();
        });
    }

    /// The record does not know this process, or others work.
    pub(crate) fn forgotten(&self) {
        self.change(|state| {
            state.standing.forgotten();
            state.drop_what_is_lost();
        });
    }

    /// The listing that is awaited.
    pub(crate) fn listing(&self) -> Option<u64> {
        self.state.lock().standing.listing()
    }

    /// All that is accepted has been listed.
    pub(crate) fn listed(&self, listing: u64) {
        self.change(|state| state.standing.listed(listing));
    }

    /// Tells which listing of the owners was complete last.
    pub(crate) fn owners_listed(&self) -> signal::Receiver<u64> {
        self.owners_listed.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        let before = (
            state.standing.accepted().clone(),
            state.standing.held().clone(),
        );
        change(&mut state);
        let after = (state.standing.accepted(), state.standing.held());
        let is_changed = (&before.0, &before.1) != after;
        if &before.0 != after.0 {
            state.kept = state.kept.and(after.0);
            state.accepted += 1;
        }
        drop(state);
        self.changes.send_if_modified(|changes| {
            // The first look is news, whatever it shows.
            let is_news = is_changed || *changes == 0;
            *changes += u64::from(is_news);
            is_news
        });
    }

    /// Ends when nothing is under way any more in namespaces that another is to have; never if none is. What takes too
    /// long is dropped.
    pub(crate) async fn stops(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            let due = {
                let mut state = self.state.lock();
                match state.stopping_since {
                    None => None,
                    Some(_) if !state.has_lost_under_way() => {
                        state.stopping_since = None;
                        state.standing.has_stopped();
                        return;
                    }
                    Some(since) => Some(since + GRACE),
                }
            };
            match due {
                None => std::future::pending().await,
                Some(due) if Instant::now() >= due => {
                    self.state.lock().drop_what_is_lost();
                    ended.await;
                }
                Some(due) => {
                    let _ = tokio::time::timeout_at(due, ended).await;
                }
            }
        }
    }

    /// What there is more than when this listing was due; none if that is the one that is awaited, or none is. Told once.
    pub(crate) fn take_growth(&self, listing: u64) -> Option<Growth> {
        let mut state = self.state.lock();
        let number = state.standing.listing();
        let number = number.filter(|number| *number != listing)?;
        let accepted = state.standing.accepted().clone();
        let kept = std::mem::replace(&mut state.kept, accepted.clone());
        let under_way = state.under_way.values().map(|it| &it.namespace);
        let busy: HashSet<Box<str>> = under_way.filter(|it| !kept.takes(it)).cloned().collect();
        Some(Growth {
            number,
            after: listing,
            accepted,
            kept,
            busy,
        })
    }

    /// Whether anything is known of it, and be it that it is empty.
    pub(crate) fn is_known(&self) -> bool {
        *self.changes.borrow() > 0
    }

    /// This is to be listed from now on.
    pub(crate) fn is_due(&self, listing: DueListing) {
        self.due.send_replace(listing);
    }

    /// What is to be listed.
    pub(crate) fn due_listing(&self) -> DueListing {
        self.due.borrow().clone()
    }

    /// Tells when something is to be listed.
    pub(super) fn due_listings(&self) -> signal::Receiver<DueListing> {
        self.due.subscribe()
    }

    /// This listing of the owners is complete.
    pub(super) fn has_listed_owners(&self, listing: u64) {
        self.owners_listed.send_replace(listing);
    }

    /// Which namespaces there were when they were listed last.
    pub(super) fn namespaces(&self) -> Arc<[Box<str>]> {
        self.namespaces.borrow().clone()
    }

    /// There are these namespaces.
    pub(crate) fn knows_of(&self, namespaces: &[Box<str>]) {
        let mut sorted = namespaces.to_vec();
        sorted.sort_unstable();
        self.namespaces.send_replace(sorted.into());
    }

    /// Something arrived from this namespace.
    pub(super) fn meets(&self, namespace: &str) {
        let known = self.namespaces();
        if known.binary_search_by(|it| (**it).cmp(namespace)).is_err() {
            self.met.notify_one();
        }
    }

    /// Ends when something has arrived from a namespace of others that was not there when they were listed last.
    pub(crate) async fn meets_another(&self) {
        self.met.notified().await;
    }

    /// What the record is to be told.
    pub(crate) fn stopped(&self) -> Option<Numbered> {
        self.state.lock().standing.stopped().cloned()
    }
}

/// The share of a process, where replicas share the owners; otherwise it takes all.
#[derive(Clone, Default)]
pub struct MayShare(pub Option<Arc<OwnShare>>);

impl MayShare {
    /// Whether what arrives of this namespace is kept.
    pub fn accepts(&self, namespace: &str) -> bool {
        self.0.as_ref().is_none_or(|share| share.accepts(namespace))
    }

    /// For one kind, which is in namespaces or is not, the clients that its watches need.
    pub(crate) fn watching(&self, is_namespaced: bool) -> Watching {
        let share = self.0.clone().filter(|_| is_namespaced);
        Watching {
            share: self.clone(),
            excluded: share.map(Excluded::new),
        }
    }

    /// The same as a question to be asked of whatever arrives; none where everything is kept.
    pub(crate) fn kept(&self) -> Option<Kept> {
        let share = self.0.clone()?;
        Some(Arc::new(move |namespace: &str| share.accepts(namespace)))
    }

    /// As [`OwnShare::due_listing`].
    pub(crate) fn due_listing(&self) -> DueListing {
        let share = self.0.as_ref();
        share.map_or_else(DueListing::default, |it| it.due_listing())
    }

    /// How many replicas there are that take a share, this one included.
    pub fn replicas(&self) -> usize {
        self.0.as_ref().map_or(1, |share| share.replicas())
    }

    /// Whether this namespace is worked on.
    pub fn holds(&self, namespace: &str) -> bool {
        self.0.as_ref().is_none_or(|share| share.holds(namespace))
    }
}

impl std::fmt::Debug for MayShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "a share" } else { "all" })
    }
}

impl PartialEq for MayShare {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(share), Some(other)) => Arc::ptr_eq(share, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl Eq for MayShare {}
