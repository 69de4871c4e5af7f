//! Which attempt a run is: read from its digest, never remembered.

use std::time::Duration;

use api_types::runnable::MOST_ATTEMPTS;
use serde_json::json;

use crate::values::canonical;

/// No attempt waits longer.
const LONGEST_BACKOFF: Duration = Duration::from_hours(1);

/// The digests of all attempts at one rendering.
#[derive(Clone, Debug)]
pub(super) struct Attempts {
    digests: Vec<String>,
}

impl Attempts {
    /// `rendering` is the digest of the rendered object.
    ///
    /// All attempts there can be are known, not only those that are allowed now: a Runnable whose `maxAttempts` was lowered
    /// must not take its fourth attempt for a run of other inputs, and start anew.
    pub(super) fn of(rendering: &str, rerun: Option<&str>) -> Self {
        let attempts = 1..=MOST_ATTEMPTS;
        Self {
            digests: attempts
                .map(|number| digest(rendering, rerun, number))
                .collect(),
        }
    }

    /// The digest of attempt `number`, which counts from 1.
    pub(super) fn digest(&self, number: u32) -> &str {
        let index = usize::try_from(number.clamp(1, MOST_ATTEMPTS) - 1).unwrap_or(0);
        &self.digests[index]
    }

    /// Which attempt has this digest.
    pub(super) fn number(&self, digest: &str) -> Option<u32> {
        let index = self.digests.iter().position(|known| known == digest)?;
        u32::try_from(index + 1).ok()
    }
}

/// The first attempt at a rendering that nobody asked to run again has the rendering's own digest. The token is JSON, so
/// that no text of the annotation can look like an attempt.
fn digest(rendering: &str, rerun: Option<&str>, number: u32) -> String {
    let rerun = rerun.map(|value| format!("rerun/{}", json!(value)));
    let retry = (number > 1).then(|| format!("retry/{number}"));
    let token: Vec<String> = rerun.into_iter().chain(retry).collect();
    if token.is_empty() {
        return rendering.to_owned();
    }
    let digest = canonical::digest_bytes(format!("{rendering} {}", token.join("/")).as_bytes());
    if is_marked(rendering) {
        marked(&digest)
    } else {
        digest
    }
}

/// What a digest begins with that is one under the key of the installation.
const KEYED: &str = "hmac-";

/// Marks a digest that was made under the key.
pub(super) fn marked(digest: &str) -> String {
    format!("{KEYED}{digest}")
}

/// Whether a digest was made under the key.
pub(super) fn is_marked(digest: &str) -> bool {
    digest.starts_with(KEYED)
}

/// How long after the end of attempt `number` the next one starts.
pub(super) fn backoff(first: Duration, number: u32) -> Duration {
    let doublings = number.saturating_sub(1).min(31);
    first.saturating_mul(1 << doublings).min(LONGEST_BACKOFF)
}
