//! Bounded concurrency.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

/// Works on all items, so many at a time, in order of their start. Ends at the first error.
///
/// # Errors
///
/// The first error of `work`.
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn all_items_are_worked_on_with_no_more_than_the_bound_at_a_time() {
        let (now, most, done) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicUsize::new(0)),
        );
        let seen = (now, most.clone(), done.clone());
        each(3, (0..50).collect(), move |_: i32| {
            let (now, most, done) = seen.clone();
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        })
        .await
        .unwrap();
        assert_eq!(
            (most.load(Ordering::SeqCst), done.load(Ordering::SeqCst)),
            (3, 50)
        );
    }

    #[tokio::test]
    async fn the_first_error_ends_it() {
        let error = each(
            2,
            vec![1, 2],
            |item| async move { anyhow::bail!("item {item}") },
        )
        .await
        .unwrap_err();
        assert!(error.to_string().starts_with("item "));
    }
}
