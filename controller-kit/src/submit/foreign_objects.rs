//! How often an object of somebody else is looked at that the watch does not show.
//!
//! Only its owner's labels would bring it into the watch. So each look is a refused apply and a read, which must not come with
//! every reconcile.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::backoff::{KeyedBackoff, Repeatable, Spacing};
use crate::mapper::Kind;
use crate::stamped::ObjectKey;

const SPACING: Spacing = Spacing {
    first: Duration::from_secs(15),
    // As often as whatever cannot be watched is read.
    longest: super::SLOW_READ,
    calm: Duration::from_mins(5),
};

/// The latest looks, with what they came to.
#[derive(Debug)]
pub(super) struct ForeignObjects(KeyedBackoff<Arc<str>>);

impl Default for ForeignObjects {
    fn default() -> Self {
        Self(KeyedBackoff::new(SPACING))
    }
}

impl ForeignObjects {
    /// What the last look with this rendering came to, as long as that is to be believed: until the object is known to have
    /// moved once more.
    pub(super) fn known(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        (digest, moves): (&str, u64),
        now: Instant,
    ) -> Option<Arc<str>> {
        let look = Repeatable::new(&(kind, key, digest), &moves);
        let (wait, message) = self.0.last(look, now)?;
        (!wait.is_zero()).then_some(message)
    }

    /// A look found an object that must not be written; the text says why.
    pub(super) fn found(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        (digest, moves): (&str, u64),
        message: &str,
        now: Instant,
    ) {
        let look = Repeatable::new(&(kind, key, digest), &moves);
        self.0.written(look, now, |_| message.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_is_looked_at_twice_and_then_every_half_minute() {
        let foreign_objects = ForeignObjects::default();
        let (kind, key) = (Kind::new("v1", "ConfigMap"), ObjectKey::new("n", "a"));
        let mut now = Instant::now();
        let known = |now| foreign_objects.known(&kind, &key, ("d", 0), now);
        assert_eq!(known(now), None);
        foreign_objects.found(&kind, &key, ("d", 0), "theirs", now);
        assert_eq!(known(now), None);
        foreign_objects.found(&kind, &key, ("d", 0), "theirs", now);
        for _ in 0..3 {
            assert_eq!(known(now), Some("theirs".into()));
            now += super::super::SLOW_READ;
            assert_eq!(known(now), None);
            foreign_objects.found(&kind, &key, ("d", 0), "theirs", now);
        }
        let other = foreign_objects.known(&kind, &key, ("another rendering", 0), now);
        assert_eq!(other, None);
        assert_eq!(
            foreign_objects.known(&kind, &key, ("d", 1), now),
            None,
            "it moved"
        );
    }
}
