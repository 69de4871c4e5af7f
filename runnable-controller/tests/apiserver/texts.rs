//! Messages of what does not exist, word by word: they are compared by scripts.

use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use test_support::Stage;
use test_support::stage::condition;

use crate::stage::{TEMPLATE, open};

/// The message of `RunTemplateReady` once it has this reason and contains this.
async fn message(stage: &Stage, reason: &str, part: &str) -> String {
    let told = stage
        .until("app", &format!("{reason}: {part}"), |runnable| {
            let ready = condition(&runnable["status"], "RunTemplateReady");
            let message = ready["message"].as_str().unwrap_or_default();
            ready["reason"] == reason && message.contains(part)
        })
        .await;
    let ready = condition(&told["status"], "RunTemplateReady");
    ready["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_selected_kind_that_does_not_exist_is_told_as_before() {
    let stage = open("").await;
    let cases = [
        (
            "nobody.example/v1",
            "failed to list server api resources: not found",
        ),
        ("apps/v0", "failed to list server api resources: not found"),
        (
            "apps/v1",
            "failed to list objects at cluster scope matching selector [map[a:b]]: unable to list from api server: \
             no matches for kind \"Nothing\" in version \"apps/v1\"",
        ),
    ];
    for (api_version, inner) in cases {
        let resource = json!({"apiVersion": api_version, "kind": "Nothing"});
        let selector = json!({"resource": resource, "matchingLabels": {"a": "b"}});
        stage
            .edit_owner("app", json!({"spec": {"selector": selector}}))
            .await;
        let outer = format!(
            "unable to resolve selector [map[a:b]], apiVersion [{api_version}], kind [Nothing]: "
        );
        let told = message(&stage, "TemplateStampFailure", &outer).await;
        assert_eq!(told, format!("{outer}{inner}"));
    }
}

/// What the API server answers to a creation.
async fn refusal(stage: &Stage, object: Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap().to_owned();
    let api = stage.api(&text("apiVersion"), &text("kind"));
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let refused = api.create(&PostParams::default(), &object).await;
    match refused.unwrap_err() {
        kube::Error::Api(status) => status.message,
        unanswered => unanswered.to_string(),
    }
}

#[tokio::test]
async fn a_run_that_the_api_server_cannot_take_is_told_in_its_words() {
    let stage = open("").await;
    let said = "StampedObjectRejectedByAPIServer";
    let outer = |name: &str| format!("unable to apply object [{name}] for run template [tests]: ");

    let nothing = TEMPLATE.replace("kind: Test", "kind: Nothing");
    stage.apply(&nothing).await;
    let told = message(&stage, said, "Nothing").await;
    let inner = "unable to list from api server: no matches for kind \"Nothing\" in version \"test.run/v1alpha1\"";
    let prefix = format!("{}/app-", stage.namespace);
    assert_eq!(told, format!("{}{inner}", outer(&prefix)));

    let nameless = "metadata: {generateName: $(runnable.metadata.name)$-}";
    let prefix = format!("{}/", stage.namespace);
    let of_ours = TEMPLATE.replace(nameless, "metadata: {labels: {a: b}}");
    let of_core = of_ours
        .replace("test.run/v1alpha1", "v1")
        .replace("kind: Test\n", "kind: ConfigMap\n")
        .replace(
            "spec: {value: {revision: $(runnable.spec.inputs.revision)$}}",
            "data: {}",
        );
    for (template, api_version, kind) in [
        (of_ours, "test.run/v1alpha1", "Test"),
        (of_core, "v1", "ConfigMap"),
    ] {
        stage.apply(&template).await;
        let words = refusal(
            &stage,
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"labels": {"a": "b"}}}),
        )
        .await;
        let told = message(&stage, said, kind).await;
        assert_eq!(told, format!("{}create: {words}", outer(&prefix)));
    }
}
