//! How often a writer that keeps undoing us is answered.

use std::sync::Arc;
use std::time::Duration;

use api_types::EventReason;
use realizer::Submission;
use submission::address;
use tokio::time::Instant;

use super::Source;
use super::backoff::{KeyedBackoff, Repeatable, Spacing};
use crate::mapper::Kind;
use crate::stamped::{ObjectKey, Stamped};

/// The first answer to an undone write is immediate.
const SPACING: Spacing = Spacing {
    first: Duration::from_millis(50),
    // Two seconds after a writer stops, the object must equal the rendering again.
    longest: Duration::from_millis(1600),
    // Controllers that undo us may look only now and then: an autoscaler every 15 s. A writer that comes less than once a
    // minute is answered each time, but that is no conflict: it may be a person who edits by hand.
    calm: Duration::from_mins(1),
};

/// A conflict is over when the object stayed as applied for this long,
const SETTLED: Duration = Duration::from_secs(10);
/// and for this many times as long as it stayed before it was undone last: between two writes of somebody slow all is not well.
const TIMES_AS_LONG: u32 = 2;
/// but never longer than this. Somebody who waits for Ready before each of his changes would wait twice as long each time.
const LONGEST_SETTLED: Duration = Duration::from_secs(30);

/// One rendering of one object.
#[derive(Debug, Clone, Copy)]
pub struct Rendering(Repeatable);

impl Rendering {
    /// The rendering with this digest of the object at this place. The place is what counts: whoever deletes an
    /// object, or hides it from our watch by taking its label, undoes us too.
    pub fn of(kind: &Kind, key: &ObjectKey, digest: &str) -> Self {
        Self(Repeatable::new(&(kind, key), &digest))
    }
}

/// A write that has to wait.
#[derive(Debug)]
pub(crate) struct HeldBack {
    /// How long.
    pub(crate) wait: Duration,
    /// What the last write came to.
    pub(crate) applied: Arc<Stamped>,
}

/// So many answers in a row to another writer are a conflict, of which the owner is told; fewer may be edits by hand.
const CONFLICT: u32 = 3;

/// The latest writes, to space those that repeat the same rendering.
#[derive(Debug)]
pub struct ConflictBackoff(KeyedBackoff<Overwrite>);

/// What is remembered of a write.
#[derive(Debug, Clone, Default)]
struct Overwrite {
    /// What it came to; from the second write of the same rendering on.
    applied: Option<Arc<Stamped>>,
    /// How many in a row undid what somebody else wrote, this one among them.
    answers: u32,
    /// Whether it is one of them.
    is_answer: bool,
    /// How long the object had stayed as it was written before.
    stayed: Duration,
}

impl Overwrite {
    /// How long the object has to stay as it is until the conflict is over, if this is one.
    fn peace(&self) -> Option<Duration> {
        let is_conflict = self.is_answer && self.answers >= CONFLICT;
        is_conflict.then(|| SETTLED.max(LONGEST_SETTLED.min(self.stayed * TIMES_AS_LONG)))
    }
}

impl Default for ConflictBackoff {
    fn default() -> Self {
        Self(KeyedBackoff::new(SPACING))
    }
}

impl ConflictBackoff {
    /// Whether the rendering, which was written before and undone, has to wait until it may be written again.
    pub(crate) fn held_back(&self, rendering: Rendering, now: Instant) -> Option<HeldBack> {
        let (wait, blow) = self.0.last(rendering.0, now)?;
        let applied = blow.applied.filter(|_| !wait.is_zero())?;
        Some(HeldBack { wait, applied })
    }

    /// How long a conflict over the rendering is not over yet: the object has to stay as it was written last for a while.
    pub(crate) fn is_on(&self, rendering: Rendering, now: Instant) -> Option<Duration> {
        let (age, blow) = self.0.age(rendering.0, now)?;
        let left = blow.peace()?.saturating_sub(age);
        (!left.is_zero()).then_some(left)
    }

    /// Records a write that changed the object, or not; returns how often in a row the same rendering was written before.
    pub fn written(
        &self,
        rendering: Rendering,
        applied: &Stamped,
        changed: bool,
        now: Instant,
    ) -> u32 {
        let before = self.0.age(rendering.0, now);
        let keep = |repetitions: u32| {
            let before = before.filter(|_| repetitions > 0);
            let is_answer = changed && before.is_some();
            let (stayed, blow) = before.unwrap_or_default();
            Overwrite {
                applied: (repetitions > 0).then(|| Arc::new(applied.clone())),
                answers: blow.answers + u32::from(is_answer),
                is_answer,
                stayed,
            }
        };
        self.0.written(rendering.0, now, keep)
    }
}

