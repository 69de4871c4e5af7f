//! How many watched objects have reached a goal, kept up to date event by event: asking all 5000 objects after each of
//! 13,000 events would cost more than what is measured.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;
use tokio::sync::{oneshot, watch};

use crate::layout::Key;
use crate::seen::Seen;

/// What a watch told.
#[derive(Debug)]
pub(crate) enum Change<T> {
    /// This is all there is.
    Listed(Vec<T>),
    /// This object is new or has changed.
    Changed(T),
    /// This object is gone.
    Gone(Key),
}

/// The objects of one kind, as last seen.
pub(crate) struct Census<T> {
    state: Mutex<State<T>>,
    count: watch::Sender<Count>,
}

/// How far the objects are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Objects that have reached the goal.
    pub(crate) reached: usize,
    /// All objects.
    pub(crate) total: usize,
}

type Goal<T> = Box<dyn Fn(&Key, &T) -> bool + Send>;

struct State<T> {
    objects: HashMap<Key, (T, bool)>,
    goal: Goal<T>,
    reached: usize,
    /// The most objects there were since [`Census::forget_most`].
    most: usize,
    waiters: HashMap<Key, Waiter<T>>,
}

struct Waiter<T> {
    awaited: Box<dyn Fn(&T) -> bool + Send>,
    seen: oneshot::Sender<Instant>,
}

impl<T: Seen> Default for Census<T> {
    fn default() -> Self {
        let state = State {
            objects: HashMap::new(),
            goal: Box::new(|_, _| true),
            reached: 0,
            most: 0,
            waiters: HashMap::new(),
        };
        Self {
            state: Mutex::new(state),
            count: watch::Sender::new(Count::default()),
        }
    }
}

impl<T: Seen> Census<T> {
    /// Takes note of what a watch told.
    pub(crate) fn record(&self, change: Change<T>) {
        let mut state = self.state();
        match change {
            Change::Listed(objects) => {
                state.objects.clear();
                state.reached = 0;
                for object in objects {
                    state.put(object);
                }
            }
            Change::Changed(object) => state.put(object),
            Change::Gone(key) => state.remove(&key),
        }
        state.most = state.most.max(state.objects.len());
        self.count.send_replace(state.count());
    }

    /// Waits until so many objects have reached a goal at the same time.
    ///
    /// # Errors
    ///
    /// When `limit` passes first; the text says how many have.
    pub(crate) async fn reach(
        &self,
        what: &str,
        count: usize,
        limit: Duration,
        goal: impl Fn(&Key, &T) -> bool + Send + 'static,
    ) -> anyhow::Result<()> {
        self.set_goal(Box::new(goal));
        self.await_count(what, limit, |seen| seen.reached >= count)
            .await
    }

    /// Waits until there are none of these objects.
    ///
    /// # Errors
    ///
    /// When `limit` passes first.
    pub(crate) async fn emptied(
        &self,
        what: &str,
        limit: Duration,
        of: impl Fn(&Key) -> bool + Send + 'static,
    ) -> anyhow::Result<()> {
        self.set_goal(Box::new(move |key, _| of(key)));
        self.await_count(what, limit, |seen| seen.reached == 0)
            .await
    }

    /// The moment in which an object is seen as awaited; at once, if it is so already. One wait per object at a time.
    pub(crate) fn when(
        &self,
        key: &Key,
        awaited: impl Fn(&T) -> bool + Send + 'static,
    ) -> oneshot::Receiver<Instant> {
        let (seen, receiver) = oneshot::channel();
        let mut state = self.state();
        if state
            .objects
            .get(key)
            .is_some_and(|(object, _)| awaited(object))
        {
            // The receiver is in our hands: this cannot fail.
            let _ = seen.send(Instant::now());
        } else {
            state.waiters.insert(
                key.clone(),
                Waiter {
                    awaited: Box::new(awaited),
                    seen,
                },
            );
        }
        receiver
    }

    /// An object, as last seen.
    pub(crate) fn get(&self, key: &Key) -> Option<T> {
        self.state()
            .objects
            .get(key)
            .map(|(object, _)| object.clone())
    }

    /// How many objects there are, and how many have reached the goal of the last [`Census::reach`].
    pub(crate) fn count(&self) -> Count {
        *self.count.borrow()
    }

    /// The most objects seen at a time since [`Census::forget_most`].
    pub(crate) fn most(&self) -> usize {
        self.state().most
    }

    /// Counts the most objects anew, from those that are there.
    pub(crate) fn forget_most(&self) {
        let mut state = self.state();
        state.most = state.objects.len();
    }

