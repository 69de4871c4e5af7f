//! The next thing to do, with its commands. What to do follows from the reason by the one table that the controllers use as
//! well ([`Advice`]); here it gets the names of what it is about.

pub(super) mod names;
mod rejection;
mod subject;
mod wiring;

use api_types::status::StampedRef;
use api_types::{ConditionStatus, ConditionType, Reason};
use realizer::Advice;

pub(super) use subject::Subject;

use super::Step;
use super::cause::Cause;

/// For what holds the owner back: a step, or what hinders it before any step is tried.
pub(super) fn next(subject: &Subject<'_>, steps: &[Step], cause: &Cause<'_>) -> String {
    let advice = cause.advice();
    let told = |command: String| joined(advice, &command);
    let of_template = || match cause.step {
        Some(step) => joined(advice, &read_template(step)),
        None => words(advice),
    };
    match advice {
        Advice::GiveLabels | Advice::TellMatchesApart => {
            format!("{}; {}", words(advice), subject.compare_selectors(advice))
        }
        Advice::CompareSelectors => subject.compare_selectors(advice),
        Advice::ProvideTemplates => subject.provide_templates(steps, &cause.told.message),
        Advice::ProvideAccount => subject.provide_account(),
        Advice::ChooseOption | Advice::LetNamespaceIn => told(subject.read_blueprint()),
        Advice::FindTemplate => format!(
            "{}; and the {}: {}",
            of_template(),
            subject.family.blueprint_words(),
            subject.read_blueprint()
        ),
        // A rendering that fails without an input says so in the words of a template that is wrong.
        Advice::CorrectTemplate if cause.waits_for_steps() => connect(subject, steps, cause),
        Advice::ConnectSteps | Advice::AwaitSteps => connect(subject, steps, cause),
        Advice::HeedRefusal => match cause.step {
            Some(step) => {
                rejection::advice(&cause.told.message, subject.account(), &read_template(step))
            }
            None => words(advice),
        },
        Advice::CorrectPath | Advice::ExamineObject => examine_step(subject, cause),
        Advice::AwaitValidation | Advice::PushAnother => and_examine(subject, words(advice), cause),
        Advice::HastenValidation => and_examine(subject, of_template(), cause),
        Advice::CorrectTemplate
        | Advice::EndRecursion
        | Advice::RenderSteadily
        | Advice::KeepFewer
        | Advice::ShrinkRendering
        | Advice::Separate
        | Advice::StopWriter => of_template(),
        Advice::ShrinkOwner
        | Advice::AllowLists
        | Advice::AllowDeletion
        | Advice::AllowWatch
        | Advice::AllowTokens
        | Advice::AwaitRun
        | Advice::AwaitApiServer
        | Advice::FindRunTemplate
        | Advice::NameOwnAccount => words(advice),
        Advice::Nothing | Advice::ReadLog => subject.look_at_controller_log(),
    }
}

pub(super) fn words(advice: Advice) -> String {
    advice.words().unwrap_or_default().to_owned()
}

fn joined(advice: Advice, command: &str) -> String {
    format!("{}: {command}", words(advice))
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

/// The command that shows the object of the step, if there is one.
fn examine_object(subject: &Subject<'_>, cause: &Cause<'_>) -> Option<String> {
    let object = cause.step?.object.as_ref()?;
    Some(examine(object, subject.namespace))
}

fn and_examine(subject: &Subject<'_>, what: String, cause: &Cause<'_>) -> String {
    match examine_object(subject, cause) {
        Some(examine) => format!("{what}; {examine}"),
        None => what,
    }
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
fn connect(subject: &Subject<'_>, steps: &[Step], cause: &Cause<'_>) -> String {
    match cause.step.and_then(|step| wiring::never_there(steps, step)) {
        Some(fault) => format!("{fault}: {}", subject.edit_blueprint()),
        None => format!(
            "see which steps wait for one another, or for one that is not there: {}",
            subject.read_blueprint()
        ),
    }
}

/// A value that can never be read, or that a healthy object does not have, is one of a wrong path. An object without a health
/// rule may still get it, as far as is known. What speaks of no object speaks of the blueprint, or of nothing that is known.
fn examine_step(subject: &Subject<'_>, cause: &Cause<'_>) -> String {
    let (Some(step), Some(examine)) = (cause.step, examine_object(subject, cause)) else {
        return if cause.is_of_blueprint {
            subject.read_blueprint()
        } else {
            subject.look_at_controller_log()
        };
    };
    let health = step.condition(ConditionType::Healthy);
    let is = |reason: &Reason| health.is_some_and(|health| health.reason == reason.as_str());
    let is_healthy = health.is_some_and(|health| health.status == ConditionStatus::True);
    let correct = joined(Advice::CorrectPath, &read_template(step));
    match cause.told.reason {
        _ if cause.advice() == Advice::CorrectPath => format!("{correct}; or {examine}"),
        Reason::MissingValueAtPath if is_healthy => format!("{correct}; or {examine}"),
        Reason::MissingValueAtPath if is(&Reason::OutputNotAvailable) => {
            format!("{examine}; if the value will never be there, {correct}")
        }
        _ => examine,
    }
}
