use proptest::prelude::*;

use super::*;

/// A ClusterPodConvention with this spec; its webhook is fine if it has none.
fn refusal(mut spec: Value) -> Option<String> {
    if spec.get("webhook").is_none() {
        spec["webhook"] = json!({"clientConfig": {"url": "https://host.example/path"}});
    }
    convention_refusal(&json!({"spec": spec}))
}

fn of_config(config: &Value) -> Option<String> {
    refusal(json!({"webhook": {"clientConfig": config}}))
}

fn of_url(url: &str) -> Option<String> {
    of_config(&json!({"url": url}))
}

fn of_path(path: &str) -> Option<String> {
    of_config(&json!({"service": {"name": "a", "namespace": "b", "path": path}}))
}

#[test]
fn what_is_fine_is_not_refused() {
    for spec in [
        json!({}),
        json!({"selectors": [{"matchLabels": {"a": "b"}}, {}], "priority": "Early", "selectorTarget": "PodIntent"}),
        json!({"priority": "", "selectorTarget": ""}),
        json!({"webhook": {"clientConfig": {"service": {"name": "a", "namespace": "b"}}}}),
        json!({"webhook": {"clientConfig": {"service": {"name": "a", "namespace": "b", "port": 8443, "path": "/a/b.c/"}},
            "certificate": {"namespace": "a", "name": "b"}, "timeoutSeconds": 30, "failurePolicy": "Ignore"}}),
    ] {
        assert_eq!(refusal(spec.clone()), None, "{spec}");
    }
    for url in [
        "https://a",
        "https://a:8443/b",
        "HTTPS://[::1]:1/",
        "https://a/%41",
    ] {
        assert_eq!(of_url(url), None, "{url}");
    }
    for path in ["", "/", "/a", "/a/", "/a.b/c-d"] {
        assert_eq!(of_path(path), None, "{path}");
    }
    assert_eq!(
        intent_refusal(&json!({"spec": {"imagePullSecrets": [{"name": "a"}]}})),
        None
    );
}

#[test]
fn each_rule_has_its_field_and_its_words() {
    let both = json!({"url": "https://a", "service": {"name": "a", "namespace": "b"}});
    let port = |port: i64| json!({"service": {"name": "a", "namespace": "b", "port": port}});
    let certificate = json!({"webhook": {"clientConfig": {"url": "https://a"}, "certificate": {}}});
    let seconds = json!({"webhook": {"clientConfig": {"url": "https://a"}, "timeoutSeconds": 31}});
    for (refused, expected) in [
        (
            refusal(
                json!({"selectors": [{}, {"matchExpressions": [{"key": "a", "operator": "Near"}]}]}),
            ),
            r#"spec.selectors[1]: Invalid value: {"matchExpressions":[{"key":"a","operator":"Near"}]}"#,
        ),
        (
            refusal(json!({"priority": "Whenever"})),
            r#"spec.priority: Invalid value: "Whenever": The priority value provided is invalid. Accepted priority values include \"Early\" or \"Normal\" or \"Late\". The default value is set to \"Normal\""#,
        ),
        (
            refusal(json!({"webhook": null})),
            "spec.webhook: Required value",
        ),
        (
            of_config(&json!({})),
            "spec.webhook.clientConfig.[url, service]: Required value: expected exactly one, got neither",
        ),
        (
            of_config(&both),
            "spec.webhook.clientConfig.[url, service]: Required value: expected exactly one, got both",
        ),
        (
            of_config(&json!({"service": {"namespace": "b"}})),
            "spec.webhook.clientConfig.service.name: Required value",
        ),
        (
            of_config(&json!({"service": {"name": "a"}})),
            "spec.webhook.clientConfig.service.namespace: Required value",
        ),
        (
            of_config(&json!({"service": {}})),
            "[spec.webhook.clientConfig.service.name: Required value, spec.webhook.clientConfig.service.namespace: Required value]",
        ),
        (
            of_config(&port(0)),
            "spec.webhook.clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
        ),
        (
            of_config(&port(65536)),
            "spec.webhook.clientConfig.service.port: Invalid value: 65536: port is not valid: must be between 1 and 65535, inclusive",
        ),
        (
            of_path("a"),
            r#"spec.webhook.clientConfig.service.path: Invalid value: "a": must start with a '/'"#,
        ),
        (
            of_path("//"),
            r#"spec.webhook.clientConfig.service.path: Invalid value: "//": segment[0] may not be empty"#,
        ),
        (
            of_path("/a//b"),
            r#"spec.webhook.clientConfig.service.path: Invalid value: "/a//b": segment[1] may not be empty"#,
        ),
        (
            refusal(certificate),
            "[spec.webhook.certificate.namespace: Required value, spec.webhook.certificate.name: Required value]",
        ),
        (
            refusal(seconds),
            "spec.webhook.timeoutSeconds: Invalid value: 31: must be between 1 and 30, inclusive",
        ),
        (
            refusal(json!({"selectorTarget": "Pod"})),
            r#"spec.selectorTarget: Invalid value: "Pod": The value provided for the selectorTarget field is invalid. Accepted selectorTarget values include \"PodIntent\" and \"PodTemplateSpec\". The default value is set to \"PodTemplateSpec\""#,
        ),
        (
            intent_refusal(
                &json!({"spec": {"imagePullSecrets": [{"name": ""}, {"name": "a"}, {}]}}),
            ),
            "[spec.imagePullSecrets[0].name: Required value, spec.imagePullSecrets[2].name: Required value]",
        ),
    ] {
        assert_eq!(refused.as_deref(), Some(expected));
    }
    let segment = of_path("/a;b").unwrap();
    let start = r#"spec.webhook.clientConfig.service.path: Invalid value: "/a;b": segment[0]: a lowercase RFC 1123 subdomain must consist of"#;
    assert!(segment.starts_with(start), "{segment}");
}

