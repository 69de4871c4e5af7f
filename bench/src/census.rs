//! How many watched objects have reached a goal, kept up to date event by event: asking all 5000 objects after each of
//! 13,000 events would cost more than what is measured.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use test_support::Change;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::layout::Key;
use crate::seen::Seen;

/// How long a single object may take: one that stopped should not stop the bench for long.
const SINGLE_LIMIT: Duration = Duration::from_mins(2);

/// The objects of one kind, as last seen.
pub(crate) struct Census {
    state: Mutex<State>,
    count: watch::Sender<Count>,
    /// How long a goal may take.
    limit: Duration,
}

/// How far the objects are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Objects that have reached the goal of the last [`Census::reach`].
    pub(crate) reached: usize,
    /// All objects.
    pub(crate) total: usize,
}

type Goal = Box<dyn Fn(&Key, &Seen) -> bool + Send>;

struct State {
    /// Each with whether it has reached the goal.
    objects: HashMap<Key, (Seen, bool)>,
    goal: Goal,
    reached: usize,
    /// The most objects there were since [`Census::forget_most`].
    most: usize,
    waiters: HashMap<Key, Waiter>,
}

struct Waiter {
    awaited: Box<dyn Fn(&Seen) -> bool + Send>,
    seen: oneshot::Sender<Instant>,
}

impl Census {
    pub(crate) fn new(limit: Duration) -> Self {
        let state = State {
            objects: HashMap::new(),
            goal: Box::new(|_, _| true),
            reached: 0,
            most: 0,
            waiters: HashMap::new(),
        };
        Self {
            state: Mutex::new(state),
            count: watch::Sender::default(),
            limit,
        }
    }

    /// Takes note of what a watch told.
    #[expect(clippy::print_stderr, reason = "the bench speaks to a terminal")]
    pub(crate) fn record(&self, change: Change<Seen>) {
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
            Change::Deleted(object) => state.remove(&object.key()),
            Change::Gap(why) => eprintln!("bench: a watch begins anew: {why}"),
        }
        state.most = state.most.max(state.objects.len());
        self.count.send_replace(state.count());
    }

    /// Waits until so many objects have reached a goal at the same time.
    pub(crate) async fn reach(
        &self,
        what: &str,
        count: usize,
        goal: impl Fn(&Key, &Seen) -> bool + Send + 'static,
    ) -> anyhow::Result<()> {
        self.set_goal(Box::new(goal));
        self.await_count(what, |seen| seen.reached >= count).await
    }

    /// Waits until there are none of these objects.
    pub(crate) async fn emptied(
        &self,
        what: &str,
        of: impl Fn(&Key) -> bool + Send + 'static,
    ) -> anyhow::Result<()> {
        self.set_goal(Box::new(move |key, _| of(key)));
        self.await_count(what, |seen| seen.reached == 0).await
    }

    /// The moment in which an object is seen as awaited from now on; at once, if it is so already. One wait per object at a
    /// time.
    pub(crate) fn when<A>(
        &self,
        key: &Key,
        awaited: A,
    ) -> impl Future<Output = anyhow::Result<Instant>> + use<A>
    where
        A: Fn(&Seen) -> bool + Send + 'static,
    {
        let (seen, receiver) = oneshot::channel();
        let mut state = self.state();
        let object = state.objects.get(key);
        if object.is_some_and(|(object, _)| awaited(object)) {
            // The receiver is in our hands: this cannot fail.
            let _ = seen.send(Instant::now());
        } else {
            let awaited = Box::new(awaited);
            state.waiters.insert(key.clone(), Waiter { awaited, seen });
        }
        let late = format!("{key:?} does not become what is awaited");
        async move { Ok(timeout(SINGLE_LIMIT, receiver).await.context(late)??) }
    }

    /// An object, as last seen.
    pub(crate) fn get(&self, key: &Key) -> anyhow::Result<Seen> {
        let state = self.state();
        let found = state.objects.get(key).map(|(object, _)| object.clone());
        found.with_context(|| format!("{key:?} is missing"))
    }

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
    pub(crate) fn laggard(&self) -> Option<Seen> {
        let state = self.state();
        let mut objects = state.objects.values();
        let laggard = objects.find(|(_, reached)| !reached);
        laggard.map(|(object, _)| object.clone())
    }

    fn set_goal(&self, goal: Goal) {
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

    async fn await_count(&self, what: &str, done: impl Fn(&Count) -> bool) -> anyhow::Result<()> {
        let mut counts = self.count.subscribe();
        let waited = timeout(self.limit, counts.wait_for(done)).await;
        let Ok(waited) = waited else {
            let (Count { reached, total }, limit) = (self.count(), self.limit);
            bail!("not within {limit:?}: {what}; {reached} of {total} objects are there");
        };
        waited?;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn put(&mut self, object: Seen) {
        let key = object.key();
        let waiter = self.waiters.get(&key);
        if waiter.is_some_and(|waiter| (waiter.awaited)(&object))
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
        let (reached, total) = (self.reached, self.objects.len());
        Count { reached, total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, generation: i64) -> Seen {
        crate::seen::tests::step(name, generation, 0)
    }

    fn key(name: &str) -> Key {
        Key::new("", name)
    }

    /// Of an `a` and a `b` of these generations.
    fn census(a: i64, b: i64) -> Census {
        let census = Census::new(Duration::from_millis(20));
        census.record(Change::Listed(vec![step("a", a), step("b", b)]));
        census
    }

    fn new_enough(_: &Key, step: &Seen) -> bool {
        step.metadata.generation > 1
    }

    #[tokio::test]
    async fn objects_count_as_long_as_they_meet_the_goal() {
        let census = census(2, 1);
        census.reach("one", 1, new_enough).await.unwrap();
        let of = |reached, total| Count { reached, total };
        census.record(Change::Changed(step("b", 2)));
        assert_eq!(census.count(), of(2, 2));
        census.record(Change::Changed(step("b", 1)));
        census.record(Change::Deleted(step("a", 1)));
        assert_eq!(census.count(), of(0, 1));
        census.record(Change::Listed(vec![]));
        assert_eq!(census.count(), of(0, 0));
        census.emptied("nothing", |_| true).await.unwrap();
    }

    #[test]
    fn the_most_objects_at_a_time_are_remembered_when_they_are_gone() {
        let census = census(1, 1);
        census.record(Change::Deleted(step("a", 1)));
        assert_eq!(census.most(), 2);
        census.forget_most();
        assert_eq!(census.most(), 1);
    }

    #[tokio::test]
    async fn a_goal_missed_says_how_far_it_got_and_shows_who_lags() {
        let census = census(2, 1);
        let missed = census.reach("both are new", 2, new_enough).await;
        assert_eq!(
            missed.unwrap_err().to_string(),
            "not within 20ms: both are new; 1 of 2 objects are there"
        );
        assert_eq!(census.laggard().unwrap().metadata.name, "b");
    }

    #[tokio::test]
    async fn a_single_object_is_awaited_by_event_or_found_as_wanted() {
        let census = census(1, 1);
        let is_second = |step: &Seen| step.metadata.generation == 2;
        let seen = census.when(&key("a"), is_second);
        census.record(Change::Changed(step("a", 1)));
        let not_before = Instant::now();
        census.record(Change::Changed(step("a", 2)));
        assert!(seen.await.unwrap() >= not_before);
        census.when(&key("a"), is_second).await.unwrap();
    }
}
