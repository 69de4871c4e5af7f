//! Events that wait to be sent: namespaces take turns, so that none waits for the crowd of another.
//!
//! Ten thousand owners that settle in one namespace make more events than are sent in an hour. In one
//! line with them, the Warning of an owner next door would come too late, or find no place.
//!
//! What would wait for long joins what is like it and waits already: of the thirteen events that a chain of five steps makes
//! while it settles in a crowd, half or fewer are sent then, with every word of all.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::PendingEvent;
use crate::metrics::EventOutcome;

/// What may be told together with others.
pub(super) trait Alike: Sized {
    /// The same number for those that may be told together; nothing for what stands for itself.
    fn likeness(&self) -> Option<u64>;

    /// Tells a later one as well.
    ///
    /// # Errors
    ///
    /// The later one, which has to be told by itself.
    fn take_in(&mut self, later: Self) -> Result<(), Self>;
}

/// What waits, by namespace; first in, first out within each. Pure.
pub(super) struct Turns<T> {
    waiting: HashMap<Arc<str>, VecDeque<Waiting<T>>>,
    /// The namespaces in which something waits; the one that was served last stands behind.
    order: VecDeque<Arc<str>>,
    len: usize,
    total: usize,
    per_namespace: usize,
}

impl<T: Alike> Turns<T> {
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

    /// Has the youngest that is like this item tell it as well.
    ///
    /// # Errors
    ///
    /// The item, when nothing that waits may.
    pub(super) fn join(&mut self, namespace: &str, item: T) -> Result<(), T> {
        let likeness = item.likeness();
        let is_alike =
            |waiting: &&mut Waiting<T>| likeness.is_some() && waiting.likeness == likeness;
        let waiting = self.waiting.get_mut(namespace).into_iter().flatten();
        match waiting.rev().find(is_alike) {
            Some(waiting) => waiting.item.take_in(item),
            None => Err(item),
        }
    }

    /// How many go before an item of this namespace that comes now, at the most.
    pub(super) fn before(&self, namespace: &str) -> usize {
        let rounds = self.waiting_of(namespace) + 1;
        (rounds * self.order.len()).min(self.len)
    }

    /// The oldest of the namespace whose turn it is, of those that are not `busy`.
    pub(super) fn pop_beside(&mut self, busy: &BTreeSet<String>) -> Option<T> {
        let next = self
            .order
            .iter()
            .position(|namespace| !busy.contains(&**namespace))?;
        let namespace = self.order.remove(next)?;
        let waiting = self.waiting.get_mut(&namespace)?;
        let item = waiting.pop_front().map(|waiting| waiting.item);
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
        let evicted = waiting.pop_back()?;
        for older in waiting {
            if older.likeness == evicted.likeness {
                older.likeness = None;
            }
        }
        Some(evicted.item)
    }

    fn insert(&mut self, namespace: &str, item: T) {
        self.len += 1;
        let waiting = Waiting {
            likeness: item.likeness(),
            item,
        };
        if let Some(others) = self.waiting.get_mut(namespace) {
            others.push_back(waiting);
            return;
        }
        let namespace: Arc<str> = namespace.into();
        self.order.push_back(namespace.clone());
        self.waiting.insert(namespace, VecDeque::from([waiting]));
    }
}

struct Waiting<T> {
    /// By what others join it; nothing any more once a younger one that was like it gave way.
    likeness: Option<u64>,
    item: T,
}

/// Between those who record events and the one who sends them.
pub(super) struct Lane {
    /// `None` once closed.
    turns: Mutex<Option<Turns<PendingEvent>>>,
    arrived: Notify,
    /// Where more than so many go before an event, it joins one that waits.
    join_beyond: usize,
}

impl Lane {
    pub(super) fn new(turns: Turns<PendingEvent>, join_beyond: usize) -> Self {
        Self {
            turns: Mutex::new(Some(turns)),
            arrived: Notify::new(),
            join_beyond,
        }
    }

    /// Never waits. Returns why an event is not sent by itself, this or another, if one is not.
    #[must_use]
    pub(super) fn push(&self, happening: PendingEvent) -> Option<EventOutcome> {
        let why = match &mut *self.turns.lock() {
            Some(turns) => self.push_into(turns, happening),
            None => Some(EventOutcome::Shutdown),
        };
        self.arrived.notify_one();
        why
    }

