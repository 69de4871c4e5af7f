//! Credentials of service accounts: a PodIntent gets its images by them as its Pods would.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use test_support::stage::condition;
use test_support::{DockerRegistry, TestImage};

use crate::stage::{applied, set, start};
use crate::webhook::{Does, Webhook};

/// What opens the registry, or does not.
fn secret(name: &str, registry: &DockerRegistry, password: &str) -> String {
    let auth = STANDARD.encode(format!("{}:{password}", DockerRegistry::USER));
    let config = json!({"auths": {registry.host(): {"auth": auth}}}).to_string();
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": STANDARD.encode(config)},
    })
    .to_string()
}

fn account(name: &str, secrets: &Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name},
        "imagePullSecrets": secrets,
    })
    .to_string()
}

fn intent(name: &str, account: &str, secrets: &Value, image: &str) -> String {
    json!({
        "apiVersion": "conventions.carto.run/v1alpha1", "kind": "PodIntent", "metadata": {"name": name},
        "spec": {"serviceAccountName": account, "imagePullSecrets": secrets, "template": {
            "spec": {"containers": [{"name": "web", "image": image}]}}},
    })
    .to_string()
}

fn has_image(intent: &Value, image: &str) {
    let found = &intent["status"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(found, image);
}

async fn asking() -> DockerRegistry {
    let registry = DockerRegistry::builder().with_password();
    registry.start().await.unwrap()
}

#[tokio::test]
async fn a_pull_secret_that_an_account_gets_later_opens_the_registry() {
    let registry = asking().await;
    let image = TestImage::new();
    let pushed = registry.push("team/app", "1.0", &image).await.unwrap();
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    let convention = webhook.convention("a", json!({}), json!({}));
    stage.apply(&convention).await;
    stage
        .apply(&secret("pull", &registry, DockerRegistry::PASSWORD))
        .await;
    stage.apply(&account("team", &json!([]))).await;
    start(&mut stage, &[]);
    let name = format!("{}/team/app:1.0", registry.host());
    stage.apply(&intent("app", "team", &json!([]), &name)).await;
    // The Secret is there, and it is not the account's.
    let failed = stage.ready("app", "False", "ConventionsApplied").await;
    let message = condition(&failed["status"], "Ready")["message"].clone();
    let start = format!(r#"failed to fetch metadata for Images: image: "{name}" error: "#);
    assert!(message.as_str().unwrap().starts_with(&start), "{message}");
    assert!(webhook.asked().is_empty());

    let place = stage.place_in_the_log();
    let patch = json!({"imagePullSecrets": [{"name": "pull"}]});
    stage.edit("v1", "ServiceAccount", "team", patch).await;
    let done = applied(&stage, "app").await;
    has_image(&done, &format!("{name}@{}", pushed.digest));
    stage.was_woken_since(place, "app").await;
}

#[tokio::test]
async fn each_credential_is_tried_wherever_the_wrong_one_is() {
    let registry = asking().await;
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    let convention = webhook.convention("a", json!({}), json!({}));
    stage.apply(&convention).await;
    for (name, password) in [("wrong", "no sesame"), ("right", DockerRegistry::PASSWORD)] {
        stage.apply(&secret(name, &registry, password)).await;
    }
    start(&mut stage, &[]);
    for (name, own, of_account) in [
        ("own-wrong", json!(["wrong"]), json!(["right"])),
        ("own-right", json!(["right"]), json!(["wrong"])),
        ("both-own", json!(["wrong", "right"]), json!([])),
        ("both-of-account", json!([]), json!(["wrong", "right"])),
    ] {
        let named = |names: &Value| {
            let names = names.as_array().unwrap().iter();
            let named: Value = names.map(|name| json!({"name": name})).collect();
            named
        };
        // What opened one repository is not known to open the next.
        let repository = format!("team/{name}");
        let image = TestImage::new();
        let pushed = registry.push(&repository, "1.0", &image).await.unwrap();
        let image = format!("{}/{repository}:1.0", registry.host());
        stage.apply(&account(name, &named(&of_account))).await;
        stage.apply(&intent(name, name, &named(&own), &image)).await;
        let done = applied(&stage, name).await;
        has_image(&done, &format!("{image}@{}", pushed.digest));
    }
    // With the wrong one alone nobody gets in.
    let image = format!("{}/team/own-wrong:1.0", registry.host());
    stage.apply(&account("nobody", &json!([]))).await;
    let wrong = json!([{"name": "wrong"}]);
    stage
        .apply(&intent("closed", "nobody", &wrong, &image))
        .await;
    stage.ready("closed", "False", "ConventionsApplied").await;
    assert!(!stage.log().contains(DockerRegistry::PASSWORD));
}
