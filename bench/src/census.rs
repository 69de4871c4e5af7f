//! How many watched objects have reached a goal, kept up to date event by event: asking all 5000 objects after each of
//! 13,000 events would cost more than what is measured.

use std::collections::HashMap;
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
    state: watch::Sender<State>,
    /// How long a goal may take.
    limit: Duration,
}

type Goal = Box<dyn Fn(&Key, &Seen) -> bool + Send + Sync>;

struct State {
    /// Each with whether it has reached the goal of the last [`Census::reach`].
    objects: HashMap<Key, (Seen, bool)>,
    goal: Goal,
    reached: usize,
    /// The most objects there were since [`Census::forget_most`].
    most: usize,
    waiters: HashMap<Key, Waiter>,
}

struct Waiter {
    awaited: Box<dyn Fn(&Seen) -> bool + Send + Sync>,
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
        let state = watch::Sender::new(state);
        Self { state, limit }
    }

    /// Takes note of what a watch told.
    pub(crate) fn record(&self, change: Change<Seen>) {
        self.state.send_modify(|state| state.record(change));
    }

    /// Waits until so many objects have reached a goal at the same time.
    pub(crate) async fn reach(
        &self,
        what: &str,
        count: usize,
        goal: impl Fn(&Key, &Seen) -> bool + Send + Sync + 'static,
    ) -> anyhow::Result<()> {
        self.state.send_modify(|state| state.aim(Box::new(goal)));
        self.until(what, |state| state.reached >= count).await
    }

    /// Waits until there are none of these objects.
    pub(crate) async fn emptied(
        &self,
        what: &str,
        of: impl Fn(&Key) -> bool + Send + Sync + 'static,
    ) -> anyhow::Result<()> {
        let goal = Box::new(move |key: &Key, _: &Seen| of(key));
        self.state.send_modify(|state| state.aim(goal));
        self.until(what, |state| state.reached == 0).await
    }

    async fn until(&self, what: &str, done: impl Fn(&State) -> bool) -> anyhow::Result<()> {
        let mut states = self.state.subscribe();
        match timeout(self.limit, states.wait_for(|state| done(state))).await {
            Ok(waited) => Ok(waited.map(drop)?),
            Err(_) => bail!(
                "not within {:?}: {what}; {} of {} objects are there",
                self.limit,
                self.reached(),
                self.total()
            ),
        }
    }

    /// The moment in which an object is seen as awaited from now on; at once, if it is so already. One wait per object at a
    /// time.
    pub(crate) fn when<A>(
        &self,
        key: &Key,
        awaited: A,
    ) -> impl Future<Output = anyhow::Result<Instant>> + use<A>
    where
        A: Fn(&Seen) -> bool + Send + Sync + 'static,
    {
        let (seen, receiver) = oneshot::channel();
        let awaited = Box::new(awaited);
        self.state
            .send_modify(|state| state.wait(key.clone(), Waiter { awaited, seen }));
        let late = format!("{key:?} does not become what is awaited");
        async move { Ok(timeout(SINGLE_LIMIT, receiver).await.context(late)??) }
    }

    /// An object, as last seen.
    pub(crate) fn get(&self, key: &Key) -> anyhow::Result<Seen> {
        let state = self.state.borrow();
        let found = state.objects.get(key).map(|(object, _)| object.clone());
        found.with_context(|| format!("{key:?} is missing"))
    }

    /// Objects that have reached the goal of the last [`Census::reach`].
    pub(crate) fn reached(&self) -> usize {
        self.state.borrow().reached
    }

    /// All objects.
    pub(crate) fn total(&self) -> usize {
        self.state.borrow().objects.len()
    }

    /// The most objects seen at a time since [`Census::forget_most`].
    pub(crate) fn most(&self) -> usize {
        self.state.borrow().most
    }

    /// Counts the most objects anew, from those that are there.
    pub(crate) fn forget_most(&self) {
        self.state
            .send_modify(|state| state.most = state.objects.len());
    }

    /// One of the objects that have not reached the goal, to tell what is wrong.
    pub(crate) fn laggard(&self) -> Option<Seen> {
        let state = self.state.borrow();
        let mut objects = state.objects.values();
        let laggard = objects.find(|(_, reached)| !reached);
        laggard.map(|(object, _)| object.clone())
    }
}

impl State {
    #[expect(clippy::print_stderr, reason = "the bench speaks to a terminal")]
    fn record(&mut self, change: Change<Seen>) {
        match change {
            Change::Listed(objects) => {
                self.objects.clear();
                self.reached = 0;
                for object in objects {
                    self.put(object);
                }
            }
            Change::Changed(object) => self.put(object),
            Change::Deleted(object) => self.remove(&object.key()),
            Change::Gap(why) => eprintln!("bench: a watch begins anew: {why}"),
        }
        self.most = self.most.max(self.objects.len());
    }

    fn aim(&mut self, goal: Goal) {
        self.reached = 0;
        for (key, (object, reached)) in &mut self.objects {
            *reached = goal(key, object);
            self.reached += usize::from(*reached);
        }
        self.goal = goal;
    }

    fn wait(&mut self, key: Key, waiter: Waiter) {
        let object = self.objects.get(&key);
        if object.is_some_and(|(object, _)| (waiter.awaited)(object)) {
            waiter.tell();
        } else {
            self.waiters.insert(key, waiter);
        }
    }

    fn put(&mut self, object: Seen) {
        let key = object.key();
        let waiter = self.waiters.get(&key);
        if waiter.is_some_and(|waiter| (waiter.awaited)(&object))
            && let Some(waiter) = self.waiters.remove(&key)
        {
            waiter.tell();
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
}

impl Waiter {
    fn tell(self) {
        // Nobody may wait any more; then nobody needs to know.
        let _ = self.seen.send(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, generation: i64) -> Seen {
        crate::seen::tests::step(name, generation, 0)
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
        let seen_after = |change| {
            census.record(change);
            (census.reached(), census.total(), census.most())
        };
        assert_eq!(seen_after(Change::Changed(step("b", 2))), (2, 2, 2));
        assert_eq!(seen_after(Change::Changed(step("b", 1))), (1, 2, 2));
        assert_eq!(seen_after(Change::Deleted(step("a", 1))), (0, 1, 2));
        census.forget_most();
        assert_eq!(seen_after(Change::Listed(vec![])), (0, 0, 1));
        census.emptied("nothing", |_| true).await.unwrap();
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
        let (census, key) = (census(1, 1), Key::new("", "a"));
        let is_second = |step: &Seen| step.metadata.generation == 2;
        let seen = census.when(&key, is_second);
        census.record(Change::Changed(step("a", 1)));
        let not_before = Instant::now();
        census.record(Change::Changed(step("a", 2)));
        assert!(seen.await.unwrap() >= not_before);
        census.when(&key, is_second).await.unwrap();
    }
}
