//! The updates of a step whose template waits with them (docs/behaviour/updates.md).
//!
//! A rendering that the step has not seen yet is an update. One is applied; the others wait, and the newest of them is next.
//! Which one is next is written to the status before it is applied, so that a process that dies loses nothing.
//!
//! ```text
//!  update ─▶ waiting ─▶ … ─▶ newest ──┐                 ┌─▶ good: all that came before it are dropped
//!                                     ├─▶ applied ──────┼─▶ failed: the newest that waits is next, older ones, too; when all
//!                                     │                 │   have failed, the newest of all is applied once more, and stays
//!                          (nothing) ─┘                 └─▶ no end in time: only one that is newer is
//! ```

use std::time::Duration;

use api_types::condition::whole_seconds;
use api_types::templates::UpdatePolicy;
use api_types::{Update, UpdateStack};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::template::time_limit;

/// The most bytes of renderings, as JSON, that status keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Of one rendering. A larger one is rendered anew when its turn comes.
    rendering: usize,
    /// Of all renderings of a step. The oldest ones that wait are dropped.
    step: usize,
}

/// The most bytes of all renderings of an owner: the API server stores no object of more than 1.5 MiB.
const MOST_OF_OWNER: usize = 512 * 1024;

const MOST_OF_STEP: usize = 128 * 1024;

const MOST_OF_RENDERING: usize = 32 * 1024;

impl Room {
    /// In a blueprint with so many steps, each of which may be one whose updates wait.
    pub(crate) fn among(steps: usize) -> Self {
        let step = MOST_OF_STEP.min(MOST_OF_OWNER / steps.max(1));
        Self {
            rendering: MOST_OF_RENDERING.min(step / 2),
            step,
        }
    }

    /// The text that status keeps of a rendering.
    pub(crate) fn kept(self, rendering: &serde_json::Value) -> Option<String> {
        Some(rendering.to_string()).filter(|text| text.len() <= self.rendering)
    }
}

/// How updates of a step wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpdateRule {
    /// How long one may take before a newer one takes its place.
    time_limit: Option<Duration>,
    most_waiting: usize,
}

/// The updates of a step with what is rendered now among them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arrived {
    pub(crate) stack: UpdateStack,
    /// What is rendered now.
    pub(crate) newest: Update,
    /// Whether the object tells by its values alone that the applied one is in it, so that its rendering need not be kept once
    /// nothing is under way.
    pub(crate) is_told_by_object: bool,
    /// Whether the applied one was done, and others have changed the object since: the next one waits for nothing more.
    pub(crate) is_lost: bool,
}

/// What has become of the update that is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// The object is good.
    Good,
    /// It failed, or the API server refused it.
    Failed(String),
    /// Neither yet.
    Nothing,
}

/// The updates of a step after a walk has looked at its object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weighed {
    pub(crate) stack: UpdateStack,
    /// Number of the update whose place a newer one takes, because it did not end in time.
    pub(crate) timed_out: Option<u64>,
    /// When the next one is due, if no event comes before.
    pub(crate) again: Option<Duration>,
    /// Whether another one is to be applied. It is not applied before status says so.
    pub(crate) is_next_due: bool,
}

impl UpdateRule {
    pub(crate) fn of(policy: &UpdatePolicy) -> Option<Self> {
        policy.waits().then(|| Self {
            time_limit: policy.time_limit(),
            most_waiting: policy.most_waiting(),
        })
    }

    /// What is rendered now comes to the others: `before` is what status says. Of `is_told_by_object` see [`Arrived`].
    pub(crate) fn arrive(
        &self,
        before: Option<&UpdateStack>,
        arrival: Update,
        is_told_by_object: bool,
        room: Room,
    ) -> Arrived {
        let stack = self.stack(before, arrival.clone(), room);
        let newest = Update {
            number: stack.newest,
            ..arrival
        };
        Arrived {
            stack,
            newest,
            is_told_by_object,
            is_lost: false,
        }
    }

