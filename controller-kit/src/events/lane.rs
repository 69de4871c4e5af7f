//! Events that wait to be sent: namespaces take turns, so that none waits for the crowd of another.
//!
//! Ten thousand owners that settle in one namespace make more events than are sent in an hour. In one
//! line with them, the Warning of an owner next door would come too late, or find no place.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Happening;
use crate::metrics::EventOutcome;

/// What waits, by namespace; first in, first out within each. Pure.
pub(super) struct Turns<T> {
    waiting: HashMap<Arc<str>, VecDeque<T>>,
    /// The namespaces in which something waits; the one that was served last stands behind.
    order: VecDeque<Arc<str>>,
    len: usize,
    total: usize,
    per_namespace: usize,
}

impl<T> Turns<T> {
    /// No more than `total` wait, and of one namespace no more than `per_namespace`.
    pub(super) fn new(total: usize, per_namespace: usize) -> Self {
        Self {
            waiting: HashMap::new(),
            order: VecDeque::new(),
            len: 0,
            total: total.max(1),
            per_namespace: per_namespace.max(1),
        }
    }

    /// Takes in an item. When everything is full, the newest of the namespace with the most gives way to one that has
    /// fewer. Returns what was left out, this item or that one.
    #[must_use]
    pub(super) fn push(&mut self, namespace: &str, item: T) -> Option<T> {
        let own = self.waiting_of(namespace);
        if own >= self.per_namespace {
            return Some(item);
        }
        if self.len < self.total {
            self.insert(namespace, item);
            return None;
        }
        let Some(evicted) = self.evict_for(own) else {
            return Some(item);
        };
        self.insert(namespace, item);
        Some(evicted)
    }

    /// The oldest of the namespace whose turn it is, of those that are not `busy`.
    pub(super) fn pop_beside(&mut self, busy: &BTreeSet<String>) -> Option<T> {
        let next = self
            .order
            .iter()
            .position(|namespace| !busy.contains(&**namespace))?;
        let namespace = self.order.remove(next)?;
        let waiting = self.waiting.get_mut(&namespace)?;
        let item = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&namespace);
        } else {
            self.order.push_back(namespace);
        }
        self.len -= usize::from(item.is_some());
        item
    }

    /// The oldest of the namespace whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.pop_beside(&BTreeSet::new())
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn waiting_of(&self, namespace: &str) -> usize {
        self.waiting.get(namespace).map_or(0, VecDeque::len)
    }

    /// Not for a namespace that would then have more than the one it takes from.
    fn evict_for(&mut self, own: usize) -> Option<T> {
        let longest = self
            .order
            .iter()
            .max_by_key(|namespace| self.waiting_of(namespace))?;
        let waiting = self.waiting.get_mut(longest)?;
        if waiting.len() < own + 2 {
            return None;
        }
        self.len -= 1;
        waiting.pop_back()
    }

    fn insert(&mut self, namespace: &str, item: T) {
        self.len += 1;
        if let Some(waiting) = self.waiting.get_mut(namespace) {
            waiting.push_back(item);
            return;
        }
        let namespace: Arc<str> = namespace.into();
        self.order.push_back(namespace.clone());
        self.waiting.insert(namespace, VecDeque::from([item]));
    }
}

/// Between those who record events and the one who sends them.
pub(super) struct Lane {
    /// `None` once closed.
    turns: Mutex<Option<Turns<Happening>>>,
    arrived: Notify,
}

impl Lane {
    pub(super) fn new(turns: Turns<Happening>) -> Self {
        Self {
            turns: Mutex::new(Some(turns)),
            arrived: Notify::new(),
        }
    }

    /// Never waits. Returns why an event was left out, this or another, if one was.
    #[must_use]
    pub(super) fn push(&self, happening: Happening) -> Option<EventOutcome> {
        let namespace = happening.involved.namespace.clone();
        let left_out = match &mut *self.lock() {
            Some(turns) => turns
                .push(&namespace, happening)
                .map(|_| EventOutcome::QueueFull),
            None => Some(EventOutcome::Shutdown),
        };
        self.arrived.notify_one();
        left_out
    }

    /// Waits for the next one of a namespace that is not `busy`. For one receiver only.
    pub(super) async fn next(&self, busy: &BTreeSet<String>) -> Happening {
        loop {
            let next = self
                .lock()
                .as_mut()
                .and_then(|turns| turns.pop_beside(busy));
            if let Some(happening) = next {
                return happening;
            }
            self.arrived.notified().await;
        }
    }

    /// Takes no more. Returns what still waits, in turn.
    pub(super) fn close(&self) -> Vec<Happening> {
        let Some(mut turns) = self.lock().take() else {
            return Vec::new();
        };
        let mut waiting = Vec::with_capacity(turns.len());
        waiting.extend(std::iter::from_fn(|| turns.pop()));
        waiting
    }

