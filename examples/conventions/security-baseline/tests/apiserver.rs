//! On a real API server that enforces the restricted Pod security standard: the manifests, and what
//! the convention makes.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use std::path::Path;

use convention_webhook_sdk::testing::given;
use kube::api::{DynamicObject, PostParams};
use security_baseline::security_baseline;
use serde_json::{Value, json};
use test_support::{ControlPlane, as_yaml, documents, objects_in, shared_control_plane};

const MANIFESTS: &str = include_str!("../manifests.yaml");

/// What the API server says of a pod with this template, without creating it.
async fn verdict(server: &ControlPlane, namespace: &str, template: &Value) -> Result<(), String> {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": template["metadata"],
        "spec": template["spec"],
    });
    pod["metadata"]["name"] = json!("tried");
    let pod: DynamicObject = serde_json::from_value(pod).unwrap();
    let pods = objects_in(&server.client().unwrap(), namespace, "v1", "Pod");
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let created = pods.create(&dry, &pod).await;
    created.map(drop).map_err(|error| error.to_string())
}

/// A namespace with what a new one gets from a controller manager.
async fn with_account(server: &ControlPlane, namespace: &str) {
    let account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}";
    server.apply_yaml_in(namespace, account).await.unwrap();
}

#[tokio::test]
async fn the_manifests_apply_and_their_pods_are_restricted() {
    let server = shared_control_plane().await.unwrap();
    let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/conventions/crds");
    server.install_crds(crds).await.unwrap();
    let all = documents(MANIFESTS).unwrap();
    // cert-manager is not here.
    let is_foreign = |document: &&Value| document["apiVersion"] == "cert-manager.io/v1";
    assert_eq!(all.iter().filter(is_foreign).count(), 2);
    let ours: Vec<&Value> = all.iter().filter(|it| !is_foreign(it)).collect();
    let applied = server.apply_yaml(&as_yaml(ours.iter().copied())).await;
    assert_eq!(applied.unwrap().len(), 4);

    with_account(server, "security-baseline").await;
    let deployment = ours.iter().find(|it| it["kind"] == "Deployment").unwrap();
    let template = &deployment["spec"]["template"];
    verdict(server, "security-baseline", template)
        .await
        .unwrap();
    let mut careless = template.clone();
    careless["spec"]["securityContext"] = json!({});
    let refused = verdict(server, "security-baseline", &careless).await;
    assert!(refused.unwrap_err().contains("violates PodSecurity"));
}

#[tokio::test]
async fn a_pod_that_is_refused_is_admitted_with_the_convention() {
    let server = shared_control_plane().await.unwrap();
    let namespace = server.create_namespace("baseline").await.unwrap();
    let label = format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}, labels: \
         {{pod-security.kubernetes.io/enforce: restricted}}}}}}"
    );
    server.apply_yaml(&label).await.unwrap();
    let pod = given(
        "
        spec:
          initContainers: [{name: prepare, image: 'web:1'}]
          containers:
          - name: web
            image: web:1
            securityContext: {capabilities: {add: [NET_BIND_SERVICE]}}
        ",
    )
    .image("web:1", "{config: {User: '1000'}}");
    let refused = verdict(server, &namespace, &pod.template().to_value()).await;
    assert!(refused.unwrap_err().contains("violates PodSecurity"));
    let done = pod.run(&security_baseline).await;
    let admitted = verdict(server, &namespace, &done.template().to_value()).await;
    admitted.unwrap();
}