    fn push_into(
        &self,
        turns: &mut Turns<PendingEvent>,
        happening: PendingEvent,
    ) -> Option<EventOutcome> {
        let namespace = happening.involved.namespace.clone();
        let joined = if turns.before(&namespace) > self.join_beyond {
            turns.join(&namespace, happening)
        } else {
            Err(happening)
        };
        match joined {
            Ok(()) => Some(EventOutcome::Joined),
            Err(happening) => turns
                .push(&namespace, happening)
                .map(|_| EventOutcome::QueueFull),
        }
    }

    /// Waits for the next one of a namespace that is not `busy`. For one receiver only.
    pub(super) async fn next(&self, busy: &BTreeSet<String>) -> PendingEvent {
        loop {
            let next = self
                .turns
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
    pub(super) fn close(&self) -> Vec<PendingEvent> {
        let Some(mut turns) = self.turns.lock().take() else {
            return Vec::new();
        };
        let mut waiting = Vec::with_capacity(turns.len());
        waiting.extend(std::iter::from_fn(|| turns.pop()));
        waiting
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What stands for itself.
    impl Alike for &'static str {
        fn likeness(&self) -> Option<u64> {
            None
        }

        fn take_in(&mut self, later: Self) -> Result<(), Self> {
            Err(later)
        }
    }

    impl Alike for (usize, usize) {
        fn likeness(&self) -> Option<u64> {
            None
        }

        fn take_in(&mut self, later: Self) -> Result<(), Self> {
            Err(later)
        }
    }

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

    /// Numbers that are told together where their rest is the same, up to four of them; those without a rest never are.
    #[derive(Debug, Clone, PartialEq)]
    struct Numbers(Vec<u64>);

    impl Alike for Numbers {
        fn likeness(&self) -> Option<u64> {
            Some(self.0[0] % 4).filter(|rest| *rest > 0)
        }

        fn take_in(&mut self, later: Self) -> Result<(), Self> {
            if self.0.len() + later.0.len() > 4 {
                return Err(later);
            }
            self.0.extend(later.0);
            Ok(())
        }
    }

    #[test]
    fn what_joins_is_told_by_the_youngest_that_is_like_it() {
        let mut turns = Turns::new(9, 9);
        for number in [1, 4, 5, 8] {
            assert_eq!(turns.push("a", Numbers(vec![number])), None);
        }
        assert_eq!(turns.join("a", Numbers(vec![9])), Ok(()));
        for (namespace, number) in [("a", 12), ("a", 2), ("b", 9)] {
            let alone = Numbers(vec![number]);
            assert_eq!(turns.join(namespace, alone.clone()), Err(alone));
        }
        let all: Vec<Numbers> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(all, [vec![1], vec![4], vec![5, 9], vec![8]].map(Numbers));
        let alone = Numbers(vec![13]);
        assert_eq!(turns.join("a", alone.clone()), Err(alone), "all have left");
    }

    #[test]
    fn how_many_go_before_depends_on_the_own_namespace_and_on_the_number_of_others() {
        let mut turns = Turns::new(99, 99);
        assert_eq!(turns.before("a"), 0);
        for item in ["a1", "a2", "a3", "a4", "a5", "b1"] {
            assert_eq!(turns.push(&item[..1], item), None);
        }
        assert_eq!(turns.before("a"), 6);
        assert_eq!(turns.before("b"), 4);
        assert_eq!(turns.before("c"), 2);
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
        fn whatever_joins_what_all_of_it_leaves_and_what_is_alike_keeps_its_order(
            actions in actions(), total in 5_usize..20, per_namespace in 1_usize..20,
        ) {
            let mut turns = Turns::new(total, per_namespace);
            let (mut pushed, mut left, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
            for (number, action) in (1_u64..).zip(actions) {
                match action {
                    Action::Push(namespace) => {
                        pushed.push(number);
                        let item = Numbers(vec![number]);
                        if let Err(item) = turns.join(NAMESPACES[namespace], item)
                            && let Some(Numbers(numbers)) = turns.push(NAMESPACES[namespace], item)
                        {
                            dropped.extend(numbers);
                        }
                    }
                    Action::Pop => left.extend(turns.pop().map(|item| (number, item))),
                }
            }
            left.extend(std::iter::from_fn(|| turns.pop()).map(|item| (u64::MAX, item)));
            for (at, Numbers(numbers)) in &left {
                prop_assert!(numbers.is_sorted() && numbers.iter().all(|number| number < at));
                prop_assert!(numbers.len() == 1 || numbers.iter().all(|number| number % 4 == numbers[0] % 4 && number % 4 > 0));
            }
            let mut all: Vec<u64> = left.into_iter().flat_map(|(_, Numbers(numbers))| numbers).chain(dropped).collect();
            all.sort_unstable();
            prop_assert_eq!(all, pushed);
        }

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
