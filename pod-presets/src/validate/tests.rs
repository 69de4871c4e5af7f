use serde_json::{Value, json};

use super::{Options, validate, warnings};
use crate::Preset;

/// A preset that is fine, with these fields of its spec.
fn preset(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "settings.carto.run/v1alpha1",
        "kind": "PodPreset",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}},
    });
    let fields = object["spec"].as_object_mut().unwrap();
    fields.extend(spec.as_object().unwrap().clone());
    object
}

fn texts(object: &Value) -> Vec<String> {
    let errors = validate(object, None, Options::default());
    let compiled = Preset::compile(object);
    assert_eq!(compiled.is_ok(), errors.is_empty(), "{object}");
    errors.iter().map(ToString::to_string).collect()
}

/// A preset with one thing that is wrong, or nothing.
fn check(spec: &Value, expected: &str) {
    let texts = texts(&preset(spec));
    let expected = if expected.is_empty() {
        vec![]
    } else {
        vec![expected]
    };
    assert_eq!(texts, expected, "{spec}");
}

#[test]
fn something_must_be_injected() {
    let missing =
        "spec.volumes.env.envFrom.volumeMounts: Required value: must specify at least one";
    check(&json!({}), missing);
    check(
        &json!({"env": [], "envFrom": [], "volumes": [], "volumeMounts": []}),
        missing,
    );
    check(&json!({"env": null}), missing);
    for list in ["env", "volumes"] {
        check(&json!({list: [{"name": "a"}]}), "");
    }
}

#[test]
fn of_each_part_there_are_no_more_than_can_be_compared() {
    for (list, most) in [("env", 1000), ("envFrom", 1000), ("volumes", 256)] {
        let item = |number| match list {
            "envFrom" => json!({"configMapRef": {"name": format!("a{number}")}}),
            _ => json!({"name": format!("a{number}")}),
        };
        let many = |count: usize| json!({list: (0..count).map(item).collect::<Vec<_>>()});
        check(&many(most), "");
        let count = most + 1;
        let text = format!("spec.{list}: Too many: {count}: must have at most {most} items");
        check(&many(count), &text);
    }
}

