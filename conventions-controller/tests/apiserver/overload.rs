//! An API server that is asked too much is nobody's fault who reads the status of a PodIntent.

use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use test_support::stage::{NOTHING, Particulars, condition};
use test_support::{Disturbance, DockerRegistry, LossyProxy, TestImage};

use crate::stage::{INTENT, applied, set};
use crate::webhook::{Does, Webhook};

const THROTTLED: Disturbance = Disturbance::Refused {
    code: 429,
    retry_after: Some(1),
    text: "Too many requests, please try again later.\n",
};

/// As etcd says it, of an object whose fields have so many names that both templates fit, and the
/// names do not.
const TOO_LARGE: Disturbance = Disturbance::Refused {
    code: 500,
    retry_after: None,
    text: "etcdserver: request is too large",
};

#[tokio::test]
async fn what_the_api_server_does_not_carry_out_is_tried_again_and_told_to_nobody() {
    let registry = DockerRegistry::start().await.unwrap();
    let image = TestImage::new();
    registry.push("team/app", "1.0", &image).await.unwrap();
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    let convention = webhook.convention("add-env", json!({}), json!({}));
    stage.apply(&convention).await;
    let (reads, writes) = (AtomicU32::new(0), AtomicU32::new(0));
    let network = LossyProxy::disturbing(&stage.plane, move |parts| {
        let path = parts.uri.path();
        if parts.method == "GET" && path.ends_with("/secrets/pull") {
            return match reads.fetch_add(1, Ordering::SeqCst) {
                0 => Some(THROTTLED),
                1 => Some(Disturbance::Broken),
                _ => None,
            };
        }
        let is_first = path.ends_with("/status") && writes.fetch_add(1, Ordering::SeqCst) == 0;
        is_first.then_some(THROTTLED)
    });
    let network = network.await.unwrap();
    let cache = stage.plane.folder().join("images");
    let cache = format!("--image-cache={}", cache.display());
    stage.start_controller_with(&Particulars {
        kubeconfig: Some(network.kubeconfig()),
        flags: &[&cache],
        ..Particulars::default()
    });
    let config = STANDARD.encode(json!({"auths": {}}).to_string());
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"},
        "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": config},
    });
    stage.apply(&secret.to_string()).await;
    let image = format!("{}/team/app:1.0", registry.host());
    let intent = json!({
        "apiVersion": "conventions.carto.run/v1alpha1", "kind": "PodIntent", "metadata": {"name": "app"},
        "spec": {"serviceAccountName": "sa", "imagePullSecrets": [{"name": "pull"}],
            "template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
    });
    stage.apply(&intent.to_string()).await;
    applied(&stage, "app").await;
    assert_eq!(
        webhook.asked(),
        ["app-add-env"],
        "for a status that is written again no webhook is asked again"
    );
    let met = [r#"outcome="infrastructure""#];
    let met = stage.metric("carto_reconcile_total", &met).await.unwrap();
    assert!(met >= 3.0, "{met} reconciles met trouble");
    let log = stage.log();
    let told = log.lines().filter(|line| line.contains("not ready"));
    assert_eq!(told.map(str::to_owned).collect::<Vec<_>>(), NOTHING);
    let events = stage.events().await;
    assert!(
        !events.iter().any(|it| it.starts_with("Warning")),
        "{events:?}"
    );
}

#[tokio::test]
async fn what_the_store_does_not_take_is_told_and_not_tried_for_ever() {
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    stage
        .apply(&webhook.convention("add-env", json!({}), json!({})))
        .await;
    let writes = AtomicU32::new(0);
    let network = LossyProxy::disturbing(&stage.plane, move |parts| {
        let is_write = parts.uri.path().ends_with("/status");
        let is_first = is_write && writes.fetch_add(1, Ordering::SeqCst) == 0;
        is_first.then_some(TOO_LARGE)
    });
    let network = network.await.unwrap();
    let cache = stage.plane.folder().join("images");
    let cache = format!("--image-cache={}", cache.display());
    stage.start_controller_with(&Particulars {
        kubeconfig: Some(network.kubeconfig()),
        flags: &[&cache],
        ..Particulars::default()
    });
    stage.apply(INTENT).await;
    let told = stage.ready("app", "False", "TemplateNotStorable").await;
    let message = condition(&told["status"], "Ready")["message"].clone();
    assert_eq!(
        message,
        "the template cannot be stored: status.template: Too long: etcdserver: request is too large"
    );
    assert_eq!(told["status"]["observedGeneration"], 1);
    stage.idle().await;
    assert_eq!(webhook.asked(), ["app-add-env"]);
}
