//! No value of a Secret in a status, event, log or error (invariant 8).

use serde_json::json;
use test_support::eventually;

use crate::stage::{PATIENCE, Stage, condition, step};

/// What must not be seen, and its base64.
const CANARY: &str = "canary-7f3a9b-value";
const ENCODED: &str = "Y2FuYXJ5LTdmM2E5Yi12YWx1ZQ==";

const CHAIN: &str = r#"
apiVersion: carto.run/v1alpha1
kind: ClusterConfigTemplate
metadata: {name: secret}
spec:
  configPath: .data.token
  healthRule:
    multiMatch:
      healthy: {matchFields: [{key: data.token, operator: Exists, messagePath: .data.token}]}
      unhealthy: {matchFields: [{key: data.broken, operator: Exists}]}
  template:
    apiVersion: v1
    kind: Secret
    metadata: {name: $(workload.metadata.name)$-token}
    type: Opaque
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: use}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-use}
    data: {token: $(config)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: refused}
spec:
  template:
    apiVersion: v1
    kind: Service
    metadata: {name: $(config)$}
    spec: {ports: [{port: 80}]}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: decoded}
spec:
  ytt: |
    #@ load("@ytt:data", "data")
    #@ load("@ytt:base64", "base64")
    kind: #@ fail(base64.decode(data.values.config))
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: make, templateRef: {kind: ClusterConfigTemplate, name: secret}}
    - {name: use, templateRef: {kind: ClusterTemplate, name: use}, configs: [{name: token, resource: make}]}
    - {name: refused, templateRef: {kind: ClusterTemplate, name: refused}, configs: [{name: token, resource: make}]}
    - {name: decoded, templateRef: {kind: ClusterTemplate, name: decoded}, configs: [{name: token, resource: make}]}
"#;

async fn set_token(stage: &Stage, encoded: &str) {
    let token = json!({"data": {"token": encoded}});
    stage.edit("v1", "Secret", "app-token", token).await;
}

#[tokio::test]
async fn the_value_of_a_secret_is_passed_on_and_never_told() {
    let stage = Stage::open().await;
    stage.grant("secrets", "[{apiGroups: [''], resources: [secrets, services], verbs: [get, list, create, patch, delete]}]").await;
    stage.apply(CHAIN).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "Unknown", "MissingValueAtPath").await;
    set_token(&stage, ENCODED).await;
    let used = eventually("the value is passed on", PATIENCE, async || {
        stage.get("v1", "ConfigMap", "app-use").await
    })
    .await;
    assert_eq!(
        used["data"]["token"], ENCODED,
        "whoever stamps it elsewhere has chosen to"
    );
    let told = stage
        .until("app", "both failures are told", |workload| {
            let reason = |name: &str| condition(&step(workload, name), "Ready")["reason"].clone();
            reason("refused") == "TemplateRejectedByAPIServer"
                && reason("decoded") == "TemplateStampFailure"
        })
        .await;
    let output = &step(&told, "make")["outputs"][0];
    assert_eq!(output["preview"], "<redacted>");
    let of_plain_text = "sha256:bfddb5f1b25a4c4cec59d32e8b3646d3c0ed8d9cfdf460758b7ad7f29e8efedb";
    assert_ne!(output["digest"], of_plain_text, "it would confirm a guess");
    // Another value has another digest, so that a change is seen.
    let digest = output["digest"].clone();
    set_token(&stage, "b3RoZXI=").await;
    stage
        .until("app", "the change is seen", |workload| {
            step(workload, "make")["outputs"][0]["digest"] != digest
        })
        .await;
    set_token(&stage, ENCODED).await;
    stage
        .until("app", "the digest is the same again", |workload| {
            step(workload, "make")["outputs"][0]["digest"] == digest
        })
        .await;
    eventually("the failures are in events, too", PATIENCE, async || {
        stage
            .events()
            .await
            .iter()
            .filter(|event| event.contains("ResourceFailed"))
            .count()
            >= 2
    })
    .await;
    let status = stage.workload("app").await["status"].to_string();
    for (place, text) in [
        ("status", status),
        ("events", stage.events().await.join("\n")),
        ("log", stage.log()),
    ] {
        for secret in [CANARY, ENCODED] {
            assert!(!text.contains(secret), "{secret} in the {place}: {text}");
        }
    }
}
