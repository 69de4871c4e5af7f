//! Making metrics and entering them into their registry.

use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

/// Makes metrics and enters them into the registry that is served. Names and labels are literals of the source, and no
/// two have the same name, so none of it can fail at run time; a test that makes them all proves it.
pub struct Build<'a> {
    registry: &'a Registry,
}

macro_rules! register {
    ($self:ident, $metric:expr) => {{
        let metric = $metric
            .expect("the name, help and labels are literals of the source, checked by a test");
        $self
            .registry
            .register(Box::new(metric.clone()))
            .expect("names of metrics differ, checked by a test");
        metric
    }};
}

impl<'a> Build<'a> {
    pub(super) fn new(registry: &'a Registry) -> Self {
        Self { registry }
    }

    /// A number that grows.
    pub fn counter(&self, name: &str, help: &str) -> IntCounter {
        register!(self, IntCounter::new(name, help))
    }

    /// One that grows for each of some labels.
    pub fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        register!(self, IntCounterVec::new(Opts::new(name, help), labels))
    }

    /// The same, which begin at zero for each of these values of their one label: an alert on an increase misses the first
    /// one where there was nothing before it.
    pub fn counters_from_zero<'v>(
        &self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = &'v str>,
    ) -> IntCounterVec {
        let counters = self.counters(name, help, &[label]);
        for value in values {
            counters.with_label_values(&[value]);
        }
        counters
    }

    /// A number that is set.
    pub fn gauge(&self, name: &str, help: &str) -> IntGauge {
        register!(self, IntGauge::new(name, help))
    }

    /// One that is set for each of some labels.
    pub fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        register!(self, IntGaugeVec::new(Opts::new(name, help), labels))
    }

    /// A fraction that is set.
    pub fn float_gauge(&self, name: &str, help: &str) -> Gauge {
        register!(self, Gauge::new(name, help))
    }

    /// A fraction that is set for each of some labels.
    pub fn float_gauges(&self, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
        register!(self, GaugeVec::new(Opts::new(name, help), labels))
    }

    /// How long or how much something is, counted in buckets.
    pub fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        register!(
            self,
            Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec()))
        )
    }

    /// The same for each of some labels.
    pub fn histograms(
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
