//! Which program this is, and whether this replica of it works, and since when.

use std::time::Duration;

use tokio::time::Instant;

use super::define::metrics;
use super::{Metrics, count};
use crate::scheduler::QueueDepth;

metrics! {
    pub(super) struct Replica {
        /// 1 while this process holds the lease, or needs none.
        leader: gauge("carto_leader"),
        /// How often this process began or ceased to lead by the lease.
        lease_transitions:
            counters_from_zero("carto_lease_transitions_total", "to", [true, false].map(role)),
        /// Replicas that share the owners, as this one has seen last; 0 where one leads.
        replicas: gauge("carto_replicas"),
        /// Namespaces with owners that fall to this replica; 0 where one leads.
        share: gauge("carto_share_namespaces"),
        /// 1; which program this is.
        build_info: gauges("carto_build_info", &["program", "version"]),
    }
}

impl Metrics {
    /// This process leads, or does not. One that stands by has owners in its store and in its queue, as it follows all
    /// watches, but none of them waits for it: it shows no owners and empty queues. What it measures of owners on their
    /// way begins with its term.
    pub fn leader(&self, leads: bool) {
        self.replica.leader.set(i64::from(leads));
        self.standing.lock().lead(leads, Instant::now());
    }

    /// The lease was taken, or lost.
    pub(crate) fn lease_transition(&self, leads: bool) {
        let transitions = &self.replica.lease_transitions;
        transitions.with_label_values(&[role(leads)]).inc();
    }

    /// So many replicas share the owners.
    pub(crate) fn replicas(&self, replicas: usize) {
        self.replica.replicas.set(count(replicas));
    }

    /// So many namespaces with owners are this one's.
    pub(crate) fn share_namespaces(&self, namespaces: usize) {
        self.replica.share.set(count(namespaces));
    }

    /// Which of the times this is that this process works; none while it stands by.
    pub fn term(&self) -> Option<u64> {
        self.standing().term()
    }

    pub(super) fn standing(&self) -> LeadershipState {
        *self.standing.lock()
    }

    /// Which program this is.
    pub(crate) fn program(&self, name: &str, version: &str) {
        let build_info = &self.replica.build_info;
        build_info.with_label_values(&[name, version]).set(1);
    }
}

/// The word for what a replica does.
fn role(leads: bool) -> &'static str {
    if leads { "leading" } else { "waiting" }
}

/// What the election has come to. Without one, a process works from its start.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LeadershipState {
    stands_by: bool,
    since: Option<Instant>,
    term: u64,
}

impl LeadershipState {
    fn lead(&mut self, leads: bool, now: Instant) {
        self.stands_by = !leads;
        if leads {
            self.since = Some(now);
            self.term += 1;
        }
    }

    pub(super) fn works(self) -> bool {
        !self.stands_by
    }

    fn term(self) -> Option<u64> {
        self.works().then_some(self.term)
    }

    /// What a queue holds, as it is to be shown: nothing while another replica works, and nothing has waited longer than
    /// since this one does.
    pub(super) fn seen(self, depth: &QueueDepth) -> QueueDepth {
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
