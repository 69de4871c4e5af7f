//! What dashboard and alerts ask for is what docs/metrics.md lists, which a test holds to a running controller.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use e2e::binaries::workspace;
use e2e::helm::chart;
use serde_json::Value;
use test_support::documents;

/// Labels that whoever reads metrics adds, and that of the buckets of histograms.
const ADDED: [&str; 5] = ["namespace", "pod", "job", "le", "carto_run_shard"];

/// The metrics of the page, each with its labels and the words of its row.
fn listed() -> BTreeMap<String, (BTreeSet<String>, String)> {
    let page = fs::read_to_string(workspace().join("docs/metrics.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let mut listed = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let words = |cell: &str| -> Vec<String> {
            cell.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect()
        };
        let labels: BTreeSet<String> = words(cells[2]).into_iter().collect();
        let name = words(cells[0])[0].clone();
        if cells[1] == "histogram" {
            for part in ["_bucket", "_sum", "_count"] {
                listed.insert(format!("{name}{part}"), (labels.clone(), row.to_owned()));
            }
        } else {
            listed.insert(name, (labels, row.to_owned()));
        }
    }
    assert!(listed.len() > 40, "{listed:#?}");
    listed
}

/// The names in a query, and where each ends.
fn names(query: &str) -> Vec<(String, usize)> {
    let is_name = |next: char| next.is_ascii_alphanumeric() || next == '_';
    let mut names = Vec::new();
    let mut at = 0;
    while let Some(begin) = query[at..].find(is_name).map(|found| at + found) {
        let end = query[begin..].find(|next| !is_name(next));
        at = end.map_or(query.len(), |end| begin + end);
        names.push((query[begin..at].to_owned(), at));
    }
    names
}

/// What is wrong with a query.
fn faults(query: &str, listed: &BTreeMap<String, (BTreeSet<String>, String)>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut known: BTreeSet<String> = ADDED.map(str::to_owned).into();
    let mut metrics = 0;
    for (name, end) in names(query) {
        let is_metric = name.starts_with("carto_") || name.starts_with("process_");
        if !is_metric || ADDED.contains(&name.as_str()) {
            continue;
        }
        metrics += 1;
        let Some((labels, row)) = listed.get(&name) else {
            faults.push(format!("no metric {name}"));
            continue;
        };
        known.extend(labels.iter().cloned());
        let selector = query[end..]
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'));
        let matchers = selector.map_or("", |(matchers, _)| matchers);
        for matcher in matchers
            .split(',')
            .filter(|matcher| !matcher.trim().is_empty())
        {
            let label = names(matcher)[0].0.clone();
            let is_ours = labels.contains(&label);
            if !is_ours && !ADDED.contains(&label.as_str()) {
                faults.push(format!("{name} has no label {label}"));
            }
            let value = matcher.split('"').nth(1).unwrap_or_default();
            // A code or a namespace is no word of the page.
            for word in value
                .split('|')
                .filter(|_| is_ours && label != "code" && label != "ready")
            {
                if !row.contains(&format!("`{word}`")) {
                    faults.push(format!("{label} of {name} is never {word}"));
                }
            }
        }
    }
    for by in query.split("by (").skip(1) {
        let (labels, _) = by.split_once(')').unwrap();
        for label in labels.split(", ").filter(|label| !known.contains(*label)) {
            faults.push(format!("nothing has a label {label}"));
        }
    }
    let count = |sign: char| query.matches(sign).count();
    if metrics == 0 || count('(') != count(')') || count('{') != count('}') {
        faults.push("it is no query".to_owned());
    }
    faults
}

fn assert_well(query: &str) {
    let faults = faults(query, &listed());
    assert!(faults.is_empty(), "{query}\n{faults:#?}");
}

#[test]
fn each_panel_of_the_dashboard_asks_for_metrics_that_there_are() {
    let file = chart("carto").join("files/dashboard.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 20);
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            assert_well(query);
            let legend = target["legendFormat"].as_str().unwrap();
            for label in legend.split("{{").skip(1) {
                let (label, _) = label.split_once("}}").unwrap();
                let is_kept = query.contains("by (").then(|| query.contains(label));
                assert!(
                    is_kept.unwrap_or_else(|| ADDED.contains(&label)),
                    "{label}: {query}"
                );
            }
        }
    }
}

#[test]
fn each_alert_asks_for_metrics_that_there_are() {
    let file = chart("carto").join("files/rules.yaml");
    let alerts = documents(&fs::read_to_string(file).unwrap()).unwrap();
    let alerts = alerts[0].as_array().unwrap();
    assert!(alerts.len() > 8);
    let page = fs::read_to_string(workspace().join("docs/operations.md")).unwrap();
    for alert in alerts {
        let query = alert["expr"].as_str().unwrap();
        assert_well(query);
        let name = alert["alert"].as_str().unwrap();
        assert!(
            page.contains(&format!("`{name}`")),
            "docs/operations.md: {name}"
        );
        let summary = alert["annotations"]["summary"].as_str().unwrap();
        for label in summary.split("$labels.").skip(1) {
            let label = &names(label)[0].0;
            let is_kept = !query.contains("by (") || query.contains(label.as_str());
            assert!(is_kept, "{label}: {query}");
        }
    }
}

#[test]
fn a_query_for_what_is_not_there_is_noticed() {
    let listed = listed();
    for (query, fault) in [
        ("carto_owner > 0", "no metric carto_owner"),
        (
            "carto_reconcile_duration_seconds > 1",
            "no metric carto_reconcile_duration_seconds",
        ),
        (
            "carto_owners{phase=\"x\"}",
            "carto_owners has no label phase",
        ),
        (
            "carto_reconcile_total{outcome=\"failed\"}",
            "outcome of carto_reconcile_total is never failed",
        ),
        ("sum by (queue) (carto_owners)", "nothing has a label queue"),
        ("sum(carto_owners", "it is no query"),
    ] {
        assert_eq!(faults(query, &listed), [fault], "{query}");
    }
}
