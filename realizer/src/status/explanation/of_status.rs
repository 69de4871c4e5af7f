//! What a status tells of itself.

use std::collections::BTreeSet;

use api_types::condition::cut;
use api_types::status::MOST_SUMMARY_CHARS;
use api_types::{
    Condition, ConditionStatus, ConditionType, OwnerSummary, Reason, ResourceStatus, SummaryState,
};
use serde_json::Value;

use super::{ExplainedStep, Explanation, first};
use crate::owner::owner_status::OwnerStatus;
use crate::status::conditions;
use crate::status::progress::{Hindrance, one_line};
use crate::{Blueprint, Family};

impl Explanation<'static> {
    /// Reads what a status tells, also one that the Go controller wrote. `blueprint` knows the inputs of the steps and the
    /// order of their submission; without it both are those of the status.
    ///
    /// ```
    /// use realizer::Family;
    /// use realizer::explanation::Explanation;
    ///
    /// let status = serde_json::json!({
    ///     "conditions": [{"type": "Ready", "status": "Unknown", "reason": "MissingValueAtPath",
    ///         "message": "", "lastTransitionTime": "2024-05-01T10:00:00Z"}],
    ///     "resources": [{"name": "build"}, {"name": "deploy", "inputs": [{"name": "build"}]}],
    /// });
    /// let explanation = Explanation::of_status(Family::SupplyChain, &status, None);
    /// assert_eq!(explanation.steps[1].waits_for, ["build"]);
    /// assert_eq!(explanation.first.unwrap().step.as_deref(), Some("build"));
    /// ```
    pub fn of_status(family: Family, status: &Value, blueprint: Option<&Blueprint>) -> Self {
        let status = OwnerStatus::read(family, Some(status));
        let steps = steps(status.resources, blueprint);
        let conditions = status.conditions;
        Self {
            first: first_hindrance(family, &conditions, status.summary.as_ref(), &steps),
            blueprint: status.blueprint_ref.name,
            conditions,
            steps,
            candidates: Vec::new(),
        }
    }
}

/// Those that the blueprint no longer has come last.
fn steps(
    mut entries: Vec<ResourceStatus>,
    blueprint: Option<&Blueprint>,
) -> Vec<ExplainedStep<'static>> {
    let gives = entries.iter().filter(|entry| !entry.outputs.is_empty());
    let gives: BTreeSet<String> = gives.map(|entry| entry.name.clone()).collect();
    let explained = |entry: ResourceStatus, providers: Vec<String>| {
        let is_missing = |from: &String| *from == entry.name || !gives.contains(from);
        let mut waits_for: Vec<String> = providers.into_iter().filter(is_missing).collect();
        waits_for.dedup();
        ExplainedStep {
            entry,
            waits_for,
            ..ExplainedStep::default()
        }
    };
    let order = blueprint.into_iter().flat_map(|blueprint| {
        let order = blueprint.order.iter();
        order.map(move |&step| &blueprint.steps[step])
    });
    let mut steps = Vec::new();
    for declared in order {
        let name = declared.name.as_str();
        let known = entries.iter().position(|entry| entry.name == name);
        let entry = known.map_or_else(
            || ResourceStatus {
                name: name.to_owned(),
                ..ResourceStatus::default()
            },
            |known| entries.remove(known),
        );
        let inputs = declared.inputs.iter();
        let providers = inputs.map(|input| input.resource.to_string());
        steps.push(explained(entry, providers.collect()));
    }
    steps.extend(entries.into_iter().map(|entry| {
        let inputs = entry.inputs.iter();
        let providers = inputs.map(|input| input.name.clone()).collect();
        explained(entry, providers)
    }));
    steps
}

fn first_hindrance(
    family: Family,
    conditions: &[Condition],
    summary: Option<&OwnerSummary>,
    steps: &[ExplainedStep<'_>],
) -> Option<Hindrance> {
    let ready = conditions::of_type(conditions, ConditionType::Ready);
    if ready.is_some_and(|ready| ready.status == ConditionStatus::True) {
        return None;
    }
    let of_owner = |condition: &Condition| {
        Hindrance::of(condition, condition.status == ConditionStatus::False)
    };
    summary
        .and_then(|summary| summarized(summary, conditions, steps))
        .or_else(|| before_any_step(family, conditions).map(of_owner))
        .or_else(|| first(steps))
        .or_else(|| ready.map(of_owner))
}

/// What the controller says. The summary is cut and on one line; where a condition says the same, its message is whole.
fn summarized(
    summary: &OwnerSummary,
    conditions: &[Condition],
    steps: &[ExplainedStep<'_>],
) -> Option<Hindrance> {
    let conditions = match &summary.step {
        // A step that the blueprint has no longer is told of by its conditions, if at all.
        Some(name) => {
            let mut steps = steps.iter();
            &steps
                .find(|step| step.entry.name == *name)?
                .entry
                .conditions
        }
        None => conditions,
    };
    let mut same = conditions.iter().filter(|it| it.reason == summary.reason);
    // The summary adds what a condition may not say.
    let whole = same.find(|it| cut(one_line(&it.message), MOST_SUMMARY_CHARS) == summary.message);
    let message = whole.map_or(&summary.message, |whole| &whole.message);
    Some(Hindrance {
        is_stuck: summary.state == SummaryState::Failing,
        step: summary.step.clone(),
        object: summary.object.clone(),
        reason: Reason::read(&summary.reason),
        message: message.clone(),
    })
}

/// The condition that says why no step was even tried; the step entries are then those of an earlier time.
fn before_any_step(family: Family, conditions: &[Condition]) -> Option<&Condition> {
    let blueprint = conditions::of_type(conditions, family.blueprint_ready());
    let submitted = conditions::of_type(conditions, ConditionType::ResourcesSubmitted);
    let hindrances = [
        Reason::ServiceAccountError,
        Reason::ServiceAccountTokenError,
        Reason::ResourceRealizerBuilderError,
    ];
    blueprint
        .filter(|blueprint| blueprint.status != ConditionStatus::True)
        .or_else(|| submitted.filter(|it| hindrances.contains(&Reason::read(&it.reason))))
}
