//! How fast a changed convention reaches its PodIntents: a fleet that is decorated all at once
//! would ask its webhook, and then restart its pods, all at once.

use std::collections::HashMap;
use std::time::Duration;

use controller_kit::stamped::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

/// One edit may arrive as several events; who is concerned is woken once.
const DEBOUNCE: Duration = Duration::from_millis(20);

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
    /// The first turn that is free.
    free: Option<Instant>,
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
        let now = Instant::now();
        let mut turns = self.turns.lock();
        turns.given.retain(|_, due| *due > now);
        let mut free = turns.free.map_or(now, |free| free.max(now));
        let mut delays = Vec::with_capacity(concerned.len());
        for key in concerned {
            let due = *turns.given.entry(key.clone()).or_insert_with(|| {
                let due = free + DEBOUNCE;
                free += self.apart;
                due
            });
            delays.push((key, due.saturating_duration_since(now)));
        }
        turns.free = Some(free);
        delays
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
        let turns = Rollout::new(0).turns(keys(1000));
        assert!(turns.iter().all(|(_, delay)| *delay == DEBOUNCE));
    }
}
