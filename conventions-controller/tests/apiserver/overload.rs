//! An API server that is asked too much is nobody's fault who reads the status of a PodIntent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use test_support::stage::{NOTHING, PATIENCE, condition};
use test_support::{Disturbance, DockerRegistry, LossyProxy, TestImage, eventually};

use crate::stage::{INTENT, applied, env, open_with_env, set, start_behind};
use crate::webhook::{Does, Webhook};

const THROTTLED: Disturbance = Disturbance::Refused {
    code: 429,
    retry_after: Some(1),
    text: "Too many requests, please try again later.\n",
};

/// As etcd says it.
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
    start_behind(&mut stage, &network);
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
    // Each one that has the template: another wake must not get through.
    let network = LossyProxy::disturbing_by_body(&stage.plane, |parts, body| {
        let has_template = || {
            let patch: Value = serde_json::from_slice(body).unwrap_or_default();
            let mut operations = patch.as_array().into_iter().flatten();
            operations.any(|it| it["path"] == "/status" && !it["value"]["template"].is_null())
        };
        (parts.uri.path().ends_with("/status") && has_template()).then_some(TOO_LARGE)
    });
    let network = network.await.unwrap();
    start_behind(&mut stage, &network);
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

#[tokio::test]
async fn what_the_api_server_does_not_carry_out_for_long_is_told_beside_the_last_outcome() {
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    stage
        .apply(&webhook.convention("add-env", json!({}), json!({})))
        .await;
    let lasts = Arc::new(AtomicBool::new(true));
    let disturbs = lasts.clone();
    let network = LossyProxy::disturbing(&stage.plane, move |parts| {
        let is_read = parts.method == "GET" && parts.uri.path().ends_with("/secrets/pull");
        (is_read && disturbs.load(Ordering::SeqCst)).then_some(Disturbance::Broken)
    });
    let network = network.await.unwrap();
    start_behind(&mut stage, &network);
    stage.apply(INTENT).await;
    applied(&stage, "app").await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"}});
    stage.apply(&secret.to_string()).await;
    let image = json!([{"name": "web", "image": "localhost:1/app:1.0"}]);
    let edit = json!({"spec": {"imagePullSecrets": [{"name": "pull"}],
        "template": {"spec": {"containers": image}}}});
    stage.edit_owner("app", edit).await;
    let what = "it is told what is in the way";
    let is_told = |it: &Value| condition(&it["status"], "InputsReadable")["status"] == "False";
    let app = stage.until("app", what, is_told).await;
    let told = condition(&app["status"], "InputsReadable");
    assert_eq!(told["reason"], "APIServerUnavailable");
    let message = told["message"].as_str().unwrap();
    assert!(message.starts_with("failed to read Secret ["), "{message}");
    let ready = condition(&app["status"], "Ready");
    assert_eq!(ready["status"], "True", "that was the last outcome");
    assert_eq!(app["status"]["observedGeneration"], 1);

    lasts.store(false, Ordering::SeqCst);
    let failed = stage.ready("app", "False", "ConventionsApplied").await;
    assert!(condition(&failed["status"], "InputsReadable").is_null());
    assert_eq!(failed["status"]["observedGeneration"], 2);
}

#[tokio::test]
async fn a_kind_that_cannot_be_listed_at_the_start_is_waited_for() {
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    stage
        .apply(&webhook.convention("add-env", json!({}), json!({})))
        .await;
    stage.apply(INTENT).await;
    let refused = Arc::new(AtomicU32::new(0));
    let lists = Arc::new(AtomicBool::new(false));
    let (count, works) = (refused.clone(), lists.clone());
    let network = LossyProxy::disturbing(&stage.plane, move |parts| {
        let is_list = parts.uri.path().ends_with("/clusterpodconventions");
        if !is_list || works.load(Ordering::SeqCst) {
            return None;
        }
        count.fetch_add(1, Ordering::SeqCst);
        Some(Disturbance::Refused {
            code: 500,
            retry_after: None,
            text: "conversion webhook failed\n",
        })
    });
    let network = network.await.unwrap();
    start_behind(&mut stage, &network);
    eventually("it is tried again and again", PATIENCE, async || {
        refused.load(Ordering::SeqCst) >= 2
    })
    .await;
    let early = stage.owner("app").await;
    assert!(
        early["status"].is_null(),
        "it would be without the convention"
    );
    lists.store(true, Ordering::SeqCst);
    let intent = applied(&stage, "app").await;
    assert_eq!(env(&intent), ["A=b"]);
    assert_eq!(webhook.asked(), ["app-add-env"]);
}

/// The real store: both templates fit, and with all else that is in the object they do not. That its
/// fields have many names is no matter, as the API server does without those first.
#[tokio::test]
async fn a_template_that_fits_twice_but_not_with_all_else_in_the_object_is_told() {
    let (stage, webhook) = open_with_env().await;
    stage.apply(INTENT).await;
    let small = applied(&stage, "app").await;
    let secrets: Vec<Value> = (0..700)
        .map(|index| json!({"name": format!("{index:01000}")}))
        .collect();
    let long = json!({"long": "x".repeat(500_000)});
    let edit = json!({"spec": {
        "imagePullSecrets": secrets, "template": {"metadata": {"annotations": long}}}});
    stage.edit_owner("app", edit).await;
    let told = stage.ready("app", "False", "TemplateNotStorable").await;
    let message = condition(&told["status"], "Ready")["message"].clone();
    let beginning = "the template cannot be stored: status.template: Too long: ";
    let message = message.as_str().unwrap();
    assert!(message.starts_with(beginning), "{message}");
    assert!(message.contains("too large"), "by the store: {message}");
    assert_eq!(told["status"]["observedGeneration"], 2);
    assert_eq!(told["status"]["template"], small["status"]["template"]);
    stage.idle().await;
    assert_eq!(webhook.asked().len(), 2, "once for each template");
}
