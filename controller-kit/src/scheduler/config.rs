//! How a queue is set up.

use std::sync::Arc;
use std::time::Duration;

/// How much runs at once, and how long failures wait.
#[derive(Clone)]
pub struct SchedulerConfig {
    /// Owners under way at once, retries aside. 0 counts as 1.
    pub concurrency: usize,
    /// Retries under way at once, beside `concurrency`. 0 counts as 1.
    pub retry_concurrency: usize,
    /// The least time between the end of a run and the next run of the same owner that a wake without
    /// delay causes. The first wake after a rest is not delayed at all.
    pub debounce: Duration,
    /// The same for wakes in [`Lane::Progress`](super::Lane::Progress); never more than `debounce`.
    pub progress_debounce: Duration,
    /// The wait after the first failure.
    pub backoff_min: Duration,
    /// The longest wait after failures.
    pub backoff_max: Duration,
    /// The longest wait of [`Next::Slow`](super::Next::Slow).
    pub slow: Duration,
    /// Whether requests wait for one another at the API server: then large namespaces step back for small ones.
    pub congested: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Randomness in 0.0..1.0, taken once per wait so that owners which failed together come back apart.
    pub jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            concurrency: 16,
            retry_concurrency: 4,
            debounce: Duration::from_millis(10),
            progress_debounce: Duration::from_millis(1),
            backoff_min: Duration::from_millis(500),
            backoff_max: Duration::from_mins(5),
            slow: Duration::from_secs(55),
            congested: Arc::new(|| false),
            jitter: Arc::new(crate::jitter::random),
        }
    }
}
