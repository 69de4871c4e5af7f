//! Whether this replica works, and since when.

use std::time::Duration;

use tokio::time::Instant;

use crate::scheduler::QueueDepth;

/// What was told of the election. Without one, a process works from its start.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LeadershipState {
    stands_by: bool,
    since: Option<Instant>,
    term: u64,
}

impl LeadershipState {
    pub(super) fn told(&mut self, leads: bool, now: Instant) {
        self.stands_by = !leads;
        if leads {
            self.since = Some(now);
            self.term += 1;
        }
    }

    pub(super) fn works(&self) -> bool {
        !self.stands_by
    }

    pub(super) fn term(&self) -> Option<u64> {
        self.works().then_some(self.term)
    }

    /// What a queue holds, as it is to be shown: nothing while another replica works, and nothing has waited longer than
    /// since this one does.
    pub(super) fn seen(&self, depth: &QueueDepth) -> QueueDepth {
        if self.stands_by {
            return QueueDepth::default();
        }
        let longest = self.since.map_or(Duration::MAX, |since| since.elapsed());
        QueueDepth {
            oldest: depth.oldest.map(|oldest| oldest.min(longest)),
            ..*depth
        }
    }
}
