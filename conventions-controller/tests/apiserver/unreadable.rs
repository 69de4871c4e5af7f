//! Conventions that are stored and cannot be read, since somebody has changed their schema.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use test_support::stage::PATIENCE;
use test_support::{all_objects, eventually};

use crate::stage::{Intents, applied, env, fails, intent, set, start};
use crate::webhook::{Does, Webhook};

/// Has the API server store any convention.
async fn loosen(stage: &Intents) {
    let name = "clusterpodconventions.conventions.carto.run";
    let kind = "CustomResourceDefinition";
    let all = all_objects(&stage.client, "apiextensions.k8s.io/v1", kind);
    let crd = serde_json::to_value(all.get(name).await.unwrap()).unwrap();
    let mut versions = crd["spec"]["versions"].clone();
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = any;
    let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
    all.patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// Applies it as soon as the API server takes it.
async fn apply(stage: &Intents, convention: &str) {
    eventually("the convention is stored", PATIENCE, async || {
        let applied = stage
            .plane
            .apply_yaml_in(&stage.namespace, convention)
            .await;
        applied.map(|_| ())
    })
    .await;
}

#[tokio::test]
async fn a_convention_that_cannot_be_read_is_told_by_those_whom_it_is_for() {
    let mut stage = set().await;
    loosen(&stage).await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    let of_web = json!({"selectors": [{"matchLabels": {"app": "web"}}]});
    let soon = json!({"timeoutSeconds": "soon"});
    start(&mut stage, &[]);
    apply(&stage, &webhook.convention("wrong", of_web.clone(), soon)).await;
    stage.apply(&intent("app", "web")).await;
    stage.apply(&intent("other", "other")).await;
    let message = r#"filtering conventions failed: ClusterPodConvention "wrong" cannot be read: invalid type: string "soon", expected i32"#;
    fails(&stage, "app", "LabelSelector", message).await;
    applied(&stage, "other").await;

    // Where it may be left out that is told, and nothing else is held up.
    let ignored = json!({"timeoutSeconds": "soon", "failurePolicy": "Ignore"});
    apply(
        &stage,
        &webhook.convention("wrong", of_web.clone(), ignored),
    )
    .await;
    let app = applied(&stage, "app").await;
    let told = app["status"]["conventions"][0].clone();
    assert_eq!(told["name"], "wrong");
    assert_eq!(
        told["error"],
        r#"failed to apply convention with name wrong: it cannot be read: invalid type: string "soon", expected i32"#
    );
    assert_eq!(env(&app), Vec::<String>::new());

    let corrected = json!({"timeoutSeconds": 5, "failurePolicy": Value::Null});
    stage
        .edit_convention("wrong", json!({"spec": {"webhook": corrected}}))
        .await;
    let is_decorated = |intent: &Value| env(intent) == ["A=b"];
    stage.until("app", "it is decorated", is_decorated).await;
}
