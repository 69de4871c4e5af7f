//! How often a writer that keeps undoing us is answered.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::pace::{Pace, Paced, Repeatable};
use crate::mapper::Kind;
use crate::stamped::{ObjectKey, Stamped};

/// The first answer to an undone write is immediate.
const PACE: Pace = Pace {
    first: Duration::from_millis(50),
    // Two seconds after a writer stops, the object must equal the rendering again.
    longest: Duration::from_millis(1600),
    // An object that stayed as applied this long is at peace.
    calm: Duration::from_secs(10),
};

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

/// The latest writes, to space those that repeat the same rendering. What the last one came to is kept from the second
/// write of the same rendering on.
#[derive(Debug)]
pub struct Fights(Paced<Option<Arc<Stamped>>>);

impl Default for Fights {
    fn default() -> Self {
        Self(Paced::new(PACE))
    }
}

impl Fights {
    /// Whether the rendering, which was written before and undone, has to wait until it may be written again.
    pub(crate) fn held_back(&self, rendering: Rendering, now: Instant) -> Option<HeldBack> {
        let (wait, applied) = self.0.last(rendering.0, now)?;
        let applied = applied.filter(|_| !wait.is_zero())?;
        Some(HeldBack { wait, applied })
    }

    /// Records a write; returns how often in a row the same rendering was written before.
    pub fn written(&self, rendering: Rendering, applied: &Stamped, now: Instant) -> u32 {
        let keep = |answers: u32| (answers > 0).then(|| Arc::new(applied.clone()));
        self.0.written(rendering.0, now, keep)
    }
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

    fn wait(fights: &Fights, digest: &str, now: Instant) -> Option<Duration> {
        fights
            .held_back(rendering(digest), now)
            .map(|held_back| held_back.wait)
    }

    #[test]
    fn the_first_answer_is_immediate_and_later_ones_are_spaced_out() {
        let fights = Fights::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..9 {
            if let Some(wait) = wait(&fights, "d", now) {
                waits.push(wait);
                now += wait;
            }
            assert_eq!(wait(&fights, "d", now), None);
            fights.written(rendering("d"), &applied(), now);
        }
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "{waits:?}");
        assert_eq!(waits.last(), Some(&PACE.longest));
        assert!(waits.len() >= 6, "{waits:?}");
    }

    #[test]
    fn a_new_rendering_is_never_held_back() {
        let fights = Fights::default();
        let now = Instant::now();
        for _ in 0..5 {
            fights.written(rendering("d"), &applied(), now);
        }
        assert!(wait(&fights, "d", now).is_some());
        assert_eq!(wait(&fights, "other", now), None);
    }

    #[test]
    fn after_a_calm_time_the_count_starts_again() {
        let fights = Fights::default();
        let now = Instant::now();
        assert_eq!(fights.written(rendering("d"), &applied(), now), 0);
        assert_eq!(fights.written(rendering("d"), &applied(), now), 1);
        assert_eq!(
            fights.written(rendering("d"), &applied(), now + PACE.calm),
            0
        );
    }

    #[test]
    fn objects_at_peace_are_forgotten() {
        let fights = Fights::default();
        let now = Instant::now();
        for number in 0..super::super::pace::REMEMBERED {
            let key = ObjectKey::new("n", &number.to_string());
            let rendering = Rendering::of(&Kind::new("v1", "ConfigMap"), &key, "d");
            fights.written(rendering, &applied(), now);
        }
        fights.written(rendering("d"), &applied(), now + PACE.calm);
        assert_eq!(fights.0.remembered(), 1);
    }
}
