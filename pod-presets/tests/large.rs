//! Many presets, and pods as large as etcd takes: whoever writes them must not be able to keep admission busy.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pod_presets::{Options, Preset, inject, patch, select, validate};
use serde_json::{Value, json};

/// The best of several times: the machine may be busy.
fn time_of(mut once: impl FnMut()) -> Duration {
    let timed = |()| {
        let began = Instant::now();
        once();
        began.elapsed()
    };
    std::iter::repeat_n((), 5).map(timed).min().unwrap()
}

fn object(name: &str, app: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "settings.carto.run/v1alpha1",
        "kind": "PodPreset",
        "metadata": {"name": name, "namespace": "team", "resourceVersion": "1"},
        "spec": spec,
    });
    object["spec"]["selector"] = json!({"matchLabels": {"app": app}});
    object
}

/// A variable, a volume and a mount of its own.
fn preset(index: usize, app: &str) -> Preset {
    let volume = format!("v{index}");
    let spec = json!({
        "env": [{"name": format!("V{index}"), "value": "1"}],
        "volumes": [{"name": volume, "secret": {"secretName": "s"}}],
        "volumeMounts": [{"name": volume, "mountPath": format!("/v{index}")}],
    });
    Preset::compile(&object(&format!("p{index}"), app, &spec)).unwrap()
}

/// Presets that have all of these variables together, as many each as one may have.
fn with_variables(env: &[Value]) -> Vec<Preset> {
    let chunks = env.chunks(1000).enumerate();
    let of = |(index, env)| object(&format!("p{index}"), "web", &json!({"env": env}));
    chunks
        .map(|chunk| Preset::compile(&of(chunk)).unwrap())
        .collect()
}

#[test]
fn of_a_thousand_presets_twenty_are_found_and_injected() {
    let of = |index| preset(index, if index % 50 == 0 { "web" } else { "other" });
    let presets: Vec<Preset> = (0..1000).map(of).collect();
    let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
    let mut count = 0;
    let took = time_of(|| {
        let selected = select(&presets, &labels, &BTreeMap::new());
        let after = inject(&pod, &selected).pod.unwrap();
        count = patch(&pod, &after).len();
        assert_eq!(
            after["spec"]["containers"][1]["env"]
                .as_array()
                .unwrap()
                .len(),
            20
        );
    });
    assert!(count > 0);
    // Unoptimised, on a busy machine; optimised it is less than one millisecond.
    assert!(took < Duration::from_millis(500), "{took:?}");
}

#[test]
fn ten_times_the_presets_take_about_ten_times_as_long() {
    test_support::takes_about_ten_times_as_long(1000, |count| {
        let presets: Vec<Preset> = (0..count).map(|index| preset(index, "web")).collect();
        let pod = json!({"spec": {"containers": [{"name": "a"}]}});
        Box::new(move || {
            let all: Vec<&Preset> = presets.iter().collect();
            assert_eq!(inject(&pod, &all).applied.len(), presets.len());
        })
    });
}

#[test]
fn ten_times_the_variables_of_a_pod_take_about_ten_times_as_long() {
    test_support::takes_about_ten_times_as_long(10_000, |count| {
        let env: Vec<Value> = (0..count)
            .map(|it| json!({"name": format!("V{it}"), "value": "2"}))
            .collect();
        let pod = json!({"spec": {"containers": [{"name": "a", "env": env}]}});
        let env = pod["spec"]["containers"][0]["env"].as_array().unwrap();
        let presets = with_variables(env);
        Box::new(move || {
            let injection = inject(&pod, &presets.iter().collect::<Vec<_>>());
            assert_eq!(injection.applied[0].added, []);
        })
    });
}

#[test]
fn ten_times_the_conflicts_take_about_ten_times_as_long() {
    test_support::takes_about_ten_times_as_long(10_000, |count| {
        let env = |value: &str| -> Vec<Value> {
            (0..count)
                .map(|it| json!({"name": format!("V{it}"), "value": value}))
                .collect()
        };
        let pod = json!({"spec": {"containers": [{"name": "a", "env": env("1")}]}});
        let presets = with_variables(&env("2"));
        Box::new(move || {
            let injection = inject(&pod, &presets.iter().collect::<Vec<_>>());
            // Of each preset the first ones are told.
            assert_eq!(injection.conflicts.len(), 20 * presets.len());
        })
    });
}

#[test]
fn of_a_hundred_thousand_mistakes_the_first_are_told_and_soon() {
    let began = Instant::now();
    for (count, told) in [(256, 20), (100_000, 1)] {
        let many = |item: Value| vec![item; count];
        for spec in [
            json!({"env": many(json!({"name": ""}))}),
            json!({"env": many(json!({"name": 1}))}),
            json!({"envFrom": many(json!({}))}),
            json!({"volumes": many(json!({"name": "V"}))}),
            json!({"volumeMounts": many(json!({"name": "v", "mountPath": ""}))}),
        ] {
            let errors = validate(&object("p", "web", &spec), None, Options::default());
            assert_eq!(errors.len(), told, "{:?}", errors.first());
        }
    }
    assert!(began.elapsed() < Duration::from_secs(20));
}
