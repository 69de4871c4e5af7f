//! What is counted of stamped objects and the watches over them.

use prometheus::IntGaugeVec;

use super::define::metrics;
use super::{Metrics, count};

metrics! {
    pub(super) struct StampedKinds {
        /// 1 for a stamped kind that may not be watched and is read slowly instead.
        refused: gauges("carto_watch_refused", &["resource"]),
        /// 1 for a stamped kind that is answered with errors for so long that what was known is not
        /// believed.
        stale: gauges("carto_watch_stale", &["resource"]),
        /// Writes left out because they would change nothing.
        requests_avoided: counter("carto_api_requests_avoided_total"),
        /// Stamped objects held in memory.
        objects: gauge("carto_stamped_objects"),
    }
}

impl Metrics {
    /// Whether the watch over each stamped kind is refused.
    pub(crate) fn refused(&self, kinds: &[(String, bool)]) {
        self.show(&self.stamped.refused, kinds);
    }

    /// Whether what is held of each stamped kind is not believed any more.
    pub(crate) fn stale(&self, kinds: &[(String, bool)]) {
        self.show(&self.stamped.stale, kinds);
    }

    fn show(&self, gauges: &IntGaugeVec, kinds: &[(String, bool)]) {
        gauges.reset();
        for (resource, is_so) in kinds {
            let label = self.requests.resource(resource);
            let gauge = gauges.with_label_values(&[label]);
            // Several may have one label.
            gauge.set(gauge.get().max(i64::from(*is_so)));
        }
    }

    /// A write was not sent because nothing would change.
    pub(crate) fn request_avoided(&self) {
        self.stamped.requests_avoided.inc();
    }

    /// So many stamped objects are held.
    pub(crate) fn stamped_objects(&self, objects: usize) {
        self.stamped.objects.set(count(objects));
    }
}
