//! The CRDs on a real API server: what it refuses, and what its pods are with what presets add to them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod exported;
#[path = "../generated/mod.rs"]
mod generated;
mod pods;
mod stored;

use std::path::Path;

use http::{Request, header};
use kube::Client;
use serde_json::{Value, json};
use test_support::shared_control_plane;
use tokio::sync::OnceCell;

/// A namespace in which pods can be created, once the CRDs are there.
static NAMESPACE: OnceCell<String> = OnceCell::const_new();

async fn namespace() -> &'static str {
    let control_plane = shared_control_plane().await.unwrap();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/conventions");
    let prepared = NAMESPACE.get_or_init(async || {
        for folder in ["crds", "optional-crds"] {
            let crds = deploy.join(folder);
            control_plane.install_crds(crds).await.unwrap();
        }
        control_plane.create_namespace("presets").await.unwrap()
    });
    prepared.await
}

async fn client() -> Client {
    shared_control_plane().await.unwrap().client().unwrap()
}

/// Where objects of a kind are.
async fn path_of(object: &Value) -> String {
    let namespace = namespace().await;
    let (version, kind) = (object["apiVersion"].as_str().unwrap(), &object["kind"]);
    match kind.as_str().unwrap() {
        "Pod" => format!("/api/v1/namespaces/{namespace}/pods"),
        "ClusterPodPreset" => format!("/apis/{version}/clusterpodpresets"),
        _ => format!("/apis/{version}/namespaces/{namespace}/podpresets"),
    }
}

/// What the API server makes of an object that it is asked to create, without creating it; or what is wrong with it.
async fn created(client: &Client, object: &Value) -> Result<Value, String> {
    let mut object = object.clone();
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("namespace");
    let path = path_of(&object).await;
    let request = Request::post(format!("{path}?dryRun=All"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(&object).unwrap())
        .unwrap();
    match client.request::<Value>(request).await {
        Ok(object) => Ok(object),
        Err(kube::Error::Api(status)) if status.code == 422 => Err(status.message),
        Err(other) => panic!("{other}"),
    }
}

/// A preset with these fields of its spec.
fn preset(kind: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "settings.carto.run/v1alpha1",
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A", "value": "1"}]},
    });
    let fields = object["spec"].as_object_mut().unwrap();
    fields.extend(spec.as_object().unwrap().clone());
    object
}
