//! The way there and back, with Deployments whose Pods the tests play.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::PATIENCE;

use crate::installation::Installation;

const OLD: (&str, &str) = ("cartographer-system", "cartographer-controller");
const ITS_WEBHOOKS: &str = "cartographer-validating-webhook-configuration";
const OUR_WEBHOOKS: &str = "carto-supplychain-controller";
/// How many replicas ours get: what the chart has written down, or what it has by default.
pub(crate) const WANTED: [(&str, i32); 2] =
    [("supplychain-controller", 3), ("runnable-controller", 2)];

/// A Pod of a Deployment, that is there until it is deleted.
pub(crate) async fn pod(installation: &Installation, namespace: &str, of: &str) -> Api<Pod> {
    let pods: Api<Pod> = Api::namespaced(installation.stage.client.clone(), namespace);
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "last", "labels": {"app": of}},
        "spec": {"automountServiceAccountToken": false, "serviceAccountName": "default",
            "containers": [{"name": "controller", "image": "example/controller"}]}});
    let account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}";
    installation
        .stage
        .plane
        .apply_yaml_in(namespace, account)
        .await
        .unwrap();
    let pod: Pod = serde_json::from_value(pod).unwrap();
    eventually("the Pod is there", PATIENCE, async || {
        pods.create(&PostParams::default(), &pod)
            .await
            .map(|_| Some(()))
    })
    .await;
    pods
}

async fn until_replicas(installation: &Installation, (namespace, name): (&str, &str), wanted: i32) {
    eventually(
        &format!("{name} has {wanted} replicas"),
        PATIENCE,
        async || installation.replicas(namespace, name).await == wanted,
    )
    .await;
}

pub(crate) fn at_once() -> DeleteParams {
    DeleteParams::default().grace_period(0)
}

#[tokio::test]
async fn there_and_back_one_controller_is_gone_before_the_other_starts() {
    let installation = Installation::of(1).await;
    let file = installation.state_file();
    let file = file.to_str().unwrap();
    let apply = ["apply", "--state", file];
    let pods = pod(&installation, OLD.0, OLD.1).await;
    let before = serde_json::to_value(configuration(&installation).await.unwrap()).unwrap();

    // It is interrupted while the last Pod is there: nothing else has happened yet.
    let mut interrupted = installation.start(&apply);
    until_replicas(&installation, OLD, 0).await;
    interrupted.kill().await.unwrap();
    assert!(configuration(&installation).await.is_some());
    assert_eq!(
        installation
            .replicas("carto-system", "supplychain-controller")
            .await,
        0
    );
    // A Pod that does not end is told, and carto is not started beside it.
    let (succeeded, said) = installation
        .run(&[&apply[..], &["--timeout", "1s"]].concat())
        .await;
    assert!(
        !succeeded && said.contains("Pods of the Go controller are still there: last"),
        "{said}"
    );
    assert_eq!(
        installation
            .replicas("carto-system", "supplychain-controller")
            .await,
        0
    );

    let running = installation.start(&apply);
    pods.delete("last", &at_once()).await.unwrap();
    for (name, replicas) in WANTED {
        installation
            .becomes_ready("carto-system", name, replicas)
            .await;
    }
    let output = running.wait_with_output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("carto has taken over"), "{said}");
    assert_eq!(
        installation.webhooks().await,
        [OUR_WEBHOOKS, "somebody-elses"]
    );
    // Once more, it finds everything done.
    let (succeeded, said) = installation.run(&apply).await;
    assert!(succeeded, "{said}");
    assert!(!said.contains("become"), "{said}");

    let rollback = ["rollback", "--state", file];
    let running = installation.start(&rollback);
    installation.becomes_ready(OLD.0, OLD.1, 2).await;
    for name in ["supplychain-controller", "runnable-controller"] {
        assert_eq!(
            installation.replicas("carto-system", name).await,
            0,
            "{name}"
        );
    }
    let output = running.wait_with_output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(
        installation.webhooks().await,
        [ITS_WEBHOOKS, "somebody-elses"]
    );
    let after = serde_json::to_value(configuration(&installation).await.unwrap()).unwrap();
    for field in ["/webhooks", "/metadata/labels"] {
        assert_eq!(after.pointer(field), before.pointer(field), "{field}");
    }
    // And there again.
    let running = installation.start(&apply);
    for (name, replicas) in WANTED {
        installation
            .becomes_ready("carto-system", name, replicas)
            .await;
    }
    assert!(running.wait_with_output().await.unwrap().status.success());
    until_replicas(&installation, OLD, 0).await;
    assert_eq!(
        installation.webhooks().await,
        [OUR_WEBHOOKS, "somebody-elses"]
    );
}

