//! How much one registry is asked at the same time and in a second.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quick_cache::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::settings::Settings;
use crate::who::Fingerprint;

/// Hosts that are remembered. Who names more of them gains nothing: each of those has its own
/// limits.
const HOSTS: usize = 1024;

/// Askers whose pauses are remembered. One that is forgotten costs a request, whose answer says it
/// again.
const ASKERS: usize = 4096;

/// The longest that a host can have itself left alone.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// The longest that a request waits for the end of a pause.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The limits of all hosts.
pub(crate) struct Limits {
    hosts: Cache<String, Arc<Host>>,
    /// Until when a host asked one asker to leave it alone, and by which status. What one account
    /// has used up is no reason to keep others waiting.
    askers: Cache<(String, Fingerprint), Pause>,
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
    /// Until when the host asked to be left alone by everybody.
    paused: Mutex<Option<Pause>>,
}

/// Until when, and by which status.
#[derive(Debug, Clone, Copy)]
struct Pause {
    end: Instant,
    status: u16,
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
            askers: Cache::new(ASKERS),
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
    pub(crate) async fn enter(&self, host: &str, who: Fingerprint) -> Result<Place, Paused> {
        let key = (host.to_owned(), who);
        if let Some(pause) = self.askers.get(&key) {
            // Nobody waits for an account of somebody else, so no place is held meanwhile.
            tokio::time::sleep(pause.bearable()?).await;
        }
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
        let pause = Pause::new(status, duration);
        let host = self.host(host);
        let mut paused = host.paused.lock();
        if paused.is_none_or(|before| before.end < pause.end) {
            *paused = Some(pause);
        }
        let mut due = host.due.lock();
        *due = (*due).max(pause.end + self.burst);
    }

    /// Has one asker wait.
    pub(crate) fn pause_asker(
        &self,
        host: &str,
        who: Fingerprint,
        status: u16,
        duration: Duration,
    ) {
        let (key, pause) = ((host.to_owned(), who), Pause::new(status, duration));
        let before = self.askers.get(&key);
        if before.is_none_or(|before| before.end < pause.end) {
            self.askers.insert(key, pause);
        }
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

impl Pause {
    fn new(status: u16, duration: Duration) -> Self {
        let end = Instant::now() + duration.min(LONGEST_PAUSE);
        Self { end, status }
    }

    /// What is left of it, if that is not too long to wait for.
    fn bearable(self) -> Result<Duration, Paused> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left > LONGEST_WAIT {
            let status = self.status;
            return Err(Paused { left, status });
        }
        Ok(left)
    }
}

impl Host {
    fn is_open(&self) -> Result<(), Paused> {
        match *self.paused.lock() {
            Some(pause) => pause.bearable().map(drop),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use conventions::credentials::Credential;

    use super::*;
    use crate::who::Who;

    fn nobody() -> Fingerprint {
        Who::Nobody.fingerprint()
    }

    fn somebody(name: &str) -> Fingerprint {
        let credential = Credential {
            username: name.to_owned(),
            password: "1".to_owned(),
            identity_token: None,
        };
        Who::of(&credential).fingerprint()
    }

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
            limits.enter("a.example", nobody()).await.unwrap();
        }
        let took = start.elapsed();
        assert!(
            took >= Duration::from_millis(3800) && took < Duration::from_secs(5),
            "{took:?}"
        );
        limits.enter("b.example", nobody()).await.unwrap();
        assert_eq!(start.elapsed(), took, "another registry waits for nobody");
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_free_again_when_it_is_dropped() {
        let limits = limits(1, 1000);
        let place = limits.enter("a.example", nobody()).await.unwrap();
        let second =
            tokio::time::timeout(Duration::from_secs(9), limits.enter("a.example", nobody()));
        assert!(second.await.is_err());
        drop(place);
        limits.enter("a.example", nobody()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_for_all_requests_to_the_host_and_not_for_long() {
        let (limits, start) = (limits(10, 1000), Instant::now());
        limits.pause("a.example", 429, Duration::from_secs(3));
        limits.enter("b.example", nobody()).await.unwrap();
        assert!(start.elapsed() < Duration::from_secs(1));
        limits.enter("a.example", nobody()).await.unwrap();
        assert!(start.elapsed() >= Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_pause_is_told_at_once_and_ends() {
        let (limits, start) = (limits(1, 1000), Instant::now());
        let place = limits.enter("c.example", nobody()).await.unwrap();
        limits.pause("c.example", 503, Duration::from_hours(1000));
        limits.pause("c.example", 429, Duration::from_secs(30));
        // Nor does anybody wait for a place.
        let told = Paused {
            left: LONGEST_PAUSE,
            status: 503,
        };
        assert_eq!(limits.enter("c.example", nobody()).await.unwrap_err(), told);
        assert_eq!(start.elapsed(), Duration::ZERO);
        drop(place);
        tokio::time::sleep(LONGEST_PAUSE.saturating_sub(LONGEST_WAIT)).await;
        limits.enter("c.example", nobody()).await.unwrap();
        assert!(start.elapsed() >= LONGEST_PAUSE);
        assert!(start.elapsed() <= LONGEST_PAUSE + Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_one_account_has_used_up_keeps_no_other_waiting() {
        let (limits, start) = (limits(1, 1000), Instant::now());
        let (ann, bob) = (somebody("ann"), somebody("bob"));
        limits.pause_asker("a.example", ann, 429, Duration::from_secs(10));
        limits.pause_asker("a.example", bob, 429, Duration::from_hours(1));
        let waits = limits.enter("a.example", ann);
        let others = async {
            for who in [nobody(), somebody("eve")] {
                limits.enter("a.example", who).await.unwrap();
            }
            limits.enter("b.example", ann).await.unwrap();
            let left = LONGEST_PAUSE;
            let told = Paused { left, status: 429 };
            assert_eq!(limits.enter("a.example", bob).await.unwrap_err(), told);
            assert_eq!(start.elapsed(), Duration::ZERO, "the one place is free");
        };
        let (waited, ()) = tokio::join!(waits, others);
        waited.unwrap();
        assert!(start.elapsed() >= Duration::from_secs(10));
    }
}
