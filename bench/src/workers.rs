//! Bounded concurrency.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

/// Works on all items, so many at a time, in order of their start. Ends at the first error.
pub(crate) async fn each<T, F, W>(concurrency: usize, items: Vec<T>, work: F) -> anyhow::Result<()>
where
    T: Send + 'static,
    F: Fn(T) -> W + Clone + Send + 'static,
    W: Future<Output = anyhow::Result<()>> + Send,
{
    let queue = Arc::new(Mutex::new(items.into_iter()));
    let mut workers = JoinSet::new();
    for _ in 0..concurrency {
        let (queue, work) = (queue.clone(), work.clone());
        workers.spawn(async move {
            let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some(item) = next() {
                work(item).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[tokio::test]
    async fn all_items_are_worked_on_with_no_more_than_the_bound_at_a_time() {
        static NOW: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        static DONE: AtomicUsize = AtomicUsize::new(0);
        let work = |_: i32| async {
            MOST.fetch_max(NOW.fetch_add(1, SeqCst) + 1, SeqCst);
            tokio::task::yield_now().await;
            NOW.fetch_sub(1, SeqCst);
            DONE.fetch_add(1, SeqCst);
            Ok(())
        };
        each(3, (0..50).collect(), work).await.unwrap();
        assert_eq!((MOST.load(SeqCst), DONE.load(SeqCst)), (3, 50));
    }

    #[tokio::test]
    async fn the_first_error_ends_it() {
        let work = |item| async move { anyhow::bail!("item {item}") };
        let error = each(2, vec![1, 2], work).await.unwrap_err();
        assert!(error.to_string().starts_with("item "));
    }
}
