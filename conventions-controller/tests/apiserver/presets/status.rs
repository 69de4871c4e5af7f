//! What stands in the status of a preset.

use std::time::Instant;

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::{PATIENCE, Particulars, Port, condition};

use super::stage::{Pods, open, open_with, pod, set_pods};
use crate::metrics::documented;
use crate::stage::set;

const API: &str = "settings.carto.run/v1alpha1";
const MANY: usize = 100;

fn env(value: &str) -> Value {
    json!({"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A", "value": value}]})
}

fn matching(name: &str) -> Value {
    pod(name, json!({"a": "b"}))
}

async fn status(pods: &Pods, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually(what, PATIENCE, async || {
        let preset = pods.get(API, "PodPreset", "env").await.unwrap();
        let status = preset["status"].clone();
        if is_so(&status) {
            Ok(Some(status))
        } else {
            Err(status)
        }
    })
    .await
}

#[tokio::test]
async fn many_pods_are_few_writes_and_a_write_makes_no_pod_outdated() {
    let pods = open().await;
    pods.preset("env", env("b")).await;
    let first = pods.until_marked("env", &matching("a")).await;
    let started = Instant::now();
    for number in 0..MANY {
        pods.create_pod(matching(&format!("a{number}"))).await;
    }
    let counted = status(&pods, "all pods are counted", |status| {
        status["matched"] == MANY
    })
    .await;
    assert_eq!(
        (&counted["applied"], &counted["conflicts"]),
        (&json!(MANY), &json!(0))
    );
    assert_eq!(condition(&counted, "Valid")["status"], "True");
    assert_eq!(condition(&counted, "Conflicting")["status"], "False");
    assert_eq!(counted["observedGeneration"], 1);
    let later = pods.create_pod(matching("later")).await;
    assert_eq!(later.marker("env"), first.marker("env"));
    assert_eq!(
        counted["observedResourceVersion"].as_str(),
        later.marker("env").as_deref()
    );
    let writes = pods.plane.requests_by("carto-conventions").unwrap();
    let writes = writes
        .iter()
        .filter(|it| it.verb == "patch" && it.request_uri.contains("/podpresets/"));
    // A round every five seconds, that of the leader when the preset came, and one under way.
    let most = started.elapsed().as_secs() / 5 + 4;
    assert!(writes.count() as u64 <= most, "more than {most} writes");
}

#[tokio::test]
async fn counts_of_two_replicas_come_together() {
    let mut pods = open().await;
    pods.preset("env", env("b")).await;
    pods.until_marked("env", &matching("a")).await;
    for number in 0..3 {
        pods.create_pod(matching(&format!("a{number}"))).await;
    }
    let port = Port::reserve();
    let flags = pods.flags_at(&port);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let another = pods.another_controller_as(&Particulars {
        flags: &flags,
        ..Particulars::default()
    });
    pods.configure(&port).await;
    eventually("the other replica is asked", PATIENCE, async || {
        pods.try_pod(matching("b")).await.unwrap();
        let injected = another
            .metric("carto_preset_pods_total", &[r#"outcome="injected""#])
            .await;
        if injected > Some(0.0) {
            Ok(())
        } else {
            Err(injected)
        }
    })
    .await;
    let mut conflicting = matching("c");
    conflicting["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "mine"}]);
    pods.create_pod(conflicting).await;
    pods.create_pod(matching("d")).await;
    let counted = status(&pods, "all pods are counted", |status| {
        status["matched"] == 5
    })
    .await;
    assert_eq!(
        (&counted["applied"], &counted["conflicts"]),
        (&json!(4), &json!(1))
    );
    let last = &counted["lastConflicts"][0];
    assert_eq!((&last["kind"], &last["name"]), (&json!("Pod"), &json!("c")));
    assert_eq!((&last["field"], &last["key"]), (&json!("env"), &json!("A")));
    let told = status(&pods, "the conflict is told", |status| {
        condition(status, "Conflicting")["status"] == "True"
    });
    let told = condition(&told.await, "Conflicting");
    assert_eq!(told["message"], "Pod c has another env A");
}

#[tokio::test]
async fn a_preset_that_came_by_while_nobody_looked_is_marked_invalid_and_harms_no_other() {
    let stage = set().await;
    let broken = json!({
        "apiVersion": API, "kind": "PodPreset", "metadata": {"name": "env"},
        "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]},
            "env": [{"name": "A", "value": "b"}]},
    });
    stage.apply(&broken.to_string()).await;
    let mut pods = set_pods(stage);
    pods.start_by(None, &[]).await;
    pods.preset("good", env("b")).await;
    pods.until_marked("good", &matching("a")).await;
    let told = status(&pods, "it is invalid", |status| {
        condition(status, "Valid")["status"] == "False"
    });
    let message = condition(&told.await, "Valid")["message"].clone();
    let message = message.as_str().unwrap();
    assert!(message.contains("spec.selector"), "{message}");

    let mut again = broken.clone();
    again["metadata"]["name"] = json!("again");
    let refused = pods
        .plane
        .apply_yaml_in(&pods.namespace, &again.to_string())
        .await;
    let refused = format!("{:#}", refused.unwrap_err());
    assert!(refused.contains("denied the request: "), "{refused}");
    let changed = pods
        .plane
        .apply_yaml_in(
            &pods.namespace,
            &super::stage::preset("PodPreset", "good", env("c")).to_string(),
        )
        .await;
    let refused = format!("{:#}", changed.unwrap_err());
    assert!(refused.contains("field is immutable"), "{refused}");
}

#[tokio::test]
async fn what_is_exported_is_documented_and_true_and_older_pods_are_told() {
    let pods = open_with(&["--report-stale-pods", "--mutable-presets"]).await;
    pods.preset("env", env("b")).await;
    let first = pods.until_marked("env", &matching("probe")).await;
    pods.create_pod(matching("a")).await;
    pods.preset("gone", env("b")).await;
    pods.until_marked("gone", &matching("probe")).await;
    pods.create_pod(matching("b")).await;
    pods.delete(API, "PodPreset", "gone").await;
    pods.preset("env", env("c")).await;
    let newer = |created: &super::stage::Created| created.marker("env") != first.marker("env");
    pods.until_tried("the preset is another one", &matching("probe"), newer)
        .await;
    pods.create_pod(matching("c")).await;
    let told = status(&pods, "older pods are told", |status| {
        status["stalePods"] == 2
    })
    .await;
    let owners = json!([
        {"kind": "Pod", "name": "a", "namespace": pods.namespace, "pods": 1},
        {"kind": "Pod", "name": "b", "namespace": pods.namespace, "pods": 1},
    ]);
    assert_eq!(told["staleOwners"], owners);
    for (state, count) in [("outdated", 2.0), ("gone", 1.0)] {
        let label = format!("preset=\"{state}\"");
        eventually("the metric says it", PATIENCE, async || {
            let found = pods.metric("carto_preset_stale_pods", &[&label]).await;
            if found == Some(count) {
                Ok(())
            } else {
                Err(found)
            }
        })
        .await;
    }
    assert_eq!(
        pods.metric("carto_presets", &[r#"valid="true""#]).await,
        Some(1.0)
    );
    for metric in documented()
        .into_iter()
        .filter(|it| it.starts_with("carto_preset"))
    {
        let series = pods.metric(&metric, &[]).await;
        let counted = pods.metric(&format!("{metric}_count"), &[]).await;
        assert!(series.or(counted).is_some_and(|sum| sum > 0.0), "{metric}");
    }
}
