use serde_json::json;

use super::*;

fn template(value: Value) -> Template {
    Template::from_value(value).unwrap()
}

fn with_container(container: &Value) -> Template {
    template(json!({"spec": {"containers": [container]}}))
}

type Mutation = fn(&mut Template) -> Result<Change, TemplateError>;

fn container(template: &mut Template) -> ContainerMut<'_> {
    template.container_mut("web").unwrap()
}

/// Each kind of change, once as a default and once as a demand, where both are there.
const MUTATIONS: [(&str, Mutation); 27] = [
    ("default_label", |t| Ok(t.default_label("a", "b"))),
    ("set_label", |t| Ok(t.set_label("a", "b"))),
    ("default_annotation", |t| Ok(t.default_annotation("a", "b"))),
    ("set_annotation", |t| Ok(t.set_annotation("a", "b"))),
    ("default_at", |t| t.default_at(&["a", "b"], "c")),
    ("set_at", |t| t.set_at(&["a", "b"], "c")),
    ("default_volume", |t| {
        t.default_volume(&Volume::empty_dir("v"))
    }),
    ("set_volume", |t| {
        t.set_volume(&Volume::config_map("v", "c"))
    }),
    ("default_sidecar", |t| {
        t.default_sidecar(json!({"name": "s", "image": "s"}))
    }),
    ("set_sidecar", |t| {
        t.set_sidecar(json!({"name": "s", "image": "t"}))
    }),
    ("default_init_container", |t| {
        t.default_init_container(json!({"name": "i"}))
    }),
    ("set_init_container", |t| {
        t.set_init_container(json!({"name": "i", "image": "i"}))
    }),
    ("default_env", |t| container(t).default_env("E", "1")),
    ("set_env", |t| container(t).set_env("E", "2")),
    ("default_env_from", |t| {
        container(t).default_env_from("F", json!({"fieldRef": {}}))
    }),
    ("set_env_from", |t| {
        container(t).set_env_from("E", json!({"fieldRef": {}}))
    }),
    ("default_mount", |t| {
        container(t).default_mount(&Mount::new("v", "/v").read_only())
    }),
    ("set_mount", |t| {
        container(t).set_mount(&Mount::new("w", "/v").sub_path("w"))
    }),
    ("default_port", |t| {
        container(t).default_port(&Port::tcp(80).named("http"))
    }),
    ("default_probe", |t| {
        container(t).default_probe(ProbeKind::Startup, &Probe::tcp_socket(80))
    }),
    ("set_probe", |t| {
        container(t).set_probe(ProbeKind::Startup, &Probe::exec(["true"]))
    }),
    ("default_limit", |t| {
        container(t).default_limit("memory", "1Gi")
    }),
    ("default_request", |t| {
        container(t).default_request("memory", "1Gi")
    }),
    ("default_security", |t| {
        container(t).default_security("runAsNonRoot", true)
    }),
    ("set_security", |t| {
        container(t).set_security("runAsUser", 1000)
    }),
    ("default_at in a container", |t| {
        container(t).default_at(&["lifecycle", "stopSignal"], "SIGUSR1")
    }),
    ("set_at in a container", |t| {
        container(t).set_at(&["lifecycle", "stopSignal"], "SIGTERM")
    }),
];

#[test]
fn every_change_is_made_once_and_is_there_the_second_time() {
    for (name, mutate) in MUTATIONS {
        let mut template = with_container(&json!({"name": "web"}));
        assert_eq!(mutate(&mut template), Ok(Change::Made), "{name}");
        let made = template.clone();
        assert_eq!(mutate(&mut template), Ok(Change::Already), "{name}");
        assert_eq!(template, made, "{name}");
    }
}