async fn configuration(installation: &Installation) -> Option<kube::api::DynamicObject> {
    let api = test_support::all_objects(
        &installation.stage.client,
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    );
    api.get_opt(ITS_WEBHOOKS).await.unwrap()
}

#[tokio::test]
async fn a_takeover_with_changes_is_refused_until_they_are_accepted() {
    let installation = Installation::of(1).await;
    let branch = json!({"spec": {"source": {"git": {"ref": {"branch": "b"}}}}});
    installation.stage.edit_owner("app-0", branch).await;
    let file = installation.state_file();
    let apply = ["apply", "--state", file.to_str().unwrap()];
    let (succeeded, said) = installation.run(&apply).await;
    assert!(
        !succeeded && said.contains("nothing was changed: 1 runs would start"),
        "{said}"
    );
    assert!(!file.exists());
    assert_eq!(installation.replicas(OLD.0, OLD.1).await, 2);
    let running =
        installation.start(&[&apply[..], &["--accept-changes", "--replicas", "5"]].concat());
    for name in ["supplychain-controller", "runnable-controller"] {
        installation.becomes_ready("carto-system", name, 5).await;
    }
    assert!(running.wait_with_output().await.unwrap().status.success());
}

#[tokio::test]
async fn the_way_back_goes_by_the_file_and_by_no_record_that_others_could_have_written() {
    let installation = Installation::of(0).await;
    let folder = installation.stage.plane.folder();
    let file = folder.join("forged.json");
    let path = file.to_str().unwrap();
    let (succeeded, said) = installation.run(&["rollback", "--state", path]).await;
    assert!(!succeeded && said.contains("is not there"), "{said}");
    // A file of another cluster, and one that would have something else made.
    let state = |cluster: &str, webhooks: Value| {
        json!({"version": 1, "cluster": cluster, "old": [], "oldWebhooks": webhooks}).to_string()
    };
    std::fs::write(&file, state("another", json!([]))).unwrap();
    let (succeeded, said) = installation.run(&["rollback", "--state", path]).await;
    assert!(!succeeded && said.contains("another cluster"), "{said}");
    let namespaces = test_support::all_objects(&installation.stage.client, "v1", "Namespace");
    let system = eventually("kube-system", PATIENCE, async || {
        namespaces.get("kube-system").await.map(Some)
    })
    .await;
    let binding = json!([{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "x"}}]);
    std::fs::write(&file, state(&system.metadata.uid.unwrap(), binding)).unwrap();
    let (succeeded, said) = installation.run(&["rollback", "--state", path]).await;
    assert!(
        !succeeded && said.contains("ClusterRoleBinding is no webhook configuration"),
        "{said}"
    );
    assert_eq!(installation.replicas(OLD.0, OLD.1).await, 2);
}

#[tokio::test]
async fn a_package_manager_that_scales_the_old_one_up_again_is_noticed() {
    let installation = Installation::of(0).await;
    let file = installation.state_file();
    let _pods = pod(&installation, OLD.0, OLD.1).await;
    let running = installation.start(&["apply", "--state", file.to_str().unwrap()]);
    until_replicas(&installation, OLD, 0).await;
    let up = kube::api::Patch::Merge(json!({"spec": {"replicas": 1}}));
    installation
        .deployments(OLD.0)
        .patch(OLD.1, &kube::api::PatchParams::default(), &up)
        .await
        .unwrap();
    let limit = Duration::from_mins(2);
    let output = tokio::time::timeout(limit, running.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success()
            && said
                .contains("scaled Deployment cartographer-system/cartographer-controller up again"),
        "{said}"
    );
    assert_eq!(
        installation
            .replicas("carto-system", "supplychain-controller")
            .await,
        0
    );
}
