//! Images: digests, what webhooks are told of them, and whose credentials are used.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use test_support::stage::{NOTHING, condition};
use test_support::{DockerRegistry, TestImage};

use crate::stage::{applied, open_with, open_with_env, restart, set, start, with_image};
use crate::webhook::{Does, Webhook};

fn image(status: &Value) -> &Value {
    &status["template"]["spec"]["containers"][0]["image"]
}

#[tokio::test]
async fn an_image_gets_its_digest_and_webhooks_are_told_of_it() {
    let registry = DockerRegistry::start().await.unwrap();
    let (file, sbom) = (
        "/layers/sbom/launch/sbom.cdx.json",
        br#"{"bomFormat":"CycloneDX"}"#,
    );
    let pushed = TestImage::new()
        .config(json!({"User": "me", "Env": ["A=b"]}))
        .sbom(&[(file, sbom)]);
    let pushed = registry.push("team/app", "1.0", &pushed).await.unwrap();
    let mut stage = set().await;
    let first = Webhook::start(Does::AddsEnv("A", "b")).await;
    let second = Webhook::start(Does::AddsEnv("C", "d")).await;
    stage
        .apply(&first.convention("a", json!({}), json!({})))
        .await;
    stage
        .apply(&second.convention("b", json!({}), json!({})))
        .await;
    start(&mut stage, &[]);
    let name = format!("{}/team/app:1.0", registry.host());
    stage.apply(&with_image(&name, &json!([]))).await;
    let intent = applied(&stage, "app").await;
    let resolved = json!(format!("{name}@{}", pushed.digest));
    assert_eq!(image(&intent["status"]), &resolved);
    for webhook in [&first, &second] {
        let told = &webhook.last()["spec"]["imageConfig"];
        assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
        assert_eq!(told[0]["image"], resolved);
        assert_eq!(told[0]["config"]["config"]["User"], "me");
        let bom = json!({"name": format!("cnb-app:{file}"), "raw": STANDARD.encode(sbom)});
        assert_eq!(told[0]["boms"], json!([bom]));
    }
    assert_eq!(
        intent["status"]["images"],
        json!([{
            "image": name, "reference": resolved, "digest": pushed.digest, "configDigest": pushed.config,
            "boms": [format!("cnb-app:{file}")],
        }])
    );

    // Nothing is asked for again, by nobody.
    stage.idle().await;
    let requests = registry.requests().unwrap().len();
    assert_eq!(stage.traffic_of_reconciles("app", 2).await, NOTHING);
    restart(&mut stage, &[]);
    stage.reconcile("app").await;
    assert_eq!(registry.requests().unwrap().len(), requests);
    assert_eq!(first.asked().len(), 1);
}

#[tokio::test]
async fn bills_of_materials_for_which_a_request_has_no_room_are_told() {
    let registry = DockerRegistry::start().await.unwrap();
    let file = "/layers/sbom/launch/sbom.cdx.json";
    for (tag, bytes) in [("small", 10), ("large", 1 << 20)] {
        let image = TestImage::new().sbom(&[(file, &vec![b' '; bytes])]);
        registry.push("team/app", tag, &image).await.unwrap();
    }
    let adds = Does::AddsEnv("A", "b");
    let (stage, webhook) = open_with("a", adds, &["--max-webhook-request=1"]).await;
    let name = |tag: &str| format!("{}/team/app:{tag}", registry.host());
    stage.apply(&with_image(&name("small"), &json!([]))).await;
    let app = applied(&stage, "app").await;
    assert_eq!(app["status"]["conventions"][0]["bomsLeftOut"], Value::Null);
    assert_eq!(boms(&webhook), 1);

    stage.apply(&with_image(&name("large"), &json!([]))).await;
    let what = "it is told that they were not sent";
    let is_told = |it: &Value| it["status"]["conventions"][0]["bomsLeftOut"].is_array();
    let app = stage.until("app", what, is_told).await;
    let left_out = &app["status"]["conventions"][0]["bomsLeftOut"];
    assert_eq!(left_out, &json!([image(&app["status"])]));
    assert_eq!(condition(&app["status"], "Ready")["status"], "True");
    assert_eq!(boms(&webhook), 0);
}

/// How many bills of materials a webhook was sent last.
fn boms(webhook: &Webhook) -> usize {
    let sent = webhook.last();
    let boms = sent["spec"]["imageConfig"][0]["boms"].as_array();
    boms.map_or(0, Vec::len)
}

