//! What is counted of service accounts' tokens.

use super::define::{labels, metrics};
use super::{Metrics, count};

labels! {
    /// How a request for a service account's token ended.
    pub enum TokenOutcome {
        /// A token was issued.
        Issued = "issued",
        /// Refused or unreachable, and no valid token is left.
        Failed = "failed",
        /// Refused or unreachable, and the token in use is still valid.
        KeptOld = "kept_old",
    }
}

labels! {
    /// What a look for a token came to.
    pub(crate) enum TokenLookup {
        /// One is held that is good for a while.
        Hit = "hit",
        /// One is held that is about to be replaced.
        Refresh = "refresh",
        /// None is held that is valid.
        Miss = "miss",
    }
}

metrics! {
    pub(super) struct Tokens {
        /// Requests for service account tokens.
        requests:
            counters_from_zero("carto_token_requests_total", "outcome", TokenOutcome::words()),
        /// Looks for a token in the cache: hit, refresh (there, and due to be replaced), miss.
        lookups:
            counters_from_zero("carto_token_lookups_total", "outcome", TokenLookup::words()),
        /// Service accounts whose tokens are held.
        held: gauge("carto_tokens"),
    }
}

impl Metrics {
    /// A token was requested.
    pub(crate) fn token_request(&self, outcome: TokenOutcome) {
        let requests = &self.tokens.requests;
        requests.with_label_values(&[outcome.as_str()]).inc();
    }

    /// A token was looked for.
    pub(crate) fn token_lookup(&self, outcome: TokenLookup) {
        let lookups = &self.tokens.lookups;
        lookups.with_label_values(&[outcome.as_str()]).inc();
    }

    /// So many accounts have a token here.
    pub(crate) fn tokens(&self, accounts: usize) {
        self.tokens.held.set(count(accounts));
    }
}
