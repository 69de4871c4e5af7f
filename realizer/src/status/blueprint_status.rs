//! The status of a blueprint itself (docs/behaviour/status.md#blueprint).

use api_types::event::EventReason;
use api_types::{BlueprintStatus, Condition, ConditionStatus, ConditionType, Reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde_json::Value;

use crate::ErrorKind;
use crate::status::conditions::{self, Conditions};
use crate::status::events;
use crate::{Blueprint, Ended, Outcome, OwnerEvent, Retry, TemplateSource, TemplateState};

/// The outcome for a blueprint. `previous` is its present `status` (null when it has none), `generation` its present
/// `metadata.generation`, `now` is for transition times.
///
/// What is wrong with its graph or selector is told by a condition of its own and by Warning events, once per generation, and
/// does not change `Ready`.
pub fn blueprint_status(
    blueprint: &Blueprint,
    templates: &dyn TemplateSource,
    previous: &Value,
    generation: i64,
    now: Timestamp,
) -> Outcome {
    let previous = BlueprintStatus::deserialize(previous).unwrap_or_default();
    let now = Time(now);
    let found = look_up(blueprint, templates);
    let status = BlueprintStatus {
        observed_generation: Some(generation),
        conditions: blueprint_conditions(&found, blueprint, &previous.conditions, &now),
    };
    let ready = conditions::of_type(&status.conditions, ConditionType::Ready);
    let ready_status = ready.map_or(ConditionStatus::Unknown, |ready| ready.status);
    let mut events = Vec::new();
    if previous.observed_generation != Some(generation) {
        events.extend(
            blueprint
                .warnings()
                .iter()
                .map(|warning| problem(warning.to_string())),
        );
    }
    if status.conditions != previous.conditions {
        events.extend(found.unreadable.iter().map(|text| problem(text.clone())));
    }
    Outcome {
        changed: status != previous,
        ready: ready_status,
        reason: ready.map(|ready| ready.reason.clone()).unwrap_or_default(),
        // The type has string keys and no failing serializer, so the fallback is never taken.
        status: serde_json::to_value(&status).unwrap_or_default(),
        events,
        removals: Vec::new(),
        again: None,
        write_now: false,
        unless_changed: None,
        obsolete_artifacts: Vec::new(),
        tells_all: false,
        end: Ended::of(
            (ready_status != ConditionStatus::True).then_some(ErrorKind::UserMustFix),
            ready_status,
        ),
        retry: if found.unreadable.is_empty() {
            Retry::AwaitChange
        } else {
            Retry::Backoff
        },
    }
}

/// What became of looking up all templates.
struct Found {
    /// Resources whose template is missing; one with two missing options appears twice.
    missing: Vec<String>,
    /// Messages about templates that cannot be read.
    unreadable: Vec<String>,
}

fn look_up(blueprint: &Blueprint, templates: &dyn TemplateSource) -> Found {
    let mut found = Found {
        missing: Vec::new(),
        unreadable: Vec::new(),
    };
    for step in &blueprint.steps {
        for name in step.template_names() {
            let Ok(kind) = step.template_kind else {
                found.missing.push(step.name.to_string());
                continue;
            };
            match templates.template(kind, name) {
                TemplateState::Found(_) => {}
                TemplateState::Missing => found.missing.push(step.name.to_string()),
                TemplateState::Unreadable(cause) => found.unreadable.push(format!(
                    "template [{kind}/{name}] of resource [{}] cannot be used: {cause}",
                    step.name
                )),
            }
        }
    }
    found
}

fn blueprint_conditions(
    found: &Found,
    blueprint: &Blueprint,
    previous: &[Condition],
    now: &Time,
) -> Vec<Condition> {
    let mut conditions = Conditions::new(previous, now);
    if !found.missing.is_empty() {
        conditions.add(
            ConditionType::TemplatesReady,
            ConditionStatus::False,
            &Reason::TemplatesNotFound,
            format!(
                "did not find the template of the resource(s) [{}]",
                found.missing.join(", ")
            ),
        );
    } else if found.unreadable.is_empty() {
        conditions.add(
            ConditionType::TemplatesReady,
            ConditionStatus::True,
            &Reason::Ready,
            "",
        );
    }
    conditions.derive_ready();
    let problems: Vec<String> = blueprint
        .warnings()
        .iter()
        .map(ToString::to_string)
        .collect();
    if !problems.is_empty() {
        conditions.add(
            ConditionType::BlueprintProblem,
            ConditionStatus::True,
            &Reason::BlueprintProblem,
            problems.join("; "),
        );
    }
    conditions.finish()
}

fn problem(message: String) -> OwnerEvent {
    events::of_status(EventReason::BlueprintProblem, message)
}

#[cfg(test)]
mod tests;
