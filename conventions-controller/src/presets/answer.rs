//! What the API server is told about a pod.

use std::collections::BTreeMap;

use controller_kit::webhook::Answer;
use pod_presets::{Audited, Injection, PresetName};

use super::admit::Done;

/// How many warnings are told. The API server passes on 4096 bytes of all.
const MOST_WARNINGS: usize = 16;
/// The longest warning and audit annotation.
const TEXT_BYTES: usize = 1024;

/// The answer of what was done.
pub(super) fn answer_to(done: &Done) -> Answer {
    let injection = &done.injection;
    Answer {
        error: injection.denied.as_deref().map(|text| cut(text.to_owned())),
        warnings: warnings(injection),
        patch: done.patch.clone(),
        audit_annotations: annotations(injection),
    }
}

fn warnings(injection: &Injection) -> Vec<String> {
    let looked = injection.audited.iter().map(looked);
    let told = injection.warnings.iter().cloned();
    told.chain(looked).take(MOST_WARNINGS).map(cut).collect()
}

/// What a preset would do that only looks.
fn looked(audited: &Audited) -> String {
    let (preset, added) = (&audited.applied.preset, audited.applied.added.len());
    let mut blocking = audited
        .conflicts
        .iter()
        .filter(|it| it.settled.is_blocking());
    match blocking.next() {
        Some(conflict) => {
            let message = conflict.message();
            format!("{preset} would not be applied; it is in mode Audit. {message}")
        }
        None => format!("{preset} would add {added} entries; it is in mode Audit"),
    }
}

/// Names of presets and keys of what conflicts; never a value.
fn annotations(injection: &Injection) -> BTreeMap<String, String> {
    let applied = injection
        .applied
        .iter()
        .map(|applied| shown(&applied.preset));
    let audited = injection.audited.iter();
    let audited = audited.map(|audited| shown(&audited.applied.preset));
    let looked = injection.audited.iter().flat_map(|it| &it.conflicts);
    let conflicts = injection.conflicts.iter().chain(looked).map(|conflict| {
        let preset = shown(&conflict.preset);
        format!("{preset}: {} {}", conflict.field.as_str(), conflict.key)
    });
    [
        ("applied", joined(applied)),
        ("audited", joined(audited)),
        ("conflicts", joined(conflicts)),
    ]
    .into_iter()
    .filter(|(_, text)| !text.is_empty())
    .map(|(key, text)| (key.to_owned(), cut(text)))
    .collect()
}

fn shown(preset: &PresetName) -> String {
    let (kind, name) = (preset.origin.kind(), &preset.name);
    format!("{kind}/{name}")
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    let mut texts: Vec<String> = texts.collect();
    texts.dedup();
    texts.join(", ")
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES));
    text
}

#[cfg(test)]
mod tests {
    use pod_presets::{Preset, inject};
    use serde_json::{Value, json};

    use super::*;

    fn preset(name: &str, mode: &str, env: &Value) -> Preset {
        let preset = json!({
            "apiVersion": "settings.carto.run/v1alpha1", "kind": "PodPreset",
            "metadata": {"name": name, "namespace": "dev", "resourceVersion": "7"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "mode": mode, "env": env},
        });
        Preset::compile(&preset).unwrap()
    }

    fn pod(env: &Value) -> Value {
        json!({"kind": "Pod", "spec": {"containers": [{"name": "web", "env": env}]}})
    }

    fn answer(pod: &Value, presets: &[&Preset]) -> Answer {
        answer_to(&Done {
            injection: inject(pod, presets),
            ..Done::default()
        })
    }

    #[test]
    fn what_conflicts_is_named_without_its_values() {
        let db = preset("db", "", &json!([{"name": "PASSWORD", "value": "hunter2"}]));
        let pod = pod(&json!([{"name": "PASSWORD", "value": "swordfish"}]));
        let answer = answer(&pod, &[&db]);
        let warning = "PodPreset db: Conflict on pod preset. Duplicate env PASSWORD.";
        assert_eq!(answer.warnings, [warning]);
        let annotations = answer
            .audit_annotations
            .clone()
            .into_iter()
            .collect::<Vec<_>>();
        let conflicts = (
            "conflicts".to_owned(),
            "PodPreset/db: env PASSWORD".to_owned(),
        );
        assert_eq!(annotations, [conflicts]);
        let all = format!("{answer:?}");
        assert!(
            !all.contains("hunter2") && !all.contains("swordfish"),
            "{all}"
        );
    }

    #[test]
    fn what_is_applied_and_what_only_looks_is_told() {
        let db = preset("db", "", &json!([{"name": "A", "value": "b"}]));
        let looks = preset("looks", "Audit", &json!([{"name": "C", "value": "d"}]));
        let answer = answer(&pod(&json!([])), &[&db, &looks]);
        assert_eq!(
            answer.warnings,
            ["PodPreset looks would add 1 entries; it is in mode Audit"]
        );
        assert_eq!(answer.audit_annotations["applied"], "PodPreset/db");
        assert_eq!(answer.audit_annotations["audited"], "PodPreset/looks");
        assert_eq!(answer.error, None);
    }

    #[test]
    fn one_that_only_looks_says_what_it_would_come_across() {
        let value = |value: &str| json!([{"name": "A", "value": value}]);
        let looks = preset("looks", "Audit", &value("b"));
        let answer = answer(&pod(&value("c")), &[&looks]);
        let warning = "PodPreset looks would not be applied; it is in mode Audit. Conflict on pod preset. Duplicate env A.";
        assert_eq!(answer.warnings, [warning]);
        let conflicts = &answer.audit_annotations["conflicts"];
        assert_eq!(conflicts, "PodPreset/looks: env A");
        assert_eq!((answer.error, answer.patch.len()), (None, 0));
    }

    #[test]
    fn however_much_conflicts_what_is_told_is_bounded() {
        let many = |value: &str| -> Value {
            let env = (0..1000).map(
                |number| json!({"name": format!("{}{number}", "A".repeat(100)), "value": value}),
            );
            env.collect()
        };
        let db = preset("db", "", &many("b"));
        let answer = answer(&pod(&many("c")), &[&db]);
        assert!(answer.warnings.len() <= MOST_WARNINGS);
        let texts = answer
            .warnings
            .iter()
            .chain(answer.audit_annotations.values());
        assert!(texts.map(String::len).all(|length| length <= TEXT_BYTES));
    }
}
