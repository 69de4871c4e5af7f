use serde_json::json;

use super::*;
use crate::template::goodness::{Goodness, Readiness};
use api_types::ClusterDeploymentTemplateSpec;

fn template(yaml: &str) -> Template {
    let mut object: Value = serde_saphyr::from_str(yaml).unwrap();
    object["apiVersion"] = json!("carto.run/v1alpha1");
    object["metadata"] = json!({"name": "t"});
    Template::compile(&object).unwrap()
}

fn at(second: i64) -> Time {
    Time(jiff::Timestamp::from_second(second).unwrap())
}

const SOURCE: &str =
    "{kind: ClusterSourceTemplate, spec: {urlPath: .status.url, revisionPath: .status.rev}}";

#[test]
fn outputs_are_read_in_the_order_of_their_kind() {
    let object =
        json!({"status": {"url": "u", "rev": {"any": ["json"]}, "image": 5}, "data": {"x": "y"}});
    let cases = [
        (
            SOURCE,
            vec![("url", json!("u")), ("revision", json!({"any": ["json"]}))],
        ),
        (
            "{kind: ClusterImageTemplate, spec: {imagePath: .status.image}}",
            vec![("image", json!(5))],
        ),
        (
            "{kind: ClusterConfigTemplate, spec: {configPath: .data}}",
            vec![("config", json!({"x": "y"}))],
        ),
        ("{kind: ClusterTemplate, spec: {}}", vec![]),
    ];
    for (yaml, expected) in cases {
        let output = Output::read(
            &template(yaml),
            Some(&object),
            None,
            &Taint::NONE,
            RuleInputs::default(),
        )
        .unwrap();
        let named: Vec<_> = output
            .named()
            .into_iter()
            .map(|(name, value)| (name, value.clone()))
            .collect();
        assert_eq!(named, expected, "{yaml}");
    }
}

#[test]
fn null_is_a_source_but_no_image_and_no_config() {
    let object = json!({"status": {"url": null, "rev": null}});
    let output = Output::read(
        &template(SOURCE),
        Some(&object),
        None,
        &Taint::NONE,
        RuleInputs::default(),
    )
    .unwrap();
    assert_eq!(
        output.named(),
        [("url", &Value::Null), ("revision", &Value::Null)]
    );
    for yaml in [
        "{kind: ClusterImageTemplate, spec: {imagePath: .status.url}}",
        "{kind: ClusterConfigTemplate, spec: {configPath: .status.url}}",
    ] {
        assert!(
            Output::read(
                &template(yaml),
                Some(&object),
                None,
                &Taint::NONE,
                RuleInputs::default()
            )
            .unwrap()
            .named()
            .is_empty(),
            "{yaml}"
        );
    }
}

#[test]
fn failures_name_the_path_as_upstream_does() {
    let object = json!({"status": {"url": "u"}});
    let cases = [
        (
            SOURCE,
            Some(&object),
            "failed to evaluate json path '.status.rev': failed to evaluate the revision path [.status.rev]: jsonpath \
             returned empty list: .status.rev",
        ),
        (
            "{kind: ClusterSourceTemplate, spec: {urlPath: .status.x, revisionPath: .status.rev}}",
            Some(&object),
            "failed to evaluate json path '.status.x': failed to evaluate the url path [.status.x]: jsonpath returned \
             empty list: .status.x",
        ),
        (
            "{kind: ClusterImageTemplate, spec: {imagePath: .status.x}}",
            Some(&object),
            "failed to evaluate json path '.status.x': failed to evaluate the url path [.status.x]: jsonpath returned \
             empty list: .status.x",
        ),
        (
            "{kind: ClusterConfigTemplate, spec: {configPath: .status.x}}",
            Some(&object),
            "failed to evaluate json path '.status.x': failed to evaluate spec.configPath [.status.x]: jsonpath \
             returned empty list: .status.x",
        ),
        (
            SOURCE,
            None,
            "failed to evaluate json path '.status.url': failed to evaluate path of empty object",
        ),
        (
            "{kind: ClusterDeploymentTemplate, spec: {}}",
            None,
            "failed to evaluate path of empty object",
        ),
        (
            "{kind: ClusterDeploymentTemplate, spec: {}}",
            Some(&object),
            "deployment not found in upstream template",
        ),
    ];
    for (yaml, object, expected) in cases {
        assert_eq!(
            Output::read(
                &template(yaml),
                object,
                None,
                &Taint::NONE,
                RuleInputs::default()
            )
            .unwrap_err()
            .to_string(),
            expected,
            "{yaml}"
        );
    }
}

#[test]
fn a_deployment_template_hands_its_deployment_on() {
    let deployment = Output::of(
        OutputValues::Source {
            url: json!("u"),
            revision: json!("r"),
        },
        Taint::of([&json!("u")]),
    );
    let template = template("{kind: ClusterDeploymentTemplate, spec: {}}");
    assert_eq!(
        Output::read(
            &template,
            Some(&json!({})),
            Some(&deployment),
            &Taint::NONE,
            RuleInputs::default()
        ),
        Ok(deployment)
    );
}

