//! What deploy/install.yaml grants, to whom, and what it does not.

use anyhow::ensure;
use e2e::binaries::{DELIVERY_CONTROLLER, RUNNABLE_CONTROLLER, SUPPLY_CHAIN_CONTROLLER};
use e2e::stack::{NAMESPACE, forbidden_requests, install, user};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use test_support::{ControlPlane, eventually};

use crate::LIMIT;

/// Verb, group, resource (with subresource), namespace, name.
type Request = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const GRANTED: &[Request] = &[
    ("watch", "carto.run", "workloads", "", ""),
    ("list", "carto.run", "clustersupplychains", "", ""),
    ("watch", "carto.run", "clusterconfigtemplates", "", ""),
    ("patch", "carto.run", "workloads/status", "dev", "app"),
    (
        "patch",
        "carto.run",
        "clustersupplychains/status",
        "",
        "chain",
    ),
    ("watch", "", "serviceaccounts", "", ""),
    ("create", "", "serviceaccounts/token", "dev", "app"),
    ("watch", "rbac.authorization.k8s.io", "rolebindings", "", ""),
    ("create", "", "events", "dev", ""),
    ("watch", "apps", "deployments", "", ""),
    (
        "watch",
        "source.toolkit.fluxcd.io",
        "gitrepositories",
        "",
        "",
    ),
    (
        "update",
        "coordination.k8s.io",
        "leases",
        NAMESPACE,
        "supplychain-controller",
    ),
    (
        "watch",
        "",
        "secrets",
        NAMESPACE,
        "supplychain-controller-webhook",
    ),
    (
        "update",
        "",
        "secrets",
        NAMESPACE,
        "supplychain-controller-webhook",
    ),
    (
        "watch",
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        "",
        "carto-supplychain-controller",
    ),
];

const DENIED: &[Request] = &[
    // Objects are stamped with the owner's rights, so the controller has none.
    ("create", "apps", "deployments", "dev", ""),
    ("patch", "", "configmaps", "dev", "app"),
    (
        "delete",
        "source.toolkit.fluxcd.io",
        "gitrepositories",
        "dev",
        "app",
    ),
    ("get", "apps", "deployments", "dev", "app"),
    // Owners and blueprints belong to people.
    ("patch", "carto.run", "workloads", "dev", "app"),
    ("delete", "carto.run", "workloads", "dev", "app"),
    ("create", "carto.run", "clustersupplychains", "", ""),
    // Secrets: its own certificate, by name and by watch, and nothing else.
    ("list", "", "secrets", "", ""),
    ("get", "", "secrets", "dev", "app"),
    ("get", "", "secrets", NAMESPACE, "other"),
    (
        "get",
        "",
        "secrets",
        NAMESPACE,
        "supplychain-controller-webhook",
    ),
    ("list", "", "secrets", NAMESPACE, ""),
    (
        "delete",
        "",
        "secrets",
        NAMESPACE,
        "supplychain-controller-webhook",
    ),
    // No way to more rights.
    (
        "create",
        "rbac.authorization.k8s.io",
        "clusterrolebindings",
        "",
        "",
    ),
    (
        "escalate",
        "rbac.authorization.k8s.io",
        "clusterroles",
        "",
        "",
    ),
    ("get", "", "serviceaccounts", "dev", "app"),
    ("impersonate", "", "serviceaccounts", "dev", "app"),
    (
        "patch",
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        "",
        "other",
    ),
    (
        "get",
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        "",
        "carto-supplychain-controller",
    ),
    (
        "update",
        "coordination.k8s.io",
        "leases",
        "kube-system",
        "supplychain-controller",
    ),
    ("watch", "", "pods", "", ""),
];

/// What the delivery controller has of its own; what it shares with the other is in the same words above.
const GRANTED_FOR_DELIVERIES: &[Request] = &[
    ("watch", "carto.run", "deliverables", "", ""),
    ("list", "carto.run", "clusterdeliveries", "", ""),
    ("watch", "carto.run", "clusterdeploymenttemplates", "", ""),
    ("patch", "carto.run", "deliverables/status", "dev", "app"),
    ("patch", "carto.run", "clusterdeliveries/status", "", "app"),
    ("watch", "", "serviceaccounts", "", ""),
    ("create", "", "serviceaccounts/token", "dev", "app"),
    ("create", "", "events", "dev", ""),
    (
        "watch",
        "kustomize.toolkit.fluxcd.io",
        "kustomizations",
        "",
        "",
    ),
    (
        "update",
        "coordination.k8s.io",
        "leases",
        NAMESPACE,
        DELIVERY_CONTROLLER,
    ),
];

