//! No value of a Secret in a status, event, log or error (invariant 8).

use k8s_openapi::ByteString;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use test_support::eventually;
use test_support::stage::Another;

use crate::stage::{PATIENCE, Stage, condition, step};

/// What must not be seen, and its base64.
const CANARY: &str = "canary-7f3a9b-value";
const ENCODED: &str = "Y2FuYXJ5LTdmM2E5Yi12YWx1ZQ==";

/// What makes the Secret; its value comes from elsewhere. Its health is told with the value.
const SECRET: &str = r"
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
";

const CHAIN: &str = r#"
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

/// The controller knows where it runs, as in a cluster, so that it keeps a key there.
async fn with_key() -> (Stage, Another) {
    let mut stage = Stage::set().await;
    let controller = keyed(&mut stage);
    (stage, controller)
}

fn keyed(stage: &mut Stage) -> Another {
    let namespace = format!("--own-namespace={}", stage.namespace);
    stage.another_controller_with(&[&namespace])
}

async fn set_token(stage: &Stage, encoded: &str) {
    let token = json!({"data": {"token": encoded}});
    stage.edit("v1", "Secret", "app-token", token).await;
}

#[tokio::test]
async fn the_value_of_a_secret_is_passed_on_and_never_told() {
    let (stage, _controller) = with_key().await;
    stage.grant("secrets", "[{apiGroups: [''], resources: [secrets, services], verbs: [get, list, create, patch, delete]}]").await;
    stage.apply(SECRET).await;
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

/// Secret -> ConfigMap -> ConfigMap; the last one is told by its health, too.
const CHAIN_OF_MAPS: &str = r#"
apiVersion: carto.run/v1alpha1
kind: ClusterConfigTemplate
metadata: {name: decoded}
spec:
  configPath: .data
  ytt: |
    #@ load("@ytt:data", "data")
    #@ load("@ytt:base64", "base64")
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: #@ data.values.workload.metadata.name + "-decoded"
    data:
      url: #@ "https://robot:" + base64.decode(data.values.config) + "@host"
---
apiVersion: carto.run/v1alpha1
kind: ClusterConfigTemplate
metadata: {name: copied}
spec:
  configPath: .data.copy
  healthRule:
    multiMatch:
      healthy: {matchFields: [{key: data.copy, operator: Exists, messagePath: .data.copy}]}
      unhealthy: {matchFields: [{key: data.broken, operator: Exists}]}
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-copied}
    data: {copy: '<$(config.url)$>'}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: invalid}
spec:
  template:
    apiVersion: v1
    kind: Service
    metadata: {name: $(workload.metadata.name)$-invalid}
    spec: {ports: [{port: 80, protocol: '$(config)$'}]}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: make, templateRef: {kind: ClusterConfigTemplate, name: secret}}
    - {name: decoded, templateRef: {kind: ClusterConfigTemplate, name: decoded}, configs: [{name: c, resource: make}]}
    - {name: copied, templateRef: {kind: ClusterConfigTemplate, name: copied}, configs: [{name: c, resource: decoded}]}
    - {name: invalid, templateRef: {kind: ClusterTemplate, name: invalid}, configs: [{name: c, resource: copied}]}
"#;

/// A value that API servers and encoders do not write down as it is: `quoted "canary" & <more>\back`.
const QUOTED: &str = "quoted \"canary\" & <more>\\back";
const QUOTED_ENCODED: &str = "cXVvdGVkICJjYW5hcnkiICYgPG1vcmU+XGJhY2s=";

fn outputs(workload: &Value) -> Vec<Value> {
    let steps = ["make", "decoded", "copied"];
    steps
        .map(|name| step(workload, name)["outputs"][0].clone())
        .to_vec()
}

fn digests(workload: &Value) -> Vec<String> {
    let digest = |output: Value| output["digest"].as_str().unwrap_or_default().to_owned();
    outputs(workload).into_iter().map(digest).collect()
}