    /// One of the objects that have not reached the goal, to tell what is wrong.
    pub(crate) fn laggard(&self) -> Option<T> {
        let state = self.state();
        state
            .objects
            .values()
            .find(|(_, reached)| !reached)
            .map(|(object, _)| object.clone())
    }

    fn set_goal(&self, goal: Goal<T>) {
        let mut state = self.state();
        let mut reached = 0;
        for (key, (object, flag)) in &mut state.objects {
            *flag = goal(key, object);
            reached += usize::from(*flag);
        }
        state.goal = goal;
        state.reached = reached;
        self.count.send_replace(state.count());
    }

    async fn await_count(
        &self,
        what: &str,
        limit: Duration,
        done: impl Fn(&Count) -> bool,
    ) -> anyhow::Result<()> {
        let mut counts = self.count.subscribe();
        let Ok(waited) = tokio::time::timeout(limit, counts.wait_for(|count| done(count))).await
        else {
            let Count { reached, total } = *self.count.borrow();
            bail!("not within {limit:?}: {what}; {reached} of {total} objects are there");
        };
        waited?;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Seen> State<T> {
    fn put(&mut self, object: T) {
        let key = object.key();
        if self
            .waiters
            .get(&key)
            .is_some_and(|waiter| (waiter.awaited)(&object))
            && let Some(waiter) = self.waiters.remove(&key)
        {
            // Nobody may wait any more; then nobody needs to know.
            let _ = waiter.seen.send(Instant::now());
        }
        self.remove(&key);
        let reached = (self.goal)(&key, &object);
        self.reached += usize::from(reached);
        self.objects.insert(key, (object, reached));
    }

    fn remove(&mut self, key: &Key) {
        if let Some((_, reached)) = self.objects.remove(key) {
            self.reached -= usize::from(reached);
        }
    }

    fn count(&self) -> Count {
        Count {
            reached: self.reached,
            total: self.objects.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::{Metadata, Step};

    const SHORT: Duration = Duration::from_millis(20);

    fn step(name: &str, generation: i64) -> Step {
        let metadata = Metadata {
            name: name.to_owned(),
            generation,
            ..Metadata::default()
        };
        Step {
            metadata,
            ..Step::default()
        }
    }

    fn key(name: &str) -> Key {
        Key {
            namespace: String::new(),
            name: name.to_owned(),
        }
    }

    fn new_enough(_: &Key, step: &Step) -> bool {
        step.metadata.generation > 1
    }

    #[tokio::test]
    async fn objects_count_as_long_as_they_meet_the_goal() {
        let census = Census::default();
        census.record(Change::Listed(vec![step("a", 2), step("b", 1)]));
        census.reach("one", 1, SHORT, new_enough).await.unwrap();
        let count = || *census.count.borrow();
        census.record(Change::Changed(step("b", 2)));
        assert_eq!(
            count(),
            Count {
                reached: 2,
                total: 2
            }
        );
        census.record(Change::Changed(step("b", 1)));
        census.record(Change::Gone(key("a")));
        assert_eq!(
            count(),
            Count {
                reached: 0,
                total: 1
            }
        );
        census.record(Change::Listed(vec![]));
        assert_eq!(count(), Count::default());
        census.emptied("nothing", SHORT, |_| true).await.unwrap();
    }

    #[test]
    fn the_most_objects_at_a_time_are_remembered_when_they_are_gone() {
        let census = Census::default();
        census.record(Change::Listed(vec![step("a", 1), step("b", 1)]));
        census.record(Change::Gone(key("a")));
        assert_eq!(census.most(), 2);
        census.forget_most();
        assert_eq!(census.most(), 1);
    }

    #[tokio::test]
    async fn a_goal_missed_says_how_far_it_got_and_shows_who_lags() {
        let census = Census::default();
        census.record(Change::Listed(vec![step("a", 2), step("b", 1)]));
        let error = census
            .reach("both are new", 2, SHORT, new_enough)
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "not within 20ms: both are new; 1 of 2 objects are there"
        );
        assert_eq!(census.laggard().unwrap().metadata.name, "b");
    }

    #[tokio::test]
    async fn a_single_object_is_awaited_by_event_or_found_as_wanted() {
        let census = Census::default();
        let before = Instant::now();
        let mut seen = census.when(&key("a"), |step: &Step| step.metadata.generation == 2);
        census.record(Change::Changed(step("a", 1)));
        assert!(seen.try_recv().is_err());
        census.record(Change::Changed(step("a", 2)));
        assert!(seen.await.unwrap() >= before);
        census
            .when(&key("a"), |step: &Step| step.metadata.generation == 2)
            .await
            .unwrap();
    }
}
