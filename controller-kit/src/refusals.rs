//! Whether a watch is refused, and what is missing then.

mod standing;

use std::sync::Arc;

use futures::StreamExt as _;
use kube::runtime::watcher::{self, Event};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::reflect::Events;

pub(crate) use standing::{Refused, Standing, answer};

/// What a watch was refused with last.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    standing: Standing,
    why: Option<String>,
}

impl Refusals {
    /// Of a watch that takes the place of a refused one: it is refused until the contrary is known.
    #[must_use]
    pub fn after(refused: &Self) -> Self {
        Self(Mutex::new(State {
            why: refused.why(),
            ..State::default()
        }))
    }

    /// What the API server says, while it refuses.
    pub fn why(&self) -> Option<String> {
        self.0.lock().why.clone()
    }

    /// Passes events on. Calls `changed` when the watch is refused, for another reason, or no longer, once the event that
    /// says so has been followed.
    pub fn observe(self: Arc<Self>, events: Events, changed: impl Fn() + Send + 'static) -> Events {
        let state = (self, events, changed, false);
        let stream =
            futures::stream::unfold(state, |(refusals, mut events, changed, tell)| async move {
                if tell {
                    changed();
                }
                let event = events.next().await?;
                let tell = refusals.0.lock().note(&event);
                Some((event, (refusals, events, changed, tell)))
            });
        stream.boxed()
    }
}

impl State {
    /// Whether that is news.
    fn note(&mut self, event: &watcher::Result<Event<Value>>) -> bool {
        match event {
            Ok(event) => self.standing.shows(event) && self.why.take().is_some(),
            Err(error) => {
                let refused = self.standing.fails(error, Instant::now());
                let counts = refused.filter(|refused| refused.counts);
                counts.is_some_and(|refused| self.refuse(refused.why))
            }
        }
    }

    fn refuse(&mut self, why: &str) -> bool {
        let is_news = self.why.as_deref() != Some(why);
        self.why = Some(why.to_owned());
        is_news
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::channel::mpsc;
    use kube::core::Status;
    use serde_json::json;

    use super::standing::MOMENT;
    use super::*;

    fn refused(message: &str) -> watcher::Result<Event<Value>> {
        let status = Status::failure(message, "Forbidden").with_code(403);
        Err(watcher::Error::InitialListFailed(kube::Error::Api(
            Box::new(status),
        )))
    }

    /// A watch, what it says and how often it says that this has changed.
    struct Scene {
        refusals: Arc<Refusals>,
        events: mpsc::UnboundedSender<watcher::Result<Event<Value>>>,
        observed: Events,
        told: Arc<AtomicU32>,
    }

    fn scene(refusals: Refusals) -> Scene {
        let (refusals, told) = (Arc::new(refusals), Arc::new(AtomicU32::new(0)));
        let (events, watched) = mpsc::unbounded();
        let count = told.clone();
        let changed = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        Scene {
            observed: refusals.clone().observe(watched.boxed(), changed),
            refusals,
            events,
            told,
        }
    }

    impl Scene {
        /// What is said, and how often it has changed, once this event and all before it have been followed.
        async fn after(&mut self, event: watcher::Result<Event<Value>>) -> String {
            self.events.unbounded_send(event).unwrap();
            self.observed.next().await;
            let _ = futures::poll!(self.observed.next());
            let why = self.refusals.why().unwrap_or_else(|| "-".to_owned());
            format!("{why} {}", self.told.load(Ordering::SeqCst))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_listing_that_is_refused_is_told_once_and_when_it_succeeds() {
        let mut scene = scene(Refusals::default());
        assert_eq!(scene.after(refused("no")).await, "no 1");
        assert_eq!(scene.after(refused("no")).await, "no 1");
        assert_eq!(scene.after(refused("not yet")).await, "not yet 2");
        assert_eq!(scene.after(Ok(Event::Init)).await, "not yet 2");
        assert_eq!(scene.after(Ok(Event::InitDone)).await, "- 3");
        assert_eq!(scene.after(Ok(Event::InitDone)).await, "- 3");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_went_on_is_refused_only_after_a_moment() {
        let mut scene = scene(Refusals::default());
        scene.after(Ok(Event::InitDone)).await;
        assert_eq!(scene.after(refused("starting")).await, "- 0");
        tokio::time::advance(MOMENT).await;
        scene.after(Ok(Event::Apply(json!({})))).await;
        assert_eq!(scene.after(refused("starting")).await, "- 0");
        tokio::time::advance(MOMENT).await;
        assert_eq!(scene.after(refused("revoked")).await, "revoked 1");
    }

    #[tokio::test(start_paused = true)]
    async fn an_interruption_is_no_refusal() {
        let mut scene = scene(Refusals::default());
        let gone = Err(watcher::Error::NoResourceVersion);
        assert_eq!(scene.after(gone).await, "- 0");
    }

    #[tokio::test(start_paused = true)]
    async fn another_try_is_refused_until_it_is_listed() {
        let mut first = scene(Refusals::default());
        first.after(refused("no")).await;
        let mut second = scene(Refusals::after(&first.refusals));
        assert_eq!(second.after(Ok(Event::Init)).await, "no 0");
        assert_eq!(second.after(refused("no")).await, "no 0");
        assert_eq!(second.after(Ok(Event::InitDone)).await, "- 1");
    }
}
