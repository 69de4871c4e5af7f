//! The loop that reconciles what the queue hands out.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::{Next, OwnerKey, Scheduler, Work};

/// Reconciles until `shutdown`, then waits for what is under way. A reconcile that panics is logged,
/// counted and retried with back-off: one poisoned owner must not stop the others
/// (incident: kubernetes-sigs/kro#886).
pub async fn run<F, R>(scheduler: Arc<Scheduler>, shutdown: CancellationToken, reconcile: F)
where
    F: Fn(OwnerKey) -> R,
    R: Future<Output = Next> + Send + 'static,
{
    // The scheduler bounds how many there are.
    let mut under_way = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(_) = under_way.join_next() => {}
            work = scheduler.next() => {
                // Called inside the guard: the closure itself may panic, too.
                let key = work.key().clone();
                match std::panic::catch_unwind(AssertUnwindSafe(|| reconcile(key))) {
                    Ok(reconciling) => {
                        under_way.spawn(finish(work, reconciling));
                    }
                    Err(panic) => report(&work, &*panic),
                }
            }
        }
    }
    while under_way.join_next().await.is_some() {}
}

async fn finish(work: Work, reconciling: impl Future<Output = Next>) {
    match AssertUnwindSafe(reconciling).catch_unwind().await {
        Ok(outcome) => work.finish(outcome),
        Err(panic) => report(&work, &*panic),
    }
}

fn report(work: &Work, panic: &(dyn Any + Send)) {
    if let Some(metrics) = work.shared.metrics.get() {
        metrics.reconcile_panicked();
    }
    error!(owner = %work.key(), panic = panic_text(panic), "reconcile panicked; retrying with back-off");
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "(no message)"
    }
}
