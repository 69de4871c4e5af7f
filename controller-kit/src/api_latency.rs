//! How long the API server takes to answer writes of our status now, and how long it takes at its best.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Weight of the last answer in the average.
const WEIGHT: f64 = 0.1;
/// How long the best answers count: two of these at the most, as the way to the server may become longer. Long enough for
/// thousands of owners to settle: what is best under load is not the server's best.
const WINDOW: Duration = Duration::from_mins(15);
/// An average of so many times the best answers means that requests wait for one another.
const CONGESTED: f64 = 2.5;
/// So many answers were as good as the measure or better: one that was quick by chance is no measure.
const BEST: usize = 5;
/// An answer counts for no more than so many times the measure: a stall (a disk that syncs, a server that collects its
/// garbage) is one slow answer, not twenty.
const LONGEST: f64 = 8.0;

/// The answers of an API server, measured. Only of requests that did what they should: a refusal, and a connection that
/// nobody answers, are quick for other reasons.
#[derive(Debug, Default)]
pub(crate) struct ApiLatency {
    answers: Mutex<Answers>,
}

/// How long answers take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Latency {
    /// Lately, in seconds; 0 where nothing is known.
    pub(crate) average: f64,
    /// At its best, in seconds; 0 where nothing is known.
    pub(crate) best: f64,
    /// Whether requests wait for one another at the server.
    pub(crate) is_congested: bool,
}

#[derive(Debug, Default)]
struct Answers {
    /// Seconds.
    average: Option<f64>,
    /// The best of this window and of the one before, in seconds, best first.
    best: [Vec<f64>; 2],
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
            self.best = [
                Vec::with_capacity(BEST + 1),
                std::mem::take(&mut self.best[0]),
            ];
        }
        let best = &mut self.best[0];
        let place = best.partition_point(|other| *other <= seconds);
        best.insert(place, seconds);
        best.truncate(BEST);
        let counted = self
            .measure()
            .map_or(seconds, |best| seconds.min(best * LONGEST));
        let average = self
            .average
            .map_or(counted, |before| before * (1.0 - WEIGHT) + counted * WEIGHT);
        self.average = Some(average);
    }

    /// The worst of the best answers, once there are enough.
    fn measure(&self) -> Option<f64> {
        let of = |best: &Vec<f64>| best.get(BEST - 1).copied();
        self.best.iter().filter_map(of).reduce(f64::min)
    }

    fn latency(&self) -> Latency {
        let (average, best) = (self.average.unwrap_or(0.0), self.measure());
        Latency {
            average,
            best: best.unwrap_or(0.0),
            is_congested: best.is_some_and(|best| average > best * CONGESTED),
        }
    }
}

impl ApiLatency {
    /// One write of a status was answered, and done.
    pub(crate) fn record(&self, took: Duration, now: Instant) {
        self.answers.lock().record(took, now);
    }

    /// How long answers take now.
    pub(crate) fn latency(&self) -> Latency {
        self.answers.lock().latency()
    }

    /// Whether requests wait for one another at the server.
    pub(crate) fn is_congested(&self) -> bool {
        self.latency().is_congested
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(api_latency: &ApiLatency, millis: &[u64]) -> bool {
        for took in millis {
            api_latency.record(Duration::from_millis(*took), Instant::now());
        }
        api_latency.is_congested()
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_way_is_no_congestion() {
        let api_latency = ApiLatency::default();
        assert!(!api_latency.is_congested(), "nothing is known");
        assert!(!after(&api_latency, &[100; 50]));
        assert!(!after(&api_latency, &[200; 50]));
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_take_many_times_the_best_are() {
        let api_latency = ApiLatency::default();
        assert!(!after(&api_latency, &[5, 4, 6, 5, 5]));
        assert!(!after(&api_latency, &[400]), "one slow answer is none");
        assert!(after(&api_latency, &[40; 20]));
        assert!(!after(&api_latency, &[5; 40]), "and it ends");
    }

    /// Thousands of owners take minutes to settle, and no answer is fast meanwhile.
    #[tokio::test(start_paused = true)]
    async fn a_long_load_does_not_become_the_measure() {
        let api_latency = ApiLatency::default();
        after(&api_latency, &[2; 20]);
        for _ in 0..14 {
            tokio::time::advance(Duration::from_mins(1)).await;
            assert!(after(&api_latency, &[8; 20]));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_best_long_ago_is_forgotten() {
        let api_latency = ApiLatency::default();
        after(&api_latency, &[1; 5]);
        for _ in 0..3 {
            tokio::time::advance(WINDOW + Duration::from_secs(1)).await;
            after(&api_latency, &[50; 20]);
        }
        assert!(!api_latency.is_congested());
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_quick_answers_are_no_measure() {
        let api_latency = ApiLatency::default();
        assert!(!after(&api_latency, &[1, 1, 1, 1]));
        assert!(!after(&api_latency, &[20; 50]), "four of fifty");
    }

    /// A disk that syncs: each tenth answer takes ten times as long as the others.
    #[tokio::test(start_paused = true)]
    async fn stalls_are_no_congestion() {
        let api_latency = ApiLatency::default();
        for round in 0..200 {
            let congested = after(&api_latency, &[4, 5, 4, 6, 4, 5, 4, 5, 4, 50]);
            assert!(!congested, "in round {round}: {:?}", api_latency.latency());
        }
    }
}
