//! What is worth counting. Whoever has metrics implements it.

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was answered with what was asked for.
    Answered,
    /// The registry asked who it is, or denied access.
    Denied,
    /// There is no such image or content.
    Unknown,
    /// Too many requests.
    Throttled,
    /// Any other answer that is none.
    Refused,
    /// No answer: no connection, a time-out, a broken answer.
    Failed,
}

impl Outcome {
    /// The text of a metric's label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
            Self::Throttled => "throttled",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheKind {
    /// Manifests and configurations, in memory.
    Contents,
    /// Bills of materials, on disk.
    Layers,
}

impl CacheKind {
    /// The text of a metric's label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Contents => "contents",
            Self::Layers => "layers",
        }
    }
}

/// Hears of requests and of looks into the caches. Called often, and never to wait.
pub trait Observe: Send + Sync {
    /// A request to this host (name and port). Tenants choose hosts: bound what you keep of them.
    fn request(&self, host: &str, outcome: Outcome);

    /// Something was looked for in a cache, and was there or not.
    fn looked_up(&self, cache: CacheKind, found: bool);
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observe for Unobserved {
    fn request(&self, _: &str, _: Outcome) {}

    fn looked_up(&self, _: CacheKind, _: bool) {}
}
