//! A plan for people.

use serde_json::Value;

use super::Plan;
use crate::migrate::findings::{Change, Told};
use crate::tree::plain;

/// So many lines of a list are shown to people.
const MOST_LINES: usize = 20;

impl Plan {
    /// Lines for people.
    pub fn render(&self) -> Vec<String> {
        let mut lines = vec!["There is".to_owned()];
        lines.extend(self.there_is());
        Self::section(&mut lines, "To do before", &self.todo);
        let role = self.cluster_role.as_ref().map(Self::rights);
        lines.extend(role.into_iter().flatten());
        let findings = &self.findings;
        Self::section(
            &mut lines,
            "Runs that would start",
            &lines_of(&findings.runs, |run| {
                let why = match &run.newest {
                    None => "there is none".to_owned(),
                    Some(newest) if run.fields.is_empty() => {
                        format!("{newest} is of another step, template or label")
                    }
                    Some(newest) => format!("{newest} has other {}", run.fields.join(", ")),
                };
                format!("{}: {why}", told(&run.told))
            }),
        );
        Self::section(
            &mut lines,
            "Objects that would change",
            &lines_of(&findings.changes, change),
        );
        Self::section(
            &mut lines,
            "Objects that would be deleted",
            &lines_of(&findings.removals, told),
        );
        Self::section(
            &mut lines,
            "Objects that would be refused",
            &lines_of(&findings.refused, told),
        );
        Self::section(
            &mut lines,
            "Steps that would wait, and leave their objects as they are (docs/adr/0007)",
            &lines_of(&findings.held, told),
        );
        Self::section(
            &mut lines,
            "Not judged: what becomes of these is known only when carto works on them. Templates for ytt are programs, which the controllers confine and this command does not run",
            &lines_of(&findings.unjudged, told),
        );
        Self::section(
            &mut lines,
            "Names that a new object could not have (at most 63 characters)",
            &self.long_names,
        );
        lines.push(String::new());
        lines.push(self.verdict());
        lines.iter().map(|line| plain(line)).collect()
    }

    fn there_is(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (word, controllers) in [("the Go controller", &self.old), ("carto", &self.ours)] {
            if controllers.is_empty() {
                lines.push(format!("  no Deployment of {word}"));
            }
            for it in controllers {
                let by = if it.managed_by.is_empty() {
                    String::new()
                } else {
                    format!(", managed by {}", it.managed_by.join(", "))
                };
                let replicas = it.replicas;
                lines.push(format!(
                    "  Deployment {}: {word}, {replicas} replicas{by}",
                    it.address()
                ));
            }
        }
        for it in &self.webhooks {
            lines.push(format!(
                "  {} {}: the Go controller's; `carto migrate apply` removes it",
                it.kind, it.name
            ));
        }
        let counts = self.objects.iter().filter(|count| count.objects > 0);
        let counts: Vec<String> = counts
            .map(|count| format!("{} {}", count.objects, count.kind))
            .collect();
        lines.push(format!("  {}", counts.join(", ")));
        let rights = if self.own_rights {
            "your own rights, because you may neither create tokens of service accounts nor impersonate them"
        } else {
            "the rights of their service accounts"
        };
        lines.push(format!(
            "  {} owners were walked over; dry runs were sent with {rights}",
            self.judged_owners
        ));
        lines
    }

    fn rights(role: &Value) -> Vec<String> {
        let mut lines = vec![
            String::new(),
            "Rights to add, or these kinds are looked at every 30 s only (kubectl apply -f - <<'EOF')".to_owned(),
        ];
        let yaml = serde_saphyr::to_string(role).unwrap_or_default();
        lines.extend(yaml.lines().map(str::to_owned));
        lines.push("EOF".to_owned());
        lines
    }

    fn section(lines: &mut Vec<String>, title: &str, entries: &[String]) {
        if entries.is_empty() {
            return;
        }
        lines.push(String::new());
        lines.push(format!("{title}: {}", entries.len()));
        lines.extend(entries.iter().take(MOST_LINES).map(|it| format!("  {it}")));
        if entries.len() > MOST_LINES {
            lines.push("  … all of them: carto migrate plan -o json".to_owned());
        }
    }

    fn verdict(&self) -> String {
        if self.is_clear() {
            return "Nothing would run, change or be deleted. Next: carto migrate apply --state migration.json".to_owned();
        }
        let mut what = self.blockers.clone();
        if !self.todo.is_empty() {
            what.insert(
                0,
                format!("{} things are to be done before", self.todo.len()),
            );
        }
        format!("Blocked: {}", what.join("; "))
    }
}

fn lines_of<T>(entries: &[T], line: impl Fn(&T) -> String) -> Vec<String> {
    entries.iter().map(line).collect()
}

fn told(told: &Told) -> String {
    let Told { owner, step, text } = told;
    match step {
        Some(step) => format!("{owner} step {step}: {text}"),
        None => format!("{owner}: {text}"),
    }
}

fn change(change: &Change) -> String {
    let what = if change.created {
        "would be made".to_owned()
    } else {
        change.fields.join(", ")
    };
    format!("{}: {what}", told(&change.told))
}
