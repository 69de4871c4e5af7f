//! Plays the controllers downstream: fills the status of each stamped object at once.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::api::{Api, STEPS, status_of};
use crate::census::Change;
use crate::layout::Key;
use crate::objects::step_status;
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

/// Writes the status of every step that comes in.
pub(crate) async fn answer(api: Api, mut steps: mpsc::UnboundedReceiver<Step>) {
    let slots = Arc::new(Semaphore::new(WRITES_IN_FLIGHT));
    let mut writes = JoinSet::new();
    while let Some(step) = steps.recv().await {
        let Ok(slot) = slots.clone().acquire_owned().await else {
            return;
        };
        while writes.try_join_next().is_some() {}
        let api = api.clone();
        writes.spawn(async move {
            write(&api, &step).await;
            drop(slot);
        });
    }
}

async fn write(api: &Api, step: &Step) {
    let path = status_of(&STEPS.at(&step.key()));
    let status = step_status(
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
    fn a_list_is_looked_through_and_what_is_gone_forgotten() {
        let mut pending = Pending::default();
        assert_eq!(pending.due(&Change::Listed(vec![step("u", 1, 0)])).len(), 1);
        assert_eq!(pending.due(&Change::Gone(step("u", 1, 0).key())).len(), 0);
        assert!(pending.answered.is_empty());
    }
}