#[test]
fn each_rule_of_urls_has_its_words() {
    let field = "spec.webhook.clientConfig.url";
    let form = "desired format: https://host[/path]";
    for (url, expected) in [
        (
            "http://a",
            format!(
                r#"{field}: Invalid value: "http": 'https' is the only allowed URL scheme; {form}"#
            ),
        ),
        (
            "https://",
            format!(r#"{field}: Invalid value: "": host must be provided; {form}"#),
        ),
        (
            "a",
            format!(
                r#"[{field}: Invalid value: "": 'https' is the only allowed URL scheme; {form}, {field}: Invalid value: "": host must be provided; {form}]"#
            ),
        ),
        (
            "https://u:secret@a",
            format!(r#"{field}: Invalid value: "u": user information is not permitted in the URL"#),
        ),
        (
            "https://a#b",
            format!(r#"{field}: Invalid value: "b": fragments are not permitted in the URL"#),
        ),
        (
            "https://a?b=c",
            format!(
                r#"{field}: Invalid value: "b=c": query parameters are not permitted in the URL"#
            ),
        ),
        (
            ":",
            format!(
                r#"{field}: Required value: url must be a valid URL: parse ":": missing protocol scheme; {form}"#
            ),
        ),
        (
            "https://a:b",
            format!(
                r#"{field}: Required value: url must be a valid URL: parse "https://a:b": invalid port ":b" after host; {form}"#
            ),
        ),
        (
            "https://a/%zz",
            format!(
                r#"{field}: Required value: url must be a valid URL: parse "https://a/%zz": invalid URL escape "%zz"; {form}"#
            ),
        ),
        (
            "https://[a",
            format!(
                r#"{field}: Required value: url must be a valid URL: parse "https://[a": missing ']' in host; {form}"#
            ),
        ),
    ] {
        assert_eq!(of_url(url), Some(expected), "{url}");
    }
}

#[test]
fn errors_come_in_the_order_of_selectors_priority_webhook_and_target() {
    let refused = refusal(json!({
        "selectorTarget": "x", "webhook": {}, "priority": "x",
        "selectors": [{"matchExpressions": [{"key": "", "operator": "In"}]}],
    }))
    .unwrap();
    let fields: Vec<usize> = [
        "[spec.selectors[0]: ",
        ", spec.priority: ",
        ", spec.webhook.",
        ", spec.selectorTarget: ",
    ]
    .iter()
    .map(|field| {
        refused
            .find(field)
            .unwrap_or_else(|| panic!("{field} in {refused}"))
    })
    .collect();
    assert!(fields.is_sorted(), "{refused}");
}

#[test]
fn what_is_left_out_or_empty_is_filled_in_and_nothing_else() {
    let add = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    let account = || add("/spec/serviceAccountName", json!("default"));
    assert_eq!(intent_defaults(&json!({"spec": {}})), [account()]);
    assert_eq!(
        intent_defaults(&json!({"spec": {"serviceAccountName": ""}})),
        [account()]
    );
    let none: [Value; 0] = [];
    assert_eq!(
        intent_defaults(&json!({"spec": {"serviceAccountName": "a"}})),
        none
    );
    assert_eq!(intent_defaults(&json!({})), none);
    let config = |config: Value| json!({"spec": {"webhook": {"clientConfig": config}}});
    assert_eq!(
        convention_defaults(&config(json!({"url": "https://a"}))),
        [
            add("/spec/priority", json!("Normal")),
            add("/spec/selectorTarget", json!("PodTemplateSpec")),
        ]
    );
    let mut whole = config(json!({"service": {"port": 0}}));
    whole["spec"]["priority"] = "Early".into();
    whole["spec"]["selectorTarget"] = "PodIntent".into();
    assert_eq!(convention_defaults(&whole), none);
}

#[test]
fn a_convention_asks_a_webhook_or_applies_presets_and_not_both() {
    let refusal = |spec: Value| convention_refusal(&json!({"spec": spec}));
    let webhook = json!({"clientConfig": {"url": "https://a"}});
    assert_eq!(refusal(json!({"podPresets": {}})), None);
    assert_eq!(
        refusal(json!({"webhook": webhook, "podPresets": null})),
        None
    );
    let both = "spec.[webhook, podPresets]: Required value: expected exactly one, got both";
    let refused = refusal(json!({"webhook": webhook, "podPresets": {}}));
    assert_eq!(refused.as_deref(), Some(both));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "spec",
        "webhook",
        "clientConfig",
        "url",
        "service",
        "path",
        "port",
        "name",
        "selectors",
        "matchExpressions",
        "priority",
        "imagePullSecrets",
    ]);
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(names.clone(), inner, 0..5).prop_map(|fields| {
                fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_that_is_handed_in_makes_it_panic(object in any_json(), url in "(https?)?:?/{0,3}[a%:@\\[\\]#?/é ]{0,12}") {
        let _ = (intent_refusal(&object), convention_refusal(&object), intent_defaults(&object), convention_defaults(&object));
        let _ = of_url(&url);
        let _ = of_path(&url);
    }
}
