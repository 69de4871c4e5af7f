//! The tree as lines for a terminal.

mod colors;

use api_types::{Condition, ConditionStatus, ConditionType};

use super::environment;
use super::{Below, Blueprint, Step, Tree};
use colors::Style;

pub use colors::Colors;

/// Hexadecimal digits of a digest that are shown.
const DIGEST_CHARS: usize = 8;
/// Characters for the names of the lines below a step.
const KEY_CHARS: usize = 9;

/// The lines, without line ends: first what holds the owner back, then the owner, its blueprint and every step.
pub fn render(tree: &Tree, colors: Colors) -> Vec<String> {
    let mut lines = headline(tree, colors);
    lines.push(String::new());
    lines.push(format!(
        "{} {}/{}",
        tree.kind,
        tree.namespace,
        colors.paint(Style::Strong, &plain(&tree.name))
    ));
    for condition in &tree.conditions {
        lines.extend(condition_lines(condition, "│  ", colors));
    }
    for removal in &tree.pending_removals {
        let (kind, name) = (
            removal.kind.as_deref().unwrap_or("?"),
            removal.name.as_deref().unwrap_or("?"),
        );
        lines.push(format!(
            "│  {} still to be deleted: {}",
            colors.mark(ConditionStatus::Unknown),
            plain(&format!("{kind}/{name}"))
        ));
    }
    lines.push(blueprint_line(tree.blueprint.as_ref(), colors));
    for (index, step) in tree.steps.iter().enumerate() {
        lines.extend(step_lines(
            tree,
            step,
            index + 1 == tree.steps.len(),
            colors,
        ));
    }
    lines
}

fn headline(tree: &Tree, colors: Colors) -> Vec<String> {
    let headline = &tree.headline;
    let mark = colors.state_mark(Some(headline.state));
    let mut lines = vec![format!("{mark} {}", plain(&headline.text))];
    lines.extend(tree.because.iter().map(|because| {
        let key = colors.paint(Style::Strong, "because:");
        format!("  {key} {}", plain(because))
    }));
    lines.extend(
        headline
            .next
            .iter()
            .map(|next| format!("  {} {}", colors.paint(Style::Strong, "next:"), plain(next))),
    );
    lines
}

fn blueprint_line(blueprint: Option<&Blueprint>, colors: Colors) -> String {
    match blueprint {
        None => format!(
            "└─ {}",
            colors.paint(Style::Faint, "no blueprint chosen yet")
        ),
        Some(blueprint) => {
            let unread = if blueprint.known {
                ""
            } else {
                " (could not be read; steps as in the status)"
            };
            let name = colors.paint(Style::Strong, &plain(&blueprint.name));
            format!(
                "└─ {} {name}{}",
                plain(&blueprint.kind),
                colors.paint(Style::Faint, unread).trim_end()
            )
        }
    }
}

fn step_lines(tree: &Tree, step: &Step, last: bool, colors: Colors) -> Vec<String> {
    let (branch, trunk) = if last {
        ("   └─", "      ")
    } else {
        ("   ├─", "   │  ")
    };
    let name = colors.paint(Style::Strong, &plain(&step.name));
    let mut lines = vec![format!("{branch} {} {name}", colors.step_mark(step))];
    let mut below = |key: &str, text: &str| {
        let key = colors.paint(Style::Faint, &format!("{key:KEY_CHARS$}"));
        lines.push(format!("{trunk}  {key} {text}"));
    };
    if let Some(template) = &step.template {
        below("template", &plain(template));
    }
    if let Some(object) = object_text(step) {
        below("object", &object);
    }
    if let Some(found) = &step.below {
        below("", &below_line(found, false, colors));
        for line in below_lines(found, colors) {
            below("", &line);
        }
    }
    if !step.inputs.is_empty() {
        below("inputs", &inputs_text(step));
    }
    if !step.waiting_for.is_empty() {
        below("waits for", &plain(&step.waiting_for.join(", ")));
    }
    for (index, output) in step.outputs.iter().enumerate() {
        let key = if index == 0 { "outputs" } else { "" };
        let mut text = format!("{} = {}", plain(&output.name), plain(&output.first_line()));
        if !output.digest.is_empty() {
            let digest = colors.paint(Style::Faint, &short_digest(&output.digest));
            text = format!("{text} {digest}");
        }
        if output.current == Some(false) {
            let note = colors.paint(Style::Waiting, "last good one");
            text = format!("{text} {note}");
        }
        below(key, &text);
    }
    if let Some(under_way) = &step.under_way {
        let inputs: Vec<String> = under_way
            .inputs
            .iter()
            .map(|input| format!("{} {}", input.name, short_digest(&input.identity)))
            .collect();
        let from = if inputs.is_empty() {
            String::new()
        } else {
            format!(", from {}", inputs.join(", "))
        };
        below(
            "under way",
            &plain(&format!("since {}{from}", under_way.since.0)),
        );
    }
    if let Some(waiting) = step.waiting_updates {
        below("updates", &format!("{waiting} waiting"));
    }
    for environment::Line { key, verdict, text } in environment::lines(tree, step) {
        let mark = verdict.map_or_else(String::new, |verdict| {
            format!("{} ", colors.verdict_mark(verdict))
        });
        below(key, &format!("{mark}{}", plain(&text)));
    }
    if step.conditions.is_empty() {
        below("state", "pending");
    }
    let nested = format!("{trunk}  ");
    lines.extend(
        step.conditions
            .iter()
            .filter(|condition| worth_a_line(condition, step))
            .flat_map(|condition| condition_lines(condition, &nested, colors)),
    );
    lines
}

