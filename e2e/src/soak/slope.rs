//! How fast something grows: a straight line through samples, by least squares.

/// The line that fits best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// Growth in an hour.
    pub per_hour: f64,
    /// The standard deviation of that: how much of it may be chance.
    pub deviation: f64,
    /// What it was on average.
    pub mean: f64,
    /// Of how many samples it was made.
    pub samples: usize,
}

const HOUR: f64 = 3600.0;

/// The line through samples of seconds and values; none when there are too few.
#[expect(clippy::cast_precision_loss, reason = "there are not so many samples")]
pub fn slope(samples: &[(f64, f64)]) -> Option<Slope> {
    let count = samples.len() as f64;
    if samples.len() < 3 {
        return None;
    }
    let mean_of = |pick: fn(&(f64, f64)) -> f64| samples.iter().map(pick).sum::<f64>() / count;
    let (middle, mean) = (mean_of(|it| it.0), mean_of(|it| it.1));
    let spread: f64 = samples.iter().map(|(at, _)| (at - middle).powi(2)).sum();
    let together = samples
        .iter()
        .map(|(at, value)| (at - middle) * (value - mean));
    let per_second = together.sum::<f64>() / spread;
    let residuals = samples
        .iter()
        .map(|(at, value)| value - mean - per_second * (at - middle));
    let unexplained: f64 = residuals.map(|it| it.powi(2)).sum();
    let deviation = (unexplained / (count - 2.0) / spread).sqrt();
    Some(Slope {
        per_hour: per_second * HOUR,
        deviation: deviation * HOUR,
        mean,
        samples: samples.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_certain() {
        let samples: Vec<_> = (0..60)
            .map(|minute| f64::from(minute) * 60.0)
            .map(|at| (at, 30.0 + at / HOUR))
            .collect();
        let found = slope(&samples).unwrap();
        assert!((found.per_hour - 1.0).abs() < 1e-9, "{found:?}");
        assert!(found.deviation < 1e-6, "{found:?}");
    }

    #[test]
    fn what_goes_up_and_down_has_no_slope_that_is_certain() {
        let samples: Vec<_> = (0..60)
            .map(|at| (f64::from(at) * 60.0, f64::from(30 + at % 2)))
            .collect();
        let found = slope(&samples).unwrap();
        assert!(found.per_hour.abs() < 2.0 * found.deviation, "{found:?}");
        assert!(found.deviation > 0.01, "{found:?}");
    }

    #[test]
    fn two_samples_are_no_line() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 2.0)]), None);
    }
}