#[test]
fn names_are_subdomains_and_markers_have_room_for_them() {
    let named = |kind: &str, name: &str| {
        let mut object = preset(&json!({"env": [{"name": "A"}], "namespaceSelector": {}}));
        object["kind"] = json!(kind);
        object["metadata"]["name"] = json!(name);
        texts(&object)
    };
    let [n46, n47, n53, n54] = [46, 47, 53, 54].map(|count| "a".repeat(count));
    assert_eq!(named("PodPreset", &n53), [""; 0]);
    assert_eq!(
        named("PodPreset", &n54),
        [format!(
            "metadata.name: Invalid value: {n54:?}: must be no more than 53 characters: pods are marked with it"
        )]
    );
    assert_eq!(named("ClusterPodPreset", &n46), [""; 0]);
    assert_eq!(named("ClusterPodPreset", &n47).len(), 1);
    assert_eq!(named("PodPreset", "a.b-c"), [""; 0]);
    assert!(
        named("PodPreset", "A_b")[0].contains("a lowercase RFC 1123 subdomain must consist of")
    );
    assert_eq!(named("PodPreset", "").len(), 1);
    assert_eq!(
        named("Pod", "a"),
        [r#"kind: Invalid value: "settings.carto.run/v1alpha1 Pod": it is no pod preset"#]
    );
}

#[test]
fn an_empty_selector_is_refused_unless_all_pods_are_meant() {
    let with = |mut fields: Value| {
        fields["env"] = json!([{"name": "A"}]);
        fields
    };
    let empty = "spec.selector: Required value: must not be empty; allPods: true is for every pod";
    let both = "spec.selector: Forbidden: may not be specified when allPods is true";
    for selector in [
        json!(null),
        json!({}),
        json!({"matchLabels": {}}),
        json!({"matchExpressions": []}),
    ] {
        check(&with(json!({"selector": selector})), empty);
        check(
            &with(json!({"selector": selector, "allPods": false})),
            empty,
        );
        check(&with(json!({"selector": selector, "allPods": true})), "");
    }
    check(&with(json!({"allPods": true})), both);
    let near = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    let expected = format!(
        r#"spec.selector: Invalid value: {near}: "Near" is not a valid pod selector operator"#
    );
    check(&with(json!({"selector": near})), &expected);
}

#[test]
fn a_preset_of_the_cluster_says_in_which_namespaces() {
    let mut object = preset(&json!({"env": [{"name": "A"}]}));
    object["kind"] = json!("ClusterPodPreset");
    let missing = "spec.namespaceSelector: Required value: {} is for every namespace";
    assert_eq!(texts(&object), [missing]);
    object["spec"]["namespaceSelector"] = json!({});
    assert_eq!(texts(&object), [""; 0]);
    object["spec"]["namespaceSelector"] = json!({"matchLabels": {"a": "b c"}});
    assert!(texts(&object)[0].starts_with("spec.namespaceSelector: Invalid value: "));
}

#[test]
fn variables_have_names_and_one_value() {
    let one = r#"spec.env[0].valueFrom: Invalid value: "": "#;
    let rule = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    for (variable, expected) in [
        (json!({"name": "a.b-C 1"}), String::new()),
        (json!({"name": ""}), "spec.env[0].name: Required value".to_owned()),
        (json!({"value": "1"}), "spec.env[0].name: Required value".to_owned()),
        (json!({"name": "a=b"}), format!(r#"spec.env[0].name: Invalid value: "a=b": {rule}"#)),
        (json!({"name": "ä"}), format!(r#"spec.env[0].name: Invalid value: "ä": {rule}"#)),
        (
            json!({"name": "A", "value": 6379}),
            r#"spec.env[0].value: Invalid value: "integer": must be of type string: "integer""#.to_owned(),
        ),
        (
            json!({"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
            format!("{one}may not be specified when `value` is not empty"),
        ),
        (
            json!({"name": "A", "valueFrom": {}}),
            format!("{one}must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"),
        ),
        (
            json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "s", "key": "k"}}}),
            format!("{one}may not have more than one field specified at a time"),
        ),
        (json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b']"}}}), String::new()),
        (
            json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.containers"}}}),
            r#"spec.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.containers": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs""#.to_owned(),
        ),
        (
            json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "", "key": "k"}}}),
            "spec.env[0].valueFrom.secretKeyRef.name: Required value".to_owned(),
        ),
        (
            json!({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": ""}}}),
            "spec.env[0].valueFrom.configMapKeyRef.key: Required value".to_owned(),
        ),
        (json!({"name": "A", "valueFrom": {"newerRef": {"x": "y"}}}), String::new()),
    ] {
        check(&json!({"env": [variable]}), &expected);
    }
}

#[test]
fn a_source_of_variables_is_one_with_a_name() {
    for (source, expected) in [
        (json!({"configMapRef": {"name": "a"}}), ""),
        (
            json!({"prefix": "A_", "secretRef": {"name": "a", "optional": true}}),
            "",
        ),
        (
            json!({}),
            r#"spec.envFrom[0]: Invalid value: "": must specify one of: `configMapRef` or `secretRef`"#,
        ),
        (
            json!({"configMapRef": {"name": "a"}, "secretRef": {"name": "a"}}),
            r#"spec.envFrom[0]: Invalid value: "": may not have more than one field specified at a time"#,
        ),
        (
            json!({"configMapRef": {"name": ""}}),
            "spec.envFrom[0].configMapRef.name: Required value",
        ),
        (
            json!({"secretRef": {}}),
            "spec.envFrom[0].secretRef.name: Required value",
        ),
        (
            json!({"prefix": "a=", "secretRef": {"name": "a"}}),
            r#"spec.envFrom[0].prefix: Invalid value: "a=": a valid environment variable name must consist only of printable ASCII characters other than '='"#,
        ),
    ] {
        check(&json!({"envFrom": [source]}), expected);
    }
}

#[test]
fn volumes_have_names_of_their_own_and_one_source() {
    let rule = "a lowercase RFC 1123 label must consist of";
    for (volumes, expected) in [
        (json!([{"name": "v"}]), ""),
        (json!([{"name": "v", "newer": {}}]), ""),
        (json!([{"name": "v", "emptyDir": {}, "secret": null}]), ""),
        (
            json!([{"name": "v"}, {"name": "v"}]),
            r#"spec.volumes[1].name: Duplicate value: "v""#,
        ),
        (
            json!([{"name": ""}]),
            "spec.volumes[0].name: Required value",
        ),
        (
            json!([{"emptyDir": {}}]),
            "spec.volumes[0].name: Required value",
        ),
        (
            json!([{"name": "v", "emptyDir": {}, "hostPath": {"path": "/a"}}]),
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
        (
            json!([{"name": "v", "secret": {"secretName": ""}}]),
            "spec.volumes[0].secret.secretName: Required value",
        ),
        (
            json!([{"name": "v", "hostPath": {}}]),
            "spec.volumes[0].hostPath.path: Required value",
        ),
        (
            json!([{"name": "v", "hostPath": {"path": "/a/../b"}}]),
            r#"spec.volumes[0].hostPath.path: Invalid value: "/a/../b": must not contain '..'"#,
        ),
        (
            json!([{"name": "v", "hostPath": {"path": "/a", "type": "Pipe"}}]),
            r#"spec.volumes[0].hostPath.type: Unsupported value: "Pipe": supported values: "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket""#,
        ),
        (
            json!([{"name": "v", "secret": {"secretName": "s", "defaultMode": 512}}]),
            "spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
        ),
        (
            json!([{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "/p"}]}}]),
            r#"spec.volumes[0].configMap.items[0].path: Invalid value: "/p": must be a relative path"#,
        ),
        (
            json!([{"name": "v", "downwardAPI": {"items": [{"path": "p"}]}}]),
            "spec.volumes[0].downwardAPI.items[0]: Required value: one of fieldRef and resourceFieldRef is required",
        ),
        (
            json!([{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}, "configMap": {"name": "c"}}]}}]),
            "spec.volumes[0].projected.sources[0]: Forbidden: may not specify more than 1 volume type per source",
        ),
        (
            json!([{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "../t"}}]}}]),
            r#"spec.volumes[0].projected.sources[0].serviceAccountToken.path: Invalid value: "../t": must not contain '..'"#,
        ),
        (
            json!([{"name": "v", "nfs": {"server": "s", "path": "p"}}]),
            r#"spec.volumes[0].nfs.path: Invalid value: "p": must be an absolute path"#,
        ),
        (
            json!([{"name": "v", "emptyDir": {"sizeLimit": "much"}}]),
            "spec.volumes[0].emptyDir.sizeLimit: Invalid value: must be a quantity",
        ),
    ] {
        check(&json!({"volumes": volumes}), expected);
    }
    for name in ["V", "a.b", "-a", &"a".repeat(64)] {
        let texts = texts(&preset(&json!({"volumes": [{"name": name}]})));
        assert!(texts.len() == 1 && texts[0].contains(rule), "{texts:?}");
    }
}

