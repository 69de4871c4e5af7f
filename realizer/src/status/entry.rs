//! The status entry of a step, and the events that tell how it changed
//! (docs/behaviour/status.md#step-entries, docs/behaviour/status.md#submitted,
//! docs/behaviour/events.md#events).

mod attributed;

use api_types::event::EventReason;
use api_types::{
    Condition, ConditionStatus, ConditionType, InputStatus, OutputStatus, ProvenanceInput, Reason,
    ResourceStatus, TemplateRef,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::blueprint::BlueprintStep;
use crate::owner::owner_status::stamped_ref;
use crate::status::conditions::{self, Conditions};
use crate::status::events;
use crate::step::end::{StepEnd, StepResult, Submitted};
use crate::step::error::{StepError, Verdict};
use crate::template::family_members::object_ref;
use crate::template::health::{Health, Subject};
use crate::template::outputs::Output;
use crate::template::updates::Weighed;
use crate::values::redaction::{REDACTED, Taint};
use crate::{Answer, ErrorKind, KnownArtifacts, ObjectRef, OwnerEvent, StatusKey, Template, Write};

/// What a new entry is made of.
pub(crate) struct EntryMaker<'r> {
    pub(crate) step: &'r BlueprintStep,
    /// The entry of the same name in the present status.
    pub(crate) previous: Option<&'r ResourceStatus>,
    /// Whether that entry speaks of another blueprint, to which the owner belonged before.
    pub(crate) is_of_another_blueprint: bool,
    /// What of the inputs came from Secrets.
    pub(crate) taint: &'r Taint,
    /// The outputs that go in.
    pub(crate) inputs: &'r [ProvenanceInput],
    /// The updates of a step that waits with them, and what follows.
    pub(crate) updates: Option<&'r Weighed>,
    /// The Artifacts of the owner.
    pub(crate) artifacts: &'r KnownArtifacts,
    pub(crate) key: &'r StatusKey,
    pub(crate) now: &'r Time,
}

/// A new entry with the events that go with it.
pub(crate) struct Entry {
    pub(crate) status: ResourceStatus,
    pub(crate) events: Vec<OwnerEvent>,
    /// Whether the entry tells what the step stands for now; otherwise what exists is left as it is.
    pub(crate) is_settled: bool,
}

