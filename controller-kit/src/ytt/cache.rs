//! Renderings that are remembered, bounded by the memory they take.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use serde_json::Value;

/// What a value takes beside its texts.
const NODE: usize = 32;

/// What a field takes beside its name and its value.
const FIELD: usize = 48;

/// Two generations: what is not used while the younger one fills is forgotten.
pub(super) struct Cache<K> {
    young: Generation<K>,
    old: Generation<K>,
    /// Of each generation.
    most: usize,
    /// Of each value.
    largest: usize,
}

struct Generation<K> {
    values: HashMap<K, (usize, Arc<Value>)>,
    weight: usize,
}

impl<K> Default for Generation<K> {
    fn default() -> Self {
        Self {
            values: HashMap::new(),
            weight: 0,
        }
    }
}

impl<K: Eq + Hash + Clone> Cache<K> {
    /// Takes `most` bytes, and of each value `largest`.
    pub(super) fn new(most: usize, largest: usize) -> Self {
        Self {
            young: Generation::default(),
            old: Generation::default(),
            most: most / 2,
            largest: largest.min(most / 2),
        }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<Arc<Value>> {
        if let Some((_, hit)) = self.young.values.get(key) {
            return Some(hit.clone());
        }
        let (weight, hit) = self.old.values.remove(key)?;
        self.old.weight -= weight;
        self.insert(key.clone(), weight, hit.clone());
        Some(hit)
    }

    /// Remembers a value that takes so much, unless it is too large.
    pub(super) fn put(&mut self, key: K, weight: usize, value: impl FnOnce() -> Arc<Value>) {
        if weight <= self.largest {
            self.insert(key, weight, value());
        }
    }

    fn insert(&mut self, key: K, weight: usize, value: Arc<Value>) {
        if self.young.weight + weight > self.most {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.weight += weight;
        if let Some((replaced, _)) = self.young.values.insert(key, (weight, value)) {
            self.young.weight -= replaced;
        }
    }
}

/// About what a value takes in memory, in bytes. `[[],[],…]` takes ten times its text.
pub(super) fn weight(value: &Value) -> usize {
    NODE + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| FIELD + name.len() + weight(field))
            .sum(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put(cache: &mut Cache<usize>, key: usize, weight: usize) {
        cache.put(key, weight, || Arc::new(json!(key)));
    }

    #[test]
    fn what_is_held_is_bounded_by_its_weight() {
        let mut cache = Cache::new(1000, 300);
        for key in 0..100 {
            put(&mut cache, key, 100);
            assert!(cache.young.weight <= 500 && cache.old.weight <= 500);
            let held: usize = [&cache.young, &cache.old]
                .iter()
                .flat_map(|generation| generation.values.values())
                .map(|(weight, _)| weight)
                .sum();
            assert_eq!(held, cache.young.weight + cache.old.weight);
        }
        assert_eq!(cache.get(&99), Some(Arc::new(json!(99))));
        assert_eq!(cache.get(&0), None);
    }

    #[test]
    fn what_is_used_stays_and_what_is_too_large_does_not_come() {
        let mut cache = Cache::new(1000, 300);
        put(&mut cache, 0, 100);
        for key in 1..50 {
            put(&mut cache, key, 100);
            assert!(cache.get(&0).is_some(), "{key}");
        }
        put(&mut cache, 77, 301);
        assert_eq!(cache.get(&77), None);
        // Once more, heavier: it counts once.
        put(&mut cache, 0, 200);
        assert!(cache.young.weight <= 500);
    }

    #[test]
    fn small_things_weigh_more_than_their_text() {
        let brackets = Value::Array(vec![json!([]); 1000]);
        assert!(weight(&brackets) >= 32_000);
        assert_eq!(weight(&json!("abc")), NODE + 3);
        assert_eq!(weight(&json!({"a": null})), NODE + FIELD + 1 + NODE);
    }
}
