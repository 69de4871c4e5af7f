//! What queues hold, and how they make way for few.

use super::define::metrics;
use super::{Metrics, count};
use crate::api_latency::Latency;
use crate::scheduler::{Lane, QueueDepth};

metrics! {
    pub(super) struct Queues {
        /// Owners that wait for a free slot.
        depth: gauges("carto_queue_depth", &["queue", "lane"]),
        /// How long the longest-waiting owner has waited for a slot.
        oldest: float_gauges("carto_queue_oldest_seconds", &["queue", "lane"]),
        /// Owners that wait for a time (debounce, back-off).
        delayed: gauges("carto_queue_delayed", &["queue"]),
        /// Owners being reconciled.
        running: gauges("carto_queue_running", &["queue"]),
        /// Owners that may be reconciled at once, beside retries: of replicas that share the owners,
        /// each has its part of what one alone has.
        slots: gauges("carto_queue_slots", &["queue"]),
        /// Slots that a namespace of many owners may hold; fewer than all while the API server is
        /// congested.
        window: gauges("carto_queue_window", &["queue"]),
        /// How often many owners made way for a namespace that asks for little, since the start.
        yields: gauges("carto_queue_yields", &["queue"]),
        /// 1 while requests wait for one another at the API server, judged by how long writes of
        /// our status take.
        congested: gauge("carto_api_congested"),
        /// How long a write of our status takes: `average` lately, and `best`, which congestion is
        /// judged against.
        status_write_seconds: float_gauges("carto_api_status_write_seconds", &["which"]),
    }
}

impl Metrics {
    /// What a queue holds.
    pub fn queue(&self, queue: &'static str, depth: &QueueDepth) {
        let (gauges, depth) = (&self.queues, self.standing().seen(depth));
        for (index, lane) in Lane::ALL.into_iter().enumerate() {
            let labels = [queue, lane.as_str()];
            let ready = gauges.depth.with_label_values(&labels);
            ready.set(count(depth.ready[index]));
            let oldest = gauges.oldest.with_label_values(&labels);
            oldest.set(depth.oldest[index].as_secs_f64());
        }
        let delayed = gauges.delayed.with_label_values(&[queue]);
        delayed.set(count(depth.delayed));
        let running = gauges.running.with_label_values(&[queue]);
        running.set(count(depth.running));
        let slots = gauges.slots.with_label_values(&[queue]);
        slots.set(count(depth.slots));
    }

    /// How many make way for few.
    pub(crate) fn congestion(&self, queue: &'static str, window: usize, yields: u64) {
        let (gauges, queue) = (&self.queues, [queue]);
        gauges.window.with_label_values(&queue).set(count(window));
        gauges.yields.with_label_values(&queue).set(count(yields));
    }

    /// How long the API server takes.
    pub(crate) fn latency(&self, latency: Latency) {
        let gauges = &self.queues;
        gauges.congested.set(i64::from(latency.is_congested));
        for (which, seconds) in [("average", latency.average), ("best", latency.best)] {
            let gauge = gauges.status_write_seconds.with_label_values(&[which]);
            gauge.set(seconds);
        }
    }
}