#[test]
fn mounts_name_volumes_of_the_same_preset_and_have_paths_of_their_own() {
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    let with = |field: &str, value: Value| {
        let mut mount = mount("v", "/v");
        mount[field] = value;
        json!([mount])
    };
    for (mounts, expected) in [
        (json!([mount("v", "/v"), mount("v", "/w")]), ""),
        (
            json!([mount("w", "/v")]),
            r#"spec.volumeMounts[0].name: Not found: "w""#,
        ),
        (
            json!([mount("", "/v")]),
            "spec.volumeMounts[0].name: Required value",
        ),
        (
            json!([mount("v", "")]),
            "spec.volumeMounts[0].mountPath: Required value",
        ),
        (
            json!([mount("v", "/v"), mount("v", "/v")]),
            r#"spec.volumeMounts[1].mountPath: Invalid value: "/v": must be unique"#,
        ),
        (with("subPath", json!("a/b")), ""),
        (
            with("subPath", json!("/a")),
            r#"spec.volumeMounts[0].subPath: Invalid value: "/a": must be a relative path"#,
        ),
        (
            with("subPathExpr", json!("a/..")),
            r#"spec.volumeMounts[0].subPathExpr: Invalid value: "a/..": must not contain '..'"#,
        ),
        (
            json!([{"name": "v", "mountPath": "/v", "subPath": "a", "subPathExpr": "$(B)"}]),
            r#"spec.volumeMounts[0].subPathExpr: Invalid value: "$(B)": subPathExpr and subPath are mutually exclusive"#,
        ),
        (
            with("mountPropagation", json!("Both")),
            r#"spec.volumeMounts[0].mountPropagation: Unsupported value: "Both": supported values: "Bidirectional", "HostToContainer", "None""#,
        ),
        (
            with("recursiveReadOnly", json!("Enabled")),
            "spec.volumeMounts[0].recursiveReadOnly: Forbidden: may only be specified when readOnly is true",
        ),
    ] {
        check(
            &json!({"volumes": [{"name": "v"}], "volumeMounts": mounts}),
            expected,
        );
    }
    check(
        &json!({"env": [{"name": "A"}], "volumeMounts": [mount("v", "/v")]}),
        r#"spec.volumeMounts[0].name: Not found: "v""#,
    );
}

