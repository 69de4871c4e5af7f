//! Secrets are watched by their metadata alone, and only those are read that somebody names as a
//! pull secret: what others hold never comes into the process.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use test_support::stage::Particulars;
use test_support::{DockerRegistry, LossyProxy, TestImage};

use crate::stage::{applied, set};
use crate::webhook::{Does, Webhook};

/// A request for Secrets: method, path, query and what it accepts.
type Asked = Arc<Mutex<Vec<[String; 4]>>>;

const ALL: &str = "/api/v1/secrets";

async fn listening(stage: &crate::stage::Intents, asked: &Asked) -> LossyProxy {
    let asked = asked.clone();
    let network = LossyProxy::disturbing(&stage.plane, move |parts| {
        let path = parts.uri.path();
        if path.contains("/secrets") {
            let accept = parts.headers.get("accept").map(|it| it.to_str().unwrap());
            let query = parts.uri.query().unwrap_or_default();
            let request = [parts.method.as_str(), path, query, accept.unwrap_or("*/*")];
            asked.lock().push(request.map(str::to_owned));
        }
        None
    });
    network.await.unwrap()
}

fn secret(name: &str, content: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": STANDARD.encode(content)},
    })
    .to_string()
}

fn has_value(intent: &Value, value: &str) -> bool {
    intent["status"]["template"]["spec"]["containers"][0]["env"][0]["value"] == value
}

#[tokio::test]
async fn only_secrets_that_are_named_as_pull_secrets_are_read_and_all_others_are_metadata() {
    let registry = DockerRegistry::start().await.unwrap();
    let image = TestImage::new();
    registry.push("team/app", "1.0", &image).await.unwrap();
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    let convention = webhook.convention("add-env", json!({}), json!({}));
    stage.apply(&convention).await;
    let asked = Asked::default();
    let network = listening(&stage, &asked).await;
    let cache = stage.plane.folder().join("images");
    let cache = format!("--image-cache={}", cache.display());
    stage.start_controller_with(&Particulars {
        kubeconfig: Some(network.kubeconfig()),
        flags: &[&cache],
        ..Particulars::default()
    });
    for name in ["own", "of-account", "of-nobody"] {
        stage.apply(&secret(name, r#"{"auths": {}}"#)).await;
    }
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "team"},
        "imagePullSecrets": [{"name": "of-account"}, {"name": "missing"}],
    });
    stage.apply(&account.to_string()).await;
    let image = format!("{}/team/app:1.0", registry.host());
    let intent = json!({
        "apiVersion": "conventions.carto.run/v1alpha1", "kind": "PodIntent", "metadata": {"name": "app"},
        "spec": {"serviceAccountName": "team", "imagePullSecrets": [{"name": "own"}],
            "template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
    });
    stage.apply(&intent.to_string()).await;
    applied(&stage, "app").await;
    // One that is read is rotated, and one that is not.
    webhook.does(Does::AddsEnv("A", "again"));
    for name in ["of-nobody", "own"] {
        let content = STANDARD.encode(r#"{"auths": {"registry.example": {}}}"#);
        let patch = json!({"data": {".dockerconfigjson": content}});
        stage.edit("v1", "Secret", name, patch).await;
    }
    let again = |intent: &Value| has_value(intent, "again");
    stage.until("app", "the rotation was noticed", again).await;
    stage.idle().await;

    let asked = asked.lock().clone();
    let (of_all, of_one): (Vec<_>, Vec<_>) = asked.into_iter().partition(|it| it[1] == ALL);
    for request in &of_all {
        assert_eq!(request[0], "GET");
        let forms: Vec<&str> = request[3].split(',').map(str::trim).collect();
        let is_metadata = |form: &&str| form.contains("as=PartialObjectMetadata");
        assert!(forms.iter().all(is_metadata), "{request:?}");
    }
    let watches = of_all.iter().filter(|it| it[2].contains("watch=true"));
    assert!(watches.count() > 0, "{of_all:?}");
    let read: BTreeSet<String> = of_one
        .iter()
        .map(|it| format!("{} {}", it[0], it[1]))
        .collect();
    let secrets = format!("GET /api/v1/namespaces/{}/secrets", stage.namespace);
    let named = ["of-account", "own"].map(|name| format!("{secrets}/{name}"));
    assert_eq!(read, BTreeSet::from(named));
}
