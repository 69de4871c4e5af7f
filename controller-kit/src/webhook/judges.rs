//! Threads for what takes long: a large object, or rules that look at all of one. Their time must not be that of a thread
//! that all else runs on.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// How many work at a time.
pub(super) const JUDGES: usize = 4;

/// Some threads, each with its turn. Clones share them.
#[derive(Clone)]
pub struct Judges(pub(super) Arc<Semaphore>);

impl Default for Judges {
    fn default() -> Self {
        Self::new()
    }
}

impl Judges {
    /// So many as usual.
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(JUDGES)))
    }

    /// Does the work on a thread of its own, as soon as there is one for it; nothing comes of it when the process ends. The
    /// turn goes with the work, which goes on when nobody waits for it any longer.
    ///
    /// # Panics
    ///
    /// If the work does.
    pub async fn do_aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        // Nobody closes it.
        let turn = self.0.clone().acquire_owned().await.ok()?;
        let judged = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        match judged.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(done) => Some(done),
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(_ends)) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_turn_goes_with_its_work_also_when_nobody_waits_any_longer() {
        let judges = Judges(Arc::new(Semaphore::new(1)));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let work = move || {
            let _ = wait.recv();
        };
        let waited = tokio::time::timeout(Duration::from_millis(50), judges.do_aside(work)).await;
        assert!(waited.is_err());
        assert_eq!(judges.0.available_permits(), 0, "the work goes on");
        drop(go);
        let free = judges.0.acquire();
        let free = tokio::time::timeout(Duration::from_secs(30), free).await;
        assert!(free.unwrap().is_ok());
    }
}
