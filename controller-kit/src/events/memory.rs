//! What is remembered of namespaces that share one bounded memory. Pure.
//!
//! An owner that makes thousands of different events must not make us forget those of another namespace: their
//! repetitions would be new objects instead of counts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

/// A bounded map. What goes when it is full is the oldest of the namespace that has most, and of several that have
/// as much, the one whose oldest is the oldest.
pub(super) struct Memory<K, V> {
    bound: usize,
    entries: HashMap<K, Entry<V>>,
    /// The keys of each namespace, by age. None is empty.
    ages: HashMap<Arc<str>, BTreeMap<u64, K>>,
    clock: u64,
}

struct Entry<V> {
    namespace: Arc<str>,
    written: u64,
    value: V,
}

impl<K: Clone + Eq + Hash, V> Memory<K, V> {
    /// Holds no more than `bound`, and at least one.
    pub(super) fn new(bound: usize) -> Self {
        Self {
            bound: bound.max(1),
            entries: HashMap::new(),
            ages: HashMap::new(),
            clock: 0,
        }
    }

    /// Remembers `value` as the youngest of its namespace. Where it is full, all namespaces are looked at.
    pub(super) fn put(&mut self, namespace: &str, key: K, value: V) {
        self.take(&key);
        self.clock += 1;
        let written = self.clock;
        let known = self.ages.get_key_value(namespace);
        let namespace = known.map_or_else(|| namespace.into(), |(known, _)| known.clone());
        let ages = self.ages.entry(namespace.clone()).or_default();
        ages.insert(written, key.clone());
        let entry = Entry {
            namespace,
            written,
            value,
        };
        self.entries.insert(key, entry);
        if self.entries.len() > self.bound {
            self.forget_one();
        }
    }

    /// Forgets the entry and returns it. O(log n).
    pub(super) fn take(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        if let Some(ages) = self.ages.get_mut(&entry.namespace) {
            ages.remove(&entry.written);
            if ages.is_empty() {
                self.ages.remove(&entry.namespace);
            }
        }
        Some(entry.value)
    }

    fn forget_one(&mut self) {
        let oldest = |ages: &BTreeMap<u64, K>| ages.keys().next().copied();
        let rank = |ages: &&BTreeMap<u64, K>| (ages.len(), Reverse(oldest(ages)));
        let crowd = self.ages.values().max_by_key(rank);
        if let Some(oldest) = crowd.and_then(|ages| ages.values().next().cloned()) {
            self.take(&oldest);
        }
    }
}

#[cfg(test)]
impl<K, V> Memory<K, V> {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Numbers = Memory<&'static str, u32>;

    fn memory(bound: usize, keys: &[&'static str]) -> Numbers {
        let mut memory = Memory::new(bound);
        for key in keys {
            memory.put(&key[..1], *key, 0);
        }
        memory
    }

    fn remembered(memory: &Numbers, keys: &[&'static str]) -> Vec<&'static str> {
        let known = |key: &&&str| memory.entries.contains_key(**key);
        keys.iter().filter(known).copied().collect()
    }

    #[test]
    fn the_oldest_of_the_crowd_goes() {
        let keys = ["a1", "b1", "b2", "b3", "a2"];
        assert_eq!(
            remembered(&memory(4, &keys), &keys),
            ["a1", "b2", "b3", "a2"]
        );
    }

    #[test]
    fn a_crowd_alone_forgets_what_was_not_used_for_longest() {
        let keys = ["b1", "b2", "b3", "b1", "b4"];
        assert_eq!(
            remembered(&memory(3, &keys), &keys[1..]),
            ["b3", "b1", "b4"]
        );
    }

    #[test]
    fn of_equals_the_one_goes_that_was_not_used_for_longest() {
        let keys = ["c1", "a1", "b1", "d1"];
        assert_eq!(remembered(&memory(3, &keys), &keys), ["a1", "b1", "d1"]);
    }

    #[test]
    fn what_is_taken_is_forgotten_and_leaves_room() {
        let mut memory = memory(2, &["a1", "b1"]);
        memory.put("a", "a1", 7);
        assert_eq!((memory.take(&"a1"), memory.take(&"a1")), (Some(7), None));
        memory.put("b", "b2", 0);
        assert_eq!(remembered(&memory, &["b1", "b2"]), ["b1", "b2"]);
        assert_eq!(
            memory.ages.len(),
            1,
            "of a namespace with nothing, nothing is left"
        );
    }

    const NAMESPACES: [&str; 5] = ["", "b", "c", "d", "e"];

    #[derive(Debug, Clone)]
    enum Action {
        Put(usize, u16),
        Take(usize, u16),
    }

    fn actions() -> impl Strategy<Value = Vec<Action>> {
        // One namespace makes ever new keys, four others few; what was sent is used again or forgotten.
        let action = prop_oneof![
            5 => any::<u16>().prop_map(|key| Action::Put(0, key)),
            4 => (1..NAMESPACES.len(), 0_u16..6).prop_map(|(namespace, key)| Action::Put(namespace, key)),
            1 => (0..NAMESPACES.len(), 0_u16..6).prop_map(|(namespace, key)| Action::Take(namespace, key)),
        ];
        proptest::collection::vec(action, 0..300)
    }

    proptest! {
        #[test]
        fn the_bound_holds_and_nobody_loses_to_one_that_has_more(actions in actions(), bound in 1_usize..25) {
            let mut memory = Memory::new(bound);
            // For each namespace its keys, the oldest first.
            let mut model: Vec<Vec<u16>> = vec![Vec::new(); NAMESPACES.len()];
            for action in actions {
                match action {
                    Action::Put(namespace, key) => {
                        memory.put(NAMESPACES[namespace], (namespace, key), key);
                        model[namespace].retain(|known| *known != key);
                        model[namespace].push(key);
                    }
                    Action::Take(namespace, key) => {
                        let known = model[namespace].contains(&key);
                        prop_assert_eq!(memory.take(&(namespace, key)), known.then_some(key));
                        model[namespace].retain(|known| *known != key);
                    }
                }
                let most = model.iter().map(Vec::len).max().unwrap_or_default();
                let mut lost = 0;
                for (namespace, keys) in model.iter_mut().enumerate() {
                    let had = keys.len();
                    if keys.first().is_some_and(|oldest| !memory.entries.contains_key(&(namespace, *oldest))) {
                        keys.remove(0);
                        lost += 1;
                        prop_assert_eq!(had, most, "{} lost and has not most", namespace);
                    }
                    for key in keys.iter() {
                        prop_assert!(memory.entries.contains_key(&(namespace, *key)), "{} of {} is lost", key, namespace);
                    }
                    prop_assert_eq!(memory.ages.get(NAMESPACES[namespace]).map_or(0, BTreeMap::len), keys.len());
                }
                let held = model.iter().map(Vec::len).sum::<usize>();
                prop_assert!(lost == 0 || lost == 1 && held == bound, "one goes, and only where it is full");
                prop_assert!(held <= bound);
                prop_assert_eq!(memory.len(), held);
            }
        }
    }
}
