//! How long the API server takes to answer writes of our status now, and how long it takes at its best.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Weight of the last answer in the average.
const WEIGHT: f64 = 0.1;
/// How long the best answer counts: two of these at the most, as the way to the server may become longer. Long enough for
/// thousands of owners to settle: what is best under load is not the server's best.
const WINDOW: Duration = Duration::from_mins(15);
/// An average of so many times the best answer means that requests wait for one another.
const CONGESTED: f64 = 2.5;

/// The answers of an API server, measured.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    answers: Mutex<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    /// Seconds.
    average: f64,
    /// Seconds; of this window and of the one before.
    best: [Option<f64>; 2],
    window: Option<Instant>,
}

impl Answers {
    fn record(&mut self, took: Duration, now: Instant) {
        let seconds = took.as_secs_f64();
        if self
            .window
            .is_none_or(|began| now.saturating_duration_since(began) > WINDOW)
        {
            self.window = Some(now);
            self.best = [None, self.best[0]];
        }
        self.average = if self.best() == f64::INFINITY {
            seconds
        } else {
            self.average * (1.0 - WEIGHT) + seconds * WEIGHT
        };
        self.best[0] = Some(self.best[0].map_or(seconds, |best| best.min(seconds)));
    }

    fn best(&self) -> f64 {
        self.best
            .iter()
            .flatten()
            .copied()
            .fold(f64::INFINITY, f64::min)
    }
}

impl Pulse {
    /// One write of a status was answered.
    pub(crate) fn record(&self, took: Duration, now: Instant) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.record(took, now);
    }

    /// Whether requests wait for one another at the server.
    pub(crate) fn is_congested(&self) -> bool {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.average > answers.best() * CONGESTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(pulse: &Pulse, millis: &[u64]) -> bool {
        for took in millis {
            pulse.record(Duration::from_millis(*took), Instant::now());
        }
        pulse.is_congested()
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_way_is_no_congestion() {
        let pulse = Pulse::default();
        assert!(!pulse.is_congested(), "nothing is known");
        assert!(!after(&pulse, &[100; 50]));
        assert!(!after(&pulse, &[200; 50]));
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_take_many_times_the_best_are() {
        let pulse = Pulse::default();
        assert!(!after(&pulse, &[5, 4, 6, 5]));
        assert!(!after(&pulse, &[40]), "one slow answer is none");
        assert!(after(&pulse, &[40; 20]));
        assert!(!after(&pulse, &[5; 40]), "and it ends");
    }

    /// Thousands of owners take minutes to settle, and no answer is fast meanwhile.
    #[tokio::test(start_paused = true)]
    async fn a_long_load_does_not_become_the_measure() {
        let pulse = Pulse::default();
        after(&pulse, &[2; 20]);
        for _ in 0..14 {
            tokio::time::advance(Duration::from_mins(1)).await;
            assert!(after(&pulse, &[8; 20]));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_best_long_ago_is_forgotten() {
        let pulse = Pulse::default();
        after(&pulse, &[1]);
        for _ in 0..3 {
            tokio::time::advance(WINDOW + Duration::from_secs(1)).await;
            after(&pulse, &[50; 20]);
        }
        assert!(!pulse.is_congested());
    }
}
