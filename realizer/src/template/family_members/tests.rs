use serde_json::json;

use super::*;
use crate::Template;

fn text<'o>(member: &'o Observed, pointer: &str) -> &'o str {
    let found = member.object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

fn template(limits: &str) -> Template {
    Template::compile(&json!({
        "apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate", "metadata": {"name": "t"},
        "spec": {"ytt": "", "lifecycle": "tekton", "retentionPolicy": serde_saphyr::from_str::<Value>(limits).unwrap()},
    }))
    .unwrap()
}

/// Members as `<name><T|F|U>[x]`, sequence ascending, `x` for terminating.
fn members(texts: &str) -> Vec<Observed> {
    texts
        .split_whitespace()
        .enumerate()
        .map(|(index, text)| {
            let name = &text[..text.len() - usize::from(text.ends_with('x')) - 1];
            let status = match text.trim_end_matches('x').chars().last() {
                Some('T') => "True",
                Some('F') => "False",
                _ => "Unknown",
            };
            member(
                name,
                index as u64 + 1,
                "2024-01-01T00:00:00Z",
                status,
                text.ends_with('x'),
            )
        })
        .collect()
}

fn member(
    name: &str,
    sequence: u64,
    created: &str,
    succeeded: &str,
    terminating: bool,
) -> Observed {
    let object = json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"namespace": "ns", "name": name, "uid": format!("u-{name}"), "creationTimestamp": created},
        "status": {"conditions": [{"type": "Succeeded", "status": succeeded}]},
    });
    Observed {
        qualified_resource: Some("taskruns.tekton.dev".to_owned()),
        sequence,
        terminating,
        ..Observed::of(object)
    }
}

fn removed(limits: &str, texts: &str, submitted: &str) -> String {
    let members = members(texts);
    let submitted = members
        .iter()
        .find(|member| text(member, "/metadata/name") == submitted)
        .unwrap()
        .clone();
    let removals = superseded(
        template(limits).family_rule(),
        &"run".into(),
        &submitted,
        &members,
    );
    removals
        .into_iter()
        .map(|removal| removal.object.name)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn successes_and_failures_are_counted_apart_from_the_newest_on() {
    let one_each = "{maxFailedRuns: 1, maxSuccessfulRuns: 1}";
    let two_each = "{maxFailedRuns: 2, maxSuccessfulRuns: 2}";
    let cases = [
        (one_each, "aT", "a", ""),
        (one_each, "aT bT", "b", "a"),
        (one_each, "aT bF", "b", ""),
        (one_each, "aF bT cF dT", "d", "b a"),
        (one_each, "aT bT cT", "c", "b a"),
        (two_each, "aT bT cT", "c", "a"),
        (two_each, "aF bF cF dF", "d", "b a"),
        // Running ones are neither counted nor removed.
        (one_each, "aU bU cU", "c", ""),
        (one_each, "aT bU cU", "c", ""),
        // The current member stays however old it is.
        (one_each, "aT bT cT", "a", "b"),
        // Terminating members do not count and are not removed again.
        (one_each, "aT bTx", "a", ""),
        (one_each, "aT bT cTx", "b", "a"),
        (one_each, "aTx bT", "b", ""),
    ];
    for (limits, texts, submitted, expected) in cases {
        assert_eq!(
            removed(limits, texts, submitted),
            expected,
            "{limits} {texts}"
        );
    }
}

#[test]
fn default_retention_keeps_ten_of_each() {
    let texts: Vec<String> = (0..12).map(|index| format!("m{index}T")).collect();
    assert_eq!(removed("null", &texts.join(" "), "m11"), "m1 m0");
}

#[test]
fn removals_carry_the_uid() {
    let members = members("aT bT");
    let removals = superseded(
        template("{maxFailedRuns: 1, maxSuccessfulRuns: 1}").family_rule(),
        &"run".into(),
        &members[1],
        &members,
    );
    assert_eq!(removals[0].object.uid.as_deref(), Some("u-a"));
    assert_eq!(removals[0].reason, RemovalReason::Retention);
    assert_eq!(removals[0].resource, "run");
}

#[test]
fn outputs_come_from_the_newest_healthy_member() {
    let newest = |texts: &str| {
        let members = members(texts);
        newest_healthy(template("null").family_rule(), &members)
            .map(|member| text(member, "/metadata/name").to_owned())
    };
    assert_eq!(newest("aT bT"), Some("b".to_owned()));
    assert_eq!(newest("aT bF"), Some("a".to_owned()));
    assert_eq!(newest("aT bU"), Some("a".to_owned()));
    assert_eq!(newest("aT bTx"), Some("a".to_owned()));
    assert_eq!(newest("aF bU"), None);
    assert_eq!(newest(""), None);
}

#[test]
fn members_of_another_controller_are_ordered_by_creation_time() {
    let members = [
        member("b", 0, "2024-01-01T00:00:02Z", "True", false),
        member("a", 0, "2024-01-01T00:00:03Z", "True", false),
        member("c", 0, "2024-01-01T00:00:01Z", "True", false),
    ];
    let newest = newest_healthy(template("null").family_rule(), &members).unwrap();
    assert_eq!(text(newest, "/metadata/name"), "a");
    let ours = [
        members[1].clone(),
        member("z", 1, "2023-01-01T00:00:00Z", "True", false),
    ];
    assert_eq!(
        text(
            newest_healthy(template("null").family_rule(), &ours).unwrap(),
            "/metadata/name"
        ),
        "z"
    );
}

#[test]
fn an_object_that_is_not_known_yields_nothing_and_is_older_than_all_that_are() {
    let unknown = Observed {
        is_known: false,
        sequence: 0,
        ..member("forged", 999_999, "2030-01-01T00:00:00Z", "True", false)
    };
    let known = member("ours", 1, "2024-01-01T00:00:00Z", "True", false);
    let template = template("null");
    let rule = template.family_rule();
    assert!(unknown.order_key() < known.order_key());
    assert_eq!(newest_healthy(rule, [&unknown]), None);
    assert_eq!(newest_healthy(rule, [&known, &unknown]), Some(&known));
}

#[test]
fn cluster_scoped_objects_are_referred_to_without_namespace() {
    let scoped = Observed {
        namespaced: false,
        ..member("a", 1, "", "True", false)
    };
    assert_eq!(object_ref(&scoped).namespace, "");
    assert_eq!(
        object_ref(&member("a", 1, "", "True", false)).namespace,
        "ns"
    );
}
