//! How fast events leave: they tell people what happened, and must not slow down what happens.
//!
//! A thousand owners settling at once make fifteen thousand events. Sent at full speed they take the API
//! server's time from the objects themselves, so after a burst they trickle.
//!
//! The slower the API server answers, the fewer: on average no more than one request is under way. Where
//! 55 a second were sent to a server that took 60 ms for each, a thousand owners settled a quarter later.

use std::time::Duration;

use tokio::time::Instant;

/// One request counts as no more than this. One that hangs must not hold up those of other namespaces.
const LONGEST: Duration = Duration::from_millis(250);

pub(super) struct Pace {
    interval: Duration,
    burst: u32,
    /// When the allowance would be empty if one were taken for each interval since then.
    spent_until: Instant,
}

impl Pace {
    pub(super) fn new(per_second: u32, burst: u32, now: Instant) -> Self {
        Self {
            interval: Duration::from_secs(1) / per_second.max(1),
            burst: burst.max(1),
            spent_until: now,
        }
    }

    /// Takes one; how long to wait before it may be used.
    pub(super) fn take(&mut self, now: Instant) -> Duration {
        self.spent_until = self.spent_until.max(now) + self.interval;
        let allowed = now + self.interval * self.burst;
        self.spent_until.saturating_duration_since(allowed)
    }

    /// What was taken kept the API server busy for so long.
    pub(super) fn took(&mut self, duration: Duration) {
        self.spent_until += duration.min(LONGEST).saturating_sub(self.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_trickles() {
        let now = Instant::now();
        let mut pace = Pace::new(10, 3, now);
        let waits: Vec<u128> = (0..6).map(|_| pace.take(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
    }

    #[test]
    fn a_server_that_takes_long_for_each_gets_fewer() {
        let now = Instant::now();
        let mut pace = Pace::new(10, 1, now);
        let mut waits = Vec::new();
        for took in [40, 150, 60_000, 0] {
            waits.push(pace.take(now).as_millis());
            pace.took(Duration::from_millis(took));
        }
        waits.push(pace.take(now).as_millis());
        assert_eq!(waits, [0, 100, 250, 500, 600]);
    }

    #[test]
    fn the_burst_comes_back_with_time() {
        let now = Instant::now();
        let mut pace = Pace::new(10, 2, now);
        for _ in 0..2 {
            pace.take(now);
        }
        assert_eq!(pace.take(now + Duration::from_secs(5)), Duration::ZERO);
    }
}
