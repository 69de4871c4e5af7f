//! How long it is waited between tries. Randomness is passed in as an argument, so that tests choose it.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// A number in 0.0..1.0, good enough to spread waits and for nothing else.
pub fn random() -> f64 {
    let bits = RandomState::new().hash_one(0_u8);
    let fraction = u32::try_from(bits >> 32).unwrap_or(0);
    f64::from(fraction) / (f64::from(u32::MAX) + 1.0)
}

/// A wait that was doubled so many times, and is no longer than `longest`.
pub(crate) fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    let factor = 2_u32.checked_pow(times);
    let wait = factor.and_then(|factor| first.checked_mul(factor));
    wait.map_or(longest, |wait| wait.min(longest))
}

#[cfg(test)]
mod tests {
    use super::random;

    #[test]
    fn numbers_differ_and_stay_in_range() {
        let numbers: Vec<f64> = (0..1000).map(|_| random()).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        assert!(
            numbers.iter().any(|number| *number < 0.3)
                && numbers.iter().any(|number| *number > 0.7)
        );
    }
}
