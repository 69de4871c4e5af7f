//! Plays the controllers downstream: fills the status of each stamped object at once.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::api::{Api, STEPS, status_of};
use crate::census::Change;
use crate::layout::Key;
use crate::seen::{Seen as _, Step};

/// Status writes in flight.
const WRITES_IN_FLIGHT: usize = 8;
/// A write that fails is tried again this often.
const ATTEMPTS: usize = 3;

/// Which steps need a status, without asking twice for the same one.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Uid and generation that was last answered.
    answered: HashMap<Key, (String, i64)>,
}

impl Pending {
    /// The steps of a change whose status must be written now.
    pub(crate) fn due(&mut self, change: &Change<Step>) -> Vec<Step> {
        match change {
            Change::Listed(steps) => steps
                .iter()
                .filter(|step| self.is_due(step))
                .cloned()
                .collect(),
            Change::Changed(step) if self.is_due(step) => vec![step.clone()],
            Change::Changed(_) => Vec::new(),
            Change::Gone(key) => {
                self.answered.remove(key);
                Vec::new()
            }
        }
    }

    fn is_due(&mut self, step: &Step) -> bool {
        let now = (step.metadata.uid.clone(), step.metadata.generation);
        !step.is_settled() && self.answered.insert(step.key(), now.clone()).as_ref() != Some(&now)
    }
}

/// The order of writes: as steps came in, but never two for the same object at once. The later status could land first, and
/// the earlier one would then stay for ever.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Step>,
    busy: HashSet<Key>,
}

impl Line {
    /// The next step whose status may be written now.
    fn next(&mut self) -> Option<Step> {
        if self.busy.len() >= WRITES_IN_FLIGHT {
            return None;
        }
        let free = self
            .waiting
            .iter()
            .position(|step| !self.busy.contains(&step.key()))?;
        let step = self.waiting.remove(free)?;
        self.busy.insert(step.key());
        Some(step)
    }
}

/// The status for a value, a revision and a generation.
pub(crate) type StatusOf = fn(&str, &str, i64) -> Value;

/// Writes the status of every step that comes in.
pub(crate) async fn answer(
    api: Api,
    status_of: StatusOf,
    mut steps: mpsc::UnboundedReceiver<Step>,
) {
    let mut line = Line::default();
    let mut writes = JoinSet::new();
    loop {
        tokio::select! {
            step = steps.recv() => match step {
                Some(step) => line.waiting.push_back(step),
                None => return,
            },
            Some(Ok(written)) = writes.join_next() => {
                line.busy.remove(&written);
            }
        }
        while let Some(step) = line.next() {
            let api = api.clone();
            writes.spawn(async move {
                write(&api, status_of, &step).await;
                step.key()
            });
        }
    }
}

async fn write(api: &Api, status: StatusOf, step: &Step) {
    let path = status_of(&STEPS.at(&step.key()));
    let status = status(
        &step.spec.value,
        &step.spec.revision,
        step.metadata.generation,
    );
    for _ in 0..ATTEMPTS {
        match api.merge(&path, &status).await {
            Ok(()) => return,
            Err(error) if is_gone(&error) => return,
            Err(error) => complain(&error),
        }
    }
}

fn is_gone(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404)
}

#[expect(clippy::print_stderr, reason = "the bench speaks to a terminal")]
fn complain(error: &anyhow::Error) {
    eprintln!("bench: downstream: {error:#}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::{Metadata, StepStatus};

    fn step(uid: &str, generation: i64, observed_generation: i64) -> Step {
        Step {
            metadata: Metadata {
                name: "a".into(),
                uid: uid.into(),
                generation,
                ..Metadata::default()
            },
            status: StepStatus {
                observed_generation,
                ..StepStatus::default()
            },
            ..Step::default()
        }
    }

    #[test]
    fn each_generation_is_answered_once() {
        let mut pending = Pending::default();
        let mut due = |step: Step| pending.due(&Change::Changed(step)).len();
        assert_eq!(due(step("u", 1, 0)), 1);
        assert_eq!(
            due(step("u", 1, 0)),
            0,
            "a change of metadata before our status was seen"
        );
        assert_eq!(due(step("u", 1, 1)), 0);
        assert_eq!(due(step("u", 2, 1)), 1);
        assert_eq!(
            due(step("v", 2, 0)),
            1,
            "an object made anew under the same name"
        );
    }

    #[test]
    fn statuses_of_one_object_are_written_one_after_the_other() {
        let named = |name: &str, generation| {
            let mut step = step("u", generation, 0);
            step.metadata.name = name.to_owned();
            step
        };
        let waiting = [named("a", 1), named("a", 2), named("b", 1)].into();
        let mut line = Line {
            waiting,
            ..Line::default()
        };
        let next = |line: &mut Line| {
            line.next()
                .map(|step| (step.metadata.name, step.metadata.generation))
        };
        assert_eq!(next(&mut line), Some(("a".to_owned(), 1)));
        assert_eq!(next(&mut line), Some(("b".to_owned(), 1)));
        assert_eq!(next(&mut line), None);
        line.busy.clear();
        assert_eq!(next(&mut line), Some(("a".to_owned(), 2)));
    }

    #[test]
    fn writes_in_flight_are_bounded() {
        let named = |number: usize| {
            let mut step = step("u", 1, 0);
            step.metadata.name = format!("step-{number}");
            step
        };
        let mut line = Line {
            waiting: (0..100).map(named).collect(),
            ..Line::default()
        };
        assert_eq!(std::iter::from_fn(|| line.next()).count(), WRITES_IN_FLIGHT);
    }

    #[test]
    fn a_list_is_looked_through_and_what_is_gone_forgotten() {
        let mut pending = Pending::default();
        assert_eq!(pending.due(&Change::Listed(vec![step("u", 1, 0)])).len(), 1);
        assert_eq!(pending.due(&Change::Gone(step("u", 1, 0).key())).len(), 0);
        assert!(pending.answered.is_empty());
    }
}
