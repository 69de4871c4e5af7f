//! An explanation as lines for people, or as JSON for programs. No value of a variable is in it unless
//! it is asked for.

use std::fmt::Write as _;

use pod_presets::{Addition, Conflict, Explained, FieldError, Opponent, Outcome, Settled};
use serde_json::{Value, json};

use super::Told;

const HIDDEN: &str = "<hidden; --show-values shows it>";

/// Lines for people. `difference` says whether the changes of the pod are told, and whether with the
/// values of variables.
pub fn lines(all: &[Told], difference: Option<bool>) -> String {
    let mut text = String::new();
    for (index, told) in all.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        lines_of(&mut text, told);
        if let Some(shows_values) = difference {
            text.push_str(&changes(told, shows_values));
        }
    }
    // Names come out of files and clusters: no terminal is to obey them.
    text.chars().map(plain).collect()
}

fn plain(character: char) -> char {
    match character {
        '\n' => '\n',
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}

fn lines_of(text: &mut String, told: &Told) {
    let presets = &told.explanation.presets;
    let selected = presets.iter().filter(|it| it.outcome.is_selected()).count();
    let _ = writeln!(text, "{}", headline(told));
    let _ = writeln!(text, "{selected} of {} presets select it", presets.len());
    let width = presets.iter().map(|it| it.name.to_string().chars().count());
    let width = width.max().unwrap_or_default();
    for explained in presets {
        let name = explained.name.to_string();
        let _ = writeln!(text, "  {name:width$}  {}", said(explained, told));
        for addition in added(&explained.outcome) {
            let _ = writeln!(text, "    + {}", place(addition));
        }
        for conflict in &explained.conflicts {
            let _ = writeln!(text, "    ! {}", conflict_line(conflict));
        }
    }
    for stale in &told.stale {
        let now = match &stale.current {
            Some(version) => format!("today's is {version}"),
            None => "the preset is gone".to_owned(),
        };
        let (preset, version) = (&stale.preset, &stale.applied);
        let _ = writeln!(text, "it carries version {version} of {preset}; {now}");
    }
    let _ = writeln!(text, "{}", conclusion(told));
}

fn headline(told: &Told) -> String {
    let title = &told.title;
    match &*told.namespace {
        "" => title.clone(),
        namespace => format!("{title} in namespace {namespace}"),
    }
}

fn added(outcome: &Outcome) -> &[Addition] {
    match outcome {
        Outcome::Applied(added) | Outcome::Audited(added) => added,
        _ => &[],
    }
}

fn said(explained: &Explained, told: &Told) -> String {
    match &explained.outcome {
        Outcome::Applied(added) if added.is_empty() => "applied: it has all of it".to_owned(),
        Outcome::Applied(added) => format!("applied: adds {}", counted(added.len())),
        Outcome::Audited(added) => {
            format!("in mode Audit: would add {}", counted(added.len()))
        }
        Outcome::HeldBack if explained.conflicts.iter().any(is_blocking) => {
            "not applied: it conflicts".to_owned()
        }
        Outcome::HeldBack => match blocker(told) {
            Some(other) => format!("not applied: {other} conflicts"),
            None => "not applied".to_owned(),
        },
        Outcome::LeftAlone => "not applied: the pod is left alone".to_owned(),
        Outcome::OtherLabels(why) | Outcome::OtherNamespace(why) => format!("not for it: {why}"),
        Outcome::Invalid(errors) => {
            format!("for no pod, it is not valid: {}", FieldError::all(errors))
        }
    }
}

fn counted(number: usize) -> String {
    match number {
        1 => "1 entry".to_owned(),
        more => format!("{more} entries"),
    }
}

fn is_blocking(conflict: &Conflict) -> bool {
    conflict.settled.is_blocking()
}

fn blocker(told: &Told) -> Option<String> {
    let mut conflicts = told.explanation.injection.conflicts.iter();
    let conflict = conflicts.find(|it| is_blocking(it))?;
    Some(conflict.preset.to_string())
}

fn place(addition: &Addition) -> String {
    let Addition { list, key, .. } = addition;
    match &addition.container {
        Some(container) => format!("container {container}: {list} {key}"),
        None => format!("{list} {key}"),
    }
}

fn conflict_line(conflict: &Conflict) -> String {
    let place = match &conflict.container {
        Some(container) => format!("container {container}: "),
        None => String::new(),
    };
    let with = match &conflict.with {
        Opponent::Pod => "the pod".to_owned(),
        Opponent::Preset(name) => name.to_string(),
    };
    let follows = match conflict.settled {
        Settled::Skipped => "so nothing is injected",
        Settled::Kept => "which stays",
        Settled::Overridden => "which is replaced",
        Settled::Denied => "so the pod is refused",
    };
    let (field, key) = (conflict.field.as_str(), &conflict.key);
    format!("{place}{with} has another {field} {key}, {follows}")
}

fn conclusion(told: &Told) -> String {
    let explanation = &told.explanation;
    if let Some(why) = explanation.untouched {
        return format!("the pod is left alone: {why}");
    }
    if let Some(denied) = &explanation.injection.denied {
        return format!("the pod is refused: {denied}");
    }
    if let Some(blocker) = blocker(told) {
        return format!(
            "the pod is created as it is\n  next: take what conflicts out of the pod or of {blocker}, or give that preset another conflictPolicy"
        );
    }
    match &explanation.injection.pod {
        Some(_) => "the pod is created with all of it".to_owned(),
        None => "the pod is created as it is".to_owned(),
    }
}

fn changes(told: &Told, shows_values: bool) -> String {
    let shown = |pod: &Value| {
        if shows_values {
            return pod.clone();
        }
        hidden(pod.clone())
    };
    match &told.explanation.injection.pod {
        Some(after) => {
            convention_webhook_sdk::testing::difference(&shown(&told.pod), &shown(after))
        }
        None => String::new(),
    }
}

/// The pod without the values of its variables.
fn hidden(mut pod: Value) -> Value {
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let containers = pod["spec"][list].as_array_mut().into_iter().flatten();
        for container in containers {
            let variables = container["env"].as_array_mut().into_iter().flatten();
            for variable in variables {
                if let Some(value) = variable.get_mut("value") {
                    *value = HIDDEN.into();
                }
            }
        }
    }
    pod
}

