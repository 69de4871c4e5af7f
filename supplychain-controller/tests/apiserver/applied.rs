//! What server-side apply does otherwise than the create and the merge patch that templates were written for.

use serde_json::{Value, json};
use test_support::eventually;

use crate::stage::{NOTHING, PATIENCE, Stage, condition};
use crate::unchanged::blueprint_of;

const RIGHTS: &str = "[{apiGroups: ['', apps], resources: [secrets, services, deployments], verbs: [get, list, create, patch, delete]}]";

async fn open(templates: &[(&str, &str)]) -> Stage {
    let stage = Stage::open().await;
    stage.grant("more", RIGHTS).await;
    stage.apply(&blueprint_of(templates)).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage
}

/// Waits until a part of an object is this.
async fn becomes(stage: &Stage, kind: [&str; 2], name: &str, pointer: &str, expected: Value) {
    let awaited = format!("{pointer} of {name} is {expected}");
    eventually(&awaited, PATIENCE, async || {
        let object = stage.get(kind[0], kind[1], name).await.ok_or("no object")?;
        let found = object.pointer(pointer).cloned().unwrap_or_default();
        if found == expected {
            Ok(())
        } else {
            Err(found.to_string())
        }
    })
    .await;
}

const SECRET: [&str; 2] = ["v1", "Secret"];

fn secret(texts: &str) -> String {
    format!("\napiVersion: v1\nkind: Secret\nmetadata: {{name: app}}\n{texts}\n")
}

#[tokio::test]
async fn a_key_that_leaves_the_texts_of_a_secret_leaves_its_data() {
    let stage = open(&[(
        "secret",
        &secret("data: {kept: b2xk, bytes: eA==}\nstringData: {kept: new, old: x, token: z}"),
    )])
    .await;
    stage.ready("app", "True", "Ready").await;
    let data = json!({"kept": "bmV3", "bytes": "eA==", "old": "eA==", "token": "eg=="});
    becomes(&stage, SECRET, "app", "/data", data).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);

    // Somebody else's key stays, ours are put back.
    let foreign = json!({"data": {"foreign": "Zg==", "token": "Zg=="}});
    stage.edit("v1", "Secret", "app", foreign).await;
    let data =
        json!({"kept": "bmV3", "bytes": "eA==", "old": "eA==", "token": "eg==", "foreign": "Zg=="});
    becomes(&stage, SECRET, "app", "/data", data).await;

    let renamed = secret("stringData: {kept: new, renamed: x, gone: null}");
    stage.apply(&blueprint_of(&[("secret", &renamed)])).await;
    let data = json!({"kept": "bmV3", "renamed": "eA==", "foreign": "Zg=="});
    becomes(&stage, SECRET, "app", "/data", data).await;
    stage
        .apply(&blueprint_of(&[("secret", &secret("type: Opaque"))]))
        .await;
    becomes(&stage, SECRET, "app", "/data", json!({"foreign": "Zg=="})).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

#[tokio::test]
async fn texts_that_are_none_are_refused_in_the_servers_words() {
    let stage = open(&[("secret", &secret("stringData: {a: text, number: 1}"))]).await;
    let refused = stage
        .ready("app", "False", "TemplateRejectedByAPIServer")
        .await;
    let message = condition(&refused["status"], "Ready")["message"].to_string();
    assert!(
        message.contains(".stringData.number: expected string"),
        "{message}"
    );
}

/// With the texts in its entry, as whoever applies `stringData` has them.
async fn apply_texts(stage: &Stage, object: &Value) {
    let by = kube::api::PatchParams::apply("carto-supplychain");
    stage
        .api("v1", "Secret")
        .patch("app", &by, &kube::api::Patch::Apply(object))
        .await
        .unwrap();
}