#[test]
fn a_default_keeps_what_is_there_and_a_demand_does_not() {
    let written = json!({"metadata": {"labels": {"a": "x"}, "annotations": {"a": "x"}}, "spec": {
        "a": {"b": "x", "other": 1},
        "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
        "initContainers": [{"name": "i", "image": "x"}],
        "containers": [
            {"name": "web",
                "env": [{"name": "E", "value": "x"}, {"name": "F", "value": "x"}],
                "volumeMounts": [{"name": "x", "mountPath": "/v"}],
                "ports": [{"name": "http", "containerPort": 8080}],
                "startupProbe": {"httpGet": {"port": 1}},
                "resources": {"limits": {"memory": "1Mi"}, "requests": {"memory": "1Mi"}},
                "securityContext": {"runAsNonRoot": false, "runAsUser": 0},
                "lifecycle": {"stopSignal": "SIGINT"}},
            {"name": "s", "image": "x"},
        ],
    }});
    for (name, mutate) in MUTATIONS {
        let before = template(written.clone());
        let mut after = before.clone();
        let change = mutate(&mut after);
        if name.starts_with("default") {
            assert_eq!(change, Ok(Change::Kept), "{name}");
            assert_eq!(after, before, "{name}");
        } else {
            assert_eq!(change, Ok(Change::Made), "{name}");
            assert_ne!(after, before, "{name}");
        }
    }
}

#[test]
fn what_is_of_another_type_is_an_error_with_its_place_and_stays() {
    let containers = json!([{"name": "web", "env": 1, "volumeMounts": "x", "ports": {}, "startupProbe": [],
        "resources": true, "securityContext": "none", "lifecycle": 1}]);
    let before = template(json!({"spec": {"a": 1, "volumes": {}, "containers": containers}}));
    let mut seen = 0;
    for (name, mutate) in MUTATIONS {
        let mut after = before.clone();
        if let Err(error) = mutate(&mut after) {
            seen += 1;
            assert!(error.to_string().starts_with("spec."), "{name}: {error}");
            assert_eq!(after, before, "{name}");
        }
    }
    assert_eq!(seen, 18);
    let error = container(&mut before.clone())
        .set_env("A", "b")
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "spec.containers[web].env is a number, not a list"
    );
}

#[test]
fn null_is_what_is_not_there() {
    let mut template =
        with_container(&json!({"name": "web", "env": null, "resources": {"limits": null}}));
    let mut web = container(&mut template);
    assert_eq!(web.default_env("A", "b"), Ok(Change::Made));
    assert_eq!(web.default_limit("cpu", "1"), Ok(Change::Made));
    assert_eq!(
        template.default_at(&["volumes"], Value::Null),
        Ok(Change::Made)
    );
}

#[test]
fn of_variables_of_one_name_the_last_counts() {
    let env = json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]);
    let mut template = with_container(&json!({"name": "web", "env": env}));
    let mut web = container(&mut template);
    assert_eq!(web.view().env("A"), Some("2"));
    assert_eq!(web.default_env("A", "2"), Ok(Change::Already));
    assert_eq!(web.set_env("A", "3"), Ok(Change::Made));
    assert_eq!(web.view().env("A"), Some("3"));
}

#[test]
fn a_probe_that_asks_nothing_gets_what_is_asked_and_keeps_its_times() {
    let mut template =
        with_container(&json!({"name": "web", "livenessProbe": {"periodSeconds": 3}}));
    let probe = Probe::http_get("/live", 80)
        .period_seconds(9)
        .timeout_seconds(2);
    let mut web = container(&mut template);
    assert_eq!(
        web.default_probe(ProbeKind::Liveness, &probe),
        Ok(Change::Made)
    );
    assert_eq!(
        web.view().get(&["livenessProbe"]),
        Some(
            &json!({"httpGet": {"path": "/live", "port": 80}, "periodSeconds": 3, "timeoutSeconds": 2})
        ),
    );
}

#[test]
fn containers_without_a_name_or_that_are_none_are_passed_over() {
    let mut template = template(
        json!({"spec": {"containers": [null, 1, "x", {}, {"name": "a"}],
        "initContainers": {"name": "no list"}}}),
    );
    let names: Vec<String> = template
        .containers_mut()
        .map(|it| it.view().name().to_owned())
        .collect();
    assert_eq!(names, ["", "a"]);
    assert_eq!(template.init_containers().count(), 0);
    assert_eq!(template.all_containers_mut().count(), 2);
}
