//! Who owns a live object, and how often a writer that keeps undoing us is answered.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The first answer to an undone write is immediate; each further one waits twice as long.
const FIRST_SPACING: Duration = Duration::from_millis(50);
/// Two seconds after a writer stops, the object must equal the rendering again.
const LONGEST_SPACING: Duration = Duration::from_millis(1600);
/// An object that stayed as applied this long is at peace.
const CALM: Duration = Duration::from_secs(10);
/// Objects remembered at most; the memory only spaces writes, nothing depends on it.
const REMEMBERED: usize = 4096;

#[derive(Debug, Clone)]
struct Fight {
    digest: Box<str>,
    last_write: Instant,
    answers: u32,
}

/// Writes per object, to space those that repeat the same rendering.
#[derive(Debug, Default)]
pub struct Fights {
    fights: Mutex<HashMap<Box<str>, Fight>>,
}

impl Fights {
    /// Whether the rendering may be written again now; otherwise how long to wait.
    ///
    /// # Errors
    /// The remaining wait.
    pub fn may_write(&self, uid: &str, digest: &str, now: Instant) -> Result<(), Duration> {
        let fights = self.fights.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(fight) = fights.get(uid).filter(|fight| *fight.digest == *digest) else {
            return Ok(());
        };
        let elapsed = now.duration_since(fight.last_write);
        let spacing = spacing(fight.answers);
        if elapsed >= spacing {
            Ok(())
        } else {
            Err(spacing.saturating_sub(elapsed))
        }
    }

    /// Records a write of this rendering to an object that existed.
    pub fn written(&self, uid: &str, digest: &str, now: Instant) {
        let mut fights = self.fights.lock().unwrap_or_else(PoisonError::into_inner);
        if fights.len() >= REMEMBERED {
            fights.retain(|_, fight| now.duration_since(fight.last_write) < CALM);
        }
        let known = fights.get(uid).filter(|fight| {
            *fight.digest == *digest && now.duration_since(fight.last_write) < CALM
        });
        let answers = known.map_or(0, |fight| fight.answers.saturating_add(1));
        fights.insert(
            uid.into(),
            Fight {
                digest: digest.into(),
                last_write: now,
                answers,
            },
        );
    }

    /// How often in a row the same rendering was written to this object.
    pub fn answers(&self, uid: &str) -> u32 {
        let fights = self.fights.lock().unwrap_or_else(PoisonError::into_inner);
        fights.get(uid).map_or(0, |fight| fight.answers)
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

    #[test]
    fn the_first_answer_is_immediate_and_later_ones_are_spaced_out() {
        let fights = Fights::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..9 {
            if let Err(wait) = fights.may_write("u", "d", now) {
                waits.push(wait);
                now += wait;
            }
            assert_eq!(fights.may_write("u", "d", now), Ok(()));
            fights.written("u", "d", now);
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
            fights.written("u", "d", now);
        }
        assert!(fights.may_write("u", "d", now).is_err());
        assert_eq!(fights.may_write("u", "other", now), Ok(()));
    }

    #[test]
    fn after_a_calm_time_the_count_starts_again() {
        let fights = Fights::default();
        let now = Instant::now();
        fights.written("u", "d", now);
        fights.written("u", "d", now);
        assert_eq!(fights.answers("u"), 1);
        fights.written("u", "d", now + CALM);
        assert_eq!(fights.answers("u"), 0);
    }
}
