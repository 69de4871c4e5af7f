//! What to do next, by the reason of the condition that says why nothing moves.

pub(super) mod names;
mod rejection;
mod subject;
mod validation;
mod wiring;

use api_types::status::StampedRef;
use api_types::{Condition, ConditionStatus, ConditionType, Reason};

pub(super) use subject::Subject;

use super::Step;

/// For what hinders the owner before any step is tried, or when no step explains it.
pub(super) fn for_owner(subject: &Subject<'_>, steps: &[Step], condition: &Condition) -> String {
    let words = subject.family.blueprint_words();
    let by_reason: [(&[Reason], String); 5] = [
        (
            &[
                Reason::WorkloadLabelsMissing,
                Reason::DeliverableLabelsMissing,
            ],
            format!(
                "give it the labels a {words} selects by; {}",
                subject.compare_selectors()
            ),
        ),
        (
            &[Reason::SupplyChainNotFound, Reason::DeliveryNotFound],
            subject.compare_selectors(),
        ),
        (
            &[
                Reason::MultipleSupplyChainMatches,
                Reason::MultipleDeliveryMatches,
            ],
            subject.tell_matches_apart(),
        ),
        (
            &[Reason::TemplatesNotFound],
            subject.provide_templates(steps, condition),
        ),
        (&[Reason::ServiceAccountError], subject.provide_account()),
    ];
    if let Some(advice) = chosen(by_reason, condition) {
        return advice;
    }
    if condition.is(subject.family.blueprint_ready()) {
        return subject.read_blueprint();
    }
    subject.look_at_controller_log()
}

/// For a step.
pub(super) fn for_step(
    subject: &Subject<'_>,
    steps: &[Step],
    step: &Step,
    condition: &Condition,
) -> String {
    if condition.is(ConditionType::Healthy) {
        return examine_object(subject, step);
    }
    let read_template = read_template(step);
    if let Some(advice) = validation::advice(subject, step, condition, &read_template) {
        return advice;
    }
    // A rendering that fails without an input says so in the words of a template that is wrong.
    if condition.reason == Reason::TemplateStampFailure.as_str() && !step.waiting_for.is_empty() {
        return connect_steps(subject, steps, step);
    }
    let by_reason: [(&[Reason], String); 8] = [
        (
            &[Reason::ApiServerUnavailable],
            "see that the API server, and the webhooks and aggregated APIs that it asks, answer; it is tried again by itself"
                .to_owned(),
        ),
        (
            &[Reason::TemplateObjectRetrievalFailure],
            format!(
                "see whether the template is there: {read_template}; and the {}: {}",
                subject.family.blueprint_words(),
                subject.read_blueprint()
            ),
        ),
        (
            &[Reason::TemplateStampFailure],
            format!(
                "correct the template or what the {} gives it: {read_template}",
                subject.family.owner_word()
            ),
        ),
        (
            &[Reason::TemplateRejectedByAPIServer],
            rejection::advice(&condition.message, subject.account(), &read_template),
        ),
        (
            &[Reason::ObjectContested],
            format!(
                "give the object a name of its own in the template, or let whoever holds it give it up: {read_template}"
            ),
        ),
        (
            &[
                Reason::ResolveTemplateOptionsError,
                Reason::TemplateOptionsMatchError,
            ],
            format!(
                "make exactly one option's selector match: {}",
                subject.read_blueprint()
            ),
        ),
        (
            &[Reason::InputsNotReady, Reason::PassThrough],
            connect_steps(subject, steps, step),
        ),
        (
            &[
                Reason::MissingValueAtPath,
                Reason::ConditionNotMet,
                Reason::FailedConditionMet,
            ],
            examine_output(subject, step, condition, &read_template),
        ),
    ];
    chosen(by_reason, condition).unwrap_or_else(|| subject.look_at_controller_log())
}

fn chosen<const N: usize>(
    by_reason: [(&[Reason], String); N],
    condition: &Condition,
) -> Option<String> {
    let fits = |reasons: &[Reason]| {
        reasons
            .iter()
            .any(|reason| condition.reason == reason.as_str())
    };
    by_reason
        .into_iter()
        .find(|(reasons, _)| fits(reasons))
        .map(|(_, advice)| advice)
}

fn read_template(step: &Step) -> String {
    let template = step.template.as_deref().unwrap_or_default();
    match template.split_once('/') {
        Some((kind, name)) => names::command(
            "read the template of the step",
            &[kind, name],
            format!("kubectl get {} {name} -o yaml", kind.to_ascii_lowercase()),
        ),
        None => "kubectl describe the options of its template".to_owned(),
    }
}

fn examine_object(subject: &Subject<'_>, step: &Step) -> String {
    let Some(object) = &step.object else {
        return subject.look_at_controller_log();
    };
    examine(object, subject.namespace)
}

/// Nothing was written: the controller does not run, or is behind.
pub(super) fn check_controller(controller: &str) -> String {
    format!(
        "if this stays, see whether {controller} runs: kubectl get pods -A -l app.kubernetes.io/name={controller}"
    )
}

/// For a run that could not be made, or says nothing itself.
pub(super) fn read_run_template(template: &str) -> String {
    names::command(
        "read its ClusterRunTemplate, with kubectl describe",
        &[template],
        format!("kubectl describe clusterruntemplates {template}"),
    )
}

/// For a run that the API server does not take.
pub(super) fn refused_run(message: &str, account: (&str, &str), template: &str) -> String {
    let read = names::command(
        "read its ClusterRunTemplate",
        &[template],
        format!("kubectl get clusterruntemplate {template} -o yaml"),
    );
    rejection::advice(message, account, &read)
}

/// An object says more of itself than what is mirrored.
pub(super) fn examine(object: &StampedRef, namespace: &str) -> String {
    let namespace = object.namespace.as_deref().unwrap_or(namespace);
    let resource = object.resource.as_deref().or(object.kind.as_deref());
    let resource = resource.unwrap_or_default();
    let name = object.name.as_deref().unwrap_or_default();
    names::command(
        "inspect it with kubectl describe",
        &[namespace, resource, name],
        format!("inspect it: kubectl describe -n {namespace} {resource}/{name}"),
    )
}

/// A step that waits for what never comes.
fn connect_steps(subject: &Subject<'_>, steps: &[Step], step: &Step) -> String {
    match wiring::never_there(steps, step) {
        Some(fault) => format!("{fault}: {}", subject.edit_blueprint()),
        None => format!(
            "see which steps wait for one another, or for one that is not there: {}",
            subject.read_blueprint()
        ),
    }
}

/// A healthy object without the value will never have it: the path is wrong. One without a health rule may, as far as is known.
fn examine_output(
    subject: &Subject<'_>,
    step: &Step,
    condition: &Condition,
    read_template: &str,
) -> String {
    let examine = examine_object(subject, step);
    let health = step.condition(ConditionType::Healthy);
    if condition.reason != Reason::MissingValueAtPath.as_str() {
        return examine;
    }
    match health {
        Some(health) if health.status == ConditionStatus::True => {
            format!("correct the path in the template ({read_template}), or {examine}")
        }
        Some(health) if health.reason == Reason::OutputNotAvailable.as_str() => format!(
            "{examine}; if the value will never be there, correct the path in the template: {read_template}"
        ),
        _ => examine,
    }
}
