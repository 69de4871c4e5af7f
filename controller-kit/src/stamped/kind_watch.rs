//! The watch over one kind: what it holds, and whether that can be relied upon.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use serde_json::Value;
use tokio::sync::{Notify, watch as signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{ObjectKey, Projection, Stamped, Store};
use crate::mapper::Served;

/// How long after the start of a watch reconciles wait for its first listing. Whoever comes later, or waited in vain, is
/// tried again: a kind that cannot be listed must not hold the slots of others.
pub(crate) const LISTING_PATIENCE: Duration = Duration::from_secs(10);

/// Whether a watch can be relied upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// Not yet listed, since the watch was started.
    Starting(Instant),
    /// Not yet listed, and the last try failed, by nobody's lack of rights.
    Failing {
        /// What the API server said.
        why: String,
        /// When the watch was started.
        since: Instant,
    },
    /// The store holds everything.
    Synced,
    /// The store holds what was there once: since then the API server has answered with nothing but
    /// errors, and with others it had no trouble.
    Stale {
        /// What the API server said last.
        why: String,
        /// When it began,
        since: Instant,
        /// by the time of day.
        at: Timestamp,
    },
    /// The kind cannot be watched; the text names what is missing. It is read with the owner's token instead.
    Unavailable(String),
}

impl Readiness {
    /// Since when a first listing is awaited; `None` when it is known how it came out.
    pub(super) fn awaited_since(&self) -> Option<Instant> {
        match self {
            Self::Starting(since) | Self::Failing { since, .. } => Some(*since),
            Self::Synced | Self::Stale { .. } | Self::Unavailable(_) => None,
        }
    }

    /// Of a watch that takes the place of one that is in this state.
    pub(super) fn of_a_successor(&self) -> Self {
        match self {
            // Who only needs more paths than a watch that does not come about does not wait anew.
            Self::Starting(since) | Self::Failing { since, .. } => Self::Starting(*since),
            Self::Stale { .. } => self.clone(),
            Self::Synced | Self::Unavailable(_) => Self::Starting(Instant::now()),
        }
    }

    /// What is held is believed no longer; whether that is news. What is read otherwise need not be
    /// believed.
    pub(super) fn grows_stale(&mut self, why: String, since: Instant, at: Timestamp) -> bool {
        match self {
            Self::Unavailable(_) => false,
            Self::Stale { why: before, .. } => {
                *before = why;
                false
            }
            Self::Starting(_) | Self::Failing { .. } | Self::Synced => {
                *self = Self::Stale { why, since, at };
                true
            }
        }
    }

    /// A try to list failed.
    pub(super) fn fails(&mut self, why: String) {
        if let Some(since) = self.awaited_since() {
            *self = Self::Failing { why, since };
        }
    }
}

/// The watch over one kind.
pub struct KindWatch {
    pub(super) served: Arc<Served>,
    pub(super) projection: Projection,
    pub(super) store: RwLock<Store>,
    pub(super) readiness: signal::Sender<Readiness>,
    pub(super) cancel: CancellationToken,
    /// What a refusal was due to may have changed: another listing is worth a try.
    pub(super) again: Notify,
    /// More of them are kept from now on: all are to be read anew.
    pub(super) relist: Notify,
    /// How often that was so.
    pub(super) relists: AtomicU64,
    /// The watch that this one replaces, until this one is listed: what is gone since then was never seen here.
    pub(super) predecessor: Mutex<Option<Arc<Self>>>,
}

impl KindWatch {
    /// How the kind is served.
    pub fn served(&self) -> &Arc<Served> {
        &self.served
    }

    /// Which paths are kept.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    /// An object as it is kept; what `field_manager` owns of it decides whether it is unchanged.
    pub(crate) fn project(&self, object: &Value, field_manager: &str) -> Stamped {
        Stamped::from_value(object, &self.served.kind, &self.projection, field_manager)
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Stamped>> {
        self.read().get(key)
    }

    /// The objects of one owner.
    pub(crate) fn owned_by(&self, owner: &ObjectKey, uid: &str) -> Vec<Arc<Stamped>> {
        self.read().owned_by(owner, uid)
    }

    /// The last that was seen of objects of this owner that are gone.
    pub(crate) fn departed(&self, uid: &str) -> Vec<Arc<Stamped>> {
        self.read().departed(uid)
    }

    /// The reply to our own write.
    pub(crate) fn overlay(&self, object: Stamped) {
        self.write().overlay(object);
    }

    /// Number of objects held.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until the kind is listed or known to be unavailable, at most until `LISTING_PATIENCE` after the watch was
    /// started, and not at all for a watch that has been replaced.
    pub async fn ready(&self) -> Readiness {
        let mut receiver = self.readiness.subscribe();
        let now = receiver.borrow().clone();
        let Some(since) = now.awaited_since() else {
            return now;
        };
        let settled = receiver.wait_for(|readiness| readiness.awaited_since().is_none());
        tokio::select! {
            biased;
            _ = tokio::time::timeout_at(since + LISTING_PATIENCE, settled) => {}
            () = self.cancel.cancelled() => {}
        }
        self.readiness.borrow().clone()
    }

    /// Whether another watch has taken its place, or it has stopped.
    pub(crate) fn is_replaced(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// After a refusal: nobody can tell any more, until it is listed anew or refused once more.
    pub(super) fn is_tried_again(&self) -> bool {
        self.readiness.send_if_modified(|readiness| {
            let refused = matches!(readiness, Readiness::Unavailable(_));
            if refused {
                *readiness = Readiness::Starting(Instant::now());
            }
            refused
        })
    }

    /// More of what there is will be kept: nobody relies on what is held until all has been read anew.
    pub(super) fn reads_anew(&self) {
        self.readiness.send_if_modified(|readiness| {
            // Under one lock, so that no listing that ends now counts for this one.
            self.relists.fetch_add(1, Ordering::SeqCst);
            let relied_upon = matches!(readiness, Readiness::Synced);
            if relied_upon {
                *readiness = Readiness::Starting(Instant::now());
            }
            relied_upon
        });
        self.relist.notify_one();
    }

    /// How often it was to be read anew so far.
    pub(super) fn relists(&self) -> u64 {
        self.relists.load(Ordering::SeqCst)
    }

    /// Whether the last try to list failed, by nobody's lack of rights.
    pub(super) fn is_failing(&self) -> bool {
        let now = self.readiness.borrow();
        matches!(*now, Readiness::Failing { .. } | Readiness::Stale { .. })
    }

    /// What it holds, and what the watches held that it replaces and that it has not listed yet.
    pub(super) fn held(&self) -> Vec<Arc<Stamped>> {
        let mut held = self.read().all();
        let predecessor = self.predecessor.lock().clone();
        held.extend(predecessor.iter().flat_map(|replaced| replaced.held()));
        held
    }

    pub(super) fn take_predecessor(&self) -> Option<Arc<Self>> {
        self.predecessor.lock().take()
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read()
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Store> {
        self.store.write()
    }
}