#[tokio::test]
async fn credentials_come_from_pull_secrets_which_their_tenant_need_not_be_able_to_read() {
    let registry = DockerRegistry::builder()
        .with_password()
        .start()
        .await
        .unwrap();
    let pushed = registry
        .push("team/app", "1.0", &TestImage::new())
        .await
        .unwrap();
    let (stage, _webhook) = open_with_env().await;
    let name = format!("{}/team/app:1.0", registry.host());
    stage
        .apply(&with_image(&name, &json!([{"name": "late"}])))
        .await;
    let failed = stage.ready("app", "False", "ConventionsApplied").await;
    let message = condition(&failed["status"], "Ready")["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.starts_with(&format!(
            r#"failed to fetch metadata for Images: image: "{name}" error: "#
        )),
        "{message}"
    );
    // The Secret comes, and nobody touches the PodIntent.
    let auth = STANDARD.encode(format!(
        "{}:{}",
        DockerRegistry::USER,
        DockerRegistry::PASSWORD
    ));
    let config = json!({"auths": {registry.host(): {"auth": auth}}}).to_string();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late"},
        "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": STANDARD.encode(config)},
    });
    stage.apply(&secret.to_string()).await;
    let intent = applied(&stage, "app").await;
    assert_eq!(
        image(&intent["status"]),
        &json!(format!("{name}@{}", pushed.digest))
    );
    let everything = format!("{intent} {} {:?}", stage.log(), stage.events().await);
    for secret in [DockerRegistry::PASSWORD, &auth] {
        assert!(!everything.contains(secret), "a credential was told");
    }
}

#[tokio::test]
async fn without_a_convention_an_image_is_left_alone_unless_the_operator_wants_it() {
    let registry = DockerRegistry::start().await.unwrap();
    let pushed = registry
        .push("team/app", "1.0", &TestImage::new())
        .await
        .unwrap();
    let mut stage = set().await;
    start(&mut stage, &[]);
    let name = format!("{}/team/app:1.0", registry.host());
    stage.apply(&with_image(&name, &json!([]))).await;
    let intent = applied(&stage, "app").await;
    assert_eq!(image(&intent["status"]), &json!(name));
    assert!(registry.requests().unwrap().is_empty());
    restart(&mut stage, &["--resolve-images-at-end"]);
    let resolved = json!(format!("{name}@{}", pushed.digest));
    let has = |intent: &Value| image(&intent["status"]) == &resolved;
    stage.until("app", "its image has a digest", has).await;
}

#[tokio::test]
async fn a_tag_that_has_moved_is_noticed_in_time_and_a_registry_that_is_down_is_told() {
    let mut registry = DockerRegistry::start().await.unwrap();
    let first = TestImage::new().config(json!({"User": "one"}));
    registry.push("team/app", "1.0", &first).await.unwrap();
    let does = Does::AddsEnv("A", "b");
    let (stage, _webhook) = open_with("add-env", does, &["--resync-seconds=2"]).await;
    let name = format!("{}/team/app:1.0", registry.host());
    stage.apply(&with_image(&name, &json!([]))).await;
    applied(&stage, "app").await;
    let second = TestImage::new().config(json!({"User": "two"}));
    let second = registry.push("team/app", "1.0", &second).await.unwrap();
    let moved = json!(format!("{name}@{}", second.digest));
    let has_moved = |intent: &Value| image(&intent["status"]) == &moved;
    stage.until("app", "the tag has moved", has_moved).await;

    registry.stop();
    let failed = stage.ready("app", "False", "ConventionsApplied").await;
    let message = condition(&failed["status"], "Ready")["message"].clone();
    let message = message.as_str().unwrap();
    let start = format!(r#"failed to fetch metadata for Images: image: "{name}" error: "#);
    assert!(message.starts_with(&start), "{message}");
    assert!(has_moved(&failed), "the last good template stays");
    registry.resume().await.unwrap();
    applied(&stage, "app").await;
}

#[tokio::test]
async fn an_image_that_a_convention_adds_has_its_digest_before_the_next_one_is_asked() {
    let registry = DockerRegistry::start().await.unwrap();
    let mut resolved = Vec::new();
    for repository in ["team/app", "team/sidecar"] {
        let image = TestImage::new().config(json!({"User": repository}));
        let pushed = registry.push(repository, "1.0", &image).await.unwrap();
        let name = format!("{}/{repository}:1.0", registry.host());
        resolved.push((name.clone(), format!("{name}@{}", pushed.digest)));
    }
    let [(app, app_resolved), (sidecar, sidecar_resolved)] = &resolved[..] else {
        unreachable!("there are two");
    };
    // The first adds another image, the second the one of the author as he wrote it.
    for added in [(sidecar, sidecar_resolved), (app, app_resolved)] {
        let mut stage = set().await;
        let adds = Webhook::start(Does::AddsContainer(added.0.clone())).await;
        let sees = Webhook::start(Does::AddsEnv("A", "b")).await;
        for convention in [
            adds.convention("a-adds", json!({}), json!({})),
            sees.convention("b-sees", json!({}), json!({})),
        ] {
            stage.apply(&convention).await;
        }
        start(&mut stage, &[]);
        stage.apply(&with_image(app, &json!([]))).await;
        let done = applied(&stage, "app").await;
        let containers = &sees.last()["spec"]["template"]["spec"]["containers"];
        assert_eq!(containers[2]["image"], **added.1, "{containers}");
        let told = sees.last()["spec"]["imageConfig"].clone();
        let told = told.as_array().unwrap();
        assert!(told.iter().any(|it| it["image"] == **added.1), "{told:?}");
        assert_eq!(image(&done["status"]), &json!(app_resolved));
    }
}
