//! What a tenant can write on a PodIntent decides nothing: labels, annotations, owner references.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use test_support::objects_in;
use test_support::stage::NOTHING;

use crate::stage::{INTENT, applied, open_with_env};

const RIGHTS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: author}
rules:
- {apiGroups: [conventions.carto.run], resources: [podintents], verbs: [get, list, watch, create, update, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: author}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: author}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: author}]
";

#[tokio::test]
async fn what_an_author_writes_beside_the_template_makes_nothing_look_done() {
    let (stage, webhook) = open_with_env().await;
    stage.apply(INTENT).await;
    let intent = applied(&stage, "app").await;
    stage.apply(RIGHTS).await;
    let namespace = stage.namespace.clone();
    stage
        .plane
        .until_it_may(
            "author",
            &format!("patch podintents.conventions.carto.run in {namespace}"),
        )
        .await;
    let client = stage.plane.client_as_user("author", &[]).unwrap();
    let all = objects_in(
        &client,
        &namespace,
        "conventions.carto.run/v1alpha1",
        "PodIntent",
    );
    let forged = json!({
        "metadata": {
            "annotations": {"conventions.carto.run/revision": "9", "conventions.carto.run/applied-conventions": "all/done"},
            "labels": {"conventions.carto.run/done": "true"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1", "controller": true}],
        },
        "status": {"inputsDigest": "sha256:forged", "template": {"spec": {"containers": [{"name": "forged"}]}}},
    });
    all.patch("app", &PatchParams::default(), &Patch::Merge(&forged))
        .await
        .unwrap();
    let status = all
        .patch_status("app", &PatchParams::default(), &Patch::Merge(&forged))
        .await;
    assert!(status.is_err(), "an author may not write status");
    stage.reconcile("app").await;
    let after = stage.owner("app").await;
    assert_eq!(after["status"], intent["status"]);
    assert_eq!(
        webhook.asked().len(),
        1,
        "what was written beside the template is no input"
    );
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);

    let receipts = json!({"spec": {"template": {"metadata": {"annotations": {"conventions.carto.run/applied-conventions": "all/done"}}}}});
    all.patch("app", &PatchParams::default(), &Patch::Merge(&receipts))
        .await
        .unwrap();
    stage
        .until(
            "app",
            "a receipt that its author wrote stands before ours",
            |intent| {
                let annotations = &intent["status"]["template"]["metadata"]["annotations"];
                annotations["conventions.carto.run/applied-conventions"]
                    == "all/done\nadd-env/add-A"
            },
        )
        .await;
    assert_eq!(webhook.asked().len(), 2);
}
