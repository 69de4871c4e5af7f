//! How much one registry is asked at the same time and in a second.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quick_cache::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::settings::Settings;

/// Hosts that are remembered. Who names more of them gains nothing: each of those has its own
/// limits.
const HOSTS: usize = 1024;

/// The longest that a host can have itself left alone by everybody.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// The longest that a request waits for the end of a pause.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The limits of all hosts.
pub(crate) struct Limits {
    hosts: Cache<String, Arc<Host>>,
    concurrency: usize,
    /// Between two requests, in the long run.
    interval: Duration,
    /// What may be sent at once after a while without requests.
    burst: Duration,
}

struct Host {
    places: Arc<Semaphore>,
    /// When a request would be in its time if none had been early.
    due: Mutex<Instant>,
    /// Until when the host asked to be left alone, and by which status.
    paused: Mutex<Option<(Instant, u16)>>,
}

/// A host asked to be left alone for longer than anybody waits for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Paused {
    pub(crate) left: Duration,
    /// Of the answer that asked for it.
    pub(crate) status: u16,
}

/// A place among the requests to a host, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Limits {
    pub(crate) fn new(settings: &Settings) -> Self {
        let interval = Duration::from_secs(1) / settings.requests_per_second.max(1);
        Self {
            hosts: Cache::new(HOSTS),
            concurrency: settings.concurrency.max(1),
            interval,
            burst: Duration::from_secs(1),
        }
    }

    /// Waits for a place.
    ///
    /// # Errors
    ///
    /// If the host asked for a long pause: whoever waited for its end would take the place of
    /// others, who are better told at once.
    pub(crate) async fn enter(&self, host: &str) -> Result<Place, Paused> {
        let host = self.host(host);
        host.is_open()?;
        let permit = host.places.clone().acquire_owned().await.ok();
        // Somebody may have been told to wait since.
        host.is_open()?;
        let wait = self.reserve(&host);
        tokio::time::sleep(wait).await;
        Ok(Place { _permit: permit })
    }

    /// Has everybody wait who asks this host.
    pub(crate) fn pause(&self, host: &str, status: u16, duration: Duration) {
        let end = Instant::now() + duration.min(LONGEST_PAUSE);
        let host = self.host(host);
        let mut paused = host.paused.lock();
        if paused.is_none_or(|(before, _)| before < end) {
            *paused = Some((end, status));
        }
        let mut due = host.due.lock();
        *due = (*due).max(end + self.burst);
    }

    fn host(&self, host: &str) -> Arc<Host> {
        let make = || {
            Ok::<_, std::convert::Infallible>(Arc::new(Host {
                places: Arc::new(Semaphore::new(self.concurrency)),
                due: Mutex::new(Instant::now()),
                paused: Mutex::default(),
            }))
        };
        match self.hosts.get_or_insert_with(host, make) {
            Ok(host) => host,
            Err(never) => match never {},
        }
    }

    /// How long the next request has to wait.
    fn reserve(&self, host: &Host) -> Duration {
        let now = Instant::now();
        let mut due = host.due.lock();
        let start = (*due).max(now);
        *due = start + self.interval;
        start.saturating_duration_since(now + self.burst)
    }
}

impl Host {
    fn is_open(&self) -> Result<(), Paused> {
        let Some((end, status)) = *self.paused.lock() else {
            return Ok(());
        };
        let left = end.saturating_duration_since(Instant::now());
        if left > LONGEST_WAIT {
            return Err(Paused { left, status });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(concurrency: usize, requests_per_second: u32) -> Limits {
        Limits::new(&Settings {
            concurrency,
            requests_per_second,
            ..Settings::new("/nowhere")
        })
    }

    #[tokio::test(start_paused = true)]
    async fn many_requests_are_spread_after_a_burst_of_a_second() {
        let (limits, start) = (limits(1000, 10), Instant::now());
        for _ in 0..50 {
            limits.enter("a.example").await.unwrap();
        }
        let took = start.elapsed();
        assert!(
            took >= Duration::from_millis(3800) && took < Duration::from_secs(5),
            "{took:?}"
        );
        limits.enter("b.example").await.unwrap();
        assert_eq!(start.elapsed(), took, "another registry waits for nobody");
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_free_again_when_it_is_dropped() {
        let limits = limits(1, 1000);
        let place = limits.enter("a.example").await.unwrap();
        let second = tokio::time::timeout(Duration::from_secs(9), limits.enter("a.example"));
        assert!(second.await.is_err());
        drop(place);
        limits.enter("a.example").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_for_all_requests_to_the_host_and_not_for_long() {
        let (limits, start) = (limits(10, 1000), Instant::now());
        limits.pause("a.example", 429, Duration::from_secs(3));
        limits.enter("b.example").await.unwrap();
        assert!(start.elapsed() < Duration::from_secs(1));
        limits.enter("a.example").await.unwrap();
        assert!(start.elapsed() >= Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_pause_is_told_at_once_and_ends() {
        let (limits, start) = (limits(1, 1000), Instant::now());
        let place = limits.enter("c.example").await.unwrap();
        limits.pause("c.example", 503, Duration::from_hours(1000));
        limits.pause("c.example", 429, Duration::from_secs(30));
        // Nor does anybody wait for a place.
        let told = Paused {
            left: LONGEST_PAUSE,
            status: 503,
        };
        assert_eq!(limits.enter("c.example").await.unwrap_err(), told);
        assert_eq!(start.elapsed(), Duration::ZERO);
        drop(place);
        tokio::time::sleep(LONGEST_PAUSE.saturating_sub(LONGEST_WAIT)).await;
        limits.enter("c.example").await.unwrap();
        assert!(start.elapsed() >= LONGEST_PAUSE);
        assert!(start.elapsed() <= LONGEST_PAUSE + Duration::from_secs(1));
    }
}
