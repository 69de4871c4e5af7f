//! A semaphore that is fair between namespaces.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::pool::Pool;

/// Lets so many in at a time: namespaces in turn, and the last quarter of the places only to namespaces
/// that have nobody inside.
pub(crate) struct Gate {
    line: Arc<Mutex<Line>>,
}

struct Line {
    pool: Pool<oneshot::Sender<Pass>, 1>,
    next_ticket: u64,
}

/// The right to be inside, until it is dropped.
#[must_use = "dropping it lets the next one in"]
pub(crate) struct Pass {
    namespace: Arc<str>,
    line: Arc<Mutex<Line>>,
}

/// A place in the line, which a caller that is cancelled leaves.
struct Place<'a> {
    ticket: u64,
    namespace: &'a str,
    line: &'a Mutex<Line>,
}

impl Gate {
    /// Lets so many in; 0 counts as 1.
    pub(crate) fn new(places: usize) -> Self {
        let line = Line {
            pool: Pool::new(places, false),
            next_ticket: 0,
        };
        Self {
            line: Arc::new(Mutex::new(line)),
        }
    }

    /// Waits for its namespace's turn. Cancel-safe: who leaves the line is passed over, and a pass that
    /// comes too late goes to the next.
    pub(crate) async fn enter(&self, namespace: &str) -> Pass {
        let (sender, pass) = oneshot::channel();
        let ticket = self.line.lock().push(namespace, sender);
        let _place = Place {
            ticket,
            namespace,
            line: &self.line,
        };
        hand_out(&self.line);
        pass.await
            .expect("the sender stays in the line until a pass is sent or the place above is left")
    }

    /// How many wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.line.lock().pool.lane(0).len()
    }
}

impl Line {
    fn push(&mut self, namespace: &str, sender: oneshot::Sender<Pass>) -> u64 {
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        self.pool.push(
            0,
            ticket,
            (&namespace.into(), false),
            sender,
            Instant::now(),
        );
        ticket
    }
}

fn hand_out(line: &Arc<Mutex<Line>>) {
    loop {
        let taken = line.lock().pool.take(0, false, |_| usize::MAX);
        let Some((namespace, sender)) = taken else {
            return;
        };
        // Outside of the lock: a pass that nobody waits for any more is dropped here, which takes it.
        let _ = sender.send(Pass {
            namespace,
            line: line.clone(),
        });
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.line.lock().pool.give_back(&self.namespace);
        hand_out(&self.line);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut line = self.line.lock();
        line.pool.remove(0, self.ticket, self.namespace);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn now(gate: &Gate, namespace: &str) -> Option<Pass> {
        gate.enter(namespace).now_or_never()
    }

    #[tokio::test]
    async fn one_namespace_does_not_get_the_last_quarter() {
        let gate = Gate::new(4);
        let mine: Vec<_> = (0..4).map_while(|_| now(&gate, "a")).collect();
        assert_eq!(mine.len(), 3);
        let other = now(&gate, "b");
        assert!(other.is_some());
        assert!(now(&gate, "c").is_none(), "all four are inside");
    }

    #[tokio::test]
    async fn namespaces_are_let_in_in_turn() {
        let gate = Gate::new(1);
        let inside = now(&gate, "a").unwrap();
        let order = Mutex::new(Vec::new());
        let visit = |namespace: &'static str| {
            let (gate, order) = (&gate, &order);
            async move {
                let _pass = gate.enter(namespace).await;
                order.lock().push(namespace);
            }
        };
        let visits = futures::future::join_all(["a", "a", "a", "b", "b", "c"].map(visit));
        tokio::pin!(visits);
        assert!(visits.as_mut().now_or_never().is_none());
        drop(inside);
        visits.await;
        assert_eq!(*order.lock(), ["a", "b", "c", "a", "b", "a"]);
    }

    #[tokio::test]
    async fn who_leaves_the_line_takes_nothing_with_him() {
        let gate = Gate::new(1);
        let inside = now(&gate, "a").unwrap();
        {
            let leaves = gate.enter("b");
            tokio::pin!(leaves);
            assert!(leaves.as_mut().now_or_never().is_none());
            assert_eq!(gate.waiting(), 1);
        }
        assert_eq!(gate.waiting(), 0);
        drop(inside);
        assert!(now(&gate, "c").is_some());
    }

    #[tokio::test]
    async fn a_pass_that_comes_too_late_goes_to_the_next() {
        let gate = Gate::new(1);
        let inside = now(&gate, "a").unwrap();
        let mut next = Box::pin(gate.enter("c"));
        {
            let leaves = gate.enter("b");
            tokio::pin!(leaves);
            assert!(leaves.as_mut().now_or_never().is_none());
            assert!(next.as_mut().now_or_never().is_none());
            // It is b's pass now, but b never looks again.
            drop(inside);
            assert!(next.as_mut().now_or_never().is_none());
        }
        assert!(next.now_or_never().is_some());
    }
}
