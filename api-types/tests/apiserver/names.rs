//! A name that no label can have is refused while it is new; what is stored with one can be written as ever.

use std::time::Duration;

use api_types::names::MOST_LABEL_CHARS;
use http::Method;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use test_support::{ControlPlane, eventually};

use crate::schemas::{full_object, server};
use crate::server::{Reply, Server, collection, deploy};

const PATIENCE: Duration = Duration::from_mins(3);

const ADVICE: &str = "must be at most 63 characters: every object that is stamped has it in a label; choose a shorter name";

fn one_too_long() -> String {
    "n".repeat(MOST_LABEL_CHARS + 1)
}

fn assert_refused_for_its_name(reply: &Reply, kind: &str) {
    let message = reply.message();
    assert_eq!(reply.status, 422, "{kind}: {reply:?}");
    assert!(
        message.contains("metadata.name: Invalid value") && message.contains(ADVICE),
        "{kind}: {message}"
    );
}

/// The kinds whose names become labels. Those of Artifacts, which the controllers choose, do not.
fn with_short_names() -> Vec<CustomResourceDefinition> {
    let mut crds = api_types::crds();
    crds.retain(|crd| crd.spec.names.kind != "Artifact");
    crds
}

async fn create_on_trial(server: &Server, crd: &CustomResourceDefinition, name: &str) -> Reply {
    let object = full_object(&crd.spec.names.kind, name);
    let path = format!("{}?dryRun=All", collection(crd));
    server.create(&path, &object).await
}

#[tokio::test]
async fn a_name_that_no_label_can_have_is_refused_with_what_to_do() {
    let server = server().await;
    for crd in with_short_names() {
        let kind = crd.spec.names.kind.as_str();
        let longest = "n".repeat(MOST_LABEL_CHARS);
        let reply = create_on_trial(&server, &crd, &longest).await;
        assert!(reply.is_success(), "{kind}: {reply:?}");
        let long = one_too_long();
        assert_refused_for_its_name(&create_on_trial(&server, &crd, &long).await, kind);
        let applied = server
            .send(
                Method::PATCH,
                &format!("{}/{long}?dryRun=All&fieldManager=test", collection(&crd)),
                "application/apply-patch+yaml",
                &full_object(kind, &long),
            )
            .await;
        assert_refused_for_its_name(&applied, kind);
        // A name that the API server makes itself is never too long.
        let mut generated = full_object(kind, "");
        generated["metadata"] = json!({"generateName": format!("{long}-")});
        let path = format!("{}?dryRun=All", collection(&crd));
        let reply = server.create(&path, &generated).await;
        assert!(reply.is_success(), "{kind}: {reply:?}");
    }
}

/// The definition as it was before names were limited.
fn former(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut().unwrap();
        let root = schema.open_api_v3_schema.as_mut().unwrap();
        let metadata = root.properties.as_mut().unwrap().get_mut("metadata");
        assert!(
            metadata.unwrap().properties.take().is_some(),
            "no rule about names"
        );
    }
    crd
}

/// Another text wherever the sample has one.
fn edited(spec: &Value) -> Value {
    let other = spec.to_string().replace(r#""text""#, r#""other""#);
    let other: Value = serde_json::from_str(&other).unwrap();
    assert_ne!(other, *spec);
    other
}

#[tokio::test]
async fn what_is_stored_with_a_long_name_can_be_written_as_ever() {
    let control_plane = ControlPlane::start().await.unwrap();
    let server = Server::of(&control_plane);
    let crds = with_short_names();
    for crd in crds.iter().cloned().map(former) {
        let crd = serde_json::to_string(&crd).unwrap();
        control_plane.apply_yaml(&crd).await.unwrap();
    }
    let long = one_too_long();
    for crd in &crds {
        let object = full_object(&crd.spec.names.kind, &long);
        let reply = server.create(&collection(crd), &object).await;
        assert!(reply.is_success(), "{reply:?}");
    }

    control_plane.install_crds(deploy("crds")).await.unwrap();
    for crd in &crds {
        // An API server takes up a new schema when it hears of it.
        eventually("new names are limited", PATIENCE, async || {
            let reply = create_on_trial(&server, crd, &format!("{long}n")).await;
            if reply.status == 422 {
                Ok(())
            } else {
                Err(format!("{reply:?}"))
            }
        })
        .await;
        edit_everything(&server, crd, &long).await;
    }
}

/// Spec, status, labels and finalizers of a stored object, and its deletion.
async fn edit_everything(server: &Server, crd: &CustomResourceDefinition, name: &str) {
    let kind = crd.spec.names.kind.as_str();
    let sample = full_object(kind, name);
    let path = format!("{}/{name}", collection(crd));
    let mut changes = vec![
        (path.clone(), json!({"spec": edited(&sample["spec"])})),
        (
            path.clone(),
            json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["test.run/keep"]}}),
        ),
        (path.clone(), json!({"metadata": {"finalizers": null}})),
    ];
    if crd.spec.versions[0].subresources.is_some() {
        let status = json!({"status": sample["status"]});
        changes.insert(1, (format!("{path}/status"), status));
    }
    for (path, change) in &changes {
        let reply = server.patch(path, change).await;
        assert!(reply.is_success(), "{kind} {change}: {reply:?}");
        assert_eq!(reply.warnings, Vec::<String>::new(), "{kind} {change}");
        for (field, value) in change.as_object().unwrap() {
            if field != "metadata" {
                assert_eq!(reply.body[field], *value, "{kind}");
            }
        }
    }
    let gone = server
        .send(Method::DELETE, &path, "application/json", &Value::Null)
        .await;
    assert!(gone.is_success(), "{kind}: {gone:?}");
}
