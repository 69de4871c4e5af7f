//! What queues hold.

use prometheus::{GaugeVec, IntGaugeVec};

use super::build::Build;
use super::count;
use crate::scheduler::{Lane, QueueDepth};

pub(super) struct Queues {
    depth: IntGaugeVec,
    oldest: GaugeVec,
    delayed: IntGaugeVec,
    running: IntGaugeVec,
    window: IntGaugeVec,
    yields: IntGaugeVec,
}

impl Queues {
    pub(super) fn new(build: &Build<'_>) -> Self {
        Self {
            depth: build.gauges(
                "carto_queue_depth",
                "Owners that wait for a free slot.",
                &["queue", "lane"],
            ),
            oldest: build.float_gauges(
                "carto_queue_oldest_seconds",
                "How long the longest-waiting owner has waited for a slot.",
                &["queue", "lane"],
            ),
            delayed: build.gauges(
                "carto_queue_delayed",
                "Owners that wait for a time (debounce, back-off).",
                &["queue"],
            ),
            running: build.gauges(
                "carto_queue_running",
                "Owners being reconciled.",
                &["queue"],
            ),
            window: build.gauges(
                "carto_queue_window",
                "Slots that a namespace of many owners may hold; fewer than all while the API server is congested.",
                &["queue"],
            ),
            yields: build.gauges(
                "carto_queue_yields",
                "How often many owners made way for a namespace that asks for little, since the start.",
                &["queue"],
            ),
        }
    }

    pub(super) fn set(&self, queue: &'static str, depth: &QueueDepth) {
        for (index, lane) in Lane::ALL.into_iter().enumerate() {
            self.depth
                .with_label_values(&[queue, lane.as_str()])
                .set(count(depth.ready[index]));
            self.oldest
                .with_label_values(&[queue, lane.as_str()])
                .set(depth.oldest[index].as_secs_f64());
        }
        self.delayed
            .with_label_values(&[queue])
            .set(count(depth.delayed));
        self.running
            .with_label_values(&[queue])
            .set(count(depth.running));
    }
    /// How many make way for few.
    pub(super) fn congestion(&self, queue: &'static str, window: usize, yields: u64) {
        let queue = [queue];
        self.window.with_label_values(&queue).set(count(window));
        let yields = i64::try_from(yields).unwrap_or(i64::MAX);
        self.yields.with_label_values(&queue).set(yields);
    }
}
