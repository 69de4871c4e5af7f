//! What holds an owner back, of all that is wrong with its steps.

use api_types::{Condition, ConditionStatus, ConditionType, Reason};

use super::Conclusion;
use crate::owner::owner_status::object_ref;
use crate::status::progress::{Hindrance, Urgency};
use crate::status::{conditions, events};
use crate::step::error::StepError;

impl Conclusion<'_> {
    /// What holds the owner back.
    pub(super) fn hindrance(&self, ready: &Condition) -> Hindrance {
        let steps = 0..self.entries.len();
        let concerns = steps.filter_map(|step| Some((self.concern(step)?, step)));
        match concerns.min_by_key(|(concern, step)| (concern.standing(), *step)) {
            Some((Concern::Error(error), step)) => self.failing(step, error),
            Some((Concern::Object(healthy), step)) => self.of_object(step, healthy),
            None => Hindrance::of(ready, ready.status == ConditionStatus::False),
        }
    }

    /// What is wrong with a step, if anything. A value that is awaited does not come from an object that says it is broken.
    fn concern(&self, step: usize) -> Option<Concern<'_>> {
        let mut errors = self.errors.iter();
        let error = errors.find(|(failed, _)| *failed == step);
        let error = error.map(|(_, error)| error);
        let unhealthy = self.unhealthy(step);
        let broken = unhealthy.filter(|healthy| {
            let waits = error.is_some_and(StepError::waits_for_object);
            waits && healthy.status == ConditionStatus::False
        });
        broken
            .map(Concern::Object)
            .or_else(|| error.map(Concern::Error))
            .or_else(|| unhealthy.map(Concern::Object))
    }

    fn failing(&self, step: usize, error: &StepError) -> Hindrance {
        let message = match error.unreadable() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        self.at_step(step, error.is_stuck(), error.verdict().reason, message)
    }

    /// Condition `Healthy` of the step, unless it is True or there is none.
    fn unhealthy(&self, step: usize) -> Option<&Condition> {
        let conditions = &self.entries[step].status.conditions;
        conditions::of_type(conditions, ConditionType::Healthy)
            .filter(|healthy| healthy.status != ConditionStatus::True)
    }

    fn of_object(&self, step: usize, healthy: &Condition) -> Hindrance {
        let is_stuck = healthy.status == ConditionStatus::False;
        let reason = Reason::copied(&healthy.reason);
        self.at_step(step, is_stuck, reason, healthy.message.clone())
    }

    fn at_step(&self, step: usize, is_stuck: bool, reason: Reason, message: String) -> Hindrance {
        let status = &self.entries[step].status;
        let stamped = status.stamped_ref.as_ref().and_then(object_ref);
        let shown = stamped.and_then(|object| events::shown(&object));
        Hindrance {
            is_stuck,
            step: Some(status.name.clone()),
            object: shown.map(|shown| self.taint.scrub(shown)),
            reason,
            message: self.taint.scrub(message),
        }
    }
}

/// What is wrong with a step.
enum Concern<'c> {
    Error(&'c StepError),
    /// Condition `Healthy`, which is not True.
    Object(&'c Condition),
}

impl Concern<'_> {
    fn standing(&self) -> Urgency {
        match self {
            Self::Error(error) if error.is_stuck() => Urgency::Stuck,
            Self::Error(error) if error.waits_for_another_step() => Urgency::Awaits,
            Self::Object(healthy) if healthy.status == ConditionStatus::False => Urgency::Stuck,
            Self::Error(_) | Self::Object(_) => Urgency::GoesOn,
        }
    }
}
