//! When a webhook is asked once more. It may be: by contract its answer does not depend on how often.

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

use crate::error::CallError;

/// How often it is asked if there is trouble on the way.
const CONNECTION_TRIES: u32 = 5;
/// How often it is asked if it wants to be asked again.
const STATUS_TRIES: u32 = 10;
/// How long it is waited after the first try; twice as long after each other one.
const FIRST: Duration = Duration::from_millis(100);
/// How long it is waited at most, if the webhook does not say it.
const LONGEST: Duration = Duration::from_secs(1);

/// How long it is waited after so many tries, of which the last one ended so. Nothing if another one
/// is of no use, or would begin when there is no time left.
pub(crate) fn wait(
    error: &CallError,
    tries: u32,
    left: Duration,
    jitter: impl Fn() -> f64,
) -> Option<Duration> {
    let doubled = FIRST.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1)));
    let spread = doubled
        .min(LONGEST)
        .mul_f64(0.5 + 0.5 * jitter().clamp(0.0, 1.0));
    let wait = match error {
        CallError::Connection { .. } if tries < CONNECTION_TRIES => spread,
        CallError::Status { retry_after, .. } if tries < STATUS_TRIES => {
            // A little later than it said: others were told the same.
            (*retry_after)?.saturating_add(spread)
        }
        _ => return None,
    };
    (wait < left).then_some(wait)
}

/// When a status wants the request to be sent again. Only 429 and those of a fault of the server may
/// say it.
pub(crate) fn after(status: http::StatusCode, headers: &HeaderMap) -> Option<Duration> {
    if status.as_u16() != 429 && !status.is_server_error() {
        return None;
    }
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    // A time is one of the server's clock, which it tells as well.
    let until = httpdate::parse_http_date(text).ok()?;
    let now = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, StatusCode};

    use super::*;

    fn said(code: u16, headers: &[(http::HeaderName, &'static str)]) -> Option<Duration> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect();
        after(StatusCode::from_u16(code).unwrap(), &headers)
    }

    #[test]
    fn a_server_says_when_it_wants_to_be_asked_again() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(said(429, &[(RETRY_AFTER, "3")]), seconds(3));
        assert_eq!(said(503, &[(RETRY_AFTER, " 0 ")]), seconds(0));
        let until = (RETRY_AFTER, "Sun, 06 Nov 1994 08:49:37 GMT");
        let now = (DATE, "Sun, 06 Nov 1994 08:49:30 GMT");
        assert_eq!(said(503, &[until.clone(), now]), seconds(7));
        let later = (DATE, "Sun, 06 Nov 1994 09:49:30 GMT");
        assert_eq!(said(503, &[until.clone(), later]), seconds(0));
    }

    #[test]
    fn nothing_else_says_it() {
        let later = (RETRY_AFTER, "3");
        assert_eq!(said(400, std::slice::from_ref(&later)), None);
        assert_eq!(said(302, std::slice::from_ref(&later)), None);
        assert_eq!(said(503, &[]), None);
        for text in [
            "-1",
            "soon",
            "",
            "1.5",
            "99999999999999999999",
            "Sun, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(said(503, &[(RETRY_AFTER, text)]), None, "{text}");
        }
    }

    #[test]
    fn waits_grow_are_spread_and_end_within_the_budget() {
        let refused = CallError::connection("https://a", "refused");
        let budget = Duration::from_secs(30);
        let waits = |jitter: f64| -> Vec<u128> {
            let waits = (1..10).map_while(|tries| wait(&refused, tries, budget, || jitter));
            waits.map(|wait| wait.as_millis()).collect()
        };
        assert_eq!(waits(1.0), [100, 200, 400, 800]);
        assert_eq!(waits(0.0), [50, 100, 200, 400]);
        assert_eq!(wait(&refused, 1, Duration::from_millis(60), || 1.0), None);
        assert_eq!(
            wait(&CallError::answer("https://a", "x"), 1, budget, || 1.0),
            None
        );
    }

    #[test]
    fn a_status_is_asked_again_as_it_says_or_not_at_all() {
        let busy = |retry_after| CallError::Status {
            url: "https://a".to_owned(),
            code: 503,
            said: String::new(),
            retry_after,
        };
        let budget = Duration::from_secs(30);
        let second = Some(Duration::from_secs(1));
        assert_eq!(
            wait(&busy(second), 1, budget, || 1.0),
            Some(Duration::from_millis(1100))
        );
        assert_eq!(wait(&busy(None), 1, budget, || 1.0), None);
        assert_eq!(
            wait(&busy(Some(Duration::from_secs(30))), 1, budget, || 1.0),
            None
        );
        assert_eq!(wait(&busy(Some(Duration::MAX)), 1, budget, || 1.0), None);
        assert_eq!(
            wait(&busy(Some(Duration::ZERO)), STATUS_TRIES, budget, || 1.0),
            None
        );
        assert!(wait(&busy(Some(Duration::ZERO)), 1, budget, || 0.0) > Some(Duration::ZERO));
    }
}
