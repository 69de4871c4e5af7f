//! Percentiles of measured times.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a set of samples comes to, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Latency {
    /// How many samples.
    pub(crate) samples: usize,
    /// Half of the samples are at most this.
    pub(crate) p50_ms: f64,
    /// 99 of 100 samples are at most this; with fewer than 100 samples, the longest.
    pub(crate) p99_ms: f64,
    /// The longest.
    pub(crate) max_ms: f64,
}

impl Latency {
    /// Sums up samples in any order; `None` when there are none.
    pub(crate) fn of(samples: &[Duration]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let at = |percent| percentile(&sorted, percent).map(millis);
        Some(Self {
            samples: sorted.len(),
            p50_ms: at(50)?,
            p99_ms: at(99)?,
            max_ms: at(100)?,
        })
    }
}

/// Nearest-rank percentile: the smallest sample that at least `percent` of all samples do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(values: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        values.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn percentiles_are_samples_by_nearest_rank() {
        let cases = [
            (ms(1..=100), (50.0, 99.0, 100.0)),
            (ms(1..=50), (25.0, 50.0, 50.0)),
            (ms([7]), (7.0, 7.0, 7.0)),
            (ms([2, 1]), (1.0, 2.0, 2.0)),
        ];
        for (samples, expected) in cases {
            let seen = Latency::of(&samples).unwrap();
            assert_eq!((seen.p50_ms, seen.p99_ms, seen.max_ms), expected);
            assert_eq!(seen.samples, samples.len());
        }
        assert_eq!(Latency::of(&[]), None);
    }
}
