//! How fast a changed convention reaches its PodIntents: a fleet that is decorated all at once
//! would ask its webhook, and then restart its pods, all at once.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use controller_kit::stamped::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

/// One edit may arrive as several events; who is concerned is woken once.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// Changes that concern all namespaces have one row of turns.
const ALL_NAMESPACES: &str = "";

/// Gives each PodIntent its turn.
pub(crate) struct Rollout {
    /// Between two turns.
    apart: Duration,
    turns: Mutex<Turns>,
}

#[derive(Default)]
struct Turns {
    /// When each is to be woken that has not been yet.
    given: HashMap<ObjectKey, Instant>,
    /// The first turn that is free, of what concerns all namespaces and of what concerns one alone,
    /// by its name.
    free: HashMap<Box<str>, Instant>,
    /// Those that this replica has looked at since it works.
    looked_at: HashSet<ObjectKey>,
    /// When each is to be decorated anew that turned out to be due at the first look.
    first: HashMap<ObjectKey, Instant>,
}

impl Rollout {
    /// So many in a second; 0 is all at once.
    pub(crate) fn new(per_second: u32) -> Self {
        let apart = Duration::from_secs(1).checked_div(per_second);
        Self {
            apart: apart.unwrap_or_default(),
            turns: Mutex::default(),
        }
    }

    /// How long each of these has to wait. One that waits already keeps its turn: it will see the
    /// newest convention.
    pub(crate) fn turns(&self, concerned: Vec<ObjectKey>) -> Vec<(ObjectKey, Duration)> {
        self.turns_in(ALL_NAMESPACES, concerned)
    }

    /// The same for what somebody changed who may change things in one namespace only. Nobody else
    /// waits for that, however often he does it.
    pub(crate) fn turns_in(
        &self,
        namespace: &str,
        concerned: Vec<ObjectKey>,
    ) -> Vec<(ObjectKey, Duration)> {
        let now = Instant::now();
        let mut turns = self.turns.lock();
        turns.given.retain(|_, due| *due > now);
        turns.free.retain(|_, free| *free > now);
        let delays = concerned.into_iter().map(|key| {
            let due = turns.give(&key, namespace, self.apart, now);
            (key, due.saturating_duration_since(now))
        });
        delays.collect()
    }

    /// How long this one has to wait before it is decorated, if this is the first look at it and it
    /// has `had_enough` of what was before: whatever changed while nobody worked would else reach
    /// all of them at once.
    pub(crate) fn first_look(&self, key: &ObjectKey, had_enough: bool) -> Option<Duration> {
        let now = Instant::now();
        let mut turns = self.turns.lock();
        let is_first = turns.looked_at.insert(key.clone());
        if is_first && had_enough && !self.apart.is_zero() {
            let due = turns.give(key, ALL_NAMESPACES, self.apart, now);
            turns.first.insert(key.clone(), due);
        }
        // Whatever else wakes it meanwhile is no reason to go before the others; an edit of it is.
        let due = turns.first.get(key).copied();
        if let Some(due) = due.filter(|due| had_enough && *due > now) {
            return Some(due.saturating_duration_since(now));
        }
        turns.first.remove(key);
        None
    }

    /// It is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        let mut turns = self.turns.lock();
        turns.looked_at.remove(key);
        turns.first.remove(key);
    }

    /// Another replica has worked meanwhile: each look is the first one again.
    pub(crate) fn begin_term(&self) {
        *self.turns.lock() = Turns::default();
    }
}

impl Turns {
    /// The turn of this one.
    fn give(&mut self, key: &ObjectKey, row: &str, apart: Duration, now: Instant) -> Instant {
        let free = self.free.get(row).map_or(now, |free| now.max(*free));
        let given = self.given.get(key).copied();
        if let Some(due) = given.filter(|due| *due > now) {
            return due;
        }
        let due = free + DEBOUNCE;
        self.free.insert(row.into(), free + apart);
        self.given.insert(key.clone(), due);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: usize) -> Vec<ObjectKey> {
        let names = (0..count).map(|index| index.to_string());
        names.map(|name| ObjectKey::new("dev", &name)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_tenant_changes_delays_only_his_own() {
        let rollout = Rollout::new(10);
        let flood = rollout.turns_in("dev", keys(1000));
        assert_eq!(flood[999].1, DEBOUNCE + Duration::from_millis(99_900));
        let other = ObjectKey::new("other", "app");
        assert_eq!(
            rollout.turns_in("other", vec![other.clone()])[0].1,
            DEBOUNCE
        );
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(rollout.turns(vec![other])[0].1, DEBOUNCE);
        tokio::time::advance(Duration::from_secs(100)).await;
        rollout.turns(Vec::new());
        assert!(rollout.turns.lock().free.is_empty(), "nothing is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_a_second_are_woken_and_each_once_however_often_a_convention_changes() {
        let rollout = Rollout::new(10);
        let first = rollout.turns(keys(20));
        assert_eq!(first[0].1, DEBOUNCE);
        assert_eq!(first[19].1, DEBOUNCE + Duration::from_millis(1900));
        assert_eq!(rollout.turns(keys(20)), first);
        tokio::time::advance(Duration::from_secs(1)).await;
        let again = rollout.turns(keys(20));
        // Who was woken has a new turn behind the others.
        assert_eq!(again[19].1, DEBOUNCE + Duration::from_millis(900));
        assert_eq!(again[0].1, DEBOUNCE + Duration::from_secs(1));
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(rollout.turns(keys(1))[0].1, DEBOUNCE);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_all_are_woken_at_once() {
        let rollout = Rollout::new(0);
        let turns = rollout.turns(keys(1000));
        assert!(turns.iter().all(|(_, delay)| *delay == DEBOUNCE));
        let first = keys(1000);
        assert!(
            first
                .iter()
                .all(|it| rollout.first_look(it, true).is_none())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_changed_while_nobody_worked_reaches_those_who_have_enough_at_that_pace() {
        let rollout = Rollout::new(10);
        let all = keys(21);
        let looks = || -> Vec<Option<Duration>> {
            let looks = all.iter();
            looks.map(|key| rollout.first_look(key, true)).collect()
        };
        let first = looks();
        assert_eq!(first[0], Some(DEBOUNCE));
        assert_eq!(first[20], Some(DEBOUNCE + Duration::from_secs(2)));
        // Whatever wakes them meanwhile.
        assert_eq!(looks(), first);
        // A convention changes, too.
        let turns = rollout.turns(keys(21)).into_iter();
        assert!(turns.map(|(_, delay)| Some(delay)).eq(first));
        tokio::time::advance(Duration::from_secs(1)).await;
        let later = looks();
        assert_eq!(later[9], None);
        assert_eq!(later[20], Some(DEBOUNCE + Duration::from_secs(1)));
        // An edit goes first, and a second look is no first one.
        assert_eq!(rollout.first_look(&all[20], false), None);
        assert_eq!(rollout.first_look(&all[20], true), None);
        rollout.begin_term();
        assert_eq!(rollout.first_look(&all[0], true), Some(DEBOUNCE));
        rollout.forget(&all[0]);
        assert!(rollout.first_look(&all[0], true).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_nothing_yet_waits_for_nobody() {
        let rollout = Rollout::new(1);
        for key in keys(100) {
            assert_eq!(rollout.first_look(&key, false), None);
        }
    }
}
