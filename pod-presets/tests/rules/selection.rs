//! Which pods get which presets, in which order, and which are stale.

use std::collections::BTreeMap;

use pod_presets::{Origin, Preset, Stale, select, stale};
use serde_json::{Value, json};

use crate::build::{compiled, object, one, result};

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn of(name: &str, selector: &Value) -> Preset {
    let mut object = object(name, &json!({"env": [{"name": "A"}]}));
    object["spec"]["selector"] = selector.clone();
    compiled(&object)
}

#[test]
fn pods_are_selected_by_their_labels() {
    let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]});
    let (web, other, none) = (
        labels(&[("app", "web")]),
        labels(&[("app", "db")]),
        labels(&[]),
    );
    for (selector, expected) in [
        (json!({"matchLabels": {"app": "web"}}), [true, false, false]),
        (expression("In", json!(["web", "x"])), [true, false, false]),
        (expression("NotIn", json!(["web"])), [false, true, true]),
        (expression("Exists", json!([])), [true, true, false]),
        (expression("DoesNotExist", json!([])), [false, false, true]),
        (
            json!({"matchLabels": {"app": "web", "b": "c"}}),
            [false, false, false],
        ),
    ] {
        let preset = of("p", &selector);
        let selects = [&web, &other, &none].map(|labels| preset.selects(labels, &none));
        assert_eq!(selects, expected, "{selector}");
    }
}

#[test]
fn all_pods_are_selected_by_who_says_so() {
    let mut object = object("p", &json!({"env": [{"name": "A"}], "allPods": true}));
    object["spec"].as_object_mut().unwrap().remove("selector");
    let none = labels(&[]);
    assert!(compiled(&object).selects(&none, &none));
}

fn cluster(name: &str, namespaces: &Value) -> Value {
    json!({
        "apiVersion": "settings.carto.run/v1alpha1",
        "kind": "ClusterPodPreset",
        "metadata": {"name": name, "resourceVersion": "5"},
        "spec": {"allPods": true, "namespaceSelector": namespaces, "env": [{"name": "A"}]},
    })
}

#[test]
fn a_preset_of_the_cluster_is_for_the_namespaces_that_it_selects() {
    let (none, prod) = (labels(&[]), labels(&[("tier", "prod")]));
    let everywhere = compiled(&cluster("a", &json!({})));
    assert!(everywhere.selects(&none, &none) && everywhere.selects(&none, &prod));
    let some = compiled(&cluster("a", &json!({"matchLabels": {"tier": "prod"}})));
    assert!(!some.selects(&none, &none) && some.selects(&none, &prod));
    // Those of a namespace do not ask.
    let mut own = object("p", &json!({"env": [{"name": "A"}]}));
    own["spec"]["namespaceSelector"] = json!({"matchLabels": {"tier": "prod"}});
    assert!(compiled(&own).selects(&labels(&[("app", "web")]), &none));
}

#[test]
fn presets_of_the_cluster_come_first_then_the_oldest_then_by_name() {
    let at = |mut object: Value, second: u32| {
        object["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T00:00:{second:02}Z"));
        object
    };
    let own = |name: &str| object(name, &json!({"env": [{"name": "A"}]}));
    let mut old = own("old-group");
    old["apiVersion"] = json!("settings.k8s.io/v1alpha1");
    let presets = [
        at(own("b"), 5),
        at(own("a"), 5),
        at(own("z"), 1),
        at(old, 3),
        at(cluster("cb", &json!({})), 9),
        at(cluster("ca", &json!({})), 9),
        at(cluster("cz", &json!({})), 8),
    ];
    let presets = presets.map(|object| compiled(&object));
    let (web, none) = (labels(&[("app", "web")]), labels(&[]));
    let expected = ["cz", "ca", "cb", "z", "old-group", "a", "b"];
    let names = |presets: Vec<&Preset>| {
        presets
            .into_iter()
            .map(|it| it.name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(select(&presets, &web, &none)), expected);
    assert_eq!(names(select(presets.iter().rev(), &web, &none)), expected);
    assert_eq!(presets[3].origin(), Origin::NamespacedOld);
}

#[test]
fn markers_of_the_cluster_and_of_a_namespace_differ_and_both_groups_share_theirs() {
    let spec = json!({"env": [{"name": "A"}]});
    let own = object("same", &spec);
    let mut old = own.clone();
    old["apiVersion"] = json!("settings.k8s.io/v1alpha1");
    old["metadata"]["resourceVersion"] = json!("77");
    let presets = [own.clone(), old, cluster("same", &json!({}))].map(|it| compiled(&it));
    let presets: Vec<&Preset> = presets.iter().collect();
    let after = result(&one(&json!({})), &presets);
    let new = own["metadata"]["resourceVersion"].as_str().unwrap();
    assert_eq!(
        after["metadata"]["annotations"],
        json!({
            "podpreset.admission.kubernetes.io/podpreset-same": format!("{new},77"),
            "podpreset.admission.kubernetes.io/clusterpodpreset-same": "5",
        })
    );
    assert_eq!(
        stale(&after["metadata"]["annotations"], presets.iter().copied()),
        []
    );
    // One of the two is gone, and of the other it is told.
    let gone = stale(
        &after["metadata"]["annotations"],
        presets[1..].iter().copied(),
    );
    assert_eq!((gone.len(), gone[0].current.as_deref()), (1, Some("77")));
}

#[test]
fn stale_is_what_has_another_version_or_a_preset_that_is_gone() {
    let preset = compiled(&object("db", &json!({"env": [{"name": "A"}]})));
    let current = preset.resource_version().to_owned();
    let key = |name: &str| format!("podpreset.admission.kubernetes.io/{name}");
    let stale = |annotations: Value| stale(&annotations, [&preset]);
    assert_eq!(stale(json!(null)), []);
    assert_eq!(stale(json!({key("podpreset-db"): current})), []);
    assert_eq!(
        stale(json!({key("exclude"): "true", "podpreset-db": "1", key(""): "1"})),
        []
    );
    let found = stale(
        json!({key("podpreset-db"): "1", key("podpreset-gone"): "2", key("clusterpodpreset-db"): 3}),
    );
    let of = |preset: &str, is_of_cluster, applied: &str, current: Option<&String>| Stale {
        preset: preset.to_owned(),
        is_of_cluster,
        applied: applied.to_owned(),
        current: current.cloned(),
    };
    assert_eq!(
        found,
        [
            of("db", true, "", None),
            of("db", false, "1", Some(&current)),
            of("gone", false, "2", None)
        ]
    );
}
