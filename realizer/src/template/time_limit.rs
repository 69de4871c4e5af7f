//! How much is left of the time that a template gives something.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What is left of a limit since a time. Of a clock that was put back, nothing has passed.
pub(crate) fn left(limit: Duration, since: &Time, now: Timestamp) -> Duration {
    let passed = now.duration_since(since.0);
    limit.saturating_sub(Duration::try_from(passed).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_used_up_once_and_never_grows() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let limit = Duration::from_secs(10);
        for (now, expected) in [(100, 10), (104, 6), (110, 0), (500, 0), (50, 10)] {
            let left = left(limit, &Time(at(100)), at(now));
            assert_eq!(left, Duration::from_secs(expected), "{now}");
        }
    }
}
