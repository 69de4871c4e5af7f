//! Room in memory for the answers of webhooks: of those that are being read, only so many at a time.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Room for all answers together.
pub(crate) struct AnswersRoom {
    /// In MiB.
    free: Semaphore,
    longest: u32,
}

impl AnswersRoom {
    /// So many MiB for all, of which the longest answer takes so many. There is always room for one.
    pub(crate) fn new(all: u16, longest: u16) -> Self {
        Self {
            free: Semaphore::new(usize::from(all.max(longest))),
            longest: u32::from(longest),
        }
    }

    /// Waits for room for one answer, which is free again when it is dropped.
    pub(crate) async fn take(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody closes it.
        self.free.acquire_many(self.longest).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn so_many_answers_have_room_and_one_always_has() {
        let room = AnswersRoom::new(20, 8);
        let first = room.take().now_or_never().flatten();
        let second = room.take().now_or_never().flatten();
        assert!(first.is_some() && second.is_some());
        assert!(room.take().now_or_never().is_none());
        drop(first);
        assert!(room.take().now_or_never().flatten().is_some());
        assert!(
            AnswersRoom::new(1, 8)
                .take()
                .now_or_never()
                .flatten()
                .is_some()
        );
    }
}
