//! A webhook that changes what it is asked about, from the bytes of the question to those of the answer, over TLS.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::super::{Admit, Answer, Operation, Review, Route, routes};
use super::tls::{Client, served_of};

const PODS: [Route; 1] = [Route {
    path: "/mutate-pods",
    kind: "Pod",
}];

/// Names in an annotation who created a pod and what it was before, unless it is told not to; refuses pods of a namespace.
struct Marker {
    /// What it must look up before it answers.
    exempt: Mutex<&'static str>,
}

impl Marker {
    async fn answer(&self, review: &Review) -> Answer {
        let exempt = *self.exempt.lock().await;
        if review.namespace == "closed" {
            return Answer {
                patch: vec![json!({"op": "remove", "path": "/spec"})],
                ..Answer::denied("no pods here")
            };
        }
        if review.user.username == exempt || review.operation == Operation::Delete {
            return Answer::default();
        }
        let by = format!(
            "{} of {}",
            review.user.username,
            review.user.groups.join(", ")
        );
        let before = review.old_object().unwrap();
        let marks = json!({"by": by, "before": before["metadata"]["name"]});
        let audit = if review.is_dry_run { "tried" } else { "marked" };
        Answer {
            error: None,
            warnings: vec![format!("{}/{} is marked", review.namespace, review.name)],
            patch: vec![json!({"op": "add", "path": "/metadata/annotations", "value": marks})],
            audit_annotations: BTreeMap::from([("marker".to_owned(), audit.to_owned())]),
        }
    }
}

impl Admit for Marker {
    fn admit(&self, review: Arc<Review>) -> BoxFuture<'_, Option<Answer>> {
        async move { Some(self.answer(&review).await) }.boxed()
    }
}

/// As the API server sends it, all fields included.
fn review(version: &str, operation: &str, namespace: &str) -> Value {
    let pod = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "uid": "p"},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]}})
    };
    let pods = json!({"group": "", "version": "v1", "resource": "pods"});
    let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
    let old = (operation != "CREATE").then(|| pod("before"));
    let new = (operation != "DELETE").then(|| pod("app-1"));
    json!({"kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"), "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": kind, "resource": pods, "requestKind": kind,
        "requestResource": pods, "name": "app-1", "namespace": namespace, "operation": operation, "dryRun": true,
        "userInfo": {"username": "jane", "uid": "u-7", "groups": ["dev", "system:authenticated"],
            "extra": {"example.com/team": ["blue"]}},
        "object": new, "oldObject": old,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl-create"}}})
}

async fn answered(exempt: &'static str, review: &Value) -> Value {
    let marker = Marker {
        exempt: Mutex::new(exempt),
    };
    let (scene, authority) = served_of(routes(&PODS, marker)).await;
    let mut client = Client::connect(&scene, &authority.trusted()).await.unwrap();
    let body = review.to_string();
    let answer = client.send("POST", "/mutate-pods", body.as_bytes()).await;
    let (code, text) = answer.unwrap();
    assert_eq!(code, 200, "{text}");
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["apiVersion"], review["apiVersion"]);
    answer["response"].take()
}

/// The operations of a patch, which JSON carries as bytes.
fn operations(response: &Value) -> Value {
    let patch: ByteString = serde_json::from_value(response["patch"].clone()).unwrap();
    serde_json::from_slice(&patch.0).unwrap()
}

#[tokio::test]
async fn what_a_webhook_changes_comes_back_as_a_patch_that_knows_the_whole_review() {
    for (version, operation, before) in [
        ("v1", "CREATE", Value::Null),
        ("v1", "UPDATE", json!("before")),
        ("v1beta1", "CREATE", Value::Null),
    ] {
        let response = answered("root", &review(version, operation, "dev")).await;
        let marks = json!({"by": "jane of dev, system:authenticated", "before": before});
        assert_eq!(
            operations(&response),
            json!([{"op": "add", "path": "/metadata/annotations", "value": marks}])
        );
        assert_eq!(response["patchType"], "JSONPatch");
        assert_eq!(response["allowed"], true);
        assert_eq!(response["uid"], "705ab4f5-6393-11e8-b7cc-42010a800002");
        assert_eq!(response["warnings"], json!(["dev/app-1 is marked"]));
        assert_eq!(response["auditAnnotations"], json!({"marker": "tried"}));
    }
}

#[tokio::test]
async fn who_changes_nothing_or_refuses_sends_no_patch() {
    let untouched = json!({"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "allowed": true});
    assert_eq!(
        answered("jane", &review("v1", "CREATE", "dev")).await,
        untouched
    );
    assert_eq!(
        answered("root", &review("v1", "DELETE", "dev")).await,
        untouched
    );
    let refused = answered("root", &review("v1", "CREATE", "closed")).await;
    assert_eq!(refused["status"]["message"], "no pods here");
    assert_eq!(
        (&refused["patch"], &refused["patchType"]),
        (&Value::Null, &Value::Null)
    );
}
