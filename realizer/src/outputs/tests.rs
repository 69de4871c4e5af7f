use serde_json::json;

use super::*;

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
        let output = Output::read(&template(yaml), Some(&object), None).unwrap();
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
    let output = Output::read(&template(SOURCE), Some(&object), None).unwrap();
    assert_eq!(
        output.named(),
        [("url", &Value::Null), ("revision", &Value::Null)]
    );
    for yaml in [
        "{kind: ClusterImageTemplate, spec: {imagePath: .status.url}}",
        "{kind: ClusterConfigTemplate, spec: {configPath: .status.url}}",
    ] {
        assert!(
            Output::read(&template(yaml), Some(&object), None)
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
            Output::read(&template(yaml), object, None)
                .unwrap_err()
                .to_string(),
            expected,
            "{yaml}"
        );
    }
}

#[test]
fn a_deployment_template_hands_its_deployment_on() {
    let deployment = Output {
        values: OutputValues::Source {
            url: json!("u"),
            revision: json!("r"),
        },
        secret: true,
    };
    let template = template("{kind: ClusterDeploymentTemplate, spec: {}}");
    assert_eq!(
        Output::read(&template, Some(&json!({})), Some(&deployment)),
        Ok(deployment)
    );
}

#[test]
fn outputs_of_a_secret_are_redacted_and_their_digest_is_keyed() {
    let template = template("{kind: ClusterConfigTemplate, spec: {configPath: .data.token}}");
    let read = |kind: &str| {
        let object = json!({"apiVersion": "v1", "kind": kind, "data": {"token": "aHVudGVyMg=="}});
        Output::read(&template, Some(&object), None)
            .unwrap()
            .statuses(&[], "owner-uid", &at(0))
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
        canonical::keyed_digest(b"owner-uid", b"aHVudGVyMg==\n")
    );
}

#[test]
fn time_of_an_output_moves_with_its_digest_only() {
    let output = |url: &str| Output {
        values: OutputValues::Source {
            url: json!(url),
            revision: json!("main"),
        },
        secret: false,
    };
    let first = output("one").statuses(&[], "k", &at(100));
    assert_eq!(output("one").statuses(&first, "k", &at(200)), first);
    let second = output("two").statuses(&first, "k", &at(200));
    assert_eq!(
        (
            &second[0].last_transition_time,
            &second[1].last_transition_time
        ),
        (&at(200), &at(100))
    );
}
