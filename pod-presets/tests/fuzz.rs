//! Fuzz targets: what holds for any JSON that an author of a preset or of a pod may write.
//!
//! `cargo test -p pod-presets --test fuzz` tries each with random bytes for a second. A fuzzer that is led by coverage goes on
//! from there: `cargo bolero test -p pod-presets --test fuzz no_preset_and_no_pod_makes_it_panic`.

use std::collections::BTreeMap;
use std::time::Duration;

use bolero::check;
use pod_presets::{
    Options, Preset, inject, inject_ephemeral, passes_gate, patch, stale, validate, warnings,
};
use serde_json::{Map, Value, json};

/// Of each target, when nothing leads it.
const TIME: Duration = Duration::from_secs(1);

/// Words of presets and pods. Bytes alone hardly ever make a field.
const WORDS: [&str; 40] = [
    "metadata",
    "spec",
    "annotations",
    "labels",
    "name",
    "containers",
    "initContainers",
    "ephemeralContainers",
    "env",
    "envFrom",
    "volumes",
    "volumeMounts",
    "volumeDevices",
    "value",
    "valueFrom",
    "fieldRef",
    "fieldPath",
    "configMapRef",
    "secretRef",
    "prefix",
    "mountPath",
    "devicePath",
    "subPath",
    "emptyDir",
    "secret",
    "projected",
    "sources",
    "image",
    "selector",
    "matchLabels",
    "matchExpressions",
    "operator",
    "conflictPolicy",
    "Override",
    "KeepExisting",
    "multiMount",
    "restartPolicy",
    "Always",
    "/a/",
    "podpreset.admission.kubernetes.io/podpreset-p",
];

/// A value that the bytes describe; it takes what it needs of them.
fn value(bytes: &mut std::slice::Iter<'_, u8>, depth: usize) -> Value {
    let Some(&byte) = bytes.next() else {
        return Value::Null;
    };
    let count = usize::from(byte >> 4) % 4;
    match byte % 8 {
        0 => Value::Null,
        1 => json!(byte > 100),
        2 => json!(i64::from(byte) - 100),
        3 | 4 => json!(word(byte)),
        5 if depth > 0 => (0..count).map(|_| value(bytes, depth - 1)).collect(),
        _ if depth > 0 => {
            let mut fields = Map::new();
            for _ in 0..=count {
                let key = word(bytes.next().copied().unwrap_or_default());
                fields.insert(key, value(bytes, depth - 1));
            }
            Value::Object(fields)
        }
        _ => json!({}),
    }
}

fn word(byte: u8) -> String {
    let known = WORDS.get(usize::from(byte) % 64);
    known.map_or_else(|| char::from(byte).to_string(), |word| (*word).to_owned())
}

fn object(spec: &Value) -> Value {
    json!({
        "apiVersion": "settings.carto.run/v1alpha1",
        "kind": "PodPreset",
        "metadata": {"name": "p", "resourceVersion": "1"},
        "spec": spec,
    })
}

/// A preset that adds one thing of each kind.
fn good() -> Preset {
    let spec = json!({
        "allPods": true,
        "env": [{"name": "name", "value": "1"}],
        "envFrom": [{"secretRef": {"name": "name"}}],
        "volumes": [{"name": "name"}],
        "volumeMounts": [{"name": "name", "mountPath": "/a/"}],
        "containers": {"types": ["App", "Init", "Ephemeral"]},
    });
    Preset::compile(&object(&spec)).expect("a good preset")
}

#[test]
fn no_preset_and_no_pod_makes_it_panic() {
    let good = good();
    check!().with_test_time(TIME).for_each(|bytes| {
        let mut bytes = bytes.iter();
        let preset = value(&mut bytes, 6);
        let pod = value(&mut bytes, 8);
        let _ = validate(&preset, None, Options::default());
        let _ = Preset::compile(&preset);
        let object = object(&preset);
        let _ = warnings(&object);
        let errors = validate(&object, Some(&pod), Options { mutable: true });
        assert!(errors.len() <= 20);
        let compiled = Preset::compile(&object).ok();
        let presets: Vec<&Preset> = compiled.iter().chain([&good]).collect();
        for pod in [
            &pod,
            &json!({"spec": pod}),
            &json!({"spec": {"containers": [pod]}}),
            &json!({"spec": {"containers": pod}}),
        ] {
            let _ = passes_gate(pod);
            let injection = inject(pod, &presets);
            let after = injection.pod.as_ref().unwrap_or(pod);
            assert_eq!(inject(after, &presets).pod, None);
            let _ = patch(pod, after);
            let _ = inject_ephemeral(pod, &Value::Null, &presets);
            let _ = stale(&pod["metadata"]["annotations"], presets.iter().copied());
        }
    });
}

#[test]
fn what_compiles_has_no_errors_and_what_does_not_says_why() {
    check!().with_test_time(TIME).for_each(|bytes| {
        let mut spec = value(&mut bytes.iter(), 6);
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("allPods".to_owned(), json!(true));
            spec.remove("selector");
            spec.entry("env").or_insert_with(|| json!([{"name": "A"}]));
        }
        let object = object(&spec);
        let errors = validate(&object, None, Options::default());
        match Preset::compile(&object) {
            Ok(preset) => {
                assert_eq!(errors, []);
                assert!(preset.selects(&BTreeMap::new(), &BTreeMap::new()));
            }
            Err(problems) => assert!(!problems.is_empty() && !errors.is_empty()),
        }
    });
}
