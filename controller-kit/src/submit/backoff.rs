//! Writes that repeat for a reason of their own are sent ever less often.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Objects remembered before those at peace are forgotten.
pub(super) const REMEMBERED: usize = 4096;

/// How repeated writes are spaced. The first repetition is immediate; each further one waits twice as long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spacing {
    /// Half of what the second repetition waits.
    pub(super) first: Duration,
    /// No repetition waits longer.
    pub(super) longest: Duration,
    /// After this time without a write the count starts again; longer than any wait.
    pub(super) calm: Duration,
}

/// What is written, as numbers: thousands are remembered, and mistaking one for another would only delay a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Repeatable {
    object: u64,
    cause: u64,
}

impl Repeatable {
    /// A write of this object; those of equal cause are counted together.
    pub(super) fn new(object: &impl Hash, cause: &impl Hash) -> Self {
        Self {
            object: hash_of(object),
            cause: hash_of(cause),
        }
    }
}

/// Makes room for one more where there are so many: forgets what is of no use any more or, if that does not do, all.
pub(super) fn make_room<V>(
    known: &mut HashMap<u64, V>,
    most: usize,
    mut is_of_use: impl FnMut(&mut V) -> bool,
) {
    if known.len() >= most {
        known.retain(|_, value| is_of_use(value));
    }
    if known.len() >= most {
        known.clear();
    }
}

pub(super) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[derive(Debug)]
struct Written<N> {
    cause: u64,
    at: Instant,
    repetitions: u32,
    note: N,
}

/// The latest write of each object, with a note about it. Nothing depends on this memory.
#[derive(Debug)]
pub(super) struct KeyedBackoff<N> {
    spacing: Spacing,
    memory: Mutex<Memory<N>>,
}

#[derive(Debug)]
struct Memory<N> {
    by_object: HashMap<u64, Written<N>>,
    cleaned: Option<Instant>,
}

impl<N: Clone> KeyedBackoff<N> {
    pub(super) fn new(spacing: Spacing) -> Self {
        let memory = Memory {
            by_object: HashMap::new(),
            cleaned: None,
        };
        Self {
            spacing,
            memory: Mutex::new(memory),
        }
    }

    /// How long the write has to wait, and the note of the last one of this cause; the wait is zero when it is due.
    pub(super) fn last(&self, write: Repeatable, now: Instant) -> Option<(Duration, N)> {
        let memory = self.memory.lock();
        let last = memory.by_object.get(&write.object)?;
        let since = now.duration_since(last.at);
        let wait = self.spacing(last.repetitions).saturating_sub(since);
        (last.cause == write.cause).then(|| (wait, last.note.clone()))
    }

    /// How long ago the last write of this cause was, and its note.
    pub(super) fn age(&self, write: Repeatable, now: Instant) -> Option<(Duration, N)> {
        let memory = self.memory.lock();
        let last = memory.by_object.get(&write.object)?;
        (last.cause == write.cause).then(|| (now.duration_since(last.at), last.note.clone()))
    }

    /// Records a write; returns how often in a row it was written for this cause before, as the note is told, too.
    pub(super) fn written(
        &self,
        write: Repeatable,
        now: Instant,
        note: impl FnOnce(u32) -> N,
    ) -> u32 {
        let mut memory = self.memory.lock();
        memory.clean(now, self.spacing.calm);
        let known = memory.by_object.get(&write.object).filter(|last| {
            last.cause == write.cause && now.duration_since(last.at) < self.spacing.calm
        });
        let repetitions = known.map_or(0, |last| last.repetitions.saturating_add(1));
        let written = Written {
            cause: write.cause,
            at: now,
            repetitions,
            note: note(repetitions),
        };
        memory.by_object.insert(write.object, written);
        repetitions
    }

    fn spacing(&self, repetitions: u32) -> Duration {
        if repetitions == 0 {
            return Duration::ZERO;
        }
        self.spacing
            .first
            .saturating_mul(1 << repetitions.min(10))
            .min(self.spacing.longest)
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.memory.lock().by_object.len()
    }
}

impl<N> Memory<N> {
    fn clean(&mut self, now: Instant, calm: Duration) {
        let recently = self
            .cleaned
            .is_some_and(|cleaned| now.duration_since(cleaned) < calm);
        if self.by_object.len() >= REMEMBERED && !recently {
            self.cleaned = Some(now);
            self.by_object
                .retain(|_, written| now.duration_since(written.at) < calm);
        }
    }
}
