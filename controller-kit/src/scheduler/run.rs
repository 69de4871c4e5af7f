//! The loop that reconciles what the queue hands out.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use super::{Cause, Next, Scheduler, Work};
use crate::object_key::ObjectKey;

/// When the loop works, and how it ends.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Ends it.
    pub shutdown: CancellationToken,
    /// How long what is under way may take to end after that.
    pub grace: Duration,
    /// Whether this replica leads. When it does not, another may: nothing is begun, and what is under way is dropped.
    pub leads: watch::Receiver<bool>,
}

/// Reconciles until the shutdown, and ends when nothing is under way any more. A reconcile that panics is logged,
/// counted and retried with back-off: one poisoned owner must not stop the others
/// (incident: kubernetes-sigs/kro#886).
pub async fn run<F, R>(scheduler: Arc<Scheduler>, mut terms: Terms, reconcile: F)
where
    F: Fn(ObjectKey) -> R,
    R: Future<Output = Next> + Send + 'static,
{
    // The scheduler bounds how many there are.
    let mut under_way = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = terms.shutdown.cancelled() => break,
            // Without an election nobody ever tells anything.
            Ok(()) = terms.leads.changed() => {
                if *terms.leads.borrow_and_update() {
                    scheduler.resume();
                } else {
                    scheduler.pause();
                    drop_all(&mut under_way, "this replica does not lead any more").await;
                }
            }
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
    end(under_way, &mut terms).await;
}

/// Waits for what is under way. A request that hangs (an admission webhook may take a minute) must not keep the Lease
/// from the next replica until this process is killed.
async fn end(mut under_way: JoinSet<()>, terms: &mut Terms) {
    let all_ended = async { while under_way.join_next().await.is_some() {} };
    let why = tokio::select! {
        biased;
        () = all_ended => return,
        Ok(_) = terms.leads.wait_for(|leads| !leads) => "this replica does not lead any more",
        () = tokio::time::sleep(terms.grace) => "the process ends",
    };
    drop_all(&mut under_way, why).await;
}

/// Whatever a reconcile has not done yet, the next one of that owner does.
async fn drop_all(under_way: &mut JoinSet<()>, why: &str) {
    while under_way.try_join_next().is_some() {}
    if !under_way.is_empty() {
        warn!(
            reconciles = under_way.len(),
            why, "reconciles under way are dropped"
        );
    }
    under_way.shutdown().await;
}

async fn finish(work: Work, reconciling: impl Future<Output = Next>) {
    let Cause { woken, pause } = work.cause();
    let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
    debug!(owner = %work.key(), woken, pause_ms, "begins");
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::Instant;

    use super::super::{Lane, SchedulerConfig};
    use super::*;

    const GRACE: Duration = Duration::from_secs(20);

    /// A loop over one owner whose reconciles never end, and how many of them began and were dropped.
    struct Hanging {
        shutdown: CancellationToken,
        leads: watch::Sender<bool>,
        begun: Arc<AtomicUsize>,
        dropped: Arc<AtomicUsize>,
        running: JoinSet<()>,
    }

    struct CountDrop(Arc<AtomicUsize>);

    impl Drop for CountDrop {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    async fn hanging() -> Hanging {
        let scheduler = Arc::new(Scheduler::new(SchedulerConfig::default()));
        scheduler.wake(ObjectKey::new("ns", "stuck"), Lane::Fresh, None);
        let (shutdown, leads) = (CancellationToken::new(), watch::Sender::new(true));
        let (begun, dropped) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (count, count_dropped) = (begun.clone(), dropped.clone());
        let terms = Terms {
            shutdown: shutdown.clone(),
            grace: GRACE,
            leads: leads.subscribe(),
        };
        let mut running = JoinSet::new();
        running.spawn(run(scheduler, terms, move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            let dropped = CountDrop(count_dropped.clone());
            async move {
                let _dropped = dropped;
                std::future::pending().await
            }
        }));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        Hanging {
            shutdown,
            leads,
            begun,
            dropped,
            running,
        }
    }

    impl Hanging {
        fn counts(&self) -> (usize, usize) {
            (
                self.begun.load(Ordering::SeqCst),
                self.dropped.load(Ordering::SeqCst),
            )
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reconcile_that_hangs_delays_the_end_by_the_grace_and_no_more() {
        let mut hanging = hanging().await;
        let start = Instant::now();
        hanging.shutdown.cancel();
        tokio::time::sleep(GRACE.saturating_sub(Duration::from_secs(1))).await;
        assert_eq!(hanging.counts(), (1, 0), "it may still end by itself");
        hanging.running.join_next().await.unwrap().unwrap();
        assert_eq!(start.elapsed().as_secs(), GRACE.as_secs());
        assert_eq!(hanging.dropped.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_lead_any_more_drops_what_is_under_way() {
        let mut hanging = hanging().await;
        hanging.leads.send_replace(false);
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(hanging.counts(), (1, 1), "and begins nothing");
        hanging.leads.send_replace(true);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(hanging.counts(), (2, 1), "what was dropped is done again");
        hanging.shutdown.cancel();
        tokio::time::sleep(Duration::from_secs(1)).await;
        hanging.leads.send_replace(false);
        let start = Instant::now();
        hanging.running.join_next().await.unwrap().unwrap();
        assert_eq!(start.elapsed().as_secs(), 0, "also while it is ending");
    }
}
