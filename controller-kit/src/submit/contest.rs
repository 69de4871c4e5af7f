//! How often a writer that keeps undoing us is answered.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::mapper::Kind;
use crate::stamped::{ObjectKey, Stamped};

/// The first answer to an undone write is immediate; each further one waits twice as long.
const FIRST_SPACING: Duration = Duration::from_millis(50);
/// Two seconds after a writer stops, the object must equal the rendering again.
const LONGEST_SPACING: Duration = Duration::from_millis(1600);
/// An object that stayed as applied this long is at peace.
const CALM: Duration = Duration::from_secs(10);
/// Objects remembered before those at peace are forgotten.
const REMEMBERED: usize = 4096;

/// One rendering of one object, as a number: thousands are remembered, and mistaking one for another would only
/// delay a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rendering {
    object: u64,
    digest: u64,
}

impl Rendering {
    /// The rendering with this digest of the object at this place. The place is what counts: whoever deletes an
    /// object, or hides it from our watch by taking its label, undoes us too.
    pub fn of(kind: &Kind, key: &ObjectKey, digest: &str) -> Self {
        Self {
            object: hash_of(&(kind, key)),
            digest: hash_of(&digest),
        }
    }
}

fn hash_of(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[derive(Debug)]
struct Fight {
    digest: u64,
    last_write: Instant,
    answers: u32,
    /// What the last write came to; kept from the second write of the same rendering on.
    applied: Option<Arc<Stamped>>,
}

/// A write that has to wait.
#[derive(Debug)]
pub struct HeldBack {
    /// How long.
    pub wait: Duration,
    /// What the last write came to.
    pub applied: Arc<Stamped>,
}

/// The latest writes, to space those that repeat the same rendering. Nothing depends on this memory.
#[derive(Debug, Default)]
pub struct Fights {
    fights: Mutex<Fought>,
}

#[derive(Debug, Default)]
struct Fought {
    by_object: HashMap<u64, Fight>,
    cleaned: Option<Instant>,
}

impl Fights {
    /// Whether the rendering, which was written before and undone, has to wait until it may be written again.
    pub fn held_back(&self, rendering: Rendering, now: Instant) -> Option<HeldBack> {
        let fights = self.fights.lock().unwrap_or_else(PoisonError::into_inner);
        let fight = fights.by_object.get(&rendering.object)?;
        let applied = fight.applied.clone()?;
        let wait = spacing(fight.answers).checked_sub(now.duration_since(fight.last_write))?;
        (fight.digest == rendering.digest && !wait.is_zero()).then_some(HeldBack { wait, applied })
    }

    /// Records a write; returns how often in a row the same rendering was written before.
    pub fn written(&self, rendering: Rendering, applied: &Stamped, now: Instant) -> u32 {
        let mut fights = self.fights.lock().unwrap_or_else(PoisonError::into_inner);
        fights.clean(now);
        let known = fights.by_object.get(&rendering.object).filter(|fight| {
            fight.digest == rendering.digest && now.duration_since(fight.last_write) < CALM
        });
        let answers = known.map_or(0, |fight| fight.answers.saturating_add(1));
        let fight = Fight {
            digest: rendering.digest,
            last_write: now,
            answers,
            applied: (answers > 0).then(|| Arc::new(applied.clone())),
        };
        fights.by_object.insert(rendering.object, fight);
        answers
    }
}

impl Fought {
    fn clean(&mut self, now: Instant) {
        let recently = self
            .cleaned
            .is_some_and(|cleaned| now.duration_since(cleaned) < CALM);
        if self.by_object.len() >= REMEMBERED && !recently {
            self.cleaned = Some(now);
            self.by_object
                .retain(|_, fight| now.duration_since(fight.last_write) < CALM);
        }
    }
}

fn spacing(answers: u32) -> Duration {
    if answers == 0 {
        return Duration::ZERO;
    }
    FIRST_SPACING
        .saturating_mul(1 << answers.min(10))
        .min(LONGEST_SPACING)
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
        assert_eq!(waits.last(), Some(&LONGEST_SPACING));
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
        assert_eq!(fights.written(rendering("d"), &applied(), now + CALM), 0);
    }

    #[test]
    fn objects_at_peace_are_forgotten() {
        let fights = Fights::default();
        let now = Instant::now();
        for number in 0..REMEMBERED {
            let key = ObjectKey::new("n", &number.to_string());
            let rendering = Rendering::of(&Kind::new("v1", "ConfigMap"), &key, "d");
            fights.written(rendering, &applied(), now);
        }
        fights.written(rendering("d"), &applied(), now + CALM);
        assert_eq!(fights.fights.lock().unwrap().by_object.len(), 1);
    }
}
