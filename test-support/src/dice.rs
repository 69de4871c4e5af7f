//! Numbers that look random and are the same in each run, on every machine.

/// SplitMix64, from a seed.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The seed decides all that follows.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }

    /// One of several.
    pub fn pick<'c, C>(&mut self, choices: &'c [C]) -> &'c C {
        let index = self.below(choices.len() as u64);
        &choices[usize::try_from(index).unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_throws_the_same_numbers_and_all_of_them() {
        let throws = |seed| {
            let mut dice = Dice::new(seed);
            (0..100).map(|_| dice.below(6)).collect::<Vec<_>>()
        };
        assert_eq!(throws(1), throws(1));
        assert_ne!(throws(1), throws(2));
        assert!((0..6).all(|number| throws(1).contains(&number)));
        assert_eq!(Dice::new(1).below(0), 0);
        // As the algorithm is published: the first number of seed 0.
        assert_eq!(Dice::new(0).below(u64::MAX), 0xe220_a839_7b1d_cdaf);
    }
}
