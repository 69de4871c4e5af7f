use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{Answer, Operation, Review};
use crate::owner::ROUTES;

fn asked(version: &str, operation: &str, object: &Value) -> Value {
    json!({"apiVersion": format!("admission.k8s.io/{version}"), "kind": "AdmissionReview", "request": {
        "uid": "u-1", "operation": operation, "object": object, "oldObject": null,
        "kind": {"group": "carto.run", "version": "v1alpha1", "kind": "ClusterSupplyChain"}, "name": "chain"}})
}

fn parse(body: &Value) -> Result<Review, String> {
    Review::parse("Kind", body.to_string().as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn both_versions_are_answered_in_the_version_they_were_asked_in() {
    for version in ["v1", "v1beta1"] {
        let review = parse(&asked(version, "CREATE", &json!({"spec": {}}))).unwrap();
        assert_eq!(
            (review.operation, &review.object),
            (Operation::Create, &Ok(json!({"spec": {}})))
        );
        assert_eq!(
            review.answer(&Answer::default()),
            json!({"apiVersion": format!("admission.k8s.io/{version}"), "kind": "AdmissionReview", "response": {"uid": "u-1", "allowed": true}})
        );
    }
}

#[test]
fn a_denial_carries_exactly_the_message_and_all_warnings() {
    let review = parse(&asked("v1", "UPDATE", &json!({}))).unwrap();
    let verdict = Answer {
        error: Some("error validating clustersupplychain [chain]: no".into()),
        warnings: vec!["a".into(), "b".into()],
        ..Answer::default()
    };
    assert_eq!(
        review.answer(&verdict)["response"],
        json!({"uid": "u-1", "allowed": false, "warnings": ["a", "b"],
            "status": {"code": 403, "reason": "Forbidden", "message": "error validating clustersupplychain [chain]: no"}})
    );
}

#[test]
fn a_warning_has_no_control_characters_for_which_the_api_server_would_drop_it() {
    let review = parse(&asked("v1", "CREATE", &json!({}))).unwrap();
    let verdict = Answer {
        warnings: vec!["[a\nb\u{85}] \"é\" is odd".into()],
        ..Answer::default()
    };
    assert_eq!(
        review.answer(&verdict)["response"]["warnings"],
        json!(["[a\\nb\\u{85}] \"é\" is odd"])
    );
}

#[test]
fn a_deletion_has_no_object() {
    assert_eq!(
        parse(&asked("v1", "DELETE", &Value::Null))
            .unwrap()
            .operation,
        Operation::Delete
    );
    assert_eq!(
        parse(&asked("v1", "CONNECT", &Value::Null))
            .unwrap()
            .operation,
        Operation::Connect
    );
}

/// An object that many containers deep.
fn nested(depth: usize) -> String {
    let spec = format!("{}1{}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    format!(r#"{{"spec":{spec}}}"#)
}

/// A review of an update, as text: a value that deep cannot even be made.
fn updated(old: &str, new: &str) -> Result<Review, String> {
    let body = asked("v1", "UPDATE", &json!("new")).to_string();
    let body = body.replace(r#""object":"new""#, &format!(r#""object":{new}"#));
    let body = body.replace(r#""oldObject":null"#, &format!(r#""oldObject":{old}"#));
    Review::parse("Kind", body.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn an_object_too_deep_to_be_read_is_refused_and_its_repair_is_not() {
    let review = updated(&nested(1), &nested(127)).unwrap();
    assert!(review.object.is_ok(), "{:?}", review.object);
    let review = updated(&nested(1), &nested(128)).unwrap();
    assert_eq!(
        review.object,
        Err("invalid object: it is nested more than 127 levels deep".to_owned())
    );
    let review = updated(&nested(9_000), &nested(2)).unwrap();
    assert_eq!(review.object, Ok(json!({"spec": [1]})));
    assert!(review.old_object().unwrap_err().contains("127 levels"));
}

#[test]
fn what_is_no_review_is_told_what_it_lacks() {
    let base = asked("v1", "CREATE", &json!({}));
    let with = |path: &str, value: Value| {
        let mut body = base.clone();
        *body.pointer_mut(path).unwrap() = value;
        parse(&body).unwrap_err()
    };
    assert!(
        Review::parse("Kind", b"{")
            .unwrap_err()
            .to_string()
            .starts_with("the body is not JSON: ")
    );
    assert!(
        parse(&json!([]))
            .unwrap_err()
            .contains("found (nothing) of (nothing)")
    );
    assert_eq!(
        with("/apiVersion", json!("admission.k8s.io/v2")),
        "expected kind AdmissionReview of admission.k8s.io/v1 or admission.k8s.io/v1beta1, found AdmissionReview of admission.k8s.io/v2"
    );
    assert!(with("/kind", json!("Pod")).contains("found Pod of admission.k8s.io/v1"));
    assert_eq!(
        with("/request", json!("text")),
        "the admission review has no request"
    );
    assert_eq!(
        with("/request/uid", json!("")),
        "the admission review's request has no uid"
    );
    assert_eq!(
        with("/request/operation", json!(1)),
        "the admission review's request has no operation"
    );
    assert_eq!(
        with("/request/operation", json!("PATCH")),
        "operation \"PATCH\" is none of CREATE, UPDATE, DELETE, CONNECT"
    );
    assert_eq!(
        with("/request/object", Value::Null),
        "the admission review's request has no object"
    );
}

/// Those that the Go controller's configuration of admission names, and one of our own.
const CONFIGURED: [&str; 9] = [
    "/validate-carto-run-v1alpha1-clustersupplychain",
    "/validate-carto-run-v1alpha1-clusterdelivery",
    "/validate-carto-run-v1alpha1-clustersourcetemplate",
    "/validate-carto-run-v1alpha1-clusterimagetemplate",
    "/validate-carto-run-v1alpha1-clusterconfigtemplate",
    "/validate-carto-run-v1alpha1-clustertemplate",
    "/validate-carto-run-v1alpha1-clusterdeploymenttemplate",
    "/validate-carto-run-v1alpha1-clusterdeploymentvalidationtemplate",
    "/validate-carto-run-v1alpha1-clusterruntemplate",
];

#[test]
fn the_paths_are_those_of_existing_configurations() {
    let mut served: Vec<&str> = ROUTES.iter().map(|route| route.path).collect();
    let mut configured = CONFIGURED.to_vec();
    served.sort_unstable();
    configured.sort_unstable();
    assert_eq!(served, configured);
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        let key = prop_oneof![
            Just("spec".to_owned()),
            Just("uid".to_owned()),
            Just("operation".to_owned()),
            ".*"
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Review::parse("Kind", &bytes);
    }

    #[test]
    fn no_review_makes_it_panic(request in anything(), operation in "CREATE|UPDATE|DELETE|[A-Z]*", object in anything()) {
        let _ = parse(&json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}));
        if let Ok(review) = parse(&asked("v1", &operation, &object)) {
            prop_assert_eq!(&review.object, &Ok(object));
            prop_assert_eq!(&review.answer(&Answer::default())["response"]["uid"], "u-1");
        }
    }
}