    /// An update that came before is the newest again if it comes once more.
    fn stack(&self, before: Option<&UpdateStack>, arrival: Update, room: Room) -> UpdateStack {
        let Some(before) = before else {
            return UpdateStack {
                newest: 1,
                newest_digest: Some(arrival.digest.clone()),
                failure: None,
                read_from: String::new(),
                applied: Update {
                    number: 1,
                    ..arrival
                },
                waiting: Vec::new(),
            };
        };
        let mut stack = before.clone();
        if stack.newest_digest.as_ref() == Some(&arrival.digest) {
            restate(&mut stack, arrival);
            return stack;
        }
        stack.newest += 1;
        stack.newest_digest = Some(arrival.digest.clone());
        stack.failure = None;
        // What was not kept cannot be rendered any more.
        stack
            .waiting
            .retain(|it| it.digest != arrival.digest && it.rendering.is_some());
        let arrival = Update {
            number: stack.newest,
            ..arrival
        };
        if stack.applied.digest == arrival.digest {
            stack.applied.number = arrival.number;
            stack.applied.made_from = arrival.made_from;
            stack.applied.rendering = arrival.rendering;
        } else {
            stack.waiting.push(arrival);
        }
        self.bound(&mut stack, room);
        stack
    }

    fn bound(&self, stack: &mut UpdateStack, room: Room) {
        let waiting = &mut stack.waiting;
        let beyond = waiting.len().saturating_sub(self.most_waiting);
        waiting.drain(..beyond);
        let size = |it: &Update| it.rendering.as_ref().map_or(0, String::len);
        let mut bytes: usize = size(&stack.applied) + waiting.iter().map(size).sum::<usize>();
        while bytes > room.step && waiting.len() > 1 {
            bytes -= size(&waiting.remove(0));
        }
    }

    /// Which update is applied next, by what has become of the present one.
    pub(crate) fn weigh(&self, arrived: Arrived, came: Came, now: &Time) -> Weighed {
        let Arrived {
            mut stack,
            newest,
            is_told_by_object,
            is_lost,
        } = arrived;
        if is_lost {
            return Self::next(stack, now);
        }
        let number = stack.applied.number;
        let is_newest = number == stack.newest;
        match came {
            Came::Good => {
                stack.waiting.retain(|it| it.number > number);
                if is_newest {
                    stack.failure = None;
                }
                // It is rendered in each walk. A status of it is a third larger.
                if is_newest && is_told_by_object {
                    stack.applied.rendering = None;
                }
                Self::next(stack, now)
            }
            Came::Failed(why) => {
                if is_newest {
                    stack.failure = Some(why);
                } else if stack.waiting.is_empty() {
                    // All have failed. What is asked for is what stays: that the API server refuses all of them may be mended.
                    stack.waiting.push(newest);
                }
                Self::next(stack, now)
            }
            Came::Nothing => self.wait(stack, now),
        }
    }

    /// The newest one that waits is next.
    fn next(mut stack: UpdateStack, now: &Time) -> Weighed {
        let next = stack.waiting.pop();
        let is_next_due = next.is_some();
        if let Some(next) = next {
            stack.applied = Update {
                since: whole_seconds(now),
                ..next
            };
        }
        Weighed {
            stack,
            timed_out: None,
            again: is_next_due.then_some(Duration::ZERO),
            is_next_due,
        }
    }

    /// The one that is applied has the time that it may take, and after that as long as no newer one comes.
    fn wait(&self, stack: UpdateStack, now: &Time) -> Weighed {
        let number = stack.applied.number;
        let has_newer = stack.waiting.last().is_some_and(|it| it.number > number);
        let left = self
            .time_limit
            .filter(|_| has_newer)
            .map(|limit| time_limit::left(limit, &stack.applied.since, now.0));
        if left == Some(Duration::ZERO) {
            return Weighed {
                timed_out: Some(number),
                ..Self::next(stack, now)
            };
        }
        Weighed {
            stack,
            timed_out: None,
            again: left,
            is_next_due: false,
        }
    }
}

/// Whether status tells of other updates by now, and not only whether the rendering of the applied one has to be known.
pub(crate) fn are_others(before: &UpdateStack, now: &UpdateStack) -> bool {
    let without_rendering = |stack: &UpdateStack| {
        let mut stack = stack.clone();
        stack.applied.rendering = None;
        stack
    };
    without_rendering(before) != without_rendering(now)
}

/// The same rendering may come from other inputs.
fn restate(stack: &mut UpdateStack, arrival: Update) {
    let waiting = stack.waiting.iter_mut();
    let mut all = std::iter::once(&mut stack.applied).chain(waiting);
    if let Some(same) = all.find(|it| it.digest == arrival.digest) {
        same.made_from = arrival.made_from;
        if same.rendering.is_none() {
            same.rendering = arrival.rendering;
        }
    }
}

#[cfg(test)]
mod tests;
