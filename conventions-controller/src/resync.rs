//! When a PodIntent is decorated anew though nothing has changed that is watched.

use std::collections::HashMap;
use std::time::Duration;

use controller_kit::stamped::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

/// One that never settles waits for so many times as long, at the most.
const LONGEST: u32 = 8;

/// When each is due. After a restart all begin anew: nothing is asked because a process has
/// started.
pub(crate) struct Resync {
    every: Option<Duration>,
    jitter: fn() -> f64,
    due: Mutex<HashMap<ObjectKey, Instant>>,
}

impl Resync {
    pub(crate) fn new(every: Option<Duration>, jitter: fn() -> f64) -> Self {
        Self {
            every,
            jitter,
            due: Mutex::default(),
        }
    }

    /// Whether it is time.
    pub(crate) fn is_due(&self, key: &ObjectKey) -> bool {
        let due = self.due.lock();
        due.get(key).is_some_and(|due| *due <= Instant::now())
    }

    /// It was decorated anew; one that did not settle for so many times has longer rests.
    pub(crate) fn done(&self, key: &ObjectKey, unsettled: u32) {
        let Some(every) = self.every else { return };
        let factor = 1_u32.checked_shl(unsettled).unwrap_or(LONGEST).min(LONGEST);
        let wait = every.saturating_mul(factor);
        let wait = wait.mul_f64(0.8 + 0.4 * (self.jitter)());
        self.due.lock().insert(key.clone(), Instant::now() + wait);
    }

    /// How long until it is time.
    pub(crate) fn wait(&self, key: &ObjectKey) -> Option<Duration> {
        if !self.due.lock().contains_key(key) {
            self.done(key, 0);
        }
        let due = self.due.lock().get(key).copied()?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Another replica has worked meanwhile, and what was due here may be done.
    pub(crate) fn begin_term(&self) {
        self.due.lock().clear();
    }

    /// It is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.due.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_is_due_after_about_the_time_that_was_asked_for_and_again() {
        let resync = Resync::new(Some(Duration::from_secs(100)), || 0.5);
        let key = ObjectKey::new("dev", "app");
        assert!(!resync.is_due(&key));
        assert_eq!(resync.wait(&key), Some(Duration::from_secs(100)));
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(resync.wait(&key), Some(Duration::from_secs(40)));
        tokio::time::advance(Duration::from_secs(40)).await;
        assert!(resync.is_due(&key));
        resync.done(&key, 2);
        assert!(!resync.is_due(&key));
        assert_eq!(resync.wait(&key), Some(Duration::from_secs(400)));
        resync.done(&key, 60);
        assert_eq!(resync.wait(&key), Some(Duration::from_secs(800)));
        resync.forget(&key);
        assert_eq!(resync.wait(&key), Some(Duration::from_secs(100)));
        tokio::time::advance(Duration::from_secs(100)).await;
        assert!(resync.is_due(&key));
        resync.begin_term();
        assert!(!resync.is_due(&key));
    }

    #[test]
    fn never_is_never() {
        let resync = Resync::new(None, || 0.5);
        let key = ObjectKey::new("dev", "app");
        resync.done(&key, 0);
        assert_eq!(resync.wait(&key), None);
        assert!(!resync.is_due(&key));
    }
}