/// A list with an object for each pod.
///
/// # Errors
///
/// None that is known: all of it is text and numbers.
pub fn json(all: &[Told]) -> anyhow::Result<String> {
    let all: Vec<Value> = all.iter().map(value_of).collect();
    Ok(format!("{}\n", serde_json::to_string_pretty(&all)?))
}

fn value_of(told: &Told) -> Value {
    let explanation = &told.explanation;
    let presets: Vec<Value> = explanation.presets.iter().map(preset_of).collect();
    let stale = told.stale.iter().map(|it| {
        json!({"preset": it.preset, "isOfCluster": it.is_of_cluster, "applied": it.applied, "current": it.current})
    });
    json!({
        "object": told.title,
        "namespace": told.namespace,
        "leftAlone": explanation.untouched.map(|it| it.to_string()),
        "refused": explanation.injection.denied,
        "isChanged": explanation.injection.pod.is_some(),
        "presets": presets,
        "stale": stale.collect::<Vec<Value>>(),
    })
}

fn preset_of(explained: &Explained) -> Value {
    let (outcome, why) = match &explained.outcome {
        Outcome::Applied(_) => ("Applied", None),
        Outcome::Audited(_) => ("Audited", None),
        Outcome::HeldBack => ("HeldBack", None),
        Outcome::LeftAlone => ("LeftAlone", None),
        Outcome::OtherLabels(why) => ("OtherLabels", Some(why.clone())),
        Outcome::OtherNamespace(why) => ("OtherNamespace", Some(why.clone())),
        Outcome::Invalid(errors) => ("Invalid", Some(FieldError::all(errors))),
    };
    let added = added(&explained.outcome).iter().map(
        |it| json!({"path": it.path, "container": it.container, "list": it.list, "key": it.key}),
    );
    let conflicts = explained.conflicts.iter().map(|it| {
        let with = match &it.with {
            Opponent::Pod => "Pod".to_owned(),
            Opponent::Preset(name) => name.to_string(),
        };
        json!({"container": it.container, "field": it.field.as_str(), "key": it.key, "with": with, "settled": format!("{:?}", it.settled)})
    });
    json!({
        "kind": explained.name.origin.kind(),
        "apiVersion": explained.name.origin.api_version(),
        "namespace": explained.name.namespace,
        "name": explained.name.name,
        "outcome": outcome,
        "why": why,
        "added": added.collect::<Vec<Value>>(),
        "conflicts": conflicts.collect::<Vec<Value>>(),
    })
}
