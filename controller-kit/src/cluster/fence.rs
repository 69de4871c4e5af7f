//! Until when this process may write: as long as no other works in its place.
//!
//! Who shares the owners stops when its Lease is late. A process that was frozen meanwhile goes on wherever it was: its next
//! write may come before it has noticed. So each write looks at the clock itself.

use parking_lot::RwLock;
use tokio::time::Instant;

use super::RequestError;

/// Until when anything may be written; without a word for ever.
#[derive(Debug, Default)]
pub struct Fence(RwLock<Until>);

#[derive(Debug, Default, Clone, Copy)]
enum Until {
    #[default]
    Always,
    Never,
    Then(Instant),
}

impl Fence {
    /// Nothing may be written.
    pub fn close(&self) {
        *self.0.write() = Until::Never;
    }

    /// Everything may be written until then.
    pub fn close_at(&self, then: Instant) {
        *self.0.write() = Until::Then(then);
    }

    /// # Errors
    /// Nothing may be written any more; it passes by itself when the Lease is renewed.
    pub fn check(&self) -> Result<(), RequestError> {
        let until = *self.0.read();
        match until {
            Until::Always => Ok(()),
            Until::Then(then) if Instant::now() < then => Ok(()),
            Until::Never | Until::Then(_) => Err(RequestError::Transport(
                "not sent: the Lease was not renewed in time, and another replica may work on this owner".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_the_deadline_is_not_sent_though_nobody_has_noticed_it() {
        let fence = Fence::default();
        assert!(fence.check().is_ok(), "who leads alone has no fence");
        fence.close_at(Instant::now() + Duration::from_secs(6));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(fence.check().is_ok());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(fence.check().is_err_and(|error| error.passes_by_itself()));
        fence.close_at(Instant::now() + Duration::from_secs(6));
        fence.close();
        assert!(fence.check().is_err());
    }
}
