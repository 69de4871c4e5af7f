//! Writing down metrics and the values of their labels, each in one place.

/// A struct of metrics. What is written above a field is the metric's help; after the field stand how
/// [`Build`](super::Build) makes it, its name, and what else that needs.
macro_rules! metrics {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $struct:ident {
            $($(#[doc = $help:literal])+ $field:ident: $make:ident($name:literal $(, $more:expr)*),)+
        }
    ) => {
        $(#[$meta])*
        $visibility struct $struct {
            $($(#[doc = $help])+ $field: metrics!(@type $make),)+
        }

        impl $struct {
            pub(super) fn new(build: &super::Build<'_>) -> Self {
                Self {
                    $($field: build.$make($name, concat!($($help),+).trim_start() $(, $more)*),)+
                }
            }
        }
    };
    (@type counter) => { prometheus::IntCounter };
    (@type counters) => { prometheus::IntCounterVec };
    (@type counters_from_zero) => { prometheus::IntCounterVec };
    (@type gauge) => { prometheus::IntGauge };
    (@type gauges) => { prometheus::IntGaugeVec };
    (@type float_gauge) => { prometheus::Gauge };
    (@type float_gauges) => { prometheus::GaugeVec };
    (@type histogram) => { prometheus::Histogram };
    (@type histograms) => { prometheus::HistogramVec };
}

/// An enum of all values of a label.
macro_rules! labels {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $enum:ident {
            $($(#[$about:meta])* $value:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $enum {
            $($(#[$about])* $value,)+
        }

        impl $enum {
            /// All values, as they are shown.
            pub(super) fn words() -> impl Iterator<Item = &'static str> {
                [$($text),+].into_iter()
            }

            pub(super) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }
        }
    };
}

pub(super) use {labels, metrics};
