//! Renderings that are remembered, bounded by the memory they take.

use std::sync::Arc;

use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use serde_json::Value;

/// What a value takes beside its texts.
const NODE: usize = 32;

/// What a field takes beside its name and its value.
const FIELD: usize = 48;

/// A guess, for the size of the first table: a rendering takes some KiB.
const USUAL: usize = 4 << 10;

/// Digests of the template and of the values.
pub(super) type Key = (String, String);

/// Renderings by what they were made of. Those that are asked for stay longest.
///
/// One lock for all: the library's own shards each have a share of the weight, and on a large machine a
/// share is less than a rendering.
pub(super) struct Renderings {
    cache: Mutex<Cache<Key, Rendering, Weigh>>,
    /// Of each rendering.
    largest: usize,
}

struct Rendering {
    value: Arc<Value>,
    weight: usize,
}

#[derive(Clone)]
struct Weigh;

impl Weighter<Key, Rendering> for Weigh {
    fn weight(&self, _: &Key, rendering: &Rendering) -> u64 {
        rendering.weight as u64
    }
}

impl Renderings {
    /// Takes `most` bytes, and of each rendering `largest`.
    pub(super) fn new(most: usize, largest: usize) -> Self {
        let cache = Cache::with_weighter(most / USUAL, most as u64, Weigh);
        Self {
            cache: Mutex::new(cache),
            largest,
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<Value>> {
        let cache = self.cache.lock();
        cache.get(key).map(|rendering| rendering.value.clone())
    }

    /// Remembers a rendering, unless it is too large.
    pub(super) fn put(&self, key: Key, value: &Value) {
        let weight = weight(value) + key.0.len() + key.1.len();
        if weight <= self.largest {
            let value = Arc::new(value.clone());
            self.cache.lock().insert(key, Rendering { value, weight });
        }
    }
}

/// About what a value takes in memory, in bytes. `[[],[],…]` takes ten times its text.
fn weight(value: &Value) -> usize {
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

    fn key(number: usize) -> Key {
        (String::new(), format!("{number:08}"))
    }

    /// A value that weighs so much, with its key.
    fn of_weight(bytes: usize) -> Value {
        Value::from("x".repeat(bytes - NODE - 8))
    }

    #[test]
    fn what_is_held_is_bounded_by_its_weight() {
        let renderings = Renderings::new(1000, 300);
        for number in 0..100 {
            renderings.put(key(number), &of_weight(100));
            assert!(renderings.cache.lock().weight() <= 1000);
        }
        let held = (0..100).filter(|number| renderings.get(&key(*number)).is_some());
        assert!((5..=10).contains(&held.count()));
    }

    #[test]
    fn what_is_used_stays_and_what_is_too_large_does_not_come() {
        let renderings = Renderings::new(1000, 300);
        renderings.put(key(0), &of_weight(100));
        for number in 1..50 {
            assert!(renderings.get(&key(0)).is_some(), "{number}");
            renderings.put(key(number), &of_weight(100));
        }
        renderings.put(key(77), &of_weight(301));
        assert_eq!(renderings.get(&key(77)), None);
        // Once more, heavier: it counts once.
        renderings.put(key(0), &of_weight(200));
        assert!(renderings.cache.lock().weight() <= 1000);
    }

    #[test]
    fn small_things_weigh_more_than_their_text() {
        let brackets = Value::Array(vec![json!([]); 1000]);
        assert!(weight(&brackets) >= 32_000);
        assert_eq!(weight(&json!("abc")), NODE + 3);
        assert_eq!(weight(&json!({"a": null})), NODE + FIELD + 1 + NODE);
    }
}