/// Tells of another writer that is answered again and again.
pub(super) fn fought_over(submission: &Submission, source: &Source) -> (EventReason, String) {
    let message = format!(
        "[{}] another writer keeps changing fields of {} [{}] that the template renders; stop it, or take the fields out of the template",
        submission.resource,
        source.watch().served().qualified(),
        address(submission),
    );
    (EventReason::ObjectContested, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamped::Projection;
    use serde_json::json;

    fn rendering(digest: &str) -> Rendering {
        Rendering::of(
            &Kind::new("v1", "ConfigMap"),
            &ObjectKey::new("n", "a"),
            digest,
        )
    }

    fn applied() -> Stamped {
        Stamped::from_value(
            &json!({"metadata": {"name": "a"}}),
            &Kind::new("v1", "ConfigMap"),
            &Projection::default(),
            "m",
        )
    }

    fn wait(conflicts: &ConflictBackoff, digest: &str, now: Instant) -> Option<Duration> {
        conflicts
            .held_back(rendering(digest), now)
            .map(|held_back| held_back.wait)
    }

    #[test]
    fn the_first_answer_is_immediate_and_later_ones_are_spaced_out() {
        let conflicts = ConflictBackoff::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..9 {
            if let Some(wait) = wait(&conflicts, "d", now) {
                waits.push(wait);
                now += wait;
            }
            assert_eq!(wait(&conflicts, "d", now), None);
            conflicts.written(rendering("d"), &applied(), true, now);
        }
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "{waits:?}");
        assert_eq!(waits.last(), Some(&SPACING.longest));
        assert!(waits.len() >= 6, "{waits:?}");
    }

    #[test]
    fn a_new_rendering_is_never_held_back() {
        let conflicts = ConflictBackoff::default();
        let now = Instant::now();
        for _ in 0..5 {
            conflicts.written(rendering("d"), &applied(), true, now);
        }
        assert!(wait(&conflicts, "d", now).is_some());
        assert_eq!(wait(&conflicts, "other", now), None);
    }

    #[test]
    fn after_a_calm_time_the_count_starts_again() {
        let conflicts = ConflictBackoff::default();
        let now = Instant::now();
        assert_eq!(conflicts.written(rendering("d"), &applied(), true, now), 0);
        assert_eq!(conflicts.written(rendering("d"), &applied(), true, now), 1);
        assert_eq!(
            conflicts.written(rendering("d"), &applied(), true, now + SPACING.calm),
            0
        );
    }

    #[test]
    fn a_fight_is_on_from_the_third_answer_until_the_object_was_left_alone_for_a_while() {
        let conflicts = ConflictBackoff::default();
        let now = Instant::now();
        let write = |changed| conflicts.written(rendering("d"), &applied(), changed, now);
        for answers in 0..CONFLICT {
            assert_eq!(write(true), answers);
            assert_eq!(conflicts.is_on(rendering("d"), now), None);
        }
        write(true);
        let second = Duration::from_secs(1);
        assert_eq!(
            conflicts.is_on(rendering("d"), now + second),
            SETTLED.checked_sub(second)
        );
        assert_eq!(conflicts.is_on(rendering("other"), now), None);
        assert_eq!(conflicts.is_on(rendering("d"), now + SETTLED), None);
    }

    /// As an autoscaler does it that looks every quarter of a minute.
    #[test]
    fn a_slow_fight_is_on_all_the_time_between_two_blows() {
        let every = Duration::from_secs(15);
        let conflicts = ConflictBackoff::default();
        let mut now = Instant::now();
        let write = |now| conflicts.written(rendering("d"), &applied(), true, now);
        write(now);
        for _ in 0..CONFLICT {
            assert_eq!(conflicts.is_on(rendering("d"), now), None);
            now += every;
            write(now);
        }
        for _ in 0..5 {
            assert!(conflicts.is_on(rendering("d"), now + every).is_some());
            now += every;
            assert!(
                wait(&conflicts, "d", now).is_none(),
                "it is answered at once"
            );
            write(now);
        }
        // It ends when the other writer has left out two of his turns.
        assert_eq!(
            conflicts.is_on(rendering("d"), now),
            Some(every * TIMES_AS_LONG)
        );
    }

    #[test]
    fn nobody_waits_for_peace_ever_longer_and_rare_edits_are_no_fight() {
        let conflicts = ConflictBackoff::default();
        let mut now = Instant::now();
        let write = |now| conflicts.written(rendering("d"), &applied(), true, now);
        for _ in 0..10 {
            write(now);
            let peace = conflicts.is_on(rendering("d"), now).unwrap_or_default();
            assert!(peace <= LONGEST_SETTLED, "{peace:?}");
            now += peace + Duration::from_secs(1);
        }
        for _ in 0..10 {
            now += SPACING.calm;
            write(now);
            assert_eq!(conflicts.is_on(rendering("d"), now), None);
        }
    }

    /// After a restart an object with a value of a Secret is applied though it is as rendered.
    #[test]
    fn writes_that_change_nothing_are_no_fight() {
        let conflicts = ConflictBackoff::default();
        let now = Instant::now();
        let write = |changed| conflicts.written(rendering("d"), &applied(), changed, now);
        for _ in 0..5 {
            write(false);
        }
        assert_eq!(conflicts.is_on(rendering("d"), now), None);
        // Nor do they count among those that are.
        write(true);
        assert_eq!(conflicts.is_on(rendering("d"), now), None);
        for _ in 1..CONFLICT {
            write(true);
        }
        assert!(conflicts.is_on(rendering("d"), now).is_some());
    }

    #[test]
    fn objects_at_peace_are_forgotten() {
        let conflicts = ConflictBackoff::default();
        let now = Instant::now();
        for number in 0..super::super::backoff::REMEMBERED {
            let key = ObjectKey::new("n", &number.to_string());
            let rendering = Rendering::of(&Kind::new("v1", "ConfigMap"), &key, "d");
            conflicts.written(rendering, &applied(), true, now);
        }
        conflicts.written(rendering("d"), &applied(), true, now + SPACING.calm);
        assert_eq!(conflicts.0.remembered(), 1);
    }
}
