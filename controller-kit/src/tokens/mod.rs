//! Bearer tokens of owners' service accounts, by TokenRequest
//! (docs/behaviour/service-accounts.md#token).
//!
//! A token is asked for when a write is due and none is at hand. After half its life it is replaced; if
//! that fails, the old one stays in use while it is valid. However many owners share an account, one
//! request is under way for it at a time, and its outcome serves all who waited for it.

mod issued;
mod request;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tracing::warn;

use crate::metrics::{Metrics, TokenLookup, TokenOutcome};
use crate::object_key::ObjectKey;
use issued::Issued;
pub use request::{Refusal, RefusalKind};

/// Lifetime that is asked for: what leaks is of no use after that. `deploy/optional/token-policy.yaml` allows no longer one.
const REQUESTED_SECONDS: i64 = 1200;
/// Requests under way at once, over all accounts.
const CONCURRENCY: usize = 8;
/// After a failed refresh, how long the old token is used before the next try.
const REFRESH_PAUSE: SignedDuration = SignedDuration::from_secs(30);
/// How often entries of expired tokens are looked for.
const SWEEP: SignedDuration = SignedDuration::from_hours(24);

/// A service account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Account {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// uid: an account that was deleted and made again is another one.
    pub uid: String,
}

impl Account {
    /// The account with this uid at this place.
    pub(crate) fn new(key: &ObjectKey, uid: &str) -> Self {
        Self {
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            uid: uid.to_owned(),
        }
    }

    /// Where it is.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}/{:?}", self.name, self.namespace, self.uid)
    }
}

/// A bearer token. Its text shows in no log: [`Token::expose`] is the only way to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<str>);

impl Token {
    /// The text, for the Authorization header and nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(<redacted>)")
    }
}

/// Why there is no token. `Display` is the message that users find in conditions.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TokenError {
    /// None was issued yet.
    #[error("fetch token: {0}")]
    Fetch(Refusal),
    /// The one we had has expired.
    #[error("token {account} expired and refresh failed: {refusal}")]
    Expired {
        /// Whose.
        account: Account,
        /// Why there is no new one.
        refusal: Refusal,
    },
}

impl TokenError {
    fn refusal(&self) -> &Refusal {
        match self {
            Self::Fetch(refusal) | Self::Expired { refusal, .. } => refusal,
        }
    }

    /// What the API server had against it.
    pub fn kind(&self) -> RefusalKind {
        self.refusal().kind
    }

    /// How long the API server asked to be left alone.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.refusal().retry_after
    }
}

/// What comes from outside.
#[derive(Clone)]
pub struct TokenSources {
    /// Time of day.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Randomness in 0.0..1.0.
    pub jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
}

/// Tokens by account.
pub struct TokenCache {
    client: kube::Client,
    sources: TokenSources,
    metrics: Arc<Metrics>,
    requests: Semaphore,
    accounts: Mutex<Accounts>,
}

struct Accounts {
    slots: HashMap<Account, Arc<Slot>>,
    next_sweep: Timestamp,
}

#[derive(Default)]
struct Slot {
    issued: Mutex<Option<Issued>>,
    /// Held while a request is under way; inside is how the last one ended.
    flight: AsyncMutex<Option<Refusal>>,
    flights: AtomicU64,
}

impl TokenCache {
    /// An empty cache; requests are sent with `client`'s identity.
    pub fn new(client: kube::Client, sources: TokenSources, metrics: Arc<Metrics>) -> Self {
        let next_sweep = (sources.clock)()
            .saturating_add(SWEEP)
            .unwrap_or(Timestamp::MAX);
        let accounts = Mutex::new(Accounts {
            slots: HashMap::new(),
            next_sweep,
        });
        Self {
            client,
            sources,
            metrics,
            requests: Semaphore::new(CONCURRENCY),
            accounts,
        }
    }

    /// A valid token of the account.
    ///
    /// # Errors
    /// The API server issues none. [`RefusalKind`] tells who must act: a missing account or a missing
    /// right is for the user or the operator, everything else passes by itself.
    pub async fn token(&self, account: &Account) -> Result<Token, TokenError> {
        let slot = self.slot(account);
        let now = (self.sources.clock)();
        let held = slot.issued.lock().clone();
        match held {
            Some(issued) if issued.is_fresh(now) => {
                self.metrics.token_lookup(TokenLookup::Hit);
                Ok(issued.token)
            }
            Some(issued) if issued.is_valid(now) => {
                self.metrics.token_lookup(TokenLookup::Refresh);
                Ok(self.refresh(account, &slot, issued).await)
            }
            held => {
                self.metrics.token_lookup(TokenLookup::Miss);
                self.fetch(account, &slot, held.is_some()).await
            }
        }
    }

