//! Watches as their answers show them: how many are open, when each kind was heard of last, how often one began anew.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::asked::parameters;
use super::build::Build;
use super::count;
use super::define::metrics;

/// Listings that are remembered, to tell one that begins again. Runnables may select in thousands of ways over time; then
/// all is forgotten, and a few restarts go uncounted.
const MOST_LISTINGS: usize = 8192;

/// An open watch on which nothing has arrived for longer says nothing of the API server, which
/// sends a bookmark about once a minute.
const LATELY: Duration = Duration::from_mins(3);

metrics! {
    struct Gauges {
        /// Watches that are open.
        open: gauges("carto_watches", &["resource"]),
        /// Time since anything arrived on an open watch, bookmarks included.
        age: float_gauges("carto_watch_last_event_age_seconds", &["resource"]),
        /// Listings that began again.
        restarts: counters("carto_watch_restarts_total", &["resource"]),
    }
}

pub(super) struct Watches {
    shown: Gauges,
    started: Instant,
    held: Mutex<BTreeMap<Box<str>, Arc<Held>>>,
    listings: Mutex<HashSet<u64>>,
}

/// The watches of one resource.
#[derive(Default)]
struct Held {
    open: AtomicUsize,
    /// Milliseconds from the start to the last event.
    heard: AtomicU64,
}

impl Watches {
    pub(super) fn new(build: &Build<'_>) -> Self {
        Self {
            shown: Gauges::new(build),
            started: Instant::now(),
            held: Mutex::default(),
            listings: Mutex::default(),
        }
    }

    /// A listing of this resource begins, unless it is a further page.
    pub(super) fn listed<B>(&self, resource: &str, request: &Request<B>) {
        if parameters(request).any(|it| it.starts_with("continue=")) {
            return;
        }
        let mut hasher = DefaultHasher::new();
        request.uri().path().hash(&mut hasher);
        parameters(request)
            .filter(|it| it.starts_with("labelSelector=") || it.starts_with("fieldSelector="))
            .for_each(|selector| selector.hash(&mut hasher));
        let mut listings = self.listings.lock();
        if listings.len() >= MOST_LISTINGS {
            listings.clear();
        }
        let is_first = listings.insert(hasher.finish());
        let restarts = self.shown.restarts.with_label_values(&[resource]);
        restarts.inc_by(u64::from(!is_first));
    }

    /// A watch was answered.
    pub(super) fn opened(&self, resource: &str) -> OpenWatch {
        let held = self.held.lock().entry(resource.into()).or_default().clone();
        held.open.fetch_add(1, Ordering::Relaxed);
        let watch = OpenWatch {
            held,
            started: self.started,
        };
        watch.heard();
        watch
    }

    /// Sets the gauges. The age of what is not open says nothing.
    pub(super) fn gather(&self) {
        self.shown.age.reset();
        for (resource, held) in &*self.held.lock() {
            let open = held.open.load(Ordering::Relaxed);
            let gauge = self.shown.open.with_label_values(&[resource]);
            gauge.set(count(open));
            if open > 0 {
                let age = self.age_of(held).as_secs_f64();
                self.shown.age.with_label_values(&[resource]).set(age);
            }
        }
    }

    /// Whether anything has arrived of late on an open watch of another resource.
    pub(super) fn hears_others(&self, resource: &str) -> bool {
        self.held.lock().iter().any(|(other, held)| {
            let is_open = held.open.load(Ordering::Relaxed) > 0;
            **other != *resource && is_open && self.age_of(held) <= LATELY
        })
    }

    fn age_of(&self, held: &Held) -> Duration {
        let heard = Duration::from_millis(held.heard.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(heard)
    }
}

/// An open watch, until it is dropped.
pub(super) struct OpenWatch {
    held: Arc<Held>,
    started: Instant,
}

impl OpenWatch {
    /// Something arrived.
    pub(super) fn heard(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.held.heard.store(now, Ordering::Relaxed);
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.held.open.fetch_sub(1, Ordering::Relaxed);
    }
}