#[test]
fn outputs_of_any_kind_are_read_once_the_object_is_good() {
    let rules = "{observedCompletion: {succeeded: {key: .status.phase, value: Good}}}";
    let rules: ClusterDeploymentTemplateSpec = serde_saphyr::from_str(rules).unwrap();
    let object = |phase: &str| {
        json!({"metadata": {"generation": 1}, "status": {
            "url": "u", "rev": "r", "phase": phase, "observedGeneration": 1}})
    };
    for yaml in [
        SOURCE,
        "{kind: ClusterImageTemplate, spec: {imagePath: .status.url}}",
        "{kind: ClusterConfigTemplate, spec: {configPath: .status.url}}",
        "{kind: ClusterTemplate, spec: {}}",
    ] {
        let mut template = template(yaml);
        let read = |template: &Template, phase: &str| {
            Output::read(
                template,
                Some(&object(phase)),
                None,
                &Taint::NONE,
                RuleInputs::default(),
            )
        };
        let good = read(&template, "Good");
        assert_eq!(read(&template, "Bad"), good, "{yaml}");
        template.goodness =
            Goodness::Done(Box::new(Readiness::of_deployment(&rules.success, false)));
        assert!(good.is_ok() && read(&template, "Good") == good, "{yaml}");
        let early = read(&template, "Bad").unwrap_err();
        assert!(
            matches!(early, ReadError::NotDone(NotDone::Condition(_))),
            "{yaml}"
        );
    }
}

#[test]
fn outputs_of_a_secret_are_redacted_and_their_digest_is_keyed() {
    let template = template("{kind: ClusterConfigTemplate, spec: {configPath: .data.token}}");
    let read = |kind: &str| {
        let object = json!({"apiVersion": "v1", "kind": kind, "data": {"token": "aHVudGVyMg=="}});
        Output::read(
            &template,
            Some(&object),
            None,
            &Taint::NONE,
            RuleInputs::default(),
        )
        .unwrap()
        .statuses(&[], &StatusKey::new(b"key"), &at(0))
        .remove(0)
    };
    let (shown, hidden) = (read("ConfigMap"), read("Secret"));
    assert_eq!(shown.preview, "aHVudGVyMg==\n");
    assert_eq!(hidden.preview, "<redacted>");
    assert_ne!(
        hidden.digest, shown.digest,
        "a plain digest of a short secret can be guessed"
    );
    assert_eq!(
        hidden.digest,
        crate::values::canonical::keyed_digest(b"key", b"output\0aHVudGVyMg==\n")
    );
}

#[test]
fn time_of_an_output_moves_with_its_digest_only() {
    let output = |url: &str| {
        Output::of(
            OutputValues::Source {
                url: json!(url),
                revision: json!("main"),
            },
            Taint::NONE,
        )
    };
    let key = &StatusKey::NONE;
    let first = output("one").statuses(&[], key, &at(100));
    assert_eq!(output("one").statuses(&first, key, &at(200)), first);
    let second = output("two").statuses(&first, key, &at(200));
    assert_eq!(
        (
            &second[0].last_transition_time,
            &second[1].last_transition_time
        ),
        (&at(200), &at(100))
    );
}

#[test]
fn without_a_key_no_digest_of_a_secret_is_shown_and_its_time_stays() {
    let output = |config: &str| {
        Output::of(
            OutputValues::Config(json!(config)),
            Taint::of([&json!(config)]),
        )
    };
    let first = output("one").statuses(&[], &StatusKey::NONE, &at(100));
    assert_eq!((&*first[0].preview, &*first[0].digest), ("<redacted>", ""));
    assert_eq!(
        output("two").statuses(&first, &StatusKey::NONE, &at(200)),
        first
    );
    let keyed = output("two").statuses(&first, &StatusKey::new(b"key"), &at(300));
    assert_eq!(keyed[0].last_transition_time, at(300));
}

fn config(value: &str, taint: Taint) -> Output {
    Output::of(OutputValues::Config(json!(value)), taint)
}

#[test]
fn what_was_redacted_stays_so_while_it_may_hold_a_former_value_of_the_secret() {
    let key = &StatusKey::new(b"key");
    let former = Taint::of([&json!("former-secret")]);
    let told = config("former-secret", former).statuses(&[], key, &at(0));
    let now = Taint::of([&json!("present-secret")]);
    let is_hidden = |value: &str, inputs: &Taint, key: &StatusKey| {
        let output = config(value, Taint::NONE).remembered(&told, inputs, false, key);
        !output.taint.is_none()
    };
    assert!(
        is_hidden("former-secret", &now, key),
        "the object lags behind"
    );
    assert!(
        is_hidden("former-secret", &Taint::NONE, key),
        "the input has gone"
    );
    assert!(!is_hidden("something-else", &Taint::NONE, key));
    for unknown in [StatusKey::NONE, StatusKey::new(b"")] {
        assert!(
            is_hidden("something-else", &Taint::NONE, &unknown),
            "nobody can tell"
        );
    }
}

#[test]
fn what_was_made_from_other_inputs_is_shown_only_if_it_was_shown_before() {
    let key = &StatusKey::new(b"key");
    let inputs = Taint::of([&json!("present-secret")]);
    let told = config("known", Taint::NONE).statuses(&[], key, &at(0));
    let is_hidden = |value: &str, of_others: bool| {
        let output = config(value, Taint::NONE).remembered(&told, &inputs, of_others, key);
        !output.taint.is_none()
    };
    assert!(!is_hidden("known", true));
    assert!(is_hidden("unknown", true));
    assert!(!is_hidden("unknown", false));
    let without_secrets = config("unknown", Taint::NONE).remembered(&told, &Taint::NONE, true, key);
    assert!(without_secrets.taint.is_none());
}
