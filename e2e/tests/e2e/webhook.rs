//! The admission webhook as installed: called by the API server over TLS, with a certificate the controller made.

use e2e::binaries::SUPPLY_CHAIN_CONTROLLER;
use e2e::stack::{install, installed_controller};
use http::Request;
use kube::client::Body;
use serde_json::json;
use test_support::ControlPlane;

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
        .header("content-type", "application/json")
        .body(Body::from(delivery.to_string().into_bytes()))
        .unwrap();
    let answer = control_plane.client().unwrap().send(create).await.unwrap();
    assert_eq!(answer.status(), 201);
    let warnings: Vec<&str> = answer
        .headers()
        .get_all("warning")
        .iter()
        .map(|warning| warning.to_str().unwrap())
        .collect();
    assert_eq!(
        warnings,
        [
            "299 - \"invalid sources for resource [publish]: [code] is provided by unknown resource [ghost]\""
        ]
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
