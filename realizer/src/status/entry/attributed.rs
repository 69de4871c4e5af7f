//! What an entry says where the template says when its outputs are good: whether they are, what else is under way, and the
//! last good ones (docs/behaviour/attribution.md#status).

use api_types::condition::whole_seconds;
use api_types::event::EventReason;
use api_types::{
    Condition, ConditionStatus, ConditionType, OutputStatus, Reason, ResourceStatus, UnderWay,
};

use super::{Entry, EntryMaker};
use crate::Template;
use crate::status::conditions::Conditions;
use crate::status::events;
use crate::step::end::{StepEnd, StepResult};
use crate::template::outputs::Output;
use crate::template::provenance;
use crate::values::redaction::REDACTED;

impl EntryMaker<'_> {
    /// The last good outputs, as long as they mean what those of the template mean.
    pub(super) fn last_good(&self, template: &Template) -> Vec<OutputStatus> {
        let entry = self.previous.filter(|_| !self.is_of_another_blueprint);
        let former = entry.map_or(&[][..], |entry| provenance::former(entry, template));
        let mut outputs = former.to_vec();
        for output in &mut outputs {
            output.current = Some(false);
            self.hide(output);
        }
        outputs
    }

    /// Those of an update that came before the one that the step stands for.
    pub(super) fn earlier(&self, output: &Output) -> Vec<OutputStatus> {
        let before = self.previous.map_or(&[][..], |entry| &entry.outputs);
        let mut outputs = output.statuses(before, self.key, self.now);
        for output in &mut outputs {
            output.current = Some(false);
        }
        outputs
    }

    /// What is applied and what waits, where updates wait.
    pub(super) fn tell_updates(&self, entry: &mut Entry, template: &Template) {
        let Some(weighed) = self.updates else {
            if template.updates.is_none() {
                entry.status.updates = None;
            }
            return;
        };
        entry.status.updates = Some(weighed.stack.clone());
        if let Some(under_way) = &mut entry.status.under_way {
            let applied = &weighed.stack.applied;
            under_way.inputs.clone_from(&applied.made_from.inputs);
        }
        entry.events.extend(weighed.timed_out.map(|number| {
            events::of_status(
                EventReason::UpdateTimedOut,
                format!(
                    "[{}] update {number} did not end within the timeout of its template; update {} takes its place",
                    self.step.name, weighed.stack.applied.number
                ),
            )
        }));
    }

    /// Adds what is told besides.
    pub(super) fn attribute(
        &self,
        entry: &mut ResourceStatus,
        template: &Template,
        result: &StepResult,
    ) {
        let (status, reason, mut message) = Self::state(result);
        let is_good = status == ConditionStatus::True;
        if !is_good && !template.outputs.is_nothing() {
            message = self.told(&message, entry, result.output().is_some());
            message = self.with_waiting(message);
        }
        entry.under_way = (!is_good).then(|| self.under_way());
        let condition = self.outputs_good(status, &reason, message);
        entry.conditions.push(condition);
    }

    fn state(result: &StepResult) -> (ConditionStatus, Reason, String) {
        let reconciling = |why: String| (ConditionStatus::Unknown, Reason::Reconciling, why);
        match &result.end {
            StepEnd::PassedThrough(_) => (ConditionStatus::True, Reason::Good, String::new()),
            StepEnd::Failed(_) => {
                reconciling("nothing was submitted for what goes into the step now".to_owned())
            }
            StepEnd::Submitted(submitted) => match (&submitted.unsettled, &submitted.output) {
                (None, Ok(_)) => (ConditionStatus::True, Reason::Good, String::new()),
                (None, Err(error)) if result.end.has_failed() => {
                    (ConditionStatus::False, Reason::Failed, error.to_string())
                }
                (Some(error), _) | (None, Err(error)) => reconciling(error.to_string()),
            },
        }
    }

    /// What the step works on, and since when.
    fn under_way(&self) -> UnderWay {
        let before = self.previous.and_then(|entry| entry.under_way.as_ref());
        let since = before.map_or_else(|| whole_seconds(self.now), |before| before.since.clone());
        UnderWay {
            since,
            inputs: self.inputs.to_vec(),
        }
    }

    fn outputs_good(&self, status: ConditionStatus, reason: &Reason, message: String) -> Condition {
        let mut conditions = Conditions::new(self.previous_conditions(), self.now);
        conditions.add(ConditionType::OutputsGood, status, reason, message);
        conditions.finish().remove(0)
    }
}

impl EntryMaker<'_> {
    /// With what goes on downstream meanwhile, or why nothing does.
    fn told(&self, message: &str, entry: &ResourceStatus, is_handed_on: bool) -> String {
        let is_secret = entry
            .outputs
            .iter()
            .any(|output| output.preview == REDACTED);
        let lost = || {
            let before = self.previous?;
            let why = self.artifacts.why_lost(before, &entry.outputs)?;
            Some(format!("{why}: later steps wait"))
        };
        let meanwhile = match (is_handed_on, &entry.outputs[..]) {
            (true, _) => "the last good outputs are handed on meanwhile".into(),
            (false, []) => "no output was good before".into(),
            (false, _) if is_secret => {
                "the last good outputs come from a Secret, so they are not kept: later steps wait"
                    .into()
            }
            (false, _) => lost().unwrap_or_else(|| {
                "the last good outputs are too large to be kept: later steps wait".to_owned()
            }),
        };
        format!("{message}; {meanwhile}")
    }

    /// With how many updates wait.
    fn with_waiting(&self, message: String) -> String {
        let waiting = self.updates.map_or(0, |it| it.stack.waiting.len());
        match waiting {
            0 => message,
            1 => format!("{message}; 1 update waits"),
            several => format!("{message}; {several} updates wait"),
        }
    }
}
