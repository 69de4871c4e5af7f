//! What this replica has counted of each preset, until it stands in the status of the preset.
//!
//! There is one entry for each preset that a pod was created for within a few seconds, so no more
//! than there are presets.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use controller_kit::webhook::Review;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use parking_lot::Mutex;
use pod_presets::{Conflict, LastConflict, Opponent};
use tokio::time::Instant;

use super::admit::Done;
use super::subject::Subject;

/// How many conflicts a status names.
pub(super) const LAST: usize = 5;
/// What a tenant's pod is called, and what it has, is kept up to so many bytes.
const TEXT_BYTES: usize = 253;

/// What came of the pods that a preset selected.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counted {
    pub(super) matched: i64,
    pub(super) applied: i64,
    pub(super) conflicts: i64,
    /// The newest first.
    pub(super) last: VecDeque<LastConflict>,
}

impl Counted {
    pub(super) fn is_nothing(&self) -> bool {
        self.matched == 0
    }

    /// Adds what was counted later.
    pub(super) fn add(&mut self, later: Self) {
        self.matched = self.matched.saturating_add(later.matched);
        self.applied = self.applied.saturating_add(later.applied);
        self.conflicts = self.conflicts.saturating_add(later.conflicts);
        for conflict in later.last.into_iter().rev() {
            self.last.push_front(conflict);
        }
        self.last.truncate(LAST);
    }
}

/// Counts of all presets, by uid.
pub(super) struct Counts {
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    held: Mutex<Held>,
}

/// Between two writes of counts of a preset that nothing went wrong with. A preset of which pods are
/// created all the time is not to be written all the time.
const APART: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Held {
    counted: HashMap<Box<str>, Counted>,
    /// When counts of a preset were taken last, for as long as that matters.
    taken: HashMap<Box<str>, Instant>,
}

impl Counts {
    pub(super) fn new(clock: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Self {
        Self {
            clock,
            held: Mutex::default(),
        }
    }

    /// A pod was asked about.
    pub(super) fn count(&self, review: &Review, done: &Done) {
        for entry in &done.matching {
            let own =
                |conflict: &&Conflict| conflict.settled.is_blocking() && entry.is(&conflict.preset);
            let conflict = done.injection.conflicts.iter().find(own);
            let mut applied = done.injection.applied.iter();
            let is_applied = applied.any(|applied| entry.is(&applied.preset));
            let last = conflict.map(|conflict| self.seen(review, conflict));
            let counted = Counted {
                matched: 1,
                applied: is_applied.into(),
                conflicts: conflict.is_some().into(),
                last: last.into_iter().collect(),
            };
            self.give(entry.uid.clone(), counted);
        }
    }

    /// Adds to what is there, as when it could not be written.
    pub(super) fn give(&self, uid: Box<str>, counted: Counted) {
        let mut held = self.held.lock();
        held.counted.entry(uid).or_default().add(counted);
    }

    /// What is to be written now: conflicts, and what else was counted of presets of which nothing
    /// was taken for a while.
    pub(super) fn take_due(&self, now: Instant) -> HashMap<Box<str>, Counted> {
        let mut held = self.held.lock();
        let Held { counted, taken } = &mut *held;
        taken.retain(|_, at| now.duration_since(*at) < APART);
        let due = counted.extract_if(|uid, it| it.conflicts > 0 || !taken.contains_key(uid));
        let due: HashMap<Box<str>, Counted> = due.collect();
        taken.extend(due.keys().map(|uid| (uid.clone(), now)));
        due
    }

    fn seen(&self, review: &Review, conflict: &Conflict) -> LastConflict {
        let (kind, name) = Subject::of(review).named();
        let with = match &conflict.with {
            Opponent::Pod => "Pod".to_owned(),
            Opponent::Preset(preset) => preset.to_string(),
        };
        let container = conflict.container.as_deref().unwrap_or_default();
        LastConflict {
            time: Time((self.clock)()),
            namespace: review.namespace.clone(),
            kind: cut(&kind),
            name: cut(&name),
            container: cut(container),
            field: conflict.field.as_str().to_owned(),
            key: cut(&conflict.key),
            with: cut(&with),
        }
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(conflicts: i64) -> Counted {
        Counted {
            matched: 1,
            conflicts,
            ..Counted::default()
        }
    }

    #[test]
    fn conflicts_are_due_at_once_and_other_counts_every_half_minute() {
        let counts = Counts::new(Arc::new(|| Timestamp::UNIX_EPOCH));
        let (begin, uid) = (Instant::now(), || Box::<str>::from("u"));
        let taken = |after: u64| {
            let due = counts.take_due(begin + Duration::from_secs(after));
            due.into_values().map(|it| it.matched).sum::<i64>()
        };
        counts.give(uid(), counted(0));
        assert_eq!(taken(0), 1, "the first is told at once");
        counts.give(uid(), counted(0));
        counts.give(uid(), counted(0));
        assert_eq!(taken(29), 0);
        assert_eq!(taken(30), 2);
        counts.give(uid(), counted(1));
        assert_eq!(taken(35), 1);
        assert_eq!(taken(100), 0);
        assert!(counts.held.lock().taken.is_empty(), "nothing is kept");
    }
}