impl EntryMaker<'_> {
    pub(crate) fn make(&self, result: &StepResult) -> Entry {
        let mut entry = self.of_end(result);
        let template = result.template.as_deref();
        if let Some(template) = template.filter(|it| it.is_attributed()) {
            self.attribute(&mut entry.status, template, result);
            self.tell_updates(&mut entry, template);
        }
        entry
    }

    fn of_end(&self, result: &StepResult) -> Entry {
        match &result.end {
            StepEnd::Submitted(submitted) => self.submitted(result.template.as_deref(), submitted),
            StepEnd::PassedThrough(output) => self.passed_through(output),
            StepEnd::Failed(error @ StepError::PassThrough { .. }) => {
                let mut entry = self.entry(self.bare(), None, Some(error));
                // The step stands for an input now; an object it used to stamp is not its own any more.
                entry.is_settled = true;
                entry
            }
            StepEnd::Failed(error) => self.failed(result.template.as_deref(), error),
        }
    }

    fn submitted(&self, template: Option<&Template>, submitted: &Submitted) -> Entry {
        let attributed = template.filter(|template| template.is_attributed());
        let lacks = attributed.filter(|_| submitted.good().is_none());
        let outputs = match (&submitted.unsettled, &submitted.output) {
            _ if let Some(earlier) = lacks.and(submitted.earlier.as_ref()) => self.earlier(earlier),
            _ if let Some(template) = lacks => self.last_good(template),
            (Some(_), _) => self.former_outputs(),
            (None, Ok(output)) => output.statuses(self.previous_outputs(), self.key, self.now),
            (None, Err(_)) => Vec::new(),
        };
        let error = submitted.unsettled.as_ref();
        let error = error.or_else(|| submitted.output.as_ref().err());
        let object = object_ref(&submitted.observed);
        let status = ResourceStatus {
            stamped_ref: Some(api_types::StampedRef {
                uid: None,
                ..stamped_ref(&object)
            }),
            template_ref: template.map(template_ref),
            outputs,
            applied: submitted.memory.applied.clone(),
            runs: submitted.memory.runs.clone(),
            ..self.bare()
        };
        let before = conditions::of_type(self.previous_conditions(), ConditionType::Healthy);
        let healthy = match before.filter(|_| submitted.memory.is_gone) {
            Some(before) => before.clone(),
            None => self.healthy(&submitted.health),
        };
        let mut entry = self.entry(status, Some(healthy), error);
        entry.is_settled = true;

        let mut events = self.changes(&object, submitted, &entry.status.outputs);
        events.append(&mut entry.events);
        Entry { events, ..entry }
    }

    /// What happened to the object, and what changed in what it says.
    fn changes(
        &self,
        object: &ObjectRef,
        submitted: &Submitted,
        outputs: &[OutputStatus],
    ) -> Vec<OwnerEvent> {
        let Some(shown) = events::shown(object) else {
            return Vec::new();
        };
        let shown = self.taint.scrub(shown);
        let mut events = Vec::new();
        match submitted.write {
            Write::Unchanged | Write::Deferred | Write::Undone(Answer::None) => {}
            Write::Created | Write::Undone(Answer::Created) => {
                events.push(events::applied(format!("Created object [{shown}]")));
            }
            Write::Patched | Write::Undone(Answer::Patched) => {
                events.push(events::applied(format!("Patched object [{shown}]")));
            }
        }
        if !says_the_same(outputs, self.previous_outputs()) {
            events.push(events::of_status(
                EventReason::ResourceOutputChanged,
                format!("[{}] found a new output in [{shown}]", self.step.name),
            ));
        }
        let health = submitted.health.status;
        if !submitted.memory.is_gone && self.health_flipped(health) {
            events.push(events::of_status(
                EventReason::ResourceHealthyStatusChanged,
                format!(
                    "[{}] found healthy status in [{shown}] changed to [{health}]",
                    self.step.name
                ),
            ));
        }
        events
    }

    /// Built anew each time: upstream copies the first one, so that its outputs freeze
    /// (docs/behaviour/selection.md#pass-through).
    fn passed_through(&self, output: &Output) -> Entry {
        let outputs = output.statuses(self.previous_outputs(), self.key, self.now);
        let mut entry = self.entry(
            ResourceStatus {
                outputs,
                ..self.bare()
            },
            None,
            None,
        );
        entry.is_settled = true;
        if entry.status.outputs != self.previous_outputs() {
            entry.events.push(events::of_status(
                EventReason::ResourceOutputChanged,
                format!("[{}] passed through a new output", self.step.name),
            ));
        }
        entry
    }

    /// What was there before stays in the entry as it was, as it stays in the cluster
    /// (docs/behaviour/status.md#step-entries).
    fn failed(&self, template: Option<&Template>, error: &StepError) -> Entry {
        if let Some(previous) = self.previous {
            let healthy =
                conditions::of_type(&previous.conditions, ConditionType::Healthy).cloned();
            let mut status = previous.clone();
            if self.is_of_another_blueprint {
                // A step of another blueprint has a family of its own, and does not hand on what this one came to.
                status.runs.clear();
                status.updates = None;
            }
            status.outputs = match template.filter(|template| template.is_attributed()) {
                Some(template) => self.last_good(template),
                None => self.former_outputs(),
            };
            return self.entry(status, healthy, Some(error));
        }
        let healthy = template.map(|template| {
            self.healthy(&template.health.judge(Subject {
                object: None,
                kind: template.kind,
                has_outputs: false,
                secret: false,
            }))
        });
        let status = ResourceStatus {
            template_ref: template.map(template_ref),
            ..self.bare()
        };
        self.entry(status, healthy, Some(error))
    }

    /// What was told of the outputs before, which nothing new is known of.
    fn former_outputs(&self) -> Vec<OutputStatus> {
        let mut outputs = self.previous_outputs().to_vec();
        for output in &mut outputs {
            self.hide(output);
        }
        outputs
    }

    /// An output that was told before its step knew what is secret.
    fn hide(&self, output: &mut OutputStatus) {
        if self.taint.scrub(output.preview.as_str()) != output.preview {
            REDACTED.clone_into(&mut output.preview);
            output.digest.clear();
            output.value = None;
        }
    }

    /// Adds the conditions, and a warning if the failure is news and somebody has to act.
    fn entry(
        &self,
        mut status: ResourceStatus,
        healthy: Option<Condition>,
        error: Option<&StepError>,
    ) -> Entry {
        let previous = self.previous_conditions();
        let mut conditions = Conditions::new(previous, self.now);
        let verdict = error.map(StepError::verdict);
        match (&verdict, error) {
            (Some(verdict), Some(error)) => conditions.add(
                ConditionType::ResourceSubmitted,
                verdict.status,
                &verdict.reason,
                error.to_string(),
            ),
            _ => conditions.add(
                ConditionType::ResourceSubmitted,
                ConditionStatus::True,
                &without_error(&status),
                "",
            ),
        }
        if let Some(healthy) = healthy {
            conditions.carry_over(healthy);
        }
        conditions.derive_ready();
        let unreadable = error.and_then(StepError::unreadable);
        if let Some(cause) = unreadable {
            let cause = self.taint.scrub(cause);
            conditions.add(
                ConditionType::OutputUnreadable,
                ConditionStatus::True,
                &Reason::OutputUnreadable,
                cause,
            );
        }
        status.conditions = conditions.finish();
        let told_elsewhere = error.is_some_and(StepError::has_other_event);
        let events = verdict
            .filter(|_| !told_elsewhere)
            .and_then(|verdict| self.warning(&verdict, &status))
            .into_iter()
            .collect();
        Entry {
            status,
            events,
            is_settled: false,
        }
    }

    fn warning(&self, verdict: &Verdict, status: &ResourceStatus) -> Option<OwnerEvent> {
        if verdict.kind == ErrorKind::NotYet {
            return None;
        }
        let submitted = conditions::of_type(&status.conditions, ConditionType::ResourceSubmitted)?;
        let unreadable = conditions::of_type(&status.conditions, ConditionType::OutputUnreadable);
        let news = unreadable.unwrap_or(submitted);
        let previous = self.previous_conditions();
        if previous.iter().any(|before| before.says_the_same_as(news)) {
            return None;
        }
        let reason = if verdict.reason == Reason::ObjectContested {
            EventReason::ObjectContested
        } else if verdict.reason == Reason::ValidationFailed {
            EventReason::ValidationFailed
        } else {
            EventReason::ResourceFailed
        };
        Some(events::of_status(
            reason,
            match unreadable {
                Some(why) => format!(
                    "[{}] {}: {}; correct the template",
                    self.step.name, submitted.message, why.message
                ),
                None => format!("[{}] {}", self.step.name, submitted.message),
            },
        ))
    }

    fn healthy(&self, health: &Health) -> Condition {
        let mut conditions = Conditions::new(self.previous_conditions(), self.now);
        conditions.add(
            ConditionType::Healthy,
            health.status,
            &health.reason,
            health.message.clone(),
        );
        conditions.finish().remove(0)
    }

    /// A first Unknown is no news.
    fn health_flipped(&self, status: ConditionStatus) -> bool {
        match conditions::of_type(self.previous_conditions(), ConditionType::Healthy) {
            Some(before) => before.status != status,
            None => status != ConditionStatus::Unknown,
        }
    }

    fn bare(&self) -> ResourceStatus {
        let inputs = self.step.inputs.iter().map(|input| InputStatus {
            name: input.resource.to_string(),
        });
        ResourceStatus {
            name: self.step.name.to_string(),
            inputs: inputs.collect(),
            ..ResourceStatus::default()
        }
    }

    pub(crate) fn previous_conditions(&self) -> &[Condition] {
        self.previous.map_or(&[], |entry| &entry.conditions)
    }

    fn previous_outputs(&self) -> &[api_types::OutputStatus] {
        self.previous.map_or(&[], |entry| &entry.outputs)
    }
}

/// Whether these outputs are those: what made them may be told anew.
fn says_the_same(outputs: &[OutputStatus], before: &[OutputStatus]) -> bool {
    let mut pairs = outputs.iter().zip(before);
    outputs.len() == before.len()
        && pairs.all(|(output, before)| {
            output.name == before.name
                && output.preview == before.preview
                && output.digest == before.digest
        })
}

fn without_error(status: &ResourceStatus) -> Reason {
    if status.stamped_ref.is_none() {
        Reason::PassThrough
    } else {
        Reason::ResourceSubmissionComplete
    }
}

fn template_ref(template: &Template) -> TemplateRef {
    TemplateRef::new(template.kind.as_str(), template.name.as_str())
}
