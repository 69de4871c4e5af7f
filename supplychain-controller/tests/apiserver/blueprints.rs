//! Templates and blueprints that change, break and heal; options; inputs that are not there yet.

use serde_json::{Value, json};
use test_support::eventually;

use crate::stage::{NOTHING, PATIENCE, Stage, condition, step};
use crate::unchanged::blueprint_of;

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$}
data: {value: one}
";

async fn value_of(stage: &Stage, name: &str) -> Value {
    let config = stage.get("v1", "ConfigMap", name).await;
    config
        .map(|config| config["data"]["value"].clone())
        .unwrap_or_default()
}

async fn all_have(stage: &Stage, names: &[&str], value: &str) {
    eventually(&format!("all have {value}"), PATIENCE, async || {
        for name in names {
            let seen = value_of(stage, name).await;
            if seen != value {
                return Err(format!("{name}: {seen}"));
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_template_that_is_mended_or_edited_reaches_all_owners() {
    let stage = Stage::open().await;
    let names = ["app", "app2", "app3"];
    for name in names {
        stage
            .apply(&crate::chain::WORKLOAD.replace("name: app", &format!("name: {name}")))
            .await;
    }
    stage.ready("app", "False", "SupplyChainNotFound").await;
    // The blueprint comes before its template.
    let all = blueprint_of(&[("config", CONFIG)]);
    let (template, blueprint) = all.split_once("---\n").unwrap();
    stage.apply(blueprint).await;
    let missing = stage.ready("app2", "False", "TemplatesNotFound").await;
    assert_eq!(
        condition(&missing["status"], "Ready")["message"],
        "did not find the template of the resource(s) [config]"
    );
    stage
        .apply(&template.replace("value: one", "value: $(params.nobody)$"))
        .await;
    let broken = stage.ready("app3", "False", "TemplateStampFailure").await;
    assert_eq!(
        condition(&broken["status"], "Ready")["message"],
        "unable to stamp object for resource [config] for template [ClusterTemplate/config] in supply chain [chain]: failed to \
         recursively evaluate template: failed to interpolate template at path [data.value]: evaluate tag $(params.nobody)$: \
         jsonpath returned empty list: params.nobody"
    );
    stage.apply(template).await;
    all_have(&stage, &names, "one").await;
    stage
        .apply(&template.replace("value: one", "value: two"))
        .await;
    all_have(&stage, &names, "two").await;
    for name in names {
        stage.ready(name, "True", "Ready").await;
        assert_eq!(stage.requests_of_reconciles(name, 1).await, NOTHING);
    }
}

#[tokio::test]
async fn what_is_malformed_in_the_cluster_stops_nobody_else() {
    let mut stage = Stage::set().await;
    let namespace = stage.namespace.clone();
    let cluster = |kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": "carto.run/v1alpha1", "kind": kind, "spec": spec, "metadata": {
            "name": name, "uid": format!("5d2a8c9e-0000-4000-8000-{:012}", name.len()), "creationTimestamp": "2024-01-01T00:00:00Z"}})
    };
    // What no admission lets pass today, but an older schema or a restored backup may hold.
    let selectors = [
        (
            "operator",
            json!({"selectorMatchExpressions": [{"key": "tier", "operator": "Wants", "values": ["x"]}], "resources": []}),
        ),
        (
            "pathological",
            json!({"selector": {"tier": "x"}, "selectorMatchFields": [{"key": "spec[", "operator": "Exists"}], "resources": []}),
        ),
        (
            "resources-text",
            json!({"selector": {"tier": "x"}, "resources": "none"}),
        ),
        ("text", json!("none")),
        (
            "cyclic",
            json!({"selector": {"tier": "x"}, "resources": [
            {"name": "a", "templateRef": {"kind": "ClusterTemplate", "name": "none"}, "sources": [{"name": "s", "resource": "a"}]}, 5]}),
        ),
    ];
    for (name, spec) in selectors {
        let object = cluster("ClusterSupplyChain", name, spec);
        let key = format!("/registry/carto.run/clustersupplychains/{name}");
        stage
            .plane
            .put_raw(&key, object.to_string().as_bytes())
            .await
            .unwrap();
    }
    for (name, spec) in [
        ("number", json!(5)),
        (
            "odd",
            json!({"template": [1], "params": "x", "lifecycle": 7, "ytt": {}}),
        ),
    ] {
        let object = cluster("ClusterTemplate", name, spec);
        let key = format!("/registry/carto.run/clustertemplates/{name}");
        stage
            .plane
            .put_raw(&key, object.to_string().as_bytes())
            .await
            .unwrap();
    }
    for (name, spec) in [
        ("text", json!("x")),
        (
            "params",
            json!({"params": {"a": 1}, "source": 7, "serviceAccountName": ["x"]}),
        ),
    ] {
        let mut object = cluster("Workload", name, spec);
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["labels"] = json!({"type": "web"});
        object["status"] = json!({"resources": "many", "conditions": {"a": 1}});
        let key = format!("/registry/carto.run/workloads/{namespace}/{name}");
        stage
            .plane
            .put_raw(&key, object.to_string().as_bytes())
            .await
            .unwrap();
    }
    stage.apply(&blueprint_of(&[("config", CONFIG)])).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.start_controller();
    stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);
    // It goes on to do so while they change.
    let object = cluster(
        "ClusterSupplyChain",
        "text",
        json!({"selector": {"type": 7}, "resources": [{}]}),
    );
    stage
        .plane
        .put_raw(
            "/registry/carto.run/clustersupplychains/text",
            object.to_string().as_bytes(),
        )
        .await
        .unwrap();
    stage
        .apply(&crate::chain::WORKLOAD.replace("name: app", "name: later"))
        .await;
    stage.ready("later", "True", "Ready").await;
    // An owner that a broken blueprint means is told so.
    stage
        .apply(
            &crate::chain::WORKLOAD
                .replace("name: app", "name: meant")
                .replace("type: web", "tier: x, type: web"),
        )
        .await;
    stage.ready("meant", "Unknown", "Unknown").await;
    let told = eventually("it is told", PATIENCE, async || {
        let events = stage.events().await;
        events.into_iter().find(|event| {
            event.starts_with("Warning ResourceFailed: failed to get supply chains for workload")
        })
    })
    .await;
    assert!(told.contains("[ClusterSupplyChain/pathological]"), "{told}");
    let panics = stage.metric("carto_reconcile_panics_total", &[]).await;
    assert_eq!(panics, Some(0.0));
}

