//! When something is tried again.

use std::time::Duration;

use crate::error::Cause;
use crate::settings::Settings;

/// A try that failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It would fail again.
    Final(Cause),
    /// It may be over soon; the registry may have said when.
    Passing(Cause, Option<Duration>),
}

/// The tries of one request.
pub(crate) struct Tries {
    left: u32,
    delay: Duration,
}

impl Tries {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            left: settings.tries.max(1),
            delay: settings.first_delay,
        }
    }

    /// The one try of somebody else who can be asked instead.
    pub(crate) fn once() -> Self {
        Self {
            left: 1,
            delay: Duration::ZERO,
        }
    }

    /// Waits until it is time for another try.
    ///
    /// # Errors
    ///
    /// If there is none left, or if trying again is of no use.
    pub(crate) async fn after(&mut self, trouble: Trouble) -> Result<(), Cause> {
        let (cause, asked) = match trouble {
            Trouble::Final(cause) => return Err(cause),
            Trouble::Passing(cause, asked) => (cause, asked),
        };
        self.left -= 1;
        if self.left == 0 {
            return Err(cause);
        }
        let jitter = 0.75 + 0.5 * fastrand::f64();
        let delay = asked.unwrap_or_default().max(self.delay.mul_f64(jitter));
        if delay > MOST {
            return Err(cause);
        }
        tokio::time::sleep(delay).await;
        self.delay = self.delay.saturating_mul(2);
        Ok(())
    }
}

/// Who asks to wait longer is told to whoever schedules the next look.
const MOST: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests;