#[tokio::test]
async fn texts_that_were_applied_as_such_or_come_from_the_go_controller_are_ours_as_data() {
    for applied in [true, false] {
        let mut stage = Stage::set().await;
        stage.grant("more", RIGHTS).await;
        let template = |texts: &str| blueprint_of(&[("secret", &secret(texts))]);
        stage
            .apply(&template("stringData: {kept: x, old: z}"))
            .await;
        stage.apply(crate::chain::WORKLOAD).await;
        let workload = stage.workload("app").await;
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "app"}, "stringData": {"kept": "x", "old": "z"}});
        let kind = ["ClusterTemplate", "secret", "mutable"];
        let object = stage.left_by_go(&workload, "secret", kind, object);
        if applied {
            apply_texts(&stage, &object).await;
        } else {
            stage.create_as("cartographer", object).await;
        }
        stage.start_controller();
        stage.ready("app", "True", "Ready").await;
        assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
        becomes(
            &stage,
            SECRET,
            "app",
            "/data",
            json!({"kept": "eA==", "old": "eg=="}),
        )
        .await;
        stage.apply(&template("stringData: {kept: x}")).await;
        becomes(&stage, SECRET, "app", "/data", json!({"kept": "eA=="})).await;
    }
}

const DEPLOYMENT: [&str; 2] = ["apps/v1", "Deployment"];

fn deployment(strategy: &str, image: &str, volume: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: app}}
spec:
  selector: {{matchLabels: {{app: x}}}}
  {strategy}
  template:
    metadata: {{labels: {{app: x}}}}
    spec:
      containers: [{{name: main, image: {image}}}]
      volumes: [{{name: other}}, {{name: tmp{volume}}}]
"
    )
}

async fn render(stage: &Stage, template: &str) {
    stage
        .apply(&blueprint_of(&[("deployment", template)]))
        .await;
}

#[tokio::test]
async fn a_rendering_that_excludes_a_default_goes_through() {
    let stage = open(&[("deployment", &deployment("", "i:1", ""))]).await;
    stage.ready("app", "True", "Ready").await;
    let updates = json!({"maxSurge": "25%", "maxUnavailable": "25%"});
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": updates});
    becomes(&stage, DEPLOYMENT, "app", "/spec/strategy", rolling.clone()).await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);

    let strategy = async |rendered: &str, expected: &Value| {
        render(&stage, &deployment(rendered, "i:1", "")).await;
        becomes(
            &stage,
            DEPLOYMENT,
            "app",
            "/spec/strategy",
            expected.clone(),
        )
        .await;
        stage.ready("app", "True", "Ready").await;
        assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    };
    let recreate = json!({"type": "Recreate"});
    strategy("strategy: {type: Recreate}", &recreate).await;
    strategy("", &rolling).await;
    // A part of it is rendered, and the rest is a default.
    let half =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}});
    strategy("strategy: {rollingUpdate: {maxSurge: 1}}", &half).await;
    strategy("strategy: {type: Recreate}", &recreate).await;

    // Whoever turns it back sets the default, too, and that excludes what is rendered.
    let back = json!({"spec": {"strategy": {"type": "RollingUpdate"}}});
    stage.edit("apps/v1", "Deployment", "app", back).await;
    becomes(
        &stage,
        DEPLOYMENT,
        "app",
        "/spec/strategy",
        recreate.clone(),
    )
    .await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);

    // A volume without a source has one by default. What is somebody else's stays.
    let scaled = json!({"spec": {"replicas": 3}});
    stage.edit("apps/v1", "Deployment", "app", scaled).await;
    let volumes = deployment(
        "strategy: {type: Recreate}",
        "i:1",
        ", configMap: {name: c}",
    );
    render(&stage, &volumes).await;
    let expected = json!([
        {"name": "other", "emptyDir": {}},
        {"name": "tmp", "configMap": {"name": "c", "defaultMode": 420}},
    ]);
    becomes(
        &stage,
        DEPLOYMENT,
        "app",
        "/spec/template/spec/volumes",
        expected,
    )
    .await;
    becomes(&stage, DEPLOYMENT, "app", "/spec/replicas", json!(3)).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

