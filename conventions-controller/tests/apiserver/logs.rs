//! What the log says of what is changed: where and how it ended, and no secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use test_support::{DockerRegistry, TestImage};

use crate::stage::{Intents, applied, set, start};
use crate::webhook::{Does, Webhook};

/// What a tenant, and a convention, keeps to himself.
const LITERAL: &str = "literal-of-a-tenant";
const ADDED: &str = "literal-of-a-convention";

/// The lines with this message about the PodIntent `app`.
fn lines(stage: &Intents, message: &str) -> Vec<Value> {
    let key = format!("{}/app", stage.namespace);
    let log = stage.log();
    let lines = log.lines().filter(|line| line.contains(&key));
    let lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["message"] == message).collect()
}

#[tokio::test]
async fn the_log_has_what_a_status_becomes_and_what_came_of_it_and_no_secret() {
    let registry = DockerRegistry::builder().with_password();
    let registry = registry.start().await.unwrap();
    let image = TestImage::new();
    registry.push("team/app", "1.0", &image).await.unwrap();
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("ADDED", ADDED)).await;
    let convention = webhook.convention("add-env", json!({}), json!({}));
    stage.apply(&convention).await;
    let auth = STANDARD.encode(format!(
        "{}:{}",
        DockerRegistry::USER,
        DockerRegistry::PASSWORD
    ));
    let config = json!({"auths": {registry.host(): {"auth": auth}}}).to_string();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"},
        "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": STANDARD.encode(&config)},
    });
    stage.apply(&secret.to_string()).await;
    start(&mut stage, &[]);
    let image = format!("{}/team/app:1.0", registry.host());
    let container = json!({
        "name": "web", "image": image, "args": [LITERAL], "env": [{"name": "OWN", "value": LITERAL}],
    });
    let intent = json!({
        "apiVersion": "conventions.carto.run/v1alpha1", "kind": "PodIntent", "metadata": {"name": "app"},
        "spec": {"serviceAccountName": "sa", "imagePullSecrets": [{"name": "pull"}], "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}},
    });
    stage.apply(&intent.to_string()).await;
    applied(&stage, "app").await;
    let label = json!({"spec": {"template": {"metadata": {"labels": {"app": "other"}}}}});
    stage.edit_owner("app", label).await;
    let is_other =
        |intent: &Value| intent["status"]["template"]["metadata"]["labels"]["app"] == "other";
    let last = stage.until("app", "its label is another", is_other).await;
    stage.idle().await;

    let updating = lines(&stage, "updating status");
    let diffs: Vec<&str> = updating
        .iter()
        .map(|it| it["diff"].as_str().unwrap())
        .collect();
    assert_eq!(diffs.len(), 2, "{diffs:?}");
    assert!(diffs[0].contains("spec: nothing -> "), "{diffs:?}");
    assert_eq!(diffs[1], r#"metadata.labels.app: "web" -> "other""#);
    let updated = lines(&stage, "updated status");
    assert_eq!(updated.len(), 2, "{updated:?}");
    assert_eq!(updated[1]["version"], last["metadata"]["resourceVersion"]);
    let applied = lines(&stage, "applied convention");
    assert_eq!(applied.len(), 2, "{applied:?}");
    assert_eq!(applied[0]["convention"], "add-env");
    let added = applied[0]["diff"].as_str().unwrap();
    assert!(added.contains("spec.containers[0].env[1]"), "{added}");

    let log = stage.log();
    let (user, password) = (DockerRegistry::USER, DockerRegistry::PASSWORD);
    let config = STANDARD.encode(&config);
    for secret in [LITERAL, ADDED, password, &auth, &config] {
        assert!(!log.contains(secret), "{secret} of {user} is in the log");
    }
}
