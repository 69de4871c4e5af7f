//! The admission webhook as installed: called by the API server over TLS, with a certificate the controller made.

use std::collections::BTreeSet;

use e2e::binaries::SUPPLY_CHAIN_CONTROLLER;
use e2e::stack::{install, installed_controller};
use http::Request;
use http::request::Builder;
use http_body_util::BodyExt as _;
use kube::client::{Body, Client};
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::ControlPlane;
use test_support::admission_corpus::{Case, cases};

#[tokio::test]
async fn a_blueprint_that_cannot_work_is_refused_at_once() {
    let control_plane = ControlPlane::start().await.unwrap();
    install(&control_plane).await.unwrap();
    let _controller = installed_controller(&control_plane, SUPPLY_CHAIN_CONTROLLER)
        .await
        .unwrap();

    let refused = control_plane.apply_yaml(CHAIN).await.unwrap_err();
    let expected = "admission webhook \"supply-chain-validator.cartographer.com\" denied the request: error validating clustersupplychain \
        [chain]: at least one selector, selectorMatchExpression, selectorMatchField must be specified";
    assert!(format!("{refused:#}").contains(expected), "{refused:#}");
    let refused = control_plane.apply_yaml(TEMPLATE).await.unwrap_err();
    assert!(
        format!("{refused:#}").contains("template-validator.cartographer.com"),
        "{refused:#}"
    );

    let works = CHAIN.replace("selector: {}", "selector: {type: web}");
    control_plane.apply_yaml(&works).await.unwrap();
}

const CHAIN: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec: {selector: {}, resources: []}
";

const TEMPLATE: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: neither-template-nor-ytt}
spec: {}
";

/// Upstream never looked at the inputs of deliveries, so they are admitted, and `kubectl` shows what is wrong.
#[tokio::test]
async fn a_delivery_whose_input_nobody_provides_is_admitted_with_a_warning() {
    let control_plane = ControlPlane::start().await.unwrap();
    install(&control_plane).await.unwrap();
    let _controller = installed_controller(&control_plane, SUPPLY_CHAIN_CONTROLLER)
        .await
        .unwrap();

    let delivery = json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterDelivery", "metadata": {"name": "delivery"},
        "spec": {"selector": {"type": "app"}, "resources": [{"name": "publish",
            "templateRef": {"kind": "ClusterTemplate", "name": "sink"}, "sources": [{"name": "code", "resource": "ghost"}]}]}});
    let create = Request::post("/apis/carto.run/v1alpha1/clusterdeliveries")
        .header("content-type", "application/json");
    let client = control_plane.client().unwrap();
    let answer = send(&client, create, &delivery).await;
    assert_eq!(answer.status, 201);
    assert_eq!(
        answer.warnings,
        ["invalid sources for resource [publish]: [code] is provided by unknown resource [ghost]"]
    );

    let refused = DELIVERY.replace("selector: {type: app}", "selector: {}");
    let refused = control_plane.apply_yaml(&refused).await.unwrap_err();
    let expected = "admission webhook \"delivery-validator.cartographer.com\" denied the request: error validating clusterdelivery \
        [other]: at least one selector, selectorMatchExpression, selectorMatchField must be specified";
    assert!(format!("{refused:#}").contains(expected), "{refused:#}");
    control_plane.apply_yaml(DELIVERY).await.unwrap();
}

const DELIVERY: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterDelivery
metadata: {name: other}
spec: {selector: {type: app}, resources: []}
";

/// What the API server answers, and what `kubectl` shows of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) message: String,
    warnings: Vec<String>,
}

/// Of a reply; what an object holds is skipped, however deep.
#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    message: String,
}