const DENIED_TO_DELIVERIES: &[Request] = &[
    (
        "create",
        "kustomize.toolkit.fluxcd.io",
        "kustomizations",
        "dev",
        "",
    ),
    ("patch", "carto.run", "deliverables", "dev", "app"),
    ("create", "carto.run", "clusterdeliveries", "", ""),
    // The other family, and what belongs to the other controller.
    ("list", "carto.run", "workloads", "", ""),
    ("patch", "carto.run", "workloads/status", "dev", "app"),
    (
        "patch",
        "carto.run",
        "clustersupplychains/status",
        "",
        "app",
    ),
    ("watch", "carto.run", "clusterimagetemplates", "", ""),
    (
        "update",
        "coordination.k8s.io",
        "leases",
        NAMESPACE,
        SUPPLY_CHAIN_CONTROLLER,
    ),
    // It serves no webhook.
    (
        "get",
        "",
        "secrets",
        NAMESPACE,
        "supplychain-controller-webhook",
    ),
    ("create", "", "secrets", NAMESPACE, ""),
    (
        "patch",
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        "",
        "carto-supplychain-controller",
    ),
    ("get", "", "serviceaccounts", "dev", "app"),
    ("impersonate", "", "serviceaccounts", "dev", "app"),
    (
        "escalate",
        "rbac.authorization.k8s.io",
        "clusterroles",
        "",
        "",
    ),
];

const GRANTED_FOR_RUNNABLES: &[Request] = &[
    ("watch", "carto.run", "runnables", "", ""),
    ("list", "carto.run", "clusterruntemplates", "", ""),
    ("patch", "carto.run", "runnables/status", "dev", "app"),
    ("watch", "", "serviceaccounts", "", ""),
    ("create", "", "serviceaccounts/token", "dev", "app"),
    ("create", "", "events", "dev", ""),
    ("watch", "batch", "jobs", "", ""),
    (
        "update",
        "coordination.k8s.io",
        "leases",
        NAMESPACE,
        RUNNABLE_CONTROLLER,
    ),
];

const DENIED_TO_RUNNABLES: &[Request] = &[
    ("create", "batch", "jobs", "dev", ""),
    ("patch", "carto.run", "runnables", "dev", "app"),
    ("patch", "carto.run", "clusterruntemplates", "", "app"),
    ("list", "carto.run", "workloads", "", ""),
    ("patch", "carto.run", "deliverables/status", "dev", "app"),
    ("watch", "carto.run", "clustertemplates", "", ""),
    ("list", "", "secrets", "", ""),
    ("create", "", "secrets", NAMESPACE, ""),
    ("get", "", "serviceaccounts", "dev", "app"),
    ("impersonate", "", "serviceaccounts", "dev", "app"),
    (
        "update",
        "coordination.k8s.io",
        "leases",
        NAMESPACE,
        DELIVERY_CONTROLLER,
    ),
];

