//! A kind as controller-gen makes them: typed to the last field, and null is a value only where the schema says so.

use serde_json::{Value, json};
use test_support::eventually;

use crate::stage::{NOTHING, PATIENCE, Stage, condition};

const API_VERSION: &str = "typed.run/v1";

async fn build(stage: &Stage, name: &str) -> Option<Value> {
    stage.get(API_VERSION, "Build", name).await
}

/// Waits until the object's spec is this.
async fn spec_is(stage: &Stage, name: &str, expected: Value) {
    let awaited = format!("the spec of {name} is {expected}");
    eventually(&awaited, PATIENCE, async || {
        let spec = build(stage, name).await.ok_or("no object")?["spec"].take();
        if spec == expected {
            Ok(())
        } else {
            Err(spec.to_string())
        }
    })
    .await;
}

fn refusals(stage: &Stage) -> Vec<String> {
    let mut writes = stage.writes();
    writes.retain(|write| !write.ends_with(" 200") && !write.ends_with(" 201"));
    writes
}

fn chain(template: &str) -> String {
    format!(
        r"
apiVersion: carto.run/v1alpha1
kind: ClusterConfigTemplate
metadata: {{name: build}}
spec:
  configPath: .spec.{template}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {{name: chain}}
spec:
  selector: {{type: web}}
  resources: [{{name: build, templateRef: {{kind: ClusterConfigTemplate, name: build}}}}]
"
    )
}

/// Fields of the owner that are unset, by simple tags.
const BY_TAGS: &str = "env
  template:
    apiVersion: typed.run/v1
    kind: Build
    metadata: {name: $(workload.metadata.name)$}
    spec:
      tag: $(workload.metadata.name)$
      image: $(workload.spec.image)$
      build: {env: $(workload.spec.build.env)$}
      env: $(workload.spec.env)$";

#[tokio::test]
async fn what_an_owner_leaves_unset_is_left_out_and_comes_back() {
    let mut stage = Stage::open().await;
    stage.apply(&chain(BY_TAGS)).await;
    stage.apply(crate::chain::WORKLOAD).await;
    let bare = json!({"tag": "app", "build": {}, "policy": "Always", "replicas": 1});
    spec_is(&stage, "app", bare.clone()).await;
    // What is not there is no output, and no null.
    stage.ready("app", "Unknown", "MissingValueAtPath").await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);

    let env = json!([{"name": "A", "value": "1"}]);
    let set = json!({"spec": {"env": env, "build": {"env": env}}});
    stage.edit_workload("app", set).await;
    stage.ready("app", "True", "Ready").await;
    let full =
        json!({"tag": "app", "build": {"env": env}, "env": env, "policy": "Always", "replicas": 1});
    spec_is(&stage, "app", full).await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);

    let unset = json!({"spec": {"env": null, "build": null}});
    stage.edit_workload("app", unset).await;
    let gone = stage.ready("app", "Unknown", "MissingValueAtPath").await;
    let message = format!(
        "waiting to read value [.spec.env] from object [builds.typed.run/app] in namespace [{}]",
        stage.namespace
    );
    assert_eq!(condition(&gone["status"], "Ready")["message"], message);
    spec_is(&stage, "app", bare).await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);

    let writes = stage.writes();
    stage.kill_controller();
    stage.start_controller();
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    assert_eq!(stage.writes(), writes, "a restart writes nothing");
}

/// A key without a value, a loop without a turn, and a null among the values of a map.
const BY_YTT: &str = r#"tag
  ytt: |
    #@ load("@ytt:data", "data")
    apiVersion: typed.run/v1
    kind: Build
    metadata: {name: app}
    spec:
      tag: app
      image:
      args:
      #@ for name in data.values.params.names:
      - #@ name
      #@ end
      notes:
        kept: text
        dropped: #@ None
  params: [{name: names, default: []}]"#;

#[tokio::test]
async fn an_empty_key_is_left_out_and_a_loop_without_a_turn_makes_an_empty_list() {
    let stage = Stage::open().await;
    stage.apply(&chain(BY_YTT)).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    let notes = json!({"kept": "text"});
    let bare = json!({"tag": "app", "notes": notes, "args": [], "policy": "Always", "replicas": 1});
    spec_is(&stage, "app", bare.clone()).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);

    let turns = json!({"spec": {"params": [{"name": "names", "value": ["a", "b"]}]}});
    stage.edit_workload("app", turns).await;
    let full = json!({"tag": "app", "notes": notes, "args": ["a", "b"], "policy": "Always", "replicas": 1});
    spec_is(&stage, "app", full).await;
    stage
        .edit_workload("app", json!({"spec": {"params": null}}))
        .await;
    spec_is(&stage, "app", bare).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    assert_eq!(refusals(&stage), NOTHING);
}

/// Null at every kind of place, values at the others.
fn of_all_forms() -> Value {
    json!({
        "tag": "x", "image": null, "policy": null, "replicas": null, "size": 8_589_934_592_u64, "since": "2026-01-02T03:04:05Z",
        "timeout": "10%", "note": null,
        "build": {"env": [{"name": "A", "value": null}, {"name": "A", "value": "again"}],
                  "resources": {"limits": {"cpu": null, "memory": "1Gi", "pods": 3}}},
        "env": [{"name": "A", "value": null}, {"name": "B", "valueFrom": null}, {"name": "C", "valueFrom": {"key": "k", "optional": null}}],
        "ports": [{"port": 80, "protocol": null, "name": null}, {"port": 80, "protocol": "UDP"}],
        "tags": ["b", "a"], "args": null, "notes": {"a": null, "b": "x"}, "maybes": {"a": null, "b": "x"},
        "mounts": {"a": {"path": "x", "readOnly": null}, "b": null},
        "free": {"a": null, "b": {"c": null, "d": [null, {"e": null}]}, "f": [{}, []]}, "any": null,
    })
}

