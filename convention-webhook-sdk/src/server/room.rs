//! Room in memory for the bodies of all requests, taken as their bytes come.

use std::sync::Arc;

use prometheus::IntGauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bodies up to this size take none of the room for all of them: they are answered also while
/// somebody fills it. How many of them there can be at once is bounded by [`Room::enter`].
const SMALL: usize = 64 * 1024;
/// Room is counted in these, so that the number of them fits everywhere.
const UNIT: usize = 1024;

/// The room of a server.
#[derive(Clone)]
pub(super) struct Room {
    requests: Arc<Semaphore>,
    /// How much there is when nobody has any.
    whole: usize,
    units: Arc<Semaphore>,
    /// For the one body that may wait for more while it has some. If all waited, for one another,
    /// none would ever be whole.
    turn: Arc<Semaphore>,
    taken: IntGauge,
}

/// What a body has of the room, until it is dropped.
#[derive(Default)]
pub(super) struct Share {
    /// That it is one of the requests that there may be.
    request: Option<OwnedSemaphorePermit>,
    units: Option<OwnedSemaphorePermit>,
    turn: Option<OwnedSemaphorePermit>,
    taken: Option<IntGauge>,
}

/// There is no room, and waiting for it would hold up others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Room {
    /// For so many requests at once, and so many bytes of all. `taken` tells how many of them are.
    pub(super) fn new(requests: usize, bytes: usize, taken: IntGauge) -> Self {
        let units = (bytes / UNIT + 1).min(Semaphore::MAX_PERMITS);
        let requests = requests.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            requests: Arc::new(Semaphore::new(requests)),
            whole: units,
            units: Arc::new(Semaphore::new(units)),
            turn: Arc::new(Semaphore::new(1)),
            taken,
        }
    }

    /// A share for a request, once there is one. In a server of ours there always is, as it has no
    /// more connections; in somebody else's nothing else bounds what small bodies take together.
    pub(super) async fn enter(&self) -> Result<Share, Full> {
        let request = self.requests.clone().acquire_owned().await;
        let mut share = Share::default();
        // Nobody closes it.
        share.request = Some(request.map_err(|_| Full)?);
        Ok(share)
    }

    /// Has a share fit so many bytes, or take all that there is. Who has nothing yet waits for it.
    pub(super) async fn grow(&self, share: &mut Share, bytes: usize) -> Result<(), Full> {
        let lacking = if bytes <= SMALL { 0 } else { bytes / UNIT };
        let lacking = lacking.min(self.whole).saturating_sub(share.units());
        if lacking == 0 {
            return Ok(());
        }
        let lacking = u32::try_from(lacking).map_err(|_| Full)?;
        let units = match self.units.clone().try_acquire_many_owned(lacking) {
            Ok(units) => units,
            Err(_) => self.wait(share, lacking).await?,
        };
        self.taken.add(bytes_of(&units));
        share.taken.get_or_insert_with(|| self.taken.clone());
        match &mut share.units {
            Some(all) => all.merge(units),
            none => *none = Some(units),
        }
        Ok(())
    }

    async fn wait(&self, share: &mut Share, units: u32) -> Result<OwnedSemaphorePermit, Full> {
        if share.units() > 0 && share.turn.is_none() {
            let turn = self.turn.clone().try_acquire_owned();
            share.turn = Some(turn.map_err(|_| Full)?);
        }
        let units = self.units.clone().acquire_many_owned(units);
        // Nobody closes it.
        units.await.map_err(|_| Full)
    }
}

impl Share {
    fn units(&self) -> usize {
        let units = self.units.as_ref();
        units.map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// It needs no more: the body is whole.
    pub(super) fn is_enough(&mut self) {
        self.turn = None;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        drop(self.request.take());
        if let (Some(units), Some(taken)) = (&self.units, &self.taken) {
            taken.sub(bytes_of(units));
        }
    }
}

fn bytes_of(units: &OwnedSemaphorePermit) -> i64 {
    i64::try_from(units.num_permits().saturating_mul(UNIT)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn room(bytes: usize) -> Room {
        Room::new(2, bytes, IntGauge::new("taken", "taken").unwrap())
    }

    fn now<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn no_more_requests_are_let_in_than_there_may_be() {
        let room = room(1 << 20);
        let first = now(room.enter());
        let second = now(room.enter());
        assert!(first.is_ready() && second.is_ready());
        assert!(now(room.enter()).is_pending());
        drop(first);
        assert!(now(room.enter()).is_ready());
    }

    #[test]
    fn small_bodies_take_none_and_others_as_much_as_came() {
        let room = room(1 << 20);
        let (mut first, mut second) = (Share::default(), Share::default());
        assert_eq!(now(room.grow(&mut first, SMALL)), Poll::Ready(Ok(())));
        assert_eq!(room.taken.get(), 0);
        for bytes in [SMALL + UNIT, 1 << 20] {
            assert_eq!(now(room.grow(&mut first, bytes)), Poll::Ready(Ok(())));
            assert_eq!(room.taken.get(), i64::try_from(bytes).unwrap());
        }
        assert!(now(room.grow(&mut second, SMALL + UNIT)).is_pending());
        assert_eq!(now(room.grow(&mut second, SMALL)), Poll::Ready(Ok(())));
        drop(first);
        assert_eq!(room.taken.get(), 0);
        assert_eq!(now(room.grow(&mut second, 1 << 20)), Poll::Ready(Ok(())));
    }

    #[test]
    fn bodies_do_not_wait_for_one_another() {
        let room = room(1 << 20);
        let mut shares: [Share; 3] = Default::default();
        for share in &mut shares {
            assert_eq!(now(room.grow(share, 300 << 10)), Poll::Ready(Ok(())));
        }
        let [mut first, mut second, third] = shares;
        let mut waiting = Box::pin(room.grow(&mut first, 900 << 10));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert_eq!(
            now(room.grow(&mut second, 900 << 10)),
            Poll::Ready(Err(Full))
        );
        drop((second, third));
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(Ok(())));
        drop(waiting);
        // It is its turn until it is whole.
        let mut other = Share::default();
        assert_eq!(now(room.grow(&mut other, 100 << 10)), Poll::Ready(Ok(())));
        assert_eq!(
            now(room.grow(&mut other, 200 << 10)),
            Poll::Ready(Err(Full))
        );
        first.is_enough();
        assert!(now(room.grow(&mut other, 200 << 10)).is_pending());
    }
}