    /// Drops the tokens of accounts in other namespaces.
    pub(crate) fn keep_only(&self, is_kept: impl Fn(&str) -> bool) {
        let slots = &mut self.accounts.lock().slots;
        slots.retain(|account, _| is_kept(&account.namespace));
    }

    /// Drops the token of an account that is gone.
    pub fn invalidate(&self, account: &Account) {
        self.accounts.lock().slots.remove(account);
    }

    /// Drops this token: the API server no longer takes it. One that was fetched meanwhile stays: where many used the old
    /// one, each is told of it by its own refusal, and the first of them has fetched the next.
    pub fn refused(&self, account: &Account, token: &Token) {
        let slot = self.accounts.lock().slots.get(account).cloned();
        if let Some(slot) = slot {
            slot.issued.lock().take_if(|issued| issued.token == *token);
        }
    }

    /// Replaces a token that is still valid. Who finds a refresh under way does not wait for it.
    async fn refresh(&self, account: &Account, slot: &Slot, old: Issued) -> Token {
        let Ok(mut flight) = slot.flight.try_lock() else {
            return old.token;
        };
        match self.request(account, slot).await {
            Ok(token) => {
                *flight = None;
                token
            }
            Err(refusal) => {
                warn!(account = %account, error = %refusal, "token not refreshed; the old one stays in use");
                self.metrics.token_request(TokenOutcome::KeptOld);
                let token = old.token.clone();
                let now = (self.sources.clock)();
                // Refused meanwhile, it is of no use any more.
                if let Some(issued) = &mut *slot.issued.lock() {
                    *issued = old.postponed(now, REFRESH_PAUSE);
                }
                *flight = Some(refusal);
                token
            }
        }
    }

    async fn fetch(
        &self,
        account: &Account,
        slot: &Slot,
        expired: bool,
    ) -> Result<Token, TokenError> {
        let flights = slot.flights.load(Ordering::Acquire);
        let mut flight = slot.flight.lock().await;
        if slot.flights.load(Ordering::Acquire) != flights {
            // One that was under way has ended: its outcome is ours. Without this, a hundred owners of an
            // account that cannot get a token would ask for it a hundred times, one after the other.
            let now = (self.sources.clock)();
            if let Some(issued) = slot
                .issued
                .lock()
                .clone()
                .filter(|issued| issued.is_valid(now))
            {
                return Ok(issued.token);
            }
            if let Some(refusal) = flight.clone() {
                return Err(failure(account, refusal, expired));
            }
        }
        match self.request(account, slot).await {
            Ok(token) => {
                *flight = None;
                Ok(token)
            }
            Err(refusal) => {
                self.metrics.token_request(TokenOutcome::Failed);
                *flight = Some(refusal.clone());
                Err(failure(account, refusal, expired))
            }
        }
    }

    /// Sends the request and keeps the token. The caller holds the slot's flight.
    async fn request(&self, account: &Account, slot: &Slot) -> Result<Token, Refusal> {
        let ended = CountFlight(&slot.flights);
        // The semaphore is never closed.
        let _permit = self.requests.acquire().await;
        let reply = request::send(&self.client, account, REQUESTED_SECONDS).await?;
        self.metrics.token_request(TokenOutcome::Issued);
        let issued = Issued::new(reply, (self.sources.jitter)());
        let token = issued.token.clone();
        *slot.issued.lock() = Some(issued);
        drop(ended);
        Ok(token)
    }

    fn slot(&self, account: &Account) -> Arc<Slot> {
        let mut accounts = self.accounts.lock();
        let now = (self.sources.clock)();
        if now >= accounts.next_sweep {
            accounts.next_sweep = now.saturating_add(SWEEP).unwrap_or(Timestamp::MAX);
            accounts
                .slots
                .retain(|held, slot| held == account || !slot.is_spent(now));
        }
        if let Some(slot) = accounts.slots.get(account) {
            return slot.clone();
        }
        accounts.slots.entry(account.clone()).or_default().clone()
    }

    /// Accounts whose tokens are held, or were asked for last.
    pub(crate) fn len(&self) -> usize {
        self.accounts.lock().slots.len()
    }
}

impl Slot {
    /// Whether nothing in it is of use: no valid token, and no request under way.
    fn is_spent(&self, now: Timestamp) -> bool {
        let idle = self.flight.try_lock().is_ok();
        idle && self
            .issued
            .lock()
            .as_ref()
            .is_none_or(|issued| !issued.is_valid(now))
    }
}

/// Counts a request as ended, also when it was cancelled: whoever waits then sends its own.
struct CountFlight<'a>(&'a AtomicU64);

impl Drop for CountFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

fn failure(account: &Account, refusal: Refusal, expired: bool) -> TokenError {
    if expired {
        TokenError::Expired {
            account: account.clone(),
            refusal,
        }
    } else {
        TokenError::Fetch(refusal)
    }
}
