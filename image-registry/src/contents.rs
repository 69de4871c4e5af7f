//! Manifests and configurations in memory, by repository and digest; and fetching each only once at
//! a time.
//!
//! By repository: that somebody may read a repository says nothing about another one that has, or
//! claims to have, the same content.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use conventions::image::Digest;
use parking_lot::Mutex;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use tokio::sync::OwnedMutexGuard;

/// What an entry takes beside its bytes.
const ENTRY: usize = 400;
/// A guess, for the size of the first table.
const USUAL: u64 = 4 << 10;

/// Where something is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ContentKey {
    /// Registry and repository, as the image names them.
    pub(crate) repository: Arc<str>,
    pub(crate) digest: Digest,
}

/// Contents, bounded by the memory they take. Those that are asked for stay longest.
pub(crate) struct Contents {
    cache: Cache<ContentKey, Bytes, Weigh>,
}

#[derive(Clone)]
struct Weigh;

impl Weighter<ContentKey, Bytes> for Weigh {
    fn weight(&self, _: &ContentKey, bytes: &Bytes) -> u64 {
        (bytes.len() + ENTRY) as u64
    }
}

impl Contents {
    pub(crate) fn new(most: u64) -> Self {
        let entries = usize::try_from(most / USUAL).unwrap_or(usize::MAX).max(16);
        // One shard: the shards of the library each have a share of the weight, and a share is soon
        // less than an entry.
        let options = OptionsBuilder::new()
            .estimated_items_capacity(entries)
            .weight_capacity(most)
            .shards(1)
            .build();
        let cache = match options {
            Ok(options) => {
                let lifecycle = DefaultLifecycle::default();
                Cache::with_options(options, Weigh, DefaultHashBuilder::default(), lifecycle)
            }
            Err(_) => Cache::with_weighter(entries, most, Weigh),
        };
        Self { cache }
    }

    pub(crate) fn get(&self, key: &ContentKey) -> Option<Bytes> {
        self.cache.get(key)
    }

    pub(crate) fn keep(&self, key: ContentKey, bytes: Bytes) {
        self.cache.insert(key, bytes);
    }
}

/// One at a time for each key. Who gives up lets the next one in.
pub(crate) struct Flights<K> {
    locks: Mutex<HashMap<K, Weak<tokio::sync::Mutex<()>>>>,
}

impl<K: Hash + Eq> Flights<K> {
    pub(crate) fn new() -> Self {
        Self {
            locks: Mutex::new(HashMap::new()),
        }
    }

    /// Waits until nobody else is at it. Whoever comes in looks first whether it is done already.
    pub(crate) async fn enter(&self, key: K) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.locks.lock();
            if let Some(lock) = locks.get(&key).and_then(Weak::upgrade) {
                lock
            } else {
                locks.retain(|_, lock| lock.strong_count() > 0);
                let lock = Arc::new(tokio::sync::Mutex::new(()));
                locks.insert(key, Arc::downgrade(&lock));
                lock
            }
        };
        lock.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> ContentKey {
        ContentKey {
            repository: "a.example/app".into(),
            digest: format!("sha256:{number:064x}").parse().unwrap(),
        }
    }

    #[test]
    fn contents_take_no_more_memory_than_they_may() {
        let contents = Contents::new(1 << 20);
        for number in 0..1000 {
            contents.keep(key(number), Bytes::from(vec![0; 10_000]));
        }
        assert!(contents.cache.weight() <= 1 << 20);
        assert!(contents.cache.len() > 50);
        contents.keep(key(5000), Bytes::from(vec![0; 900_000]));
        assert!(
            contents.get(&key(5000)).is_some(),
            "a large one has its place, too"
        );
    }

    #[tokio::test]
    async fn one_is_at_it_and_the_next_comes_in_when_it_gives_up() {
        let flights = Flights::new();
        let first = flights.enter("a").await;
        let _other = flights.enter("b").await;
        let mut second = Box::pin(flights.enter("a"));
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        drop(second.await);
        drop(flights.enter("c").await);
        drop(flights.enter("d").await);
        assert!(
            flights.locks.lock().len() <= 2,
            "nobody is remembered who is gone"
        );
    }
}