pub(crate) async fn send(client: &Client, request: Builder, body: &Value) -> Answer {
    let request = request.body(Body::from(body.to_string().into_bytes()));
    let answer = client.send(request.unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let warnings = answer.headers().get_all("warning").iter();
    let warnings = warnings
        .map(|warning| warning_text(warning.to_str().unwrap()))
        .collect();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let Status { message } = serde_json::from_slice(&bytes).unwrap();
    Answer {
        status,
        message,
        warnings,
    }
}

/// The text in `299 - "text"`; it is quoted as JSON is.
fn warning_text(header: &str) -> String {
    serde_json::from_str(header.strip_prefix("299 - ").unwrap()).unwrap()
}

/// Where objects of the kind of a case are.
fn collection(case: &Case) -> String {
    let crds = api_types::crds();
    let crd = crds.iter().find(|crd| crd.spec.names.kind == case.kind);
    format!(
        "/apis/carto.run/v1alpha1/{}",
        crd.unwrap().spec.names.plural
    )
}

/// What `kubectl` shows when the object of a case is created or changed.
fn expected(case: &Case, admitted: u16) -> Answer {
    let webhook = match case.kind.as_str() {
        "ClusterSupplyChain" => "supply-chain",
        "ClusterDelivery" => "delivery",
        "ClusterSourceTemplate" => "source-template",
        "ClusterImageTemplate" => "image-template",
        "ClusterConfigTemplate" => "config-template",
        "ClusterTemplate" => "template",
        "ClusterDeploymentTemplate" => "deployment-template",
        "ClusterDeploymentValidationTemplate" => "deployment-validation-template",
        "ClusterRunTemplate" => "run-template",
        other => unreachable!("{other} has no webhook"),
    };
    let message = case.error.as_ref().map(|error| {
        format!(
            "admission webhook \"{webhook}-validator.cartographer.com\" denied the request: {error}"
        )
    });
    Answer {
        status: if message.is_some() { 403 } else { admitted },
        message: message.unwrap_or_default(),
        warnings: case.warnings.clone(),
    }
}

/// The corpus is also what the rules in code and the admission policies are tried with (`api-types/tests`): what is said is
/// the same wherever it is said.
#[tokio::test]
async fn users_read_the_verdicts_and_warnings_of_the_whole_corpus() {
    let control_plane = ControlPlane::start().await.unwrap();
    install(&control_plane).await.unwrap();
    let _controller = installed_controller(&control_plane, SUPPLY_CHAIN_CONTROLLER)
        .await
        .unwrap();
    let client = control_plane.client().unwrap();
    let cases = cases();
    for case in &cases {
        let create = Request::post(format!("{}?dryRun=All", collection(case)))
            .header("content-type", "application/json");
        let answer = send(&client, create, &case.object).await;
        if case.refused_by_schema {
            assert_eq!(answer.status, 422, "{case:?}");
            assert!(!answer.message.contains("admission webhook"), "{answer:?}");
        } else {
            assert_eq!(answer, expected(case, 201), "{case:?}");
        }
    }

    // A change is asked about, too.
    let mut stored = BTreeSet::new();
    for case in cases.iter().filter(|case| case.error.is_none()) {
        if stored.insert(&case.kind) {
            let create = Request::post(collection(case)).header("content-type", "application/json");
            let answer = send(&client, create, &case.object).await;
            assert_eq!(answer, expected(case, 201), "{case:?}");
        }
    }
    assert_eq!(stored.len(), 9, "{stored:?}");
    for case in cases.iter().filter(|case| !case.refused_by_schema) {
        let change = json!([{"op": "replace", "path": "/spec", "value": case.object["spec"]}]);
        let patch = Request::patch(format!("{}/case?dryRun=All", collection(case)))
            .header("content-type", "application/json-patch+json");
        let answer = send(&client, patch, &change).await;
        assert_eq!(answer, expected(case, 200), "{case:?}");
    }
}

/// The API server takes what no JSON parser here reads; with the Go controller such an object was admitted.
#[tokio::test]
async fn an_object_too_deep_to_be_read_is_refused_with_that_reason_and_can_be_repaired() {
    let control_plane = ControlPlane::start().await.unwrap();
    install(&control_plane).await.unwrap();
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let template = |name: &str| {
        json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate", "metadata": {"name": name},
            "spec": {"template": {"kind": "ConfigMap", "data": deep}}})
    };
    let create = || {
        Request::post("/apis/carto.run/v1alpha1/clustertemplates")
            .header("content-type", "application/json")
    };
    let client = control_plane.client().unwrap();
    let before = send(&client, create(), &template("before")).await;
    assert_eq!(before.status, 201, "{before:?}");

    let _controller = installed_controller(&control_plane, SUPPLY_CHAIN_CONTROLLER)
        .await
        .unwrap();
    let expected = "admission webhook \"template-validator.cartographer.com\" denied the request: invalid object: it is nested \
        more than 127 levels deep";
    let refused = send(&client, create(), &template("after")).await;
    assert_eq!((refused.status, &*refused.message), (403, expected));

    let patch = |change: Value| {
        let request = Request::patch("/apis/carto.run/v1alpha1/clustertemplates/before")
            .header("content-type", "application/json-patch+json");
        let client = &client;
        async move { send(client, request, &change).await }
    };
    let label = json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]);
    assert_eq!(patch(label).await.message, expected);
    let repair = json!([{"op": "remove", "path": "/spec/template/data"}]);
    let repaired = patch(repair).await;
    assert_eq!(repaired.status, 200, "{repaired:?}");
}
