//! Making metrics and entering them into their registry.

use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

/// Builds and registers. Names and labels are literals in this module, so none of it can fail at run time;
/// the first test of the module proves it for all of them.
pub(super) struct Build<'a> {
    pub(super) registry: &'a Registry,
}

macro_rules! register {
    ($self:ident, $metric:expr) => {{
        let metric = $metric.expect(
            "the name, help and labels are literals in this module, checked by its first test",
        );
        $self
            .registry
            .register(Box::new(metric.clone()))
            .expect("names in this module differ, checked by its first test");
        metric
    }};
}

impl Build<'_> {
    pub(super) fn counter(&self, name: &str, help: &str) -> IntCounter {
        register!(self, IntCounter::new(name, help))
    }

    pub(super) fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        register!(self, IntCounterVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> IntGauge {
        register!(self, IntGauge::new(name, help))
    }

    pub(super) fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        register!(self, IntGaugeVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn float_gauge(&self, name: &str, help: &str) -> Gauge {
        register!(self, Gauge::new(name, help))
    }

    pub(super) fn float_gauges(&self, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
        register!(self, GaugeVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        register!(
            self,
            Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec()))
        )
    }

    pub(super) fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> HistogramVec {
        register!(
            self,
            HistogramVec::new(
                HistogramOpts::new(name, help).buckets(buckets.to_vec()),
                labels
            )
        )
    }
}