#[tokio::test]
async fn an_object_of_all_forms_is_as_a_create_makes_it() {
    let stage = Stage::open().await;
    let spec = of_all_forms();
    let created = json!({"apiVersion": API_VERSION, "kind": "Build", "metadata": {"name": "created"}, "spec": spec});
    let created = stage.create_as("somebody", created).await["spec"].take();
    assert!(
        created["free"].as_object().unwrap().contains_key("a"),
        "{created}"
    );
    let template = format!(
        "tag\n  template: {}",
        json!({"apiVersion": API_VERSION, "kind": "Build", "metadata": {"name": "app"}, "spec": spec})
    );
    stage.apply(&chain(&template)).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    spec_is(&stage, "app", created.clone()).await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);

    for foreign in [
        json!({"spec": {"size": 1}}),
        json!({"spec": {"tags": ["c"]}}),
        json!({"spec": {"mounts": {"a": {"path": "y"}}}}),
        json!({"spec": {"timeout": 3}}),
    ] {
        stage.edit(API_VERSION, "Build", "app", foreign).await;
        eventually("the edit is reverted", PATIENCE, async || {
            let spec = build(&stage, "app").await.unwrap()["spec"].take();
            let reverted = ["size", "mounts", "timeout"]
                .iter()
                .all(|field| spec[field] == created[field]);
            let tags = spec["tags"].as_array().unwrap();
            if reverted && tags.contains(&json!("a")) && tags.contains(&json!("b")) {
                Ok(())
            } else {
                Err(spec.to_string())
            }
        })
        .await;
    }
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    assert_eq!(refusals(&stage), NOTHING);
}

#[tokio::test]
async fn a_map_that_loses_its_last_member_stays_an_empty_map() {
    let stage = Stage::open().await;
    let template = |full: bool| {
        let [notes, mounts, member] = if full {
            [
                json!({"a": "x"}),
                json!({"a": {"path": "x"}}),
                json!({"c": 1}),
            ]
        } else {
            [json!({}), json!({}), json!({})]
        };
        let free = json!({"a": {"b": member}, "d": {}});
        let spec = json!({"tag": "app", "notes": notes, "mounts": mounts, "free": free});
        let object = json!({"apiVersion": API_VERSION, "kind": "Build", "metadata": {"name": "app"}, "spec": spec});
        // Two templates: applying one again would make its own maps null.
        let manifests = chain(&format!("tag\n  template: {object}"));
        (
            spec,
            manifests.replace("name: build}", &format!("name: {full}-build}}")),
        )
    };
    let stored = |spec: &Value| {
        let mut spec = spec.clone();
        (spec["policy"], spec["replicas"]) = (json!("Always"), json!(1));
        spec
    };
    stage.apply(&template(true).1).await;
    stage.apply(crate::chain::WORKLOAD).await;
    for full in [true, false, true] {
        let (spec, manifests) = template(full);
        stage.apply(&manifests).await;
        spec_is(&stage, "app", stored(&spec)).await;
        stage.ready("app", "True", "Ready").await;
        assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    }
}

#[tokio::test]
async fn what_a_typed_kind_does_not_take_is_refused_in_its_words() {
    let stage = Stage::open().await;
    let template = "tag
  template:
    apiVersion: typed.run/v1
    kind: Build
    metadata: {name: app}
    spec: {tag: null, policy: Sometimes, since: yesterday, some: {}}";
    stage.apply(&chain(template)).await;
    stage.apply(crate::chain::WORKLOAD).await;
    let refused = stage
        .ready("app", "False", "TemplateRejectedByAPIServer")
        .await;
    let message = condition(&refused["status"], "Ready")["message"].to_string();
    for part in [
        "create: ",
        "spec.tag: Required value",
        "spec.some in body should have at least 1 properties",
        "spec.policy: Unsupported value",
        "spec.since in body must be of type date-time",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(build(&stage, "app").await.is_none());
}

#[tokio::test]
async fn an_object_of_the_go_controller_whose_rendering_has_nulls_is_taken_over_as_it_is() {
    let mut stage = Stage::set().await;
    stage
        .apply(&chain(&BY_TAGS.replacen("env", "tag", 1)))
        .await;
    stage.apply(crate::chain::WORKLOAD).await;
    let workload = stage.workload("app").await;
    let template = ["ClusterConfigTemplate", "build", "mutable"];
    // It created the object with the nulls, which the API server took out.
    let object = json!({
        "apiVersion": API_VERSION, "kind": "Build", "metadata": {"name": "app"},
        "spec": {"tag": "app", "image": null, "build": {"env": null}, "env": null},
    });
    let object = stage.left_by_go(&workload, "build", template, object);
    let before = stage.create_as("cartographer", object).await;

    stage.start_controller();
    stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    let after = build(&stage, "app").await.unwrap();
    assert_eq!(after["spec"], before["spec"]);
    for field in ["uid", "generation"] {
        assert_eq!(after["metadata"][field], before["metadata"][field]);
    }
    assert_eq!(refusals(&stage), NOTHING);

    // Later edits arrive.
    let env = json!([{"name": "A", "value": "1"}]);
    stage
        .edit_workload("app", json!({"spec": {"env": env}}))
        .await;
    spec_is(
        &stage,
        "app",
        json!({"tag": "app", "build": {}, "env": env, "policy": "Always", "replicas": 1}),
    )
    .await;
}
