//! Plays the controllers downstream: fills the status of each stamped object at once.

use std::collections::{HashMap, HashSet, VecDeque};

use test_support::Change;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::api::{Api, STEPS};
use crate::layout::Key;
use crate::objects::step_status;
use crate::seen::Seen;

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
    pub(crate) fn due(&mut self, change: &Change<Seen>) -> Vec<Seen> {
        let steps = match change {
            Change::Listed(steps) => steps.as_slice(),
            Change::Changed(step) => std::slice::from_ref(step),
            Change::Deleted(step) => {
                self.answered.remove(&step.key());
                &[]
            }
            Change::Gap(_) => &[],
        };
        let due = steps.iter().filter(|step| self.is_due(step));
        due.cloned().collect()
    }

    fn is_due(&mut self, step: &Seen) -> bool {
        let now = (step.metadata.uid.clone(), step.metadata.generation);
        !step.is_settled() && self.answered.insert(step.key(), now.clone()).as_ref() != Some(&now)
    }
}

/// The order of writes: as steps came in, but never two for the same object at once. The later status could land first, and
/// the earlier one would then stay for ever.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Seen>,
    busy: HashSet<Key>,
}

impl Line {
    /// The next step whose status may be written now.
    fn next(&mut self) -> Option<Seen> {
        if self.busy.len() >= WRITES_IN_FLIGHT {
            return None;
        }
        let is_free = |step: &Seen| !self.busy.contains(&step.key());
        let free = self.waiting.iter().position(is_free)?;
        let step = self.waiting.remove(free)?;
        self.busy.insert(step.key());
        Some(step)
    }
}

/// Writes the status of every step that comes in.
pub(crate) async fn answer(api: Api, mut steps: mpsc::UnboundedReceiver<Seen>) {
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
                write(&api, &step).await;
                step.key()
            });
        }
    }
}

#[expect(clippy::print_stderr, reason = "the bench speaks to a terminal")]
async fn write(api: &Api, step: &Seen) {
    let path = STEPS.status_at(&step.key());
    let Seen { spec, metadata, .. } = step;
    let status = step_status(&spec.value, &spec.revision, metadata.generation);
    for _ in 0..ATTEMPTS {
        match api.merge(&path, &status).await {
            Ok(()) => return,
            Err(error) if is_gone(&error) => return,
            Err(error) => eprintln!("bench: downstream: {error:#}"),
        }
    }
}

fn is_gone(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::tests::step;

    #[test]
    fn each_generation_is_answered_once_and_what_is_gone_forgotten() {
        let mut pending = Pending::default();
        let mut due = |change: Change<Seen>| pending.due(&change).len();
        assert_eq!(
            due(Change::Listed(vec![step("a", 1, 0), step("b", 1, 1)])),
            1
        );
        // A change of metadata before our status was seen.
        assert_eq!(due(Change::Changed(step("a", 1, 0))), 0);
        assert_eq!(due(Change::Changed(step("a", 1, 1))), 0);
        assert_eq!(due(Change::Changed(step("a", 2, 1))), 1);
        let mut anew = step("a", 2, 0);
        "v".clone_into(&mut anew.metadata.uid);
        assert_eq!(
            due(Change::Changed(anew.clone())),
            1,
            "made anew under the same name"
        );
        assert_eq!(due(Change::Deleted(anew)), 0);
        assert!(pending.answered.is_empty());
    }

    fn line(waiting: impl IntoIterator<Item = Seen>) -> Line {
        Line {
            waiting: waiting.into_iter().collect(),
            ..Line::default()
        }
    }

    #[test]
    fn statuses_of_one_object_are_written_one_after_the_other() {
        let mut line = line([step("a", 1, 0), step("a", 2, 0), step("b", 1, 0)]);
        let mut next = |written: bool| {
            if written {
                line.busy.clear();
            }
            let step = line.next()?;
            Some((step.metadata.name, step.metadata.generation))
        };
        assert_eq!(next(false), Some(("a".to_owned(), 1)));
        assert_eq!(next(false), Some(("b".to_owned(), 1)));
        assert_eq!(next(false), None);
        assert_eq!(next(true), Some(("a".to_owned(), 2)));
    }

    #[test]
    fn writes_in_flight_are_bounded() {
        let mut line = line((0..100).map(|number| step(&format!("step-{number}"), 1, 0)));
        assert_eq!(std::iter::from_fn(|| line.next()).count(), WRITES_IN_FLIGHT);
    }
}