    fn lock(&self) -> MutexGuard<'_, Option<Turns<Happening>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(turns: &mut Turns<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| turns.pop()).collect()
    }

    #[test]
    fn namespaces_take_turns_and_keep_their_order() {
        let mut turns = Turns::new(9, 9);
        for item in ["a1", "a2", "a3", "b1", "c1", "c2"] {
            assert_eq!(turns.push(&item[..1], item), None);
        }
        assert_eq!(all(&mut turns), ["a1", "b1", "c1", "a2", "c2", "a3"]);
        assert_eq!(turns.push("b", "b2"), None);
        assert_eq!(all(&mut turns), ["b2"]);
    }

    #[test]
    fn a_namespace_has_no_more_than_its_part() {
        let mut turns = Turns::new(9, 2);
        assert_eq!(turns.push("a", "a1"), None);
        assert_eq!(turns.push("a", "a2"), None);
        assert_eq!(turns.push("a", "a3"), Some("a3"));
        assert_eq!(turns.push("b", "b1"), None);
        assert_eq!(all(&mut turns), ["a1", "b1", "a2"]);
    }

    #[test]
    fn where_all_is_full_the_newest_of_the_crowd_gives_way_to_a_guest() {
        let mut turns = Turns::new(4, 4);
        for item in ["a1", "b1", "b2", "b3"] {
            assert_eq!(turns.push(&item[..1], item), None);
        }
        assert_eq!(turns.push("b", "b4"), Some("b4"));
        assert_eq!(turns.push("c", "c1"), Some("b3"));
        assert_eq!(turns.push("c", "c2"), Some("c2"), "both have two then");
        assert_eq!(all(&mut turns), ["a1", "b1", "c1", "b2"]);
    }

    #[test]
    fn a_namespace_that_is_busy_is_passed_over_and_keeps_its_turn() {
        let mut turns = Turns::new(9, 9);
        for item in ["a1", "a2", "b1", "c1"] {
            assert_eq!(turns.push(&item[..1], item), None);
        }
        let busy = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        assert_eq!(turns.pop_beside(&busy(&["a"])), Some("b1"));
        assert_eq!(turns.pop_beside(&busy(&["a", "c"])), None);
        assert_eq!(all(&mut turns), ["a1", "c1", "a2"]);
    }

    const NAMESPACES: [&str; 5] = ["a", "b", "c", "d", "e"];

    #[derive(Debug, Clone)]
    enum Action {
        Push(usize),
        Pop,
    }

    fn actions() -> impl Strategy<Value = Vec<Action>> {
        // A crowd, four others, and a server that is slower than they are.
        let action = prop_oneof![
            4 => Just(Action::Push(0)),
            3 => (1..NAMESPACES.len()).prop_map(Action::Push),
            2 => Just(Action::Pop),
        ];
        proptest::collection::vec(action, 0..300)
    }

    proptest! {
        #[test]
        fn nothing_is_lost_unsaid_bounds_hold_and_nobody_within_its_share_loses(
            actions in actions(), total in 5_usize..20, per_namespace in 1_usize..20,
        ) {
            let mut turns = Turns::new(total, per_namespace);
            let mut model: Vec<VecDeque<usize>> = vec![VecDeque::new(); NAMESPACES.len()];
            let mut passed_over = [0_usize; NAMESPACES.len()];
            for (number, action) in actions.into_iter().enumerate() {
                match action {
                    Action::Push(namespace) => {
                        model[namespace].push_back(number);
                        if let Some((loser, dropped)) = turns.push(NAMESPACES[namespace], (namespace, number)) {
                            prop_assert_eq!(model[loser].pop_back(), Some(dropped), "the newest");
                            let share = per_namespace.min(total / NAMESPACES.len());
                            prop_assert!(model[loser].len() >= share, "{loser} had {} of {share}", model[loser].len());
                        }
                    }
                    Action::Pop => {
                        let expected = model.iter().filter(|waiting| !waiting.is_empty()).count();
                        let popped = turns.pop();
                        prop_assert_eq!(popped.is_some(), expected > 0);
                        let Some((served, item)) = popped else { continue };
                        prop_assert_eq!(model[served].pop_front(), Some(item), "first in, first out");
                        for (namespace, waiting) in model.iter().enumerate() {
                            passed_over[namespace] = if namespace == served || waiting.is_empty() { 0 } else { passed_over[namespace] + 1 };
                            prop_assert!(passed_over[namespace] < NAMESPACES.len(), "{namespace} waits for ever");
                        }
                    }
                }
                prop_assert_eq!(turns.len(), model.iter().map(VecDeque::len).sum::<usize>());
                prop_assert!(turns.len() <= total);
                for (namespace, waiting) in NAMESPACES.iter().zip(&model) {
                    prop_assert_eq!(turns.waiting_of(namespace), waiting.len());
                    prop_assert!(waiting.len() <= per_namespace);
                }
            }
        }
    }
}
