//! Which containers of a pod get it.

use pod_presets::inject_ephemeral;
use serde_json::{Value, json};

use crate::build::{injected, messages, pod, preset, result};

/// The variables of each container, by its name.
fn with_env(pod: &Value) -> Vec<&str> {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let all = lists.map(|list| pod["spec"][list].as_array().into_iter().flatten());
    let all = all.into_iter().flatten();
    all.filter(|it| it.get("env").is_some())
        .map(|it| it["name"].as_str().unwrap())
        .collect()
}

fn every_type() -> Value {
    pod(&json!({
        "containers": [{"name": "web"}, {"name": "proxy"}],
        "initContainers": [
            {"name": "setup"},
            {"name": "logs", "restartPolicy": "Always"},
        ],
        "ephemeralContainers": [{"name": "debug"}],
    }))
}

#[test]
fn a_preset_is_for_the_containers_that_it_names() {
    for (containers, expected) in [
        (json!(null), vec!["web", "proxy", "setup", "logs"]),
        (json!({}), vec!["web", "proxy", "setup", "logs"]),
        (
            json!({"names": ["web", "setup", "debug", "gone"]}),
            vec!["web", "setup"],
        ),
        (
            json!({"names": ["*"], "exclude": ["proxy"]}),
            vec!["web", "setup", "logs"],
        ),
        (json!({"exclude": ["*"]}), vec![]),
        (json!({"types": ["App"]}), vec!["web", "proxy"]),
        (json!({"types": ["Init"]}), vec!["setup"]),
        (json!({"types": ["Sidecar"]}), vec!["logs"]),
        (json!({"types": ["Ephemeral"]}), vec![]),
        (
            json!({"types": ["App", "Sidecar"], "exclude": ["web"]}),
            vec!["proxy", "logs"],
        ),
        (json!({"types": []}), vec!["web", "proxy", "setup", "logs"]),
    ] {
        let spec = json!({"env": [{"name": "A"}], "containers": containers});
        let after = result(&every_type(), &[&preset("p", &spec)]);
        assert_eq!(with_env(&after), expected, "{containers}");
        assert!(after["metadata"]["annotations"].is_object(), "{containers}");
    }
}

#[test]
fn no_volume_is_added_for_containers_that_are_not_there() {
    let spec = json!({
        "volumes": [{"name": "v"}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "containers": {"names": ["gone"]},
    });
    let preset = preset("p", &spec);
    let after = result(&every_type(), &[&preset]);
    assert_eq!(after["spec"], every_type()["spec"]);
    let mut later = after;
    let containers = later["spec"]["containers"].as_array_mut().unwrap();
    containers.push(json!({"name": "gone"}));
    let after = result(&later, &[&preset]);
    assert_eq!(after["spec"]["volumes"], json!([{"name": "v"}]));
    assert_eq!(
        after["spec"]["containers"][2]["volumeMounts"],
        spec["volumeMounts"]
    );
}

#[test]
fn a_conflict_in_an_init_container_alone_keeps_all_out() {
    let pod = pod(&json!({
        "containers": [{"name": "web"}],
        "initContainers": [{"name": "setup", "env": [{"name": "A", "value": "mine"}]}],
    }));
    let injection = injected(&pod, &[&preset("p", &json!({"env": [{"name": "A"}]}))]);
    assert_eq!(injection.pod, None);
    assert_eq!(injection.conflicts[0].container.as_deref(), Some("setup"));
}

#[test]
fn conflicts_come_in_the_order_of_the_pod_and_all_are_told() {
    let own = |value: &str| json!([{"name": "A", "value": value}]);
    let pod = pod(&json!({
        "containers": [{"name": "one", "env": own("1")}, {"name": "two", "env": own("2")}],
        "initContainers": [{"name": "three", "env": own("3")}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }));
    let spec =
        json!({"env": [{"name": "A"}], "volumes": [{"name": "v", "hostPath": {"path": "/"}}]});
    let injection = injected(&pod, &[&preset("p", &spec)]);
    let containers: Vec<Option<&str>> = injection
        .conflicts
        .iter()
        .map(|it| it.container.as_deref())
        .collect();
    assert_eq!(containers, [None, Some("one"), Some("two"), Some("three")]);
    assert_eq!(injection.warnings.len(), 2);
}

#[test]
fn a_container_that_somebody_adds_in_between_is_injected_and_nothing_is_doubled() {
    let spec = json!({
        "env": [{"name": "A", "value": "1"}],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    });
    let preset = preset("p", &spec);
    let mut between = result(&every_type(), &[&preset]);
    let first = between.clone();
    let containers = between["spec"]["containers"].as_array_mut().unwrap();
    containers.push(json!({"name": "mesh"}));
    let after = result(&between, &[&preset]);
    assert_eq!(after["spec"]["containers"][2]["env"], spec["env"]);
    assert_eq!(
        after["spec"]["containers"][0],
        first["spec"]["containers"][0]
    );
    assert_eq!(after["spec"]["volumes"], first["spec"]["volumes"]);
    assert_eq!(after["metadata"], first["metadata"]);
}

#[test]
fn a_new_ephemeral_container_gets_what_it_can_have() {
    let spec = json!({
        "env": [{"name": "A", "value": "1"}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "missing", "emptyDir": {}}],
        "volumeMounts": [
            {"name": "v", "mountPath": "/v"},
            {"name": "v", "mountPath": "/within", "subPath": "x"},
            {"name": "missing", "mountPath": "/missing"},
        ],
        "containers": {"types": ["App", "Ephemeral"]},
    });
    let preset = preset("p", &spec);
    let before = pod(&json!({
        "containers": [{"name": "web"}],
        "ephemeralContainers": [{"name": "old"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }));
    let mut now = before.clone();
    let containers = now["spec"]["ephemeralContainers"].as_array_mut().unwrap();
    containers.push(json!({"name": "debug"}));
    let injection = inject_ephemeral(&now, &before, &[&preset]);
    let after = injection.pod.unwrap();
    let mut expected = now.clone();
    expected["spec"]["ephemeralContainers"][1] = json!({
        "name": "debug",
        "env": [{"name": "A", "value": "1"}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    });
    assert_eq!(after, expected);
    assert_eq!(inject_ephemeral(&after, &before, &[&preset]).pod, None);
    // Not for who does not say so, and not those that were there.
    let silent = crate::build::preset("q", &json!({"env": [{"name": "A", "value": "1"}]}));
    assert_eq!(inject_ephemeral(&now, &before, &[&silent]).pod, None);
    assert_eq!(inject_ephemeral(&now, &now, &[&preset]).pod, None);
}

#[test]
fn an_ephemeral_container_with_something_else_gets_nothing() {
    let spec = json!({
        "env": [{"name": "A", "value": "1"}, {"name": "B"}],
        "containers": {"types": ["Ephemeral"]},
    });
    let before = pod(&json!({"containers": [{"name": "web"}]}));
    let mut now = before.clone();
    now["spec"]["ephemeralContainers"] = json!([{"name": "debug", "env": [{"name": "A"}]}]);
    let injection = inject_ephemeral(&now, &before, &[&preset("p", &spec)]);
    assert_eq!(injection.pod, None);
    assert_eq!(
        messages(&injection),
        ["Conflict on pod preset. Duplicate env A."]
    );
}