/// `Ready` repeats what another condition of the step says, unless it is all there is.
fn worth_a_line(condition: &Condition, step: &Step) -> bool {
    let repeats = |other: &Condition| {
        !other.is(ConditionType::Ready)
            && other.status == condition.status
            && other.message == condition.message
            && other.reason == condition.reason
    };
    !(condition.is(ConditionType::Ready)
        && condition.status != ConditionStatus::True
        && step.conditions.iter().any(repeats))
}

fn object_text(step: &Step) -> Option<String> {
    let object = step.object.as_ref()?;
    Some(plain(&format!(
        "{}/{}",
        object.kind.as_deref().unwrap_or("?"),
        object.name.as_deref().unwrap_or("?")
    )))
}

/// What an object says; its name only where no line above tells it.
fn below_line(found: &Below, is_named: bool, colors: Colors) -> String {
    let mark = colors.state_mark(found.state);
    let name = if is_named {
        format!("{}: ", found.object)
    } else {
        String::new()
    };
    format!("{mark} {}", plain(&format!("{name}{}", found.text)))
}

fn below_lines(found: &Below, colors: Colors) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, below) in found.below.iter().enumerate() {
        let (branch, trunk) = if index + 1 == found.below.len() {
            ("└─", "  ")
        } else {
            ("├─", "│ ")
        };
        lines.push(format!("{branch} {}", below_line(below, true, colors)));
        let nested = below_lines(below, colors).into_iter();
        lines.extend(nested.map(|line| format!("{trunk} {line}")));
    }
    lines
}

fn inputs_text(step: &Step) -> String {
    let texts = step.inputs.iter().map(|input| {
        let name = match (input.slot, &input.name) {
            (Some(slot), Some(name)) if slot != name => format!("{slot} {name} from "),
            (Some(slot), _) => format!("{slot} from "),
            (None, _) => "from ".to_owned(),
        };
        format!("{name}{}", input.from)
    });
    plain(&texts.collect::<Vec<_>>().join(", "))
}

/// `✓ Type  Reason`, and below it the message unless everything is well.
fn condition_lines(condition: &Condition, indent: &str, colors: Colors) -> Vec<String> {
    let reason = if condition.reason == condition.type_ {
        ""
    } else {
        &condition.reason
    };
    let head = format!(
        "{indent}{} {:18} {}",
        colors.condition_mark(condition),
        plain(&condition.type_),
        colors.paint(Style::Faint, &plain(reason))
    );
    let mut lines = vec![head.trim_end().to_owned()];
    lines.extend(
        condition
            .message
            .lines()
            .map(|line| format!("{indent}    {}", plain(line)).trim_end().to_owned()),
    );
    lines
}

fn short_digest(digest: &str) -> String {
    format!("({})", plain(&short_hex(digest)))
}

/// The beginning of a digest, without the name of its function.
pub(crate) fn short_hex(digest: &str) -> String {
    let hex = digest.split_once(':').map_or(digest, |(_, hex)| hex);
    hex.chars().take(DIGEST_CHARS).collect()
}

/// Without control characters: a value from a repository must not move the cursor of who looks at it.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}
