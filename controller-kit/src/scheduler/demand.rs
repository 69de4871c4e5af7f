//! Who asks for little. A namespace is a guest as long as it had no more than a few owners in the queue at any moment since
//! it last rested. What counts is the most, not what is left: of ten thousand owners in five hundred namespaces, each
//! namespace has a few left in the end, and is still a part of the crowd.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// A namespace with no more owners in the queue at a time is a guest.
const GUEST: usize = 4;
/// A namespace that asked for nothing for so long begins anew.
const REST: Duration = Duration::from_secs(10);

/// How many owners of each namespace wait or run.
pub(super) struct Demand {
    namespaces: HashMap<Arc<str>, Asked>,
    /// Namespaces of which nobody was left, and since when; some have come back meanwhile.
    at_rest: VecDeque<(Instant, Arc<str>)>,
    now: Instant,
}

#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    now: usize,
    most: usize,
    rests_since: Option<Instant>,
}

impl Default for Demand {
    fn default() -> Self {
        Self {
            namespaces: HashMap::new(),
            at_rest: VecDeque::new(),
            now: Instant::now(),
        }
    }
}

impl Demand {
    /// Time goes on; whoever rested for long is forgotten.
    pub(super) fn at(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while let Some((since, name)) = self.at_rest.front() {
            if self.now.saturating_duration_since(*since) < REST {
                return;
            }
            let is_at_rest = |asked: &Asked| asked.rests_since == Some(*since);
            if self.namespaces.get(name).is_some_and(is_at_rest) {
                self.namespaces.remove(name);
            }
            self.at_rest.pop_front();
        }
    }

    /// One more waits. Tells whether the namespace is a guest no longer with it.
    pub(super) fn enters(&mut self, name: &Arc<str>) -> bool {
        let asked = self.namespaces.entry(name.clone()).or_default();
        asked.now += 1;
        asked.rests_since = None;
        asked.most = asked.most.max(asked.now);
        asked.most == GUEST + 1 && asked.now == asked.most && !name.is_empty()
    }

    /// One waits no more, or has ended.
    pub(super) fn leaves(&mut self, name: &str) {
        let Some(asked) = self.namespaces.get_mut(name) else {
            return;
        };
        asked.now -= 1;
        if asked.now == 0 {
            asked.rests_since = Some(self.now);
            self.at_rest.push_back((self.now, name.into()));
        }
    }

    /// How many wait or run.
    pub(super) fn backlog(&self, name: &str) -> usize {
        self.namespaces.get(name).map_or(0, |asked| asked.now)
    }

    /// Whether the namespace asks for little. What is in no namespace is nobody's crowd.
    pub(super) fn is_guest(&self, name: &str) -> bool {
        name.is_empty()
            || self
                .namespaces
                .get(name)
                .is_none_or(|asked| asked.most <= GUEST)
    }

    /// Namespaces of which anything is kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.namespaces.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entering(demand: &mut Demand, name: &str, count: usize) -> Vec<bool> {
        let name: Arc<str> = name.into();
        (0..count).map(|_| demand.enters(&name)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_is_a_guest_up_to_four_owners_and_never_again_before_it_rested() {
        let mut demand = Demand::default();
        assert!(demand.is_guest("a"), "nothing is known of it");
        assert_eq!(
            entering(&mut demand, "a", 6),
            [false, false, false, false, true, false]
        );
        for _ in 0..5 {
            demand.leaves("a");
        }
        assert!(!demand.is_guest("a"), "one is left");
        demand.leaves("a");
        demand.at(Instant::now() + REST / 2);
        assert!(!demand.is_guest("a"), "it has just gone");
        demand.at(Instant::now() + REST * 2);
        assert!(demand.is_guest("a"));
        assert_eq!(demand.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_rest_is_none() {
        let mut demand = Demand::default();
        let start = Instant::now();
        entering(&mut demand, "a", 5);
        for second in 1..100 {
            demand.at(start + Duration::from_secs(second));
            for _ in 0..demand.backlog("a") {
                demand.leaves("a");
            }
            entering(&mut demand, "a", 1);
            assert!(!demand.is_guest("a"));
        }
        demand.at(start + Duration::from_mins(5));
        assert!(!demand.is_guest("a"), "one has waited all the time");
        assert!(demand.at_rest.is_empty());
    }
}
