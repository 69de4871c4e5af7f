//! The tree of a Runnable: its template, and its runs as steps, the newest first.

use api_types::runnable::{RunRecord, RunResult, RunnableSpec, RunnableStatus};
use api_types::{Condition, ConditionStatus, ConditionType, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use realizer::Advice;
use serde::Deserialize;
use serde_json::Value;

use super::cause::{said, verb};
use super::{Blueprint, Headline, MetadataView, Output, State, Step, Tree, TreeError, advice};

const KIND: &str = "Runnable";

#[derive(Deserialize)]
struct View {
    metadata: MetadataView,
    spec: RunnableSpec,
    #[serde(default)]
    status: RunnableStatus,
}

/// Reads the tree. The template is named, not read: what it gave stands in the status.
///
/// # Errors
///
/// [`TreeError`] when the object is no Runnable.
pub(super) fn read(object: &Value) -> Result<Tree, TreeError> {
    let view =
        View::deserialize(object).map_err(|source| TreeError::Owner { kind: KIND, source })?;
    let headline = view.headline();
    let View {
        metadata,
        spec,
        status,
    } = view;
    let steps = steps(&status);
    Ok(Tree {
        kind: KIND,
        ready: headline.state == State::Ready,
        headline,
        because: None,
        namespace: metadata.namespace,
        name: metadata.name,
        generation: metadata.generation,
        observed_generation: status.observed_generation,
        blueprint: Some(Blueprint {
            kind: "ClusterRunTemplate".to_owned(),
            name: spec.run_template_ref.name,
            known: true,
        }),
        steps,
        conditions: status.conditions,
        environments: Vec::new(),
        pending_removals: Vec::new(),
    })
}

impl View {
    fn condition(&self, type_: ConditionType) -> Option<&Condition> {
        let mut all = self.status.conditions.iter();
        all.find(|condition| condition.is(type_))
    }

    fn headline(&self) -> Headline {
        let subject = format!(
            "runnable {}/{}",
            self.metadata.namespace, self.metadata.name
        );
        let current = self.status.observed_generation >= Some(self.metadata.generation);
        let ready = self.condition(ConditionType::Ready).filter(|_| current);
        let Some(ready) = ready else {
            let controller = advice::check_controller("runnable-controller");
            let text = if self.status.observed_generation.is_none() {
                format!("{subject} has not been reconciled yet")
            } else {
                format!("the latest change of {subject} has not been reconciled yet")
            };
            return headline(State::Waiting, text, Some(controller), None);
        };
        let state = State::from(ready.status);
        if state == State::Ready {
            return headline(state, format!("{subject} is ready"), None, None);
        }
        let text = format!(
            "{subject} {}: {}",
            verb(ready.status),
            said(&ready.message, &ready.reason)
        );
        headline(state, text, Some(self.next(ready)), Some(ready))
    }

    fn next(&self, ready: &Condition) -> String {
        let reason = Reason::read(&ready.reason);
        let advice = Advice::on(&reason, ready.status == ConditionStatus::False);
        let template = self.spec.run_template_ref.name.as_str();
        match advice {
            Advice::HeedRefusal => {
                let own = self.spec.service_account_name.as_deref();
                let account = own.filter(|name| !name.is_empty()).unwrap_or("default");
                let account = (self.metadata.namespace.as_str(), account);
                advice::refused_run(&ready.message, account, template)
            }
            // These are about the Runnable, or about nothing of its own.
            Advice::AllowLists
            | Advice::AllowDeletion
            | Advice::AllowWatch
            | Advice::AllowTokens
            | Advice::AwaitApiServer
            | Advice::AwaitRun
            | Advice::ProvideAccount
            | Advice::ShrinkOwner => advice::words(advice),
            Advice::CorrectPath
            | Advice::CorrectTemplate
            | Advice::EndRecursion
            | Advice::FindRunTemplate
            | Advice::KeepFewer
            | Advice::RenderSteadily
            | Advice::ShrinkRendering => format!(
                "{}: {}",
                advice::words(advice),
                advice::read_run_template(template)
            ),
            // Those of steps come with the conditions of runs, if at all.
            Advice::Nothing
            | Advice::GiveLabels
            | Advice::LetNamespaceIn
            | Advice::NameOwnAccount
            | Advice::CompareSelectors
            | Advice::TellMatchesApart
            | Advice::ProvideTemplates
            | Advice::ConnectSteps
            | Advice::AwaitSteps
            | Advice::ChooseOption
            | Advice::FindTemplate
            | Advice::Separate
            | Advice::StopWriter
            | Advice::ExamineObject
            | Advice::AwaitValidation
            | Advice::PushAnother
            | Advice::HastenValidation
            | Advice::ReadLog => self.examine(template),
        }
    }

    /// The newest run, or the template when it is what is wrong.
    fn examine(&self, template: &str) -> String {
        let ready = self.condition(ConditionType::RunTemplateReady);
        let usable = ready.is_some_and(|ready| ready.status == ConditionStatus::True);
        match &self.status.stamped_ref {
            Some(run) if usable => advice::examine(run, &self.metadata.namespace),
            _ => advice::read_run_template(template),
        }
    }
}

fn headline(
    state: State,
    text: String,
    next: Option<String>,
    ready: Option<&Condition>,
) -> Headline {
    Headline {
        state,
        text,
        next,
        step: None,
        reason: ready.map(|ready| ready.reason.clone()),
        message: ready.map(|ready| ready.message.clone()),
    }
}

/// The outputs stand below the run that gave them: the newest that succeeded.
fn steps(status: &RunnableStatus) -> Vec<Step> {
    let mut steps: Vec<Step> = status.runs.iter().map(|run| step(run, status)).collect();
    let gave = status
        .runs
        .iter()
        .position(|run| run.result == RunResult::Succeeded);
    if let Some(index) = gave {
        let at = time_of(&status.runs[index]);
        let outputs = status.outputs.iter();
        steps[index].outputs = outputs
            .map(|(name, value)| output(name, value, &at))
            .collect();
    }
    steps
}

fn step(run: &RunRecord, status: &RunnableStatus) -> Step {
    let (state, reason) = match run.result {
        RunResult::Running => (ConditionStatus::Unknown, "Running"),
        RunResult::Succeeded => (ConditionStatus::True, "Succeeded"),
        RunResult::Failed => (ConditionStatus::False, "Failed"),
        RunResult::Removed => (ConditionStatus::Unknown, "Removed"),
    };
    let newest = status.stamped_ref.as_ref();
    let object = newest.filter(|newest| newest.name.as_deref() == Some(&run.name));
    Step {
        name: run.name.clone(),
        object: object.cloned(),
        conditions: vec![Condition {
            type_: ConditionType::Ready.as_str().to_owned(),
            status: state,
            reason: reason.to_owned(),
            message: run.message.clone(),
            last_transition_time: time_of(run),
            observed_generation: None,
        }],
        ..Step::default()
    }
}

/// When it ended, else when it began; the beginning of time when neither is known.
fn time_of(run: &RunRecord) -> Time {
    let known = run.finished.as_ref().or(run.started.as_ref());
    known.cloned().unwrap_or(Time(Timestamp::UNIX_EPOCH))
}

fn output(name: &str, value: &Value, at: &Time) -> Output {
    Output {
        current: None,
        provenance: None,
        name: name.to_owned(),
        preview: value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
        digest: String::new(),
        last_transition_time: at.clone(),
    }
}
