//! What is in an environment, what waits for it, and what its validations say.

use api_types::{EnvironmentStatus, ValidationStatus, ValidationVerdict};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Step, Tree};

/// A line below a step.
pub(super) struct Line {
    /// What it speaks of; empty where it goes on from the line above.
    pub(super) key: &'static str,
    /// The verdict that its mark shows, if it tells one.
    pub(super) verdict: Option<ValidationVerdict>,
    pub(super) text: String,
}

impl Line {
    fn new(key: &'static str, text: String) -> Self {
        Self {
            key,
            verdict: None,
            text,
        }
    }
}

/// The environment that a step is, as lines; none for any other step.
pub(super) fn lines(tree: &Tree, step: &Step) -> Vec<Line> {
    let mut all = tree.environments.iter();
    all.find(|environment| environment.resource == step.name)
        .map(of_environment)
        .unwrap_or_default()
}

fn of_environment(environment: &EnvironmentStatus) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(deployed) = &environment.deployed {
        let unproven = if deployed.unproven {
            "; only the object says so, so it is not handed on"
        } else {
            ""
        };
        let text = format!(
            "{}, {}{unproven}",
            deployed.revision,
            since(&deployed.since)
        );
        lines.push(Line::new("deployed", text));
    }
    if let Some(arriving) = &environment.arriving {
        lines.push(Line::new("arriving", arriving.revision.clone()));
    }
    if let Some(waiting) = &environment.waiting {
        let text = format!("{}, {}", waiting.revision, since(&waiting.since));
        lines.push(Line::new("waiting", text));
    }
    if environment.disregarded.is_some() {
        let text =
            "somebody else wrote annotation carto.run/environment of the object; it is disregarded";
        lines.push(Line::new("note", text.to_owned()));
    }
    let validations = environment.validations.iter().enumerate();
    lines.extend(validations.map(|(index, validation)| Line {
        key: if index == 0 { "validated" } else { "" },
        verdict: Some(validation.verdict),
        text: of_validation(validation),
    }));
    lines
}

fn of_validation(validation: &ValidationStatus) -> String {
    let verdict = match validation.verdict {
        ValidationVerdict::Pending => "has not begun".to_owned(),
        ValidationVerdict::Running => format!("runs {}", since(&validation.since)),
        ValidationVerdict::Succeeded => "passed".to_owned(),
        ValidationVerdict::Failed => "failed".to_owned(),
        ValidationVerdict::TimedOut => "did not end in time".to_owned(),
        ValidationVerdict::Skipped => "does not run".to_owned(),
    };
    let told = validation
        .message
        .iter()
        .flat_map(|message| message.lines());
    match told.map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("{}: {verdict}: {line}", validation.resource),
        None => format!("{}: {verdict}", validation.resource),
    }
}

fn since(time: &Time) -> String {
    format!("since {}", time.0)
}
