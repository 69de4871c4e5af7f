//! The admission webhook as installed: called by the API server over TLS, with a certificate the controller made.

use e2e::stack::{install, installed_controller};
use test_support::ControlPlane;

#[tokio::test]
async fn a_blueprint_that_cannot_work_is_refused_at_once() {
    let control_plane = ControlPlane::start().await.unwrap();
    install(&control_plane).await.unwrap();
    let _controller = installed_controller(&control_plane).await.unwrap();

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
