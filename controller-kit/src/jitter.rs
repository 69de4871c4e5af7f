//! Randomness for waits. Passed in as an argument, so that tests choose it.

use std::hash::{BuildHasher as _, RandomState};

/// A number in 0.0..1.0, good enough to spread waits and for nothing else.
pub(crate) fn random() -> f64 {
    let bits = RandomState::new().hash_one(0_u8);
    let fraction = u32::try_from(bits >> 32).unwrap_or(0);
    f64::from(fraction) / (f64::from(u32::MAX) + 1.0)
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