async fn told(stage: &Stage, controller: &Another) -> [(&'static str, String); 4] {
    [
        ("status", stage.workload("app").await["status"].to_string()),
        ("events", stage.events().await.join("\n")),
        ("log", stage.log()),
        ("metrics", controller.metrics().await),
    ]
}

/// The Workload after a change of it that makes no difference to what is stamped was looked at.
async fn seen_again(stage: &Stage) -> Value {
    let change = json!({"spec": {"env": [{"name": "SEEN", "value": "again"}]}});
    stage.edit_workload("app", change).await;
    let seen = stage.until("app", "the change was looked at", |workload| {
        workload["status"]["observedGeneration"] == workload["metadata"]["generation"]
    });
    seen.await
}

/// `sha256:<hex>` of the HMAC (RFC 2104) with SHA-256.
fn hmac(key: &[u8], text: &[u8]) -> String {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let padded = |byte: u8| block.map(|key| key ^ byte).to_vec();
    let inner = Sha256::digest([&*padded(0x36), text].concat());
    let outer = Sha256::digest([&*padded(0x5c), &inner].concat());
    let hex: Vec<String> = outer.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{}", hex.concat())
}

fn decoded(base64: &str) -> Vec<u8> {
    serde_json::from_value::<ByteString>(json!(base64))
        .unwrap()
        .0
}

async fn until_told(stage: &Stage, encoded: &str) -> Value {
    set_token(stage, encoded).await;
    let told = stage.until("app", "the chain has run to its end", |workload| {
        let invalid = step(workload, "invalid");
        condition(&invalid, "Ready")["reason"] == "TemplateRejectedByAPIServer"
            && outputs(workload)
                .iter()
                .all(|output| output["preview"] == "<redacted>")
    });
    told.await
}

async fn chain_of_maps() -> (Stage, Another) {
    let (stage, controller) = with_key().await;
    stage.grant("secrets", "[{apiGroups: [''], resources: [secrets, services], verbs: [get, list, create, patch, delete]}]").await;
    stage.apply(SECRET).await;
    stage.apply(CHAIN_OF_MAPS).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "Unknown", "MissingValueAtPath").await;
    (stage, controller)
}

#[tokio::test]
async fn a_value_stays_secret_from_object_to_object() {
    let (stage, controller) = chain_of_maps().await;
    let workload = until_told(&stage, QUOTED_ENCODED).await;
    let copied = stage.get("v1", "ConfigMap", "app-copied").await.unwrap();
    assert_eq!(
        copied["data"]["copy"],
        format!("<https://robot:{QUOTED}@host>"),
        "whoever stamps it elsewhere has chosen to"
    );
    let health = condition(&step(&workload, "copied"), "Healthy")["message"].clone();
    assert!(health.as_str().unwrap().contains("<redacted>"), "{health}");
    eventually("the refusal is in an event, too", PATIENCE, async || {
        let events = stage.events().await;
        events
            .iter()
            .any(|event| event.contains("ResourceFailed") && event.contains("invalid"))
    })
    .await;
    for (place, text) in told(&stage, &controller).await {
        for secret in [
            "canary",
            "<more>",
            "u003cmore",
            "IFxiYWNr",
            "cXVvdGVkICJjYW5hcnki",
        ] {
            assert!(!text.contains(secret), "{secret} in the {place}: {text}");
        }
    }
}

#[tokio::test]
async fn digests_of_secret_values_follow_a_key_that_nobody_else_can_read() {
    let (mut stage, controller) = chain_of_maps().await;
    let first = digests(&until_told(&stage, ENCODED).await);
    assert!(
        first.iter().all(|digest| digest.starts_with("sha256:")),
        "{first:?}"
    );
    // What stands beside it in the Workload is no key: neither is any of this the digest of a value.
    let uid = stage.workload("app").await["metadata"]["uid"].clone();
    let uid = uid.as_str().unwrap();
    let yaml = format!("{ENCODED}\n");
    for guess in [
        hmac(uid.as_bytes(), yaml.as_bytes()),
        hmac(uid.as_bytes(), format!("output\0{yaml}").as_bytes()),
        hmac(b"", yaml.as_bytes()),
        hmac(b"", format!("output\0{yaml}").as_bytes()),
    ] {
        assert_ne!(first[0], guess);
    }
    let secret = stage.get("v1", "Secret", "carto-status-key").await.unwrap();
    let key = decoded(secret["data"]["key"].as_str().unwrap());
    assert_eq!(
        first[0],
        hmac(&key, format!("output\0{yaml}").as_bytes()),
        "it is this that has to be guessed"
    );

    // The next process has the same key.
    drop(controller);
    let _controller = keyed(&mut stage);
    assert_eq!(digests(&seen_again(&stage).await), first);

    // Emptied, it is made anew, and digests change while the controller runs.
    stage
        .edit("v1", "Secret", "carto-status-key", json!({"data": null}))
        .await;
    let second = stage.until("app", "digests have changed", |workload| {
        digests(workload)
            .iter()
            .zip(&first)
            .all(|(now, before)| now != before)
    });
    let second = digests(&second.await);
    stage.delete("v1", "Secret", "carto-status-key").await;
    stage
        .until("app", "digests have changed again", |workload| {
            digests(workload)
                .iter()
                .zip(&second)
                .all(|(now, before)| now != before)
        })
        .await;
}

#[tokio::test]
async fn without_a_key_no_digest_is_shown_and_no_time_moves() {
    let mut stage = Stage::set().await;
    stage.start_controller();
    stage.grant("secrets", "[{apiGroups: [''], resources: [secrets, services], verbs: [get, list, create, patch, delete]}]").await;
    stage.apply(SECRET).await;
    stage.apply(CHAIN_OF_MAPS).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "Unknown", "MissingValueAtPath").await;
    let told = until_told(&stage, ENCODED).await;
    assert_eq!(digests(&told), ["", "", ""]);
    let before = outputs(&told);
    stage.kill_controller();
    stage.start_controller();
    assert_eq!(outputs(&seen_again(&stage).await), before);
}
