//! Ratios to the floor on a machine whose pace changes: the floor is measured right before and right after the controller, and
//! where these two differ, nothing is known.

use serde::Serialize;

use crate::args::Args;

/// By how much the floor after may differ from the floor before.
const DRIFT: f64 = 0.1;

/// How often a pair is measured at the most, while the floor drifts.
const TRIES: usize = 3;

/// How often what drifted is measured: where no time is judged, once.
pub(crate) fn tries(args: &Args) -> usize {
    if args.counts_only { 1 } else { TRIES }
}

/// The controller between two floors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pair {
    /// Of the bare client, right before and right after.
    pub(crate) floor: [f64; 2],
    /// Of the controller.
    pub(crate) controller: f64,
}

impl Pair {
    /// Between the two.
    pub(crate) fn floor(&self) -> f64 {
        f64::midpoint(self.floor[0], self.floor[1])
    }

    /// The floor afterwards against the floor before, less one.
    pub(crate) fn drift(&self) -> f64 {
        self.floor[1] / self.floor[0] - 1.0
    }

    /// Whether the machine stayed as it was. What is not a number is not.
    pub(crate) fn is_steady(&self) -> bool {
        let moved = 1.0 + self.drift();
        (1.0 / (1.0 + DRIFT)..=1.0 + DRIFT).contains(&moved)
    }
}

/// The controller against the floor, over all pairs; nothing if the floor drifted in one of them.
pub(crate) fn ratio(pairs: &[Pair]) -> Option<f64> {
    let all_steady = !pairs.is_empty() && pairs.iter().all(Pair::is_steady);
    let sum = |of: fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>();
    all_steady.then(|| sum(|pair| pair.controller) / sum(Pair::floor))
}

/// As text.
pub(crate) fn told(pairs: &[Pair]) -> String {
    if let Some(ratio) = ratio(pairs) {
        return format!("{ratio:.2} × floor");
    }
    let drift = |pair: &Pair| format!("{:+.0} %", pair.drift() * 100.0);
    let drifts: Vec<String> = pairs.iter().map(drift).collect();
    format!("no ratio: the floor drifted ({})", drifts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(before: f64, controller: f64, after: f64) -> Pair {
        Pair {
            floor: [before, after],
            controller,
        }
    }

    #[test]
    fn the_ratio_is_that_of_all_pairs() {
        let pairs = [pair(1.0, 1.2, 1.0), pair(2.0, 3.0, 2.0)];
        assert!((ratio(&pairs).unwrap() - 1.4).abs() < 1e-9);
        assert_eq!(told(&pairs), "1.40 × floor");
        assert_eq!(ratio(&[]), None);
    }

    #[test]
    fn a_floor_that_drifted_gives_no_ratio() {
        for (before, after, steady) in [
            (1.0, 1.09, true),
            (1.09, 1.0, true),
            (1.0, 1.11, false),
            (1.11, 1.0, false),
            (f64::NAN, 1.0, false),
        ] {
            assert_eq!(
                pair(before, 1.0, after).is_steady(),
                steady,
                "{before} {after}"
            );
        }
        let pairs = [pair(1.0, 1.2, 1.0), pair(1.0, 1.2, 1.5)];
        assert_eq!(ratio(&pairs), None);
        assert_eq!(told(&pairs), "no ratio: the floor drifted (+0 %, +50 %)");
    }
}