#[test]
fn what_presets_say_beyond_pods_is_one_of_what_is_known() {
    let with = |field: &str, value: Value| json!({"env": [{"name": "A"}], field: value});
    check(&with("conflictPolicy", json!("")), "");
    check(
        &with("conflictPolicy", json!("Ignore")),
        r#"spec.conflictPolicy: Unsupported value: "Ignore": supported values: "Skip", "KeepExisting", "Override", "Deny""#,
    );
    check(
        &with("mode", json!("audit")),
        r#"spec.mode: Unsupported value: "audit": supported values: "Enforce", "Audit""#,
    );
    check(
        &with("containers", json!({"types": ["App", "Main"]})),
        r#"spec.containers.types[1]: Unsupported value: "Main": supported values: "App", "Init", "Sidecar", "Ephemeral""#,
    );
}

#[test]
fn errors_come_in_the_order_of_the_admission_plugin() {
    let spec = json!({
        "selector": {},
        "envFrom": [{}],
        "env": [{"name": ""}],
        "volumeMounts": [{"name": "w", "mountPath": "/w"}],
        "volumes": [{"name": ""}],
    });
    let mut object = preset(&spec);
    object["metadata"]["name"] = json!("a".repeat(60));
    let texts = texts(&object);
    let fields: Vec<&str> = texts
        .iter()
        .filter_map(|it| Some(it.split_once(": ")?.0))
        .collect();
    assert_eq!(
        fields,
        [
            "metadata.name",
            "spec.selector",
            "spec.volumes[0].name",
            "spec.env[0].name",
            "spec.envFrom[0]",
            "spec.volumeMounts[0].name"
        ]
    );
}

#[test]
fn a_spec_is_immutable_unless_the_cluster_says_otherwise() {
    let old = preset(&json!({"env": [{"name": "A"}]}));
    let new = preset(&json!({"env": [{"name": "B"}]}));
    let errors = |new: &Value, mutable| {
        let errors = validate(new, Some(&old), Options { mutable });
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let refused = "spec: Forbidden: field is immutable: delete the preset and create it again, or run the controller with --mutable-presets";
    assert_eq!(errors(&new, false), [refused]);
    assert_eq!(errors(&new, true), [""; 0]);
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    labelled["spec"]["volumes"] = json!([]);
    assert_eq!(errors(&labelled, false), [""; 0]);
    let wrong = preset(&json!({"env": [{"name": ""}]}));
    assert_eq!(errors(&wrong, true), ["spec.env[0].name: Required value"]);
    assert_eq!(errors(&wrong, false).len(), 2);
}

#[test]
fn one_that_was_stored_before_a_rule_came_can_lose_its_finalizers() {
    let old = preset(&json!({}));
    assert_eq!(texts(&old).len(), 1);
    assert_eq!(validate(&old, Some(&old), Options::default()), []);
}

#[test]
fn it_is_told_what_nobody_may_have_meant() {
    let volumes = json!([{"name": "v"}, {"name": "w"}]);
    let mount = |path: &str| json!({"name": "v", "mountPath": path});
    let of = |mounts: Value| {
        warnings(&preset(
            &json!({"volumes": volumes, "volumeMounts": mounts}),
        ))
    };
    assert_eq!(
        of(json!([mount("/v")])),
        ["spec.volumes[1]: no volumeMount of this preset mounts it"]
    );
    let token = of(json!([mount(
        "/var/run/secrets/kubernetes.io/serviceaccount/"
    )]));
    assert!(
        token[1].starts_with("spec.volumeMounts[0].mountPath: pods have the token"),
        "{token:?}"
    );
    let mut both = mount("/v");
    both["mountPropagation"] = json!("Bidirectional");
    assert!(of(json!([both]))[1].contains("not privileged"));
    assert_eq!(warnings(&preset(&json!({"env": [{"name": "A"}]}))), [""; 0]);
}

#[test]
fn what_is_no_preset_at_all_is_told() {
    for object in [json!(null), json!([]), json!("x"), json!({"kind": 1})] {
        assert_eq!(
            validate(&object, None, Options::default()).len(),
            1,
            "{object}"
        );
    }
    let mut object = preset(&json!({}));
    object["spec"] = json!("x");
    assert_eq!(texts(&object), ["spec: Required value"]);
    check(
        &json!({"env": {"name": "A"}, "envFrom": [{"secretRef": {"name": "s"}}]}),
        r#"spec.env: Invalid value: "object": must be a list"#,
    );
}
