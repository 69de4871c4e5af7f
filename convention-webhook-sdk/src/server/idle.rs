//! Who waits for its next request, so that somebody can be asked to go when all places are taken.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

/// How often it is looked whether somebody has become idle, while all places are taken.
const LOOK: Duration = Duration::from_millis(100);

/// The places that there are for connections.
pub(super) struct Places {
    free: Arc<Semaphore>,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    tickets: u64,
    /// Who has been idle for longest is first.
    waiting: BTreeMap<u64, Arc<Notify>>,
}

/// A place that is taken, until it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    leave: Arc<Notify>,
    /// None while a request is under way.
    ticket: Mutex<Option<u64>>,
    /// Until when the answer that is being sent must have been taken.
    sending: watch::Sender<Option<Instant>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(super) fn new(connections: usize) -> Arc<Self> {
        Arc::new(Self {
            free: Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS))),
            idle: Mutex::default(),
        })
    }

    /// Waits for a place; while there is none, whoever has been idle for longest has to go.
    pub(super) async fn take(self: &Arc<Self>) -> Arc<Place> {
        loop {
            if let Ok(permit) = self.free.clone().try_acquire_owned() {
                return self.place(Some(permit));
            }
            if let Some((_, leave)) = self.idle().waiting.pop_first() {
                leave.notify_one();
            }
            let freed = self.free.clone().acquire_owned();
            if let Ok(permit) = tokio::time::timeout(LOOK, freed).await {
                return self.place(permit.ok());
            }
        }
    }

    fn place(self: &Arc<Self>, permit: Option<OwnedSemaphorePermit>) -> Arc<Place> {
        let place = Place {
            places: self.clone(),
            leave: Arc::new(Notify::new()),
            ticket: Mutex::new(None),
            sending: watch::Sender::new(None),
            _permit: permit,
        };
        place.rests();
        Arc::new(place)
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Ends when the place is needed for somebody else.
    pub(super) async fn needed(&self) {
        loop {
            self.leave.notified().await;
            // A request may have come at the last moment; then somebody else is asked.
            if self.ticket().is_some() {
                return;
            }
        }
    }

    /// Ends when an answer was not taken in time.
    pub(super) async fn overdue(&self) {
        let mut sending = self.sending.subscribe();
        loop {
            let until = *sending.borrow_and_update();
            let late = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = late => return,
                // The sender lives as long as the place.
                _ = sending.changed() => {}
            }
        }
    }

    /// An answer is being sent, until the guard is dropped.
    pub(super) fn sends(self: &Arc<Self>, limit: Duration) -> impl Drop + Send + use<> {
        struct Sending(Arc<Place>);
        impl Drop for Sending {
            fn drop(&mut self) {
                self.0.sending.send_replace(None);
            }
        }
        self.sending.send_replace(Some(Instant::now() + limit));
        Sending(self.clone())
    }

    /// A request has begun; it is over when the guard is dropped.
    pub(super) fn works(self: &Arc<Self>) -> impl Drop + Send + use<> {
        struct Working(Arc<Place>);
        impl Drop for Working {
            fn drop(&mut self) {
                self.0.rests();
            }
        }
        self.leaves_the_list();
        Working(self.clone())
    }

    fn rests(&self) {
        let mut idle = self.places.idle();
        idle.tickets += 1;
        let ticket = idle.tickets;
        idle.waiting.insert(ticket, self.leave.clone());
        *self.ticket() = Some(ticket);
    }

    fn leaves_the_list(&self) {
        if let Some(ticket) = self.ticket().take() {
            self.places.idle().waiting.remove(&ticket);
        }
    }

    fn ticket(&self) -> MutexGuard<'_, Option<u64>> {
        self.ticket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leaves_the_list();
    }
}
