//! The arithmetic of conditions (docs/behaviour/status.md#ready): `Ready` is derived, times move
//! only when something else does.

use api_types::{Condition, ConditionStatus, ConditionType, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The reason and message that decide a derived condition.
///
/// The last False wins; without one, the first Unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deciding<'c> {
    last_false: Option<&'c Condition>,
    first_unknown: Option<&'c Condition>,
}

impl<'c> Deciding<'c> {
    pub(crate) fn among(conditions: impl IntoIterator<Item = &'c Condition>) -> Self {
        conditions
            .into_iter()
            .fold(Self::default(), |deciding, condition| {
                match condition.status {
                    ConditionStatus::False => Self {
                        last_false: Some(condition),
                        ..deciding
                    },
                    ConditionStatus::Unknown => Self {
                        first_unknown: deciding.first_unknown.or(Some(condition)),
                        ..deciding
                    },
                    ConditionStatus::True => deciding,
                }
            })
    }

    pub(crate) fn condition(&self) -> Option<&'c Condition> {
        self.last_false.or(self.first_unknown)
    }
}

/// Builds one list of conditions, in order, ending with `Ready` and then the extra ones.
pub(crate) struct Conditions<'p> {
    previous: &'p [Condition],
    now: &'p Time,
    list: Vec<Condition>,
}

impl<'p> Conditions<'p> {
    pub(crate) fn new(previous: &'p [Condition], now: &'p Time) -> Self {
        Self {
            previous,
            now,
            list: Vec::with_capacity(4),
        }
    }

    /// Goes on with a list that `Ready` has ended.
    pub(crate) fn go_on(list: Vec<Condition>, previous: &'p [Condition], now: &'p Time) -> Self {
        Self {
            list,
            ..Self::new(previous, now)
        }
    }

    pub(crate) fn add(
        &mut self,
        type_: ConditionType,
        status: ConditionStatus,
        reason: &Reason,
        message: impl Into<String>,
    ) {
        let condition = Condition::new(type_, status, reason, message, self.now);
        self.list.push(self.timed(condition));
    }

    /// Adds a condition that was decided before, with its time.
    pub(crate) fn carry_over(&mut self, condition: Condition) {
        self.list.push(condition);
    }

    /// Adds `Ready` and ends the part of the list that feeds it.
    pub(crate) fn derive_ready(&mut self) {
        let ready = if self.list.is_empty() {
            Condition::new(
                ConditionType::Ready,
                ConditionStatus::Unknown,
                &Reason::Unknown,
                "",
                self.now,
            )
        } else {
            match Deciding::among(&self.list).condition() {
                Some(deciding) => Condition {
                    type_: ConditionType::Ready.as_str().to_owned(),
                    last_transition_time: self.now.clone(),
                    ..deciding.clone()
                },
                None => Condition::new(
                    ConditionType::Ready,
                    ConditionStatus::True,
                    &Reason::Ready,
                    "",
                    self.now,
                ),
            }
        };
        self.list.push(self.timed(ready));
    }

    /// What was added so far.
    pub(crate) fn list(&self) -> &[Condition] {
        &self.list
    }

    pub(crate) fn finish(self) -> Vec<Condition> {
        self.list
    }

    /// The condition with the time of its predecessor if that says the same
    /// (docs/behaviour/status.md#ready); a reconcile that changes
    /// nothing must not move any time).
    fn timed(&self, condition: Condition) -> Condition {
        let same = self
            .previous
            .iter()
            .find(|previous| previous.says_the_same_as(&condition));
        match same {
            Some(previous) => previous.clone(),
            None => Condition {
                last_transition_time: api_types::condition::whole_seconds(self.now),
                ..condition
            },
        }
    }
}

/// The condition of this type, if there is one.
pub(crate) fn of_type(conditions: &[Condition], type_: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.is(type_))
}

#[cfg(test)]
mod tests;
