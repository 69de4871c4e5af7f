//! How long a watch that fails waits before its next try.
//!
//! kube's own back-off begins anew with every event, and the watcher says `Init` before it lists: a listing that fails was
//! repeated each second for ever. Here only what shows that the API server has answered as wished begins anew.

use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use kube::runtime::watcher::{self, Error, Event};
use tokio::time::Instant;

use super::health::answer;
use crate::jitter::doubled;

/// The wait after the first failure. Each further one in a row waits twice as long,
const FIRST: Duration = Duration::from_millis(800);
/// up to this where nobody answers: to ask costs nobody anything then, and everything waits for the answer;
const SILENT: Duration = Duration::from_secs(20);
/// up to this where the API server cannot (429, 5xx): asking adds to what it suffers from;
pub(super) const UNABLE: Duration = Duration::from_mins(1);
/// and up to this where it refuses and a changed right or definition is heard of otherwise.
const REFUSED: Duration = Duration::from_mins(5);

/// A failure so long after the last try began is the first of its row again. A watch that goes on says nothing of it: on a
/// kind in which nothing happens, interruptions that lie weeks apart would add up to the longest wait.
const APART: Duration = Duration::from_mins(2);

/// What tells of changes that a refusal may have been due to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// Whoever holds the watch starts it anew when rights or definitions change.
    Elsewhere,
    /// Only the next try.
    ByTrying,
}

/// The same events, with a pause after each error.
pub(super) fn backed_off<K: Send + 'static>(
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
    heard: Heard,
    jitter: impl Fn() -> f64 + Send + 'static,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static {
    let failures = Failures::from(Instant::now());
    let state = (events.boxed(), failures, None, jitter);
    stream::unfold(
        state,
        move |(mut events, mut failures, pause, jitter)| async move {
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
                failures.tried = Instant::now();
            }
            let event = events.next().await?;
            let pause = failures.note(&event, heard);
            // Many watches fail at once: they come back apart.
            let pause = pause.map(|pause| pause.mul_f64(0.75 + 0.25 * jitter()));
            Some((event, (events, failures, pause, jitter)))
        },
    )
}

/// Failures in a row.
#[derive(Debug)]
struct Failures {
    in_a_row: u32,
    /// When the last try began.
    tried: Instant,
}

impl From<Instant> for Failures {
    /// Nothing has failed yet; the first try begins.
    fn from(tried: Instant) -> Self {
        Self { in_a_row: 0, tried }
    }
}

impl Failures {
    /// How long to wait after this event.
    fn note<K>(&mut self, event: &watcher::Result<Event<K>>, heard: Heard) -> Option<Duration> {
        match event {
            // A listing that has begun may yet fail.
            Ok(Event::Init | Event::InitApply(_)) => None,
            Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => {
                self.in_a_row = 0;
                None
            }
            Err(error) => {
                if self.tried.elapsed() >= APART {
                    self.in_a_row = 0;
                }
                let wait = doubled(FIRST, self.in_a_row, longest(error, heard));
                self.in_a_row = self.in_a_row.saturating_add(1);
                Some(wait)
            }
        }
    }
}

fn longest(error: &Error, heard: Heard) -> Duration {
    match answer(error).map(|status| status.code) {
        None => SILENT,
        Some(401 | 403..=405) if heard == Heard::Elsewhere => REFUSED,
        Some(_) => UNABLE,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use kube::core::Status;

    /// A listing that fails, with this answer or none.
    fn failed(code: Option<u16>) -> Error {
        Error::InitialListFailed(match code {
            Some(code) => {
                let status = Status::failure("no", "Reason").with_code(code);
                kube::Error::Api(Box::new(status))
            }
            None => kube::Error::LinesCodecMaxLineLengthExceeded,
        })
    }

    /// How often an hour of failing listings asks, as kube's watcher tells of them.
    async fn listings_in_an_hour(code: Option<u16>, heard: Heard) -> u32 {
        let asked = Arc::new(AtomicU32::new(0));
        let count = asked.clone();
        let events = stream::unfold(true, move |begins| {
            let event = if begins {
                Ok(Event::<()>::Init)
            } else {
                count.fetch_add(1, Ordering::Relaxed);
                Err(failed(code))
            };
            std::future::ready(Some((event, !begins)))
        });
        let mut events = Box::pin(backed_off(events, heard, || 1.0));
        let end = Instant::now() + Duration::from_hours(1);
        while tokio::time::timeout_at(end, events.next()).await.is_ok() {}
        asked.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn interruptions_that_lie_apart_do_not_add_up() {
        let failing = || Err(failed(Some(500)));
        // Of a kind in which nothing happens: each interruption heals without an event.
        let events = stream::unfold((), move |()| async move {
            tokio::time::sleep(Duration::from_hours(1)).await;
            Some((failing() as watcher::Result<Event<()>>, ()))
        });
        let mut events = Box::pin(backed_off(events, Heard::Elsewhere, || 1.0));
        for _ in 0..20 {
            events.next().await;
            let interrupted = Instant::now();
            let next = events.next();
            tokio::pin!(next);
            next.await;
            assert_eq!(interrupted.elapsed(), Duration::from_hours(1) + FIRST);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_listing_that_fails_is_tried_ever_less_often() {
        // About ten tries while the waits grow, and then one for each longest wait.
        for (code, heard, expected) in [
            (Some(403), Heard::Elsewhere, 15..=25),
            (Some(404), Heard::Elsewhere, 15..=25),
            (Some(403), Heard::ByTrying, 60..=70),
            (Some(429), Heard::Elsewhere, 60..=70),
            (Some(500), Heard::Elsewhere, 60..=70),
            (None, Heard::Elsewhere, 180..=190),
        ] {
            let asked = listings_in_an_hour(code, heard).await;
            assert!(expected.contains(&asked), "{code:?} {heard:?} {asked}");
        }
    }

    #[test]
    fn only_an_answer_as_wished_begins_anew() {
        let mut failures = Failures::from(Instant::now());
        let mut after = |event: watcher::Result<Event<()>>| failures.note(&event, Heard::Elsewhere);
        assert_eq!(after(Err(failed(Some(500)))), Some(FIRST));
        assert_eq!(after(Ok(Event::Init)), None);
        assert_eq!(after(Ok(Event::InitApply(()))), None);
        assert_eq!(after(Err(failed(Some(500)))), Some(FIRST * 2));
        assert_eq!(after(Err(failed(None))), Some(FIRST * 4));
        assert_eq!(after(Ok(Event::InitDone)), None);
        assert_eq!(after(Err(Error::NoResourceVersion)), Some(FIRST));
        assert_eq!(after(Ok(Event::Apply(()))), None);
        assert_eq!(after(Err(failed(None))), Some(FIRST));
    }
}
