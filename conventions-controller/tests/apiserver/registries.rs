//! Registries that are slow, rate-limit, or lie; and files of ours that cannot be read.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use test_support::stage::{NOTHING, PATIENCE, condition};
use test_support::{DockerRegistry, TestImage, eventually};

use crate::registry::{Behaves, Registry};
use crate::stage::{Intents, applied, open_with, open_with_env, set, start, with_image};
use crate::webhook::{Does, Webhook};

fn named(name: &str, image: &str) -> String {
    let mut intent: Value = serde_json::from_str(&with_image(image, &json!([]))).unwrap();
    intent["metadata"]["name"] = name.into();
    intent.to_string()
}

fn image(intent: &Value) -> &Value {
    &intent["status"]["template"]["spec"]["containers"][0]["image"]
}

/// Waits until Ready is False because of images, with this in its message.
async fn told(stage: &Intents, name: &str, text: &str) -> String {
    let what = format!("{name} is told: {text}");
    let message = |intent: &Value| {
        let ready = condition(&intent["status"], "Ready").clone();
        ready["message"].as_str().unwrap_or_default().to_owned()
    };
    let intent = stage
        .until(name, &what, |intent| message(intent).contains(text))
        .await;
    message(&intent)
}

#[tokio::test]
async fn a_registry_that_hangs_holds_up_nobody_of_another_namespace_and_is_told() {
    let hanging = Registry::start(Behaves::Hangs).await;
    let well = Registry::start(Behaves::Well).await;
    // One after the other in four places they would take longer than anybody waits here.
    let flags = [
        "--max-concurrent-podintents=4",
        "--image-timeout-seconds=20",
    ];
    let does = Does::AddsEnv("A", "b");
    let (mut stage, _webhook) = open_with("add-env", does, &flags).await;
    let slow: Vec<String> = (0..60)
        .map(|index| named(&format!("slow{index}"), &hanging.image))
        .collect();
    stage.apply(&slow.join("\n---\n")).await;
    eventually("the registry hangs", PATIENCE, async || {
        !hanging.asked().is_empty()
    })
    .await;
    let others = stage.plane.create_namespace("others").await.unwrap();
    stage.grant_account(&others).await;
    let ours = std::mem::replace(&mut stage.stage.namespace, others);
    stage.apply(&named("fine", &well.image)).await;
    let fine = applied(&stage, "fine").await;
    let resolved = format!("{}@{}", well.image, well.digest);
    assert_eq!(image(&fine), &json!(resolved));
    stage.stage.namespace = ours;
    eventually("somebody is told that it hangs", PATIENCE, async || {
        let told = stage.log().contains("it took longer than 20 s");
        if told { Ok(()) } else { Err("nobody") }
    })
    .await;
}

#[tokio::test]
async fn a_registry_that_wants_to_be_left_alone_is_and_then_asked_by_itself() {
    let registry = Registry::start(Behaves::Throttles(25)).await;
    let (stage, webhook) = open_with_env().await;
    stage.apply(&named("app", &registry.image)).await;
    told(&stage, "app", "asks to wait").await;
    registry.behaves(Behaves::Well);
    // Neither a change of it nor another PodIntent has the registry asked before.
    stage.reconcile("app").await;
    stage.apply(&named("other", &registry.image)).await;
    for name in ["app", "other"] {
        let intent = applied(&stage, name).await;
        let resolved = format!("{}@{}", registry.image, registry.digest);
        assert_eq!(image(&intent), &json!(resolved));
    }
    let asked = registry.asked();
    let left_alone = asked[1] - asked[0];
    assert!(left_alone >= Duration::from_secs(25), "{left_alone:?}");
    assert_eq!(webhook.asked().len(), 2, "once for each");
}

#[tokio::test]
async fn a_registry_that_lies_about_digests_is_told_and_not_believed() {
    let registry = Registry::start(Behaves::Lies).await;
    let (stage, webhook) = open_with_env().await;
    stage.apply(&named("app", &registry.image)).await;
    let message = told(&stage, "app", "answers with something else").await;
    let start = format!(
        r#"failed to fetch metadata for Images: image: "{}" error: "#,
        registry.image
    );
    assert!(message.starts_with(&start), "{message}");
    assert_eq!(webhook.asked(), NOTHING);
    registry.behaves(Behaves::Well);
    let intent = applied(&stage, "app").await;
    let resolved = format!("{}@{}", registry.image, registry.digest);
    assert_eq!(image(&intent), &json!(resolved));
}