const OPTIONS: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: git}
spec:
  urlPath: .spec.value.url
  revisionPath: .spec.value.rev
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: $(workload.metadata.name)$-git}
    spec: {value: {url: $(workload.spec.source.git.url)$, rev: main}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: tested}
spec:
  urlPath: .spec.value.url
  revisionPath: .spec.value.rev
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: $(workload.metadata.name)$-tested}
    spec: {value: {url: $(source.url)$, rev: tested}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: sink}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$}
    data: {value: $(source.revision)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: git}}
    - name: test
      templateRef:
        kind: ClusterSourceTemplate
        options:
          - {name: tested, selector: {matchFields: [{key: 'spec.params[?(@.name==\x22test\x22)].value', operator: In, values: ['yes']}]}}
          - {passThrough: code, selector: {matchFields: [{key: 'spec.params[?(@.name==\x22test\x22)].value', operator: In, values: ['no']}]}}
      sources: [{resource: fetch, name: code}]
    - name: publish
      templateRef: {kind: ClusterTemplate, name: sink}
      sources: [{resource: test, name: code}]
";

fn with_test(answer: &str) -> Value {
    json!({"spec": {"params": [{"name": "test", "value": answer}]}})
}

#[tokio::test]
async fn a_step_follows_the_option_that_matches_and_passes_through() {
    let stage = Stage::open().await;
    stage.apply(&OPTIONS.replace(r"\x22", "\"")).await;
    stage.apply(crate::chain::WORKLOAD).await;
    let neither = stage
        .ready("app", "False", "TemplateOptionsMatchError")
        .await;
    assert_eq!(
        condition(&neither["status"], "Ready")["message"],
        "get template name from resource: find matching template option: \
         expected exactly 1 option to match, found [0] matching options for resource [test] in supply chain [chain]"
    );
    stage.edit_workload("app", with_test("yes")).await;
    all_have(&stage, &["app"], "tested").await;
    let tested = stage.ready("app", "True", "Ready").await;
    assert_eq!(step(&tested, "test")["templateRef"]["name"], "tested");

    stage.edit_workload("app", with_test("no")).await;
    all_have(&stage, &["app"], "main").await;
    let passed = stage
        .until("app", "the step passes through", |workload| {
            condition(&workload["status"], "Ready")["status"] == "True"
                && condition(&step(workload, "test"), "ResourceSubmitted")["reason"]
                    == "PassThrough"
        })
        .await;
    let entry = step(&passed, "test");
    assert_eq!(
        (&entry["stampedRef"], &entry["templateRef"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(entry["outputs"][1]["preview"], "main\n");
    eventually(
        "what the other option stamped is gone",
        PATIENCE,
        async || {
            stage
                .get("test.run/v1alpha1", "Test", "app-tested")
                .await
                .is_none()
        },
    )
    .await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);

    stage.edit_workload("app", with_test("maybe")).await;
    stage
        .ready("app", "False", "TemplateOptionsMatchError")
        .await;
    assert_eq!(
        value_of(&stage, "app").await,
        "main",
        "what exists is left as it is"
    );
}

#[tokio::test]
async fn a_step_whose_input_is_missing_is_held_and_leaves_what_exists() {
    let stage = Stage::open().await;
    let held = crate::chain::CHAIN
        .replace("revisionPath: .spec.value.rev", "revisionPath: .status.rev")
        .replace("data: {url: $(source.url)$}", "data: {value: one}");
    stage.apply(&held).await;
    stage.apply(crate::chain::WORKLOAD).await;
    // The rendering succeeds without the input, which upstream stamps too early.
    let waiting = stage
        .until("app", "the step is held", |workload| {
            condition(&step(workload, "publish"), "Ready")["reason"] == "InputsNotReady"
        })
        .await;
    let publish = step(&waiting, "publish");
    assert_eq!(condition(&publish, "Ready")["status"], "Unknown");
    assert_eq!(
        condition(&publish, "Ready")["message"],
        "waiting for input(s) [code] of resource [publish]: not available from resource(s) [fetch]"
    );
    assert_eq!(stage.get("v1", "ConfigMap", "app-sink").await, None);

    stage.report("app-src", json!({"rev": "1"})).await;
    stage.ready("app", "True", "Ready").await;
    all_have(&stage, &["app-sink"], "one").await;

    // The output vanishes and the template changes: the object is neither changed nor deleted.
    stage.report("app-src", json!({"other": "x"})).await;
    stage.ready("app", "Unknown", "MissingValueAtPath").await;
    stage.apply(&held.replace("value: one", "value: two")).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    assert_eq!(value_of(&stage, "app-sink").await, "one");
    let entry = step(&stage.workload("app").await, "publish");
    assert_eq!(entry["stampedRef"]["name"], "app-sink");

    stage.report("app-src", json!({"rev": "2"})).await;
    all_have(&stage, &["app-sink"], "two").await;
    stage.ready("app", "True", "Ready").await;
}

const PLAIN: &str = "
apiVersion: test.run/v1alpha1
kind: Test
metadata: {name: $(workload.metadata.name)$}
spec: {value: {a: b}}
";

#[tokio::test]
async fn a_template_that_begins_to_read_its_object_sees_what_is_there_and_what_comes() {
    let stage = Stage::open().await;
    let plain = blueprint_of(&[("plain", PLAIN)]);
    stage.apply(&plain).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage
        .report(
            "app",
            json!({"conditions": [{"type": "Ready", "status": "False"}]}),
        )
        .await;
    assert_eq!(
        stage.requests_of_reconciles("app", 1).await,
        NOTHING,
        "nobody reads the status"
    );

    let judged = plain.replace(
        "spec:\n  template:",
        "spec:\n  healthRule: {singleConditionType: Ready}\n  template:",
    );
    stage.apply(&judged).await;
    stage
        .until("app", "it is unhealthy", |workload| {
            condition(&step(workload, "plain"), "Healthy")["status"] == "False"
        })
        .await;
    stage
        .report(
            "app",
            json!({"conditions": [{"type": "Ready", "status": "True"}]}),
        )
        .await;
    let healthy = stage.ready("app", "True", "Ready").await;
    assert_eq!(
        condition(&step(&healthy, "plain"), "Healthy")["reason"],
        "ReadyCondition"
    );

    let by_field = plain.replace(
        "spec:\n  template:",
        "spec:\n  healthRule: {multiMatch: {healthy: {matchFields: [{key: status.level, operator: In, values: [good]}]}, \
         unhealthy: {matchFields: [{key: status.level, operator: In, values: [bad]}]}}}\n  template:",
    );
    stage.apply(&by_field).await;
    stage.report("app", json!({"level": "bad"})).await;
    stage
        .until("app", "it is unhealthy", |workload| {
            condition(&step(workload, "plain"), "Healthy")["status"] == "False"
        })
        .await;
    stage.report("app", json!({"level": "good"})).await;
    stage.ready("app", "True", "Ready").await;

    // Somebody writes into our status: it is ours.
    let workloads = stage.api("carto.run/v1alpha1", "Workload");
    let garbage =
        json!({"status": {"resources": [{"name": "plain", "conditions": []}], "conditions": []}});
    workloads
        .patch_status(
            "app",
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Merge(garbage),
        )
        .await
        .unwrap();
    let restored = stage.ready("app", "True", "Ready").await;
    assert_eq!(step(&restored, "plain")["stampedRef"]["name"], "app");
}
