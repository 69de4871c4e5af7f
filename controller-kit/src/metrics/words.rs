//! The words that labels consist of.

/// How an event for `kubectl describe` ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventOutcome {
    /// Sent as a new object.
    Created,
    /// Counted up on an object sent before.
    Counted,
    /// Told in another one of its owner, while many wait.
    Joined,
    /// Left out: the queue was full.
    QueueFull,
    /// Left out: its owner sends too many.
    RateLimited,
    /// The API server did not take it.
    Failed,
    /// Left out: the process ended before.
    Shutdown,
}

impl EventOutcome {
    pub(super) const ALL: [Self; 7] = [
        Self::Created,
        Self::Counted,
        Self::Joined,
        Self::QueueFull,
        Self::RateLimited,
        Self::Failed,
        Self::Shutdown,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Counted => "counted",
            Self::Joined => "joined",
            Self::QueueFull => "queue_full",
            Self::RateLimited => "rate_limited",
            Self::Failed => "failed",
            Self::Shutdown => "shutdown",
        }
    }
}

/// How a request for a service account's token ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenOutcome {
    /// A token was issued.
    Issued,
    /// Refused or unreachable, and no valid token is left.
    Failed,
    /// Refused or unreachable, and the token in use is still valid.
    KeptOld,
}

impl TokenOutcome {
    pub(super) const ALL: [Self; 3] = [Self::Issued, Self::Failed, Self::KeptOld];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Issued => "issued",
            Self::Failed => "failed",
            Self::KeptOld => "kept_old",
        }
    }
}

/// What a look for a token came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TokenLookup {
    /// One is held that is good for a while.
    Hit,
    /// One is held that is about to be replaced.
    Refresh,
    /// None is held that is valid.
    Miss,
}

impl TokenLookup {
    pub(super) const ALL: [Self; 3] = [Self::Hit, Self::Refresh, Self::Miss];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Refresh => "refresh",
            Self::Miss => "miss",
        }
    }
}

/// What the webhook said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WebhookOutcome {
    /// Admitted.
    Allowed,
    /// Denied.
    Denied,
    /// The request was no admission review.
    BadRequest,
}

impl WebhookOutcome {
    pub(super) const ALL: [Self; 3] = [Self::Allowed, Self::Denied, Self::BadRequest];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::BadRequest => "bad_request",
        }
    }
}
