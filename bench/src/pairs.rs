//! Ratios to the floor on a machine whose pace changes within seconds.
//!
//! The floor is measured right before and right after the controller, over and over, and every pair counts: leaving out those
//! between which the machine changed would choose among the results. How far the pairs scatter says how well their ratio is
//! known; one that is not known well enough is none.

use serde::{Deserialize, Serialize};

use crate::args::Args;

/// Pairs are added until the ratio is known this well, or there are enough.
const WELL: f64 = 0.08;
/// A ratio that is known less well is none.
const ENOUGH: f64 = 0.15;
/// The most pairs there may be.
pub(crate) const MOST: usize = 12;
/// Half the width of the interval that holds the mean in 90 of 100 cases, in standard errors: Student's t by the number of
/// pairs, from two on.
const STUDENT: [f64; MOST - 1] = [
    6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80,
];

/// The controller between two floors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pair {
    /// Of the bare client, right before and right after.
    pub(crate) floor: [f64; 2],
    /// Of the controller.
    pub(crate) controller: f64,
}

impl Pair {
    /// Between the two.
    fn floor(&self) -> f64 {
        f64::midpoint(self.floor[0], self.floor[1])
    }

    fn ratio(&self) -> f64 {
        self.controller / self.floor()
    }
}

/// Whether no further pair is needed, or there are the most that may be. Where no time is judged, none is needed.
pub(crate) fn are_enough(args: &Args, pairs: &[Pair], most: usize) -> bool {
    args.counts_only || pairs.len() >= most || uncertainty(pairs).is_some_and(|it| it <= WELL)
}

/// The controller against the floor, over all pairs, if that is known well enough.
pub(crate) fn ratio(pairs: &[Pair]) -> Option<f64> {
    uncertainty(pairs)
        .filter(|uncertainty| *uncertainty <= ENOUGH)
        .map(|_| overall(pairs))
}

/// As text.
pub(crate) fn told(pairs: &[Pair]) -> String {
    let known = uncertainty(pairs).unwrap_or(f64::NAN) * 100.0;
    let verdict = match ratio(pairs) {
        Some(_) => "",
        None => ", which is no ratio",
    };
    format!("{:.2} × floor (± {known:.0} %){verdict}", overall(pairs))
}

fn overall(pairs: &[Pair]) -> f64 {
    let sum = |of: fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>();
    sum(|pair| pair.controller) / sum(Pair::floor)
}

/// By which part of it the ratio may be wrong; nothing if there are too few pairs to tell, or one is no number.
fn uncertainty(pairs: &[Pair]) -> Option<f64> {
    let student = STUDENT.get(pairs.len().checked_sub(2)?)?;
    let of = number(pairs.len() as u64);
    let mean = pairs.iter().map(Pair::ratio).sum::<f64>() / of;
    let squares = pairs.iter().map(|pair| (pair.ratio() - mean).powi(2));
    let error = (squares.sum::<f64>() / (of - 1.0) / of).sqrt();
    Some(student * error / mean).filter(|known| known.is_finite())
}

/// A count as a figure.
#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(of: &[[f64; 3]]) -> Vec<Pair> {
        let pair = |&[before, controller, after]: &[f64; 3]| Pair {
            floor: [before, after],
            controller,
        };
        of.iter().map(pair).collect()
    }

    #[test]
    fn the_ratio_is_that_of_all_pairs() {
        let pairs = pairs(&[[1.0, 1.4, 1.0], [2.0, 2.8, 2.0], [1.0, 2.8, 3.0]]);
        assert!((ratio(&pairs).unwrap() - 1.4).abs() < 1e-9);
        assert_eq!(told(&pairs), "1.40 × floor (± 0 %)");
    }

    #[test]
    fn pairs_that_scatter_give_no_ratio() {
        let scattered = pairs(&[[1.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.5, 1.0]]);
        assert_eq!(ratio(&scattered), None);
        assert_eq!(told(&scattered), "1.50 × floor (± 56 %), which is no ratio");
        // Twelve that scatter as far are known better: their deviation is 0.426, so it is 1.8 × 0.426 / √12 of 1.5.
        let many = [[1.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.5, 1.0]].repeat(4);
        assert!((uncertainty(&pairs(&many)).unwrap() - 0.148).abs() < 0.001);
        assert!(ratio(&pairs(&many)).is_some());
    }

    #[test]
    fn too_few_pairs_and_what_is_no_number_give_no_ratio() {
        assert_eq!(ratio(&[]), None);
        assert_eq!(ratio(&pairs(&[[1.0, 1.2, 1.0]])), None);
        let broken = pairs(&[[1.0, 1.2, 1.0], [f64::NAN, 1.2, 1.0], [1.0, 1.2, 1.0]]);
        assert_eq!(ratio(&broken), None);
    }
}
