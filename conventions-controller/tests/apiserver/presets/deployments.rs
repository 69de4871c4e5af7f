//! Pods that the real controllers of Deployments and ReplicaSets create.

use serde_json::{Value, json};
use test_support::stage::PATIENCE;
use test_support::{ControlPlane, eventually};

use super::stage::{MARKER, Pods, pod, set_pods};
use crate::stage::set_on;

const API: &str = "settings.carto.run/v1alpha1";

async fn open() -> Pods {
    let plane = ControlPlane::builder().deployments().audit().start().await;
    let mut pods = set_pods(set_on(plane.unwrap()).await);
    pods.start_by(None, &["--report-stale-pods"]).await;
    pods
}

fn deployment(replicas: u8, env: &Value) -> Value {
    let labels = json!({"tier": "frontend"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "frontend"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "php-redis", "image": "frontend", "env": env}]},
        }},
    })
}

async fn preset(pods: &Pods) {
    let spec = json!({"selector": {"matchLabels": {"tier": "frontend"}},
        "env": [{"name": "DB_PORT", "value": "6379"}]});
    pods.preset("allow-database", spec).await;
    let pod = pod("a", json!({"tier": "frontend"}));
    pods.until_marked("allow-database", &pod).await;
}

async fn until_there(pods: &Pods, count: usize) -> Vec<Value> {
    eventually("the pods are there", PATIENCE, async || {
        let all = pods.all("v1", "Pod").await;
        if all.len() == count {
            Ok(Some(all))
        } else {
            Err(all.len())
        }
    })
    .await
}

#[tokio::test]
async fn pods_of_a_deployment_get_the_preset_and_its_template_stays_as_it_is() {
    let pods = open().await;
    preset(&pods).await;
    let env = json!([{"name": "GET_HOSTS_FROM", "value": "dns"}]);
    pods.apply(&deployment(3, &env).to_string()).await;
    for pod in until_there(&pods, 3).await {
        let both = json!([{"name": "GET_HOSTS_FROM", "value": "dns"}, {"name": "DB_PORT", "value": "6379"}]);
        assert_eq!(pod["spec"]["containers"][0]["env"], both);
        assert!(pod["metadata"]["annotations"][format!("{MARKER}allow-database")].is_string());
    }
    for kind in ["Deployment", "ReplicaSet"] {
        let object = pods.all("apps/v1", kind).await.remove(0);
        assert_eq!(
            object["spec"]["template"]["spec"]["containers"][0]["env"],
            env
        );
    }
    pods.delete(API, "PodPreset", "allow-database").await;
    preset(&pods).await;
    let owners =
        json!([{"kind": "Deployment", "namespace": pods.namespace, "name": "frontend", "pods": 3}]);
    eventually("the Deployment is told of", PATIENCE, async || {
        let preset = pods.get(API, "PodPreset", "allow-database").await.unwrap();
        let status = preset["status"].clone();
        if status["staleOwners"] == owners {
            Ok(())
        } else {
            Err(status)
        }
    })
    .await;
}

#[tokio::test]
async fn a_conflict_is_told_of_the_replica_set_and_its_pods_are_created() {
    let pods = open().await;
    preset(&pods).await;
    let env = json!([{"name": "DB_PORT", "value": "1"}]);
    pods.apply(&deployment(2, &env).to_string()).await;
    for pod in until_there(&pods, 2).await {
        assert_eq!(pod["spec"]["containers"][0]["env"], env);
        assert_eq!(pod["metadata"]["annotations"], Value::Null);
    }
    let set = pods.all("apps/v1", "ReplicaSet").await.remove(0);
    let name = &set["metadata"]["name"];
    eventually("the ReplicaSet is told of", PATIENCE, async || {
        let all = pods.all("v1", "Event").await;
        let is_told = |event: &&Value| {
            event["reason"] == "conflict" && event["involvedObject"]["name"] == *name
        };
        let told = all.iter().find(is_told).cloned().unwrap_or_default();
        if told["message"] == "Conflict on pod preset. Duplicate env DB_PORT." {
            Ok(())
        } else {
            Err(told)
        }
    })
    .await;
}