#[tokio::test]
async fn a_rendering_that_stays_refused_changes_nothing() {
    let stage = open(&[("deployment", &deployment("", "i:1", ""))]).await;
    stage.ready("app", "True", "Ready").await;
    let before = stage.get("apps/v1", "Deployment", "app").await.unwrap();
    // The default is in the way, and so is what is rendered.
    render(&stage, &deployment("strategy: {type: Recreate}", "''", "")).await;
    let refused = stage
        .ready("app", "False", "TemplateRejectedByAPIServer")
        .await;
    let message = condition(&refused["status"], "Ready")["message"].to_string();
    for part in [
        "patch: ",
        "spec.strategy.rollingUpdate: Forbidden",
        "image: Required value",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    stage.reconcile("app").await;
    let after = stage.get("apps/v1", "Deployment", "app").await.unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    let mut tries = stage.writes();
    tries.retain(|write| {
        write.starts_with("patch deployments/app 2") || write.starts_with("patch deployments/app 4")
    });
    let stored = tries
        .iter()
        .filter(|write| write.ends_with(" 200") || write.ends_with(" 201"));
    assert!(stored.count() <= 2, "{tries:?}");

    render(&stage, &deployment("strategy: {type: Recreate}", "i:2", "")).await;
    stage.ready("app", "True", "Ready").await;
    becomes(
        &stage,
        DEPLOYMENT,
        "app",
        "/spec/strategy",
        json!({"type": "Recreate"}),
    )
    .await;
}

#[tokio::test]
async fn a_default_that_followed_from_another_value_stays() {
    let policy = "/spec/template/spec/containers/0/imagePullPolicy";
    let stage = open(&[("deployment", &deployment("", "i:1", ""))]).await;
    becomes(&stage, DEPLOYMENT, "app", policy, json!("IfNotPresent")).await;
    stage.ready("app", "True", "Ready").await;
    render(&stage, &deployment("", "i:latest", "")).await;
    let image = "/spec/template/spec/containers/0/image";
    becomes(&stage, DEPLOYMENT, "app", image, json!("i:latest")).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    becomes(&stage, DEPLOYMENT, "app", policy, json!("IfNotPresent")).await;
}

/// Both values stay in a create; the last one counts in a pod.
const REPEATED: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      containers:
        - name: main
          image: i
          env: [{name: A, value: "1"}, {name: B, value: $(A)}, {name: A, value: "2"}]
          ports: [{containerPort: 80, name: web}, {containerPort: 81}, {containerPort: 80}]
"#;

#[tokio::test]
async fn of_items_with_the_same_key_the_last_one_stands_in_the_place_of_the_first() {
    let stage = open(&[("deployment", REPEATED)]).await;
    stage.ready("app", "True", "Ready").await;
    let deployment = stage.get("apps/v1", "Deployment", "app").await.unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let env = json!([{"name": "A", "value": "2"}, {"name": "B", "value": "$(A)"}]);
    assert_eq!(container["env"], env);
    let ports =
        json!([{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"}]);
    assert_eq!(container["ports"], ports, "the name is gone");
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

#[tokio::test]
async fn a_null_among_the_data_of_a_config_map_is_no_key() {
    let config = |data: &str| {
        format!(
            "\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: app, labels: {{x: null}}}}\ndata: {data}\n"
        )
    };
    let stage = open(&[("config", &config("{a: x, b: null}"))]).await;
    let kind = ["v1", "ConfigMap"];
    stage.ready("app", "True", "Ready").await;
    becomes(&stage, kind, "app", "/data", json!({"a": "x"})).await;
    becomes(&stage, kind, "app", "/metadata/labels/x", Value::Null).await;
    stage
        .apply(&blueprint_of(&[("config", &config("{a: null, b: z}"))]))
        .await;
    becomes(&stage, kind, "app", "/data", json!({"b": "z"})).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}
