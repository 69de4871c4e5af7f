//! A token and when it is to be replaced.

use jiff::{SignedDuration, Timestamp};

use super::Token;
use super::request::Reply;

/// Accounts that were used at the same moment are not refreshed at the same moment.
const JITTER_SECONDS: f64 = 10.0;

#[derive(Clone)]
pub(super) struct Issued {
    pub(super) token: Token,
    refresh: Timestamp,
    expiry: Timestamp,
}

impl Issued {
    /// Replaced after half of its life. The server may grant less time than was asked for.
    pub(super) fn new(reply: Reply, jitter: f64) -> Self {
        let half = SignedDuration::from_secs(reply.lifetime_seconds / 2);
        let jitter = SignedDuration::try_from_secs_f64(jitter.clamp(0.0, 1.0) * JITTER_SECONDS)
            .unwrap_or(SignedDuration::ZERO);
        let refresh = reply
            .expiry
            .saturating_sub(half)
            .and_then(|half_life| half_life.saturating_sub(jitter))
            .unwrap_or(reply.expiry);
        Self {
            token: Token(reply.token.into()),
            refresh,
            expiry: reply.expiry,
        }
    }

    pub(super) fn is_fresh(&self, now: Timestamp) -> bool {
        now < self.refresh
    }

    pub(super) fn is_valid(&self, now: Timestamp) -> bool {
        now < self.expiry
    }

    /// The same token, to be replaced after `pause`.
    pub(super) fn postponed(self, now: Timestamp, pause: SignedDuration) -> Self {
        Self {
            refresh: now
                .saturating_add(pause)
                .unwrap_or(self.expiry)
                .min(self.expiry),
            ..self
        }
    }
}
