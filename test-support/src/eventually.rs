//! Waiting for a state, instead of sleeping.

use std::fmt::Debug;
use std::time::Duration;

use tokio::time::{Instant, sleep};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// What one look at the world says: the awaited state, or what was seen instead.
pub trait Observation {
    /// What the wait returns.
    type Value;

    /// The awaited value, or a description of what is there instead.
    ///
    /// # Errors
    ///
    /// The state is not reached; the text says what was seen.
    fn outcome(self) -> Result<Self::Value, String>;
}

impl Observation for () {
    type Value = ();

    fn outcome(self) -> Result<(), String> {
        Ok(())
    }
}

impl Observation for bool {
    type Value = ();

    fn outcome(self) -> Result<(), String> {
        if self {
            Ok(())
        } else {
            Err("false".to_owned())
        }
    }
}

impl<T> Observation for Option<T> {
    type Value = T;

    fn outcome(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".to_owned())
    }
}

/// An error is "not yet" and its text is what a timeout reports: `ensure!(ready, "status: {status:?}")` reads well.
impl<O: Observation, E: Debug> Observation for Result<O, E> {
    type Value = O::Value;

    fn outcome(self) -> Result<O::Value, String> {
        self.map_err(|error| format!("{error:?}"))?.outcome()
    }
}

/// Asks `probe` again and again until it sees the awaited state, and returns what it saw.
///
/// A probe returns `bool`, `Option<T>`, or a `Result` of these (or of `()`), where an error means "not yet".
///
/// ```
/// # use std::time::Duration;
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let mut looks = 0;
/// let seen = test_support::eventually("the third look", Duration::from_secs(5), async || {
///     looks += 1;
///     (looks == 3).then_some("here")
/// })
/// .await;
/// assert_eq!(seen, "here");
/// # });
/// ```
///
/// # Panics
///
/// When `limit` passes first. The message has `what` and what the last look saw.
pub async fn eventually<O: Observation>(
    what: &str,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> O,
) -> O::Value {
    let deadline = Instant::now() + limit;
    let mut pause = FIRST_PAUSE;
    loop {
        let seen = match probe().await.outcome() {
            Ok(value) => return value,
            Err(seen) => seen,
        };
        if Instant::now() >= deadline {
            give_up(what, limit, &seen);
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[expect(
    clippy::panic,
    reason = "a test that waits in vain has failed; this is its assertion"
)]
fn give_up(what: &str, limit: Duration, seen: &str) -> ! {
    panic!("not within {limit:?}: {what}\nlast seen: {seen}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::panic::AssertUnwindSafe;

    async fn message_of(wait: impl Future) -> String {
        match AssertUnwindSafe(wait).catch_unwind().await {
            Ok(_) => panic!("the wait ended well"),
            Err(panic) => panic.downcast_ref::<String>().unwrap().clone(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_is_returned_as_soon_as_it_is_seen() {
        let mut looks = 0;
        let value = eventually("three looks", Duration::from_secs(9), async || {
            looks += 1;
            (looks == 3).then_some(looks)
        })
        .await;
        assert_eq!(value, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_says_what_was_awaited_and_what_was_last_seen() {
        let wait = eventually("the owner is Ready", Duration::from_secs(9), async || {
            anyhow::ensure!(false, "Ready=Unknown");
            anyhow::Ok(())
        });
        let message = message_of(wait).await;
        assert!(
            message.starts_with("not within 9s: the owner is Ready\nlast seen: Ready=Unknown"),
            "{message}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_of_the_probe_is_not_yet_rather_than_the_end() {
        let mut looks = 0;
        eventually("no error", Duration::from_secs(9), async || {
            looks += 1;
            if looks < 4 {
                Err("connection refused")
            } else {
                Ok(true)
            }
        })
        .await;
        assert_eq!(looks, 4);
    }
}
