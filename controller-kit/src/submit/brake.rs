//! How many objects are created for one step of an owner within a minute.
//!
//! A template that renders something else each time it is looked at creates an object each time, where its objects are
//! immutable or their names change. Nothing that is meant comes near this number.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use api_types::ResourceName;
use jiff::Timestamp;
use parking_lot::Mutex;
use realizer::SubmitFailureKind;
use tokio::time::Instant;

use super::attempt::Attempt;
use super::backoff::{hash_of, make_room};
use super::failure::{Failure, failed};
use super::now;

/// So many may be created for a step within a [`MINUTE`].
const MOST: usize = 60;
const MINUTE: Duration = Duration::from_mins(1);

/// Steps remembered. Of one that is forgotten, the objects that are there tell.
const REMEMBERED: usize = 4096;

/// When the latest objects were created, by step; none is older than a minute.
#[derive(Debug, Default)]
pub(super) struct Brake(Mutex<HashMap<u64, VecDeque<Instant>>>);

impl Brake {
    /// How long the next object of this step has to wait. `before` are the ages of those that are there, for a step of which
    /// this process knows nothing yet.
    fn wait(
        &self,
        owner: &str,
        step: &ResourceName,
        before: impl FnOnce() -> Vec<Duration>,
        now: Instant,
    ) -> Option<Duration> {
        let step = step_of(owner, step);
        if !self.0.lock().contains_key(&step) {
            self.learn(step, before(), now);
        }
        let mut known = self.0.lock();
        let created = known.get_mut(&step)?;
        forget_old(created, now);
        let oldest = *created.iter().rev().nth(MOST - 1)?;
        Some(MINUTE.saturating_sub(now.duration_since(oldest)))
    }

    /// One was created.
    pub(super) fn created(&self, owner: &str, step: &ResourceName, now: Instant) {
        let mut known = self.0.lock();
        make_place(&mut known, now);
        let created = known.entry(step_of(owner, step)).or_default();
        created.push_back(now);
    }

    /// These were created before.
    fn learn(&self, step: u64, mut ages: Vec<Duration>, now: Instant) {
        ages.sort_unstable();
        ages.truncate(MOST);
        let oldest_first = ages.into_iter().rev();
        let created: VecDeque<Instant> = oldest_first
            .filter_map(|age| now.checked_sub(age))
            .collect();
        if !created.is_empty() {
            let mut known = self.0.lock();
            make_place(&mut known, now);
            known.insert(step, created);
        }
    }
}

fn step_of(owner: &str, step: &ResourceName) -> u64 {
    hash_of(&(owner, step.as_str()))
}

fn make_place(known: &mut HashMap<u64, VecDeque<Instant>>, now: Instant) {
    make_room(known, REMEMBERED, |created| {
        forget_old(created, now);
        !created.is_empty()
    });
}

fn forget_old(created: &mut VecDeque<Instant>, now: Instant) {
    while created
        .front()
        .is_some_and(|at| now.duration_since(*at) >= MINUTE)
    {
        created.pop_front();
    }
}

impl Attempt<'_> {
    /// Refuses to create one more object for a step for which too many were created.
    pub(super) fn hold_back_creation(self) -> Result<(), Failure> {
        let step = &self.submission.resource;
        let brake = &self.submitter.brake;
        let Some(wait) = brake.wait(self.applicant.uid, step, || self.ages(), now()) else {
            return Ok(());
        };
        let message = format!(
            "{MOST} objects were created for [{step}] within a minute, so the next one waits; find out what makes its \
             rendering another one again and again"
        );
        let failure = failed(SubmitFailureKind::TooOften, message);
        Err(Failure::Braked(failure, wait))
    }

    /// One was created.
    pub(super) fn count_creation(self) {
        let brake = &self.submitter.brake;
        brake.created(self.applicant.uid, &self.submission.resource, now());
    }

    /// The ages of the objects of the step, as far as they are there. Whoever makes some of his own has the step wait for a
    /// minute after a restart, and no longer.
    fn ages(self) -> Vec<Duration> {
        let (applicant, owner) = (self.applicant, self.applicant.key());
        let objects = self.source.watch().owned_by(&owner, applicant.uid);
        let of_step = objects.iter().filter(|object| self.is_member(object));
        let created = of_step.filter_map(|object| {
            let content = object.content();
            let created = content["metadata"]["creationTimestamp"].as_str()?;
            created.parse::<Timestamp>().ok()
        });
        created
            .filter_map(|created| Duration::try_from(applicant.now.duration_since(created)).ok())
            .filter(|age| *age < MINUTE)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn more_than_sixty_a_minute_are_spaced_out() {
        let brake = Brake::default();
        let step = ResourceName::from("step");
        let begin = Instant::now();
        let wait = |now| brake.wait("owner", &step, Vec::new, now);
        let mut created = Vec::new();
        // Somebody tries every tenth of a second for three minutes.
        for tenth in 0..1800 {
            let now = begin + SECOND / 10 * tenth;
            if wait(now).is_none() {
                brake.created("owner", &step, now);
                created.push(now);
            }
        }
        for (number, at) in created.iter().enumerate().skip(MOST) {
            assert!(*at - created[number - MOST] >= MINUTE, "{number}");
        }
        assert_eq!(created.len(), 3 * MOST);
        assert_eq!(brake.wait("another", &step, Vec::new, created[59]), None);
    }

    #[test]
    fn after_a_restart_the_objects_that_are_there_tell() {
        let brake = Brake::default();
        let step = ResourceName::from("step");
        let now = Instant::now() + MINUTE;
        let ages = || (0..70).map(|age| SECOND / 2 * age).collect();
        let wait = brake.wait("owner", &step, ages, now).unwrap();
        assert_eq!(wait + SECOND / 2 * 59, MINUTE);
        // Asked once: from then on this process knows.
        assert!(brake.wait("owner", &step, Vec::new, now).is_some());
        assert_eq!(brake.wait("owner", &step, Vec::new, now + MINUTE), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let brake = Brake::default();
        for owner in 0..10_000 {
            brake.created(&owner.to_string(), &"step".into(), Instant::now());
            assert!(brake.0.lock().len() <= REMEMBERED);
        }
    }
}
