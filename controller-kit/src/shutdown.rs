//! Stopping in order: a signal cancels one token, and work ends; then all tasks are joined, which cancels a second token for
//! those that work may still need, and a deadline bounds the wait.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info};

/// Why the process did not end as it should.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ShutdownError {
    /// A background task panicked; the process must be restarted.
    #[error("a background task panicked: {0}")]
    Panicked(String),
    /// Tasks were still running at the deadline.
    #[error("still running after {} s: {}", .deadline.as_secs(), .tasks.join(", "))]
    Unfinished {
        /// How long it was waited for them.
        deadline: Duration,
        /// Their names.
        tasks: Vec<&'static str>,
    },
}

/// The background tasks of the process: the only way to start one, so that none is forgotten at the end.
#[derive(Clone, Default)]
pub struct Tasks {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    token: CancellationToken,
    ending: CancellationToken,
    tracker: TaskTracker,
    alive: Mutex<BTreeMap<&'static str, usize>>,
    first_panic: Mutex<Option<String>>,
}

impl Tasks {
    /// No tasks yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when the process is to stop.
    pub fn token(&self) -> &CancellationToken {
        &self.inner.token
    }

    /// Cancelled when the tasks are joined: nothing is under way any more that could need a task.
    pub fn ending(&self) -> &CancellationToken {
        &self.inner.ending
    }

    /// Starts a task. It must end soon after [`Self::token`] is cancelled, or [`Self::ending`] where work needs it. If it panics, the whole
    /// process stops: a controller whose watch is gone does nothing and says nothing.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let inner = self.inner.clone();
        *inner.alive.lock().entry(name).or_default() += 1;
        let watched = async move {
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                inner.report(name, crate::scheduler::panic_text(&*panic));
            }
            inner.ended(name);
        };
        self.inner.tracker.spawn(watched);
    }

    /// Starts a task that is dropped, wherever it is, when [`Self::token`] is cancelled.
    pub fn spawn_until_stopped(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let token = self.token().clone();
        let task = async move {
            let _ = token.run_until_cancelled(task).await;
        };
        self.spawn(name, task);
    }

    /// Waits for all tasks, at most `deadline`; call it after cancelling the token, when work has returned.
    ///
    /// # Errors
    /// If a task panicked or does not end: infrastructure, the process is to exit with a failure.
    pub async fn join(&self, deadline: Duration) -> Result<(), ShutdownError> {
        self.inner.ending.cancel();
        self.inner.tracker.close();
        if tokio::time::timeout(deadline, self.inner.tracker.wait())
            .await
            .is_err()
        {
            let tasks = self.inner.alive.lock().keys().copied().collect();
            return Err(ShutdownError::Unfinished { deadline, tasks });
        }
        match self.inner.first_panic.lock().take() {
            Some(panic) => Err(ShutdownError::Panicked(panic)),
            None => Ok(()),
        }
    }

    /// Cancels the token at SIGTERM or SIGINT, or returns when something else has cancelled it.
    ///
    /// # Errors
    /// When the signal handlers cannot be installed.
    pub(crate) async fn stop_on_signal(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            () = self.inner.token.cancelled() => return Ok(()),
        };
        info!(signal = name, "stopping");
        self.inner.token.cancel();
        Ok(())
    }
}

impl Inner {
    fn report(&self, name: &'static str, panic: &str) {
        error!(task = name, panic, "a background task panicked; stopping");
        let text = || format!("{name}: {panic}");
        self.first_panic.lock().get_or_insert_with(text);
        self.token.cancel();
    }

    fn ended(&self, name: &'static str) {
        let mut alive = self.alive.lock();
        if let Some(count) = alive.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                alive.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_tasks_are_joined_after_the_token_is_cancelled() {
        let tasks = Tasks::new();
        for _ in 0..3 {
            let token = tasks.token().clone();
            tasks.spawn("waiter", async move { token.cancelled().await });
        }
        tasks.token().cancel();
        assert_eq!(tasks.join(Duration::from_secs(5)).await, Ok(()));
        assert!(tasks.inner.alive.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_does_not_end_is_named_at_the_deadline() {
        let tasks = Tasks::new();
        tasks.spawn("stuck", std::future::pending());
        tasks.spawn("quick", async {});
        tasks.token().cancel();
        let error = tasks.join(Duration::from_secs(7)).await.unwrap_err();
        assert_eq!(error.to_string(), "still running after 7 s: stuck");
    }

    #[tokio::test]
    async fn a_panicking_task_stops_the_process_and_is_named() {
        let tasks = Tasks::new();
        tasks.spawn("watch", async { panic!("poisoned") });
        tasks.token().cancelled().await;
        let error = tasks.join(Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(error, ShutdownError::Panicked("watch: poisoned".into()));
    }

    #[tokio::test]
    async fn waiting_for_signals_ends_when_something_else_stops_the_process() {
        let tasks = Tasks::new();
        tasks.token().cancel();
        tasks.stop_on_signal().await.unwrap();
    }
}
