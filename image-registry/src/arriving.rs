//! How much may be on its way to the disk at the same time. What is there already is bounded by
//! [`crate::layers`], which does not know of it yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What arrives, of all layers together.
#[derive(Clone)]
pub(crate) struct Arriving {
    bytes: Arc<AtomicU64>,
    most: u64,
}

/// The part of one layer in it, until it is dropped.
pub(crate) struct Room {
    of: Arriving,
    bytes: u64,
}

impl Arriving {
    pub(crate) fn new(most: u64) -> Self {
        Self {
            bytes: Arc::default(),
            most,
        }
    }

    pub(crate) fn room(&self) -> Room {
        Room {
            of: self.clone(),
            bytes: 0,
        }
    }
}

impl Room {
    /// Takes so many bytes more. Whether they are there: whoever is alone has what he needs.
    pub(crate) fn grow(&mut self, bytes: u64) -> bool {
        self.bytes += bytes;
        let all = self.of.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        all <= self.of.most || all == self.bytes
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_no_more_than_there_is_and_one_alone_has_what_it_needs() {
        let arriving = Arriving::new(100);
        let (mut first, mut second) = (arriving.room(), arriving.room());
        assert!(first.grow(60) && first.grow(60) && !second.grow(1));
        drop(first);
        assert!(second.grow(99));
        let mut third = arriving.room();
        assert!(!third.grow(1));
        drop((second, third));
        assert_eq!(arriving.bytes.load(Ordering::Relaxed), 0);
    }
}