#[tokio::test]
async fn the_controllers_have_the_rights_they_need_and_no_others() {
    let control_plane = ControlPlane::builder()
        .controller_manager(true)
        .start()
        .await
        .unwrap();
    install(&control_plane).await.unwrap();
    let of_chains = (SUPPLY_CHAIN_CONTROLLER, GRANTED, DENIED);
    let of_deliveries = (
        DELIVERY_CONTROLLER,
        GRANTED_FOR_DELIVERIES,
        DENIED_TO_DELIVERIES,
    );
    let of_runnables = (
        RUNNABLE_CONTROLLER,
        GRANTED_FOR_RUNNABLES,
        DENIED_TO_RUNNABLES,
    );
    for (controller, granted, denied) in [of_chains, of_deliveries, of_runnables] {
        let controller = user(controller);
        for &request in granted {
            // The kinds to watch are summed up by the controller manager, a moment later.
            eventually("a right is granted", LIMIT, async || {
                ensure!(
                    may(&control_plane, &controller, request).await?,
                    "not granted to {controller}: {request:?}"
                );
                anyhow::Ok(())
            })
            .await;
        }
        for &request in denied {
            assert!(
                !may(&control_plane, &controller, request).await.unwrap(),
                "granted to {controller}: {request:?}"
            );
        }
    }

    let controllers = [
        SUPPLY_CHAIN_CONTROLLER,
        DELIVERY_CONTROLLER,
        RUNNABLE_CONTROLLER,
    ]
    .map(user);
    let kpack = ("watch", "kpack.io", "images", "", "");
    for controller in &controllers {
        assert!(!may(&control_plane, controller, kpack).await.unwrap());
    }
    control_plane.apply_yaml(WATCH_KPACK).await.unwrap();
    for controller in &controllers {
        eventually("the added kind may be watched", LIMIT, async || {
            may(&control_plane, controller, kpack).await
        })
        .await;
    }
}

#[tokio::test]
async fn whoever_may_edit_a_namespace_may_hand_in_workloads_there_and_viewers_may_look() {
    let control_plane = ControlPlane::builder()
        .controller_manager(true)
        .start()
        .await
        .unwrap();
    install(&control_plane).await.unwrap();
    control_plane.apply_yaml(PEOPLE).await.unwrap();
    let hand_in = ("create", "carto.run", "workloads", "dev", "");
    let look = ("watch", "carto.run", "deliverables", "dev", "");
    let elsewhere = ("create", "carto.run", "workloads", "default", "");
    // As with the Go controller, whose roles have these names: bindings made for it grant nothing new.
    let run = ("create", "carto.run", "runnables", "dev", "");
    let look_at_runs = ("get", "carto.run", "runnables", "dev", "");

    eventually("an editor may hand in", LIMIT, async || {
        may(&control_plane, "ed", hand_in).await
    })
    .await;
    eventually("a viewer may look", LIMIT, async || {
        may(&control_plane, "vi", look).await
    })
    .await;
    assert!(!may(&control_plane, "vi", hand_in).await.unwrap());
    assert!(!may(&control_plane, "ed", elsewhere).await.unwrap());
    assert!(!may(&control_plane, "ed", run).await.unwrap());
    assert!(!may(&control_plane, "vi", look_at_runs).await.unwrap());
}

const WATCH_KPACK: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: carto-watched-kpack
  labels: {carto.run/aggregate-to-watched: "true"}
rules:
  - apiGroups: [kpack.io]
    resources: [images]
    verbs: [list, watch]
"#;

const PEOPLE: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: dev}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ed, namespace: dev}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ed}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: vi, namespace: dev}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: vi}]
";

async fn may(control_plane: &ControlPlane, user: &str, request: Request) -> anyhow::Result<bool> {
    let (verb, group, resource, namespace, name) = request;
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let attributes = ResourceAttributes {
        verb: some(verb),
        group: some(group),
        resource: some(resource),
        subresource: some(subresource),
        namespace: some(namespace),
        name: some(name),
        ..ResourceAttributes::default()
    };
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: some(user),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(control_plane.client()?);
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// Waits until the controller manager has summed up the kinds to watch; a controller that asks earlier is refused once.
pub(crate) async fn kinds_may_be_watched(control_plane: &ControlPlane, controller: &str) {
    let deliverables = ("watch", "carto.run", "deliverables", "", "");
    let configmaps = ("watch", "", "configmaps", "", "");
    eventually("the kinds to watch are granted", LIMIT, async || {
        let controller = user(controller);
        anyhow::Ok(
            may(control_plane, &controller, deliverables).await?
                && may(control_plane, &controller, configmaps).await?,
        )
    })
    .await;
}

/// A controller asked for nothing that install.yaml does not grant it. What owners' service accounts ask is another matter.
pub(crate) fn nothing_was_forbidden(control_plane: &ControlPlane, controller: &str) {
    let refused = forbidden_requests(control_plane, controller).unwrap();
    assert!(
        refused.is_empty(),
        "deploy/install.yaml lacks rights of {controller} for: {refused:#?}"
    );
}
