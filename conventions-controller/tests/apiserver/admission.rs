//! Admission on a real API server, with a certificate of the controller's own making.

use serde_json::{Value, json};
use test_support::stage::{PATIENCE, Port};
use test_support::{all_objects, eventually};

use crate::stage::{Intents, set, start};

/// One webhook for each path, in the version that the API server is to ask in.
fn configuration(kind: &str, verb: &str, port: u16, version: &str) -> String {
    let webhook = |singular: &str, plural: &str| {
        json!({
            "name": format!("{plural}.conventions.carto.run"), "admissionReviewVersions": [version],
            "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {"url": format!("https://localhost:{port}/{verb}-conventions-carto-run-v1alpha1-{singular}")},
            "rules": [{"apiGroups": ["conventions.carto.run"], "apiVersions": ["v1alpha1"],
                "operations": ["CREATE", "UPDATE"], "resources": [plural]}],
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "hook"},
        "webhooks": [webhook("podintent", "podintents"), webhook("clusterpodconvention", "clusterpodconventions")],
    })
    .to_string()
}

async fn refusal(stage: &Intents, object: &Value) -> String {
    let said = stage
        .plane
        .apply_yaml_in(&stage.namespace, &object.to_string())
        .await;
    said.map_or_else(|error| format!("{error:#}"), |_| "admitted".to_owned())
}

#[tokio::test]
async fn what_is_left_out_is_filled_in_and_what_could_not_work_is_refused() {
    let mut stage = set().await;
    let port = Port::reserve();
    let flags = [
        format!("--port={}", port.number()),
        format!("--own-namespace={}", stage.namespace),
        "--webhook-secret=hook".to_owned(),
        "--webhook-service=localhost".to_owned(),
        "--webhook-configuration=hook".to_owned(),
        "--mutating-webhook-configuration=hook".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    start(&mut stage, &flags);
    let (mutating, validating) = (
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    );
    stage
        .apply(&configuration(mutating, "mutate", port.number(), "v1"))
        .await;
    stage
        .apply(&configuration(
            validating,
            "validate",
            port.number(),
            "v1beta1",
        ))
        .await;
    let convention = |name: &str, spec: Value| {
        json!({"apiVersion": "conventions.carto.run/v1alpha1", "kind": "ClusterPodConvention",
            "metadata": {"name": name}, "spec": spec})
    };
    let http = json!({"webhook": {"clientConfig": {"url": "http://a"}}});
    let denied = "denied the request: spec.webhook.clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]";
    eventually("the webhook is asked", PATIENCE, async || {
        let said = refusal(&stage, &convention("wrong", http.clone())).await;
        if said.contains(denied) {
            Ok(())
        } else {
            Err(said)
        }
    })
    .await;
    let good = json!({"webhook": {"clientConfig": {"service": {"name": "a", "namespace": "b"}}}});
    eventually("both webhooks are asked", PATIENCE, async || {
        let said = refusal(&stage, &convention("good", good.clone())).await;
        if said == "admitted" {
            Ok(())
        } else {
            Err(said)
        }
    })
    .await;
    let all = all_objects(
        &stage.client,
        "conventions.carto.run/v1alpha1",
        "ClusterPodConvention",
    );
    let stored = serde_json::to_value(all.get("good").await.unwrap()).unwrap();
    assert_eq!(stored["spec"]["priority"], "Normal");
    assert_eq!(
        stored["spec"]["webhook"]["clientConfig"]["service"]["port"],
        443
    );

    let intent = |secrets: Value| {
        json!({"apiVersion": "conventions.carto.run/v1alpha1", "kind": "PodIntent", "metadata": {"name": "app"},
            "spec": {"serviceAccountName": "", "imagePullSecrets": secrets, "template": {"spec": {"containers": [{"name": "a"}]}}}})
    };
    let said = refusal(&stage, &intent(json!([{"name": ""}]))).await;
    assert!(
        said.contains("denied the request: spec.imagePullSecrets[0].name: Required value"),
        "{said}"
    );
    assert_eq!(refusal(&stage, &intent(json!([]))).await, "admitted");
    assert_eq!(
        stage.owner("app").await["spec"]["serviceAccountName"],
        "default"
    );
}
