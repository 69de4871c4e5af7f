//! When something is tried again that others have to carry out.

use std::time::Duration;

use controller_kit::cluster::chain;
use controller_kit::process::Reconciled;
use controller_kit::scheduler::Next;
use tracing::warn;

use crate::fault::Fault;

/// How long it is waited at the least if the API server asks for that.
const REST: Duration = Duration::from_secs(1);
/// A little less than that.
const MINUTE: Duration = Duration::from_secs(55);
/// How long webhooks and registries are left alone if they ask for that, at the least
const LEAST: Duration = Duration::from_secs(10);
/// and at the most.
const MOST: Duration = Duration::from_mins(10);
/// By which part of that time the PodIntents of one of them are spread: they were all told the same.
const SPREAD: f64 = 0.1;

/// When a pass is made again that did not come to all it could. Of several reasons the greatest
/// counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Again {
    /// Ever less often.
    #[default]
    Backoff,
    /// The same, but within a minute: no event tells of a right that is granted.
    WithinAMinute,
    /// Somebody asked to be left alone for so long.
    Asked(Duration),
}

impl Again {
    /// What somebody asked for, if he did.
    pub(crate) fn asked(retry_after: Option<Duration>) -> Self {
        retry_after.map_or(Self::Backoff, Self::Asked)
    }

    /// What the scheduler is told.
    pub(crate) fn next(self, jitter: impl FnOnce() -> f64) -> Next {
        match self {
            Self::Backoff => Next::Backoff,
            Self::WithinAMinute => Next::BackoffWithin(MINUTE),
            Self::Asked(asked) => {
                let later = 1.0 + SPREAD * jitter().clamp(0.0, 1.0);
                Next::After(asked.clamp(LEAST, MOST).mul_f64(later))
            }
        }
    }
}

/// What was needed could not be had: nothing is said, and it is tried again.
pub(crate) fn bear(fault: &Fault) -> Reconciled {
    warn!(error = %chain(fault), "not reconciled");
    match fault.retry_after() {
        Some(asked) => rest(asked),
        None => Reconciled::new(Next::Backoff, "infrastructure"),
    }
}

/// The API server asked to be left alone for so long: that holds whatever happens.
pub(crate) fn rest(asked: Duration) -> Reconciled {
    let wait = asked.max(REST);
    let next = Next::Rest { hold: asked, wait };
    Reconciled::new(next, "infrastructure")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_to_be_left_alone_is_for_a_while_that_is_bounded() {
        let next = |seconds| Again::asked(Some(Duration::from_secs(seconds))).next(|| 0.0);
        assert_eq!(Again::asked(None).next(|| 0.0), Next::Backoff);
        for (asked, waited) in [(1, 10), (120, 120), (86_400, 600), (u64::MAX, 600)] {
            assert_eq!(next(asked), Next::After(Duration::from_secs(waited)));
        }
    }

    #[test]
    fn those_who_were_told_the_same_come_back_apart() {
        let asked = Again::Asked(Duration::from_secs(100));
        let late = asked.next(|| 1.0);
        assert_eq!(late, Next::After(Duration::from_secs(110)));
    }

    #[test]
    fn of_several_reasons_the_longest_wait_counts() {
        let asked = |seconds| Again::Asked(Duration::from_secs(seconds));
        let within = Again::Backoff.max(Again::WithinAMinute);
        assert_eq!(within.next(|| 0.0), Next::BackoffWithin(MINUTE));
        assert_eq!(Again::WithinAMinute.max(asked(1)), asked(1));
        assert_eq!(asked(20).max(asked(120)), asked(120));
    }
}
