//! What is counted of admission of pods (docs/metrics.md).

use std::time::Duration;

use controller_kit::metrics::Build;
use pod_presets::Injection;
use prometheus::{Histogram, IntCounterVec, IntGaugeVec};

/// From a pod without presets to the longest wait.
const SECONDS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 3.0,
];

/// What presets were to a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodOutcome {
    /// None is for it, or it is excluded.
    Untouched,
    /// It carries what they add.
    Injected,
    /// They only say what they would add.
    Audited,
    /// Something of them conflicts with it, and nothing is added.
    Conflict,
    /// One denies it because of that.
    Denied,
    /// Nothing could be said.
    Failed,
}

impl PodOutcome {
    const ALL: [Self; 6] = [
        Self::Untouched,
        Self::Injected,
        Self::Audited,
        Self::Conflict,
        Self::Denied,
        Self::Failed,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Untouched => "untouched",
            Self::Injected => "injected",
            Self::Audited => "audited",
            Self::Conflict => "conflict",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }

    /// Of one that presets are for.
    pub(super) fn of(injection: &Injection) -> Self {
        if injection.denied.is_some() {
            Self::Denied
        } else if !injection.conflicts.is_empty() && injection.applied.is_empty() {
            Self::Conflict
        } else if injection.applied.is_empty() {
            Self::Audited
        } else {
            Self::Injected
        }
    }
}

/// Pods that were asked about, and the presets that there are.
pub(super) struct PresetMetrics {
    pods: IntCounterVec,
    seconds: Histogram,
    presets: IntGaugeVec,
    stale: IntGaugeVec,
}

impl PresetMetrics {
    pub(super) fn new(build: &Build<'_>) -> Self {
        Self {
            pods: build.counters_from_zero(
                "carto_preset_pods_total",
                "Pods that were about to be created, by what presets were to them.",
                "outcome",
                PodOutcome::ALL.map(PodOutcome::as_str),
            ),
            seconds: build.histogram(
                "carto_preset_admission_duration_seconds",
                "Time from the review of a pod to its answer.",
                SECONDS,
            ),
            presets: build.gauges(
                "carto_presets",
                "Presets by kind, and whether they can be applied.",
                &["kind", "valid"],
            ),
            stale: build.gauges(
                "carto_preset_stale_pods",
                "Pods that carry an older version of a preset, or one that is gone.",
                &["preset"],
            ),
        }
    }

    pub(super) fn answered(&self, outcome: PodOutcome, took: Duration) {
        self.pods.with_label_values(&[outcome.as_str()]).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// So many pods carry older versions, and so many what is of no preset.
    pub(super) fn stale(&self, outdated: i64, orphans: i64) {
        for (state, count) in [("outdated", outdated), ("gone", orphans)] {
            self.stale.with_label_values(&[state]).set(count);
        }
    }

    /// There are so many of this kind.
    pub(super) fn presets(&self, kind: &str, valid: usize, invalid: usize) {
        for (is_valid, count) in [("true", valid), ("false", invalid)] {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let presets = &self.presets;
            presets.with_label_values(&[kind, is_valid]).set(count);
        }
    }
}