/// The bills of materials in the folder of the cache.
fn cached(stage: &Intents) -> Vec<std::path::PathBuf> {
    let folder = stage.plane.folder().join("images");
    let mut files = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.metadata().unwrap().len() > 0 {
                files.push(path);
            }
        }
    }
    files
}

#[tokio::test]
async fn a_file_of_ours_that_cannot_be_read_is_told_to_nobody_and_no_convention_is_left_out() {
    let registry = DockerRegistry::start().await.unwrap();
    let bill = [(
        "/layers/sbom/launch/sbom.cdx.json",
        &b"{\"a\":\"bill\"}"[..],
    )];
    let pushed = TestImage::new().sbom(&bill);
    registry.push("team/app", "1.0", &pushed).await.unwrap();
    let mut stage = set().await;
    let first = Webhook::start(Does::Hangs).await;
    let second = Webhook::start(Does::AddsEnv("C", "d")).await;
    let ignored = json!({"failurePolicy": "Ignore"});
    for convention in [
        first.convention("a", json!({}), json!({})),
        second.convention("b", json!({}), ignored),
    ] {
        stage.apply(&convention).await;
    }
    start(&mut stage, &[]);
    let name = format!("{}/team/app:1.0", registry.host());
    stage.apply(&named("app", &name)).await;
    eventually("the first convention is asked", PATIENCE, async || {
        first.asked().len() == 1
    })
    .await;
    // The file is cut while a pass is under way that sends it once more.
    let files = cached(&stage);
    assert!(!files.is_empty());
    for file in files {
        let file = std::fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(file);
        file.unwrap().write_all(b"x").unwrap();
    }
    first.does(Does::AddsEnv("A", "b"));
    let intent = applied(&stage, "app").await;
    let env = &intent["status"]["template"]["spec"]["containers"][0]["env"];
    let names: Vec<&Value> = env
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["A", "C"]);
    assert_eq!(
        first.asked().len(),
        1,
        "its answer is kept for the next try"
    );
    let met = [r#"outcome="infrastructure""#];
    let met = stage.metric("carto_reconcile_total", &met).await;
    assert_eq!(met, Some(1.0));
    let failed = [r#"convention="b""#, r#"outcome="failed""#];
    let failed = stage.metric("carto_convention_calls_total", &failed).await;
    assert!(
        failed.is_none_or(|count| count < 1.0),
        "it is not its failure"
    );
    assert!(stage.log().contains("not reconciled"));
    stage.idle().await;
    let events = stage.events().await;
    let warnings = events.iter().filter(|it| it.starts_with("Warning"));
    assert_eq!(warnings.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[tokio::test]
async fn a_file_of_the_installation_that_cannot_be_used_is_told_to_nobody_and_may_be_mended() {
    let registry = Registry::start(Behaves::Well).await;
    let hosts = tempfile::tempdir().unwrap();
    let (host, _) = registry.image.split_once('/').unwrap();
    let folder = hosts.path().join(host);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("hosts.toml"), "nonsense").unwrap();
    let flag = format!("--registry-hosts={}", hosts.path().display());
    let (stage, webhook) = open_with("add-env", Does::AddsEnv("A", "b"), &[&flag]).await;
    stage.apply(&named("app", &registry.image)).await;
    eventually("it is tried again", PATIENCE, async || {
        let met = [r#"outcome="infrastructure""#];
        let met = stage.metric("carto_reconcile_total", &met).await;
        if met >= Some(2.0) { Ok(()) } else { Err(met) }
    })
    .await;
    assert_eq!(stage.owner("app").await["status"], Value::Null);
    assert!(stage.log().contains("hosts.toml"), "the operator is told");
    assert_eq!(webhook.asked(), NOTHING);
    std::fs::remove_dir_all(folder).unwrap();
    applied(&stage, "app").await;
}
