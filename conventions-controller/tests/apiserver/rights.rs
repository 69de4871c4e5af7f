//! What deploy/conventions/install.yaml grants is what the controller needs, and no more.

use std::path::Path;

use serde_json::json;
use test_support::stage::Particulars;
use test_support::{CONTROLLERS_NAMESPACE, documents, service_account};

use crate::stage::{INTENT, applied, set};
use crate::webhook::{Does, Webhook};

/// Only makes sense inside a cluster: here the controller runs beside it.
const INSIDE: [&str; 4] = [
    "Deployment",
    "Service",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

const GRANTED: [&str; 12] = [
    "watch podintents.conventions.carto.run",
    "list clusterpodconventions.conventions.carto.run",
    "patch podintents.conventions.carto.run/status in dev named app",
    "watch serviceaccounts",
    "get secrets in dev named pull",
    "watch secrets",
    "watch certificaterequests.cert-manager.io",
    "watch customresourcedefinitions.apiextensions.k8s.io named certificaterequests.cert-manager.io",
    "create events in dev",
    "update leases.coordination.k8s.io in carto-system named conventions-controller",
    "update secrets in carto-system named conventions-controller-webhook",
    "patch mutatingwebhookconfigurations.admissionregistration.k8s.io named carto-conventions-controller",
];

const DENIED: [&str; 14] = [
    "patch podintents.conventions.carto.run in dev named app",
    "delete podintents.conventions.carto.run in dev named app",
    "create clusterpodconventions.conventions.carto.run",
    "create secrets in dev",
    "update secrets in dev named pull",
    "delete secrets in carto-system named conventions-controller-webhook",
    "create serviceaccounts/token in dev named app",
    "impersonate serviceaccounts in dev named app",
    "get configmaps in dev named app",
    "watch pods",
    "watch customresourcedefinitions.apiextensions.k8s.io",
    "patch validatingwebhookconfigurations.admissionregistration.k8s.io named other",
    "create clusterrolebindings.rbac.authorization.k8s.io",
    "update leases.coordination.k8s.io in carto-system named supplychain-controller",
];

#[tokio::test]
async fn the_controller_has_the_rights_it_needs_and_no_others() {
    let mut stage = set().await;
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/conventions/install.yaml");
    let mut all = documents(&std::fs::read_to_string(manifest).unwrap()).unwrap();
    all.retain(|document| !INSIDE.iter().any(|kind| document["kind"] == *kind));
    stage
        .plane
        .apply_yaml(&test_support::as_yaml(&all))
        .await
        .unwrap();
    let user = service_account(CONTROLLERS_NAMESPACE, "conventions-controller");
    for right in GRANTED {
        stage.plane.until_it_may(&user, right).await;
    }
    for right in DENIED {
        assert!(
            !stage.plane.may(&user, right).await.unwrap(),
            "granted: {right}"
        );
    }

    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    stage
        .apply(&webhook.convention("add-env", json!({}), json!({})))
        .await;
    let kubeconfig = stage.plane.kubeconfig_as_user(&user, &[]).unwrap();
    let cache = stage.plane.folder().join("images");
    let cache = format!("--image-cache={}", cache.display());
    let own = format!("--own-namespace={CONTROLLERS_NAMESPACE}");
    let flags = [&*cache, &*own, "--leader-elect"];
    stage.start_controller_with(&Particulars {
        kubeconfig: Some(&kubeconfig),
        flags: &flags,
        ..Particulars::default()
    });
    stage.apply(INTENT).await;
    applied(&stage, "app").await;
    stage.idle().await;
    let requests = stage.plane.requests_by("carto-conventions").unwrap();
    let refused: Vec<String> = requests
        .iter()
        .filter(|it| {
            it.response_status
                .as_ref()
                .is_some_and(|status| status.code == 403)
        })
        .map(|it| format!("{} {}", it.verb, it.request_uri))
        .collect();
    assert!(
        refused.is_empty(),
        "deploy/conventions/install.yaml lacks rights for {refused:#?}"
    );
    assert!(!requests.is_empty());
}
