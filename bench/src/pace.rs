//! The pace of the machine: the CPU time that a fixed piece of work takes, over and over, while something is measured.
//!
//! On shared cores a CPU second is no constant amount of work: with a busy neighbour on the other half of a core, or in the
//! cache, the same work takes up to 1.7 times the CPU time a minute later (docs/benchmarks.md). CPU times of phases
//! minutes apart can be compared when each is divided by the pace of its own time.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::family::SUPPLY_CHAIN;
use crate::layout::Key;
use crate::objects::{FIRST_REVISION, chain_status, owner};
use crate::pairs::number;

/// Between two pieces: the work takes a fiftieth of one core.
const BETWEEN: Duration = Duration::from_millis(100);
/// Objects of a piece.
const OBJECTS: usize = 100;
/// Steps of the owner that each is.
const STEPS: u8 = 5;
const NANOS_PER_MILLI: f64 = 1e6;

/// Works in a thread of its own until it is dropped.
pub(crate) struct Pace(Arc<Mutex<Reading>>);

/// What was worked up to some moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    pieces: u64,
    nanos: u64,
}

impl Pace {
    /// Starts to work.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let (pace, object) = (Self(Arc::default()), object()?);
        let worked = Arc::downgrade(&pace.0);
        std::thread::spawn(move || work(&worked, &object));
        Ok(pace)
    }

    /// To be compared with a later one.
    pub(crate) fn read(&self) -> Reading {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds of CPU time that a piece took since then, on average; not a number if none was done.
    pub(crate) fn since(&self, then: Reading) -> f64 {
        self.read().since(then)
    }
}

impl Reading {
    fn since(self, then: Self) -> f64 {
        let nanos = number(self.nanos - then.nanos);
        nanos / NANOS_PER_MILLI / number(self.pieces - then.pieces)
    }
}

fn work(worked: &Weak<Mutex<Reading>>, object: &str) {
    loop {
        let start = thread_nanos();
        std::hint::black_box(piece(object));
        let nanos = thread_nanos().saturating_sub(start);
        let Some(worked) = worked.upgrade() else {
            return;
        };
        {
            let mut reading = worked.lock().unwrap_or_else(PoisonError::into_inner);
            reading.nanos += nanos;
            reading.pieces += 1;
        }
        drop(worked);
        std::thread::sleep(BETWEEN);
    }
}

fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or_default()
}

/// What servers and controllers do all day: objects are read and written.
fn piece(object: &str) -> usize {
    let read = |_| serde_json::from_str::<Value>(object).map_or(0, |read| read.to_string().len());
    (0..OBJECTS).map(read).sum()
}

/// An owner of a chain with its status.
fn object() -> anyhow::Result<String> {
    let key = Key::new("team", "app");
    let mut object = owner(&SUPPLY_CHAIN, &key, FIRST_REVISION)?;
    object["status"] = chain_status(&SUPPLY_CHAIN, &key, STEPS, STEPS)?["status"].take();
    Ok(object.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_takes_cpu_time_and_is_counted() {
        let pace = Pace::start().unwrap();
        let then = pace.read();
        while pace.read().pieces < then.pieces + 2 {
            std::thread::yield_now();
        }
        assert!(pace.since(then) > 0.0);
    }

    #[test]
    fn the_average_is_over_the_pieces_in_between() {
        let reading = |pieces, nanos| Reading { pieces, nanos };
        let average = reading(12, 9_000_000).since(reading(10, 4_000_000));
        assert!((average - 2.5).abs() < 1e-9);
        assert!(reading(1, 1).since(reading(1, 1)).is_nan());
    }
}
