//! What the manifests in deploy grant, to whom, and what they do not.

use e2e::binaries::{
    CONVENTIONS_CONTROLLER, DELIVERY_CONTROLLER, RUNNABLE_CONTROLLER, SUPPLY_CHAIN_CONTROLLER,
};
use e2e::stack::{forbidden_requests, install, user};
use test_support::ControlPlane;

// Each line as `ControlPlane::may` reads it.

const GRANTED: &str = "
watch workloads.carto.run
list clustersupplychains.carto.run
watch clusterconfigtemplates.carto.run
patch workloads.carto.run/status in dev named app
patch clustersupplychains.carto.run/status named chain
create artifacts.carto.run in dev
watch artifacts.carto.run
watch serviceaccounts
create serviceaccounts/token in dev named app
watch rolebindings.rbac.authorization.k8s.io
watch namespaces
create events in dev
watch deployments.apps
watch gitrepositories.source.toolkit.fluxcd.io
update leases.coordination.k8s.io in carto-system named supplychain-controller
watch leases.coordination.k8s.io in carto-system named supplychain-controller
watch secrets in carto-system named supplychain-controller-webhook
update secrets in carto-system named supplychain-controller-webhook
watch secrets in carto-system named carto-status-key
update secrets in carto-system named carto-status-key
watch validatingwebhookconfigurations.admissionregistration.k8s.io named carto-supplychain-controller
";

const DENIED: &str = "
# Objects are stamped with the owner's rights, so the controller has none.
create deployments.apps in dev
patch configmaps in dev named app
delete gitrepositories.source.toolkit.fluxcd.io in dev named app
get deployments.apps in dev named app
# Owners and blueprints belong to people.
patch artifacts.carto.run in dev named app
patch workloads.carto.run in dev named app
delete workloads.carto.run in dev named app
create clustersupplychains.carto.run
# Secrets: its own certificate and the key for digests, by name and by watch, and nothing else.
list secrets
get secrets in dev named app
get secrets in carto-system named other
get secrets in carto-system named supplychain-controller-webhook
list secrets in carto-system
delete secrets in carto-system named supplychain-controller-webhook
# No way to more rights.
patch namespaces named dev
create clusterrolebindings.rbac.authorization.k8s.io
escalate clusterroles.rbac.authorization.k8s.io
get serviceaccounts in dev named app
impersonate serviceaccounts in dev named app
patch validatingwebhookconfigurations.admissionregistration.k8s.io named other
get validatingwebhookconfigurations.admissionregistration.k8s.io named carto-supplychain-controller
update leases.coordination.k8s.io in kube-system named supplychain-controller
watch leases.coordination.k8s.io in carto-system
watch pods
";

/// What the delivery controller has of its own; what it shares with the other is in the same words above.
const GRANTED_FOR_DELIVERIES: &str = "
watch deliverables.carto.run
list clusterdeliveries.carto.run
watch clusterdeploymenttemplates.carto.run
patch deliverables.carto.run/status in dev named app
patch clusterdeliveries.carto.run/status named app
create artifacts.carto.run in dev
watch serviceaccounts
create serviceaccounts/token in dev named app
watch namespaces
create events in dev
watch kustomizations.kustomize.toolkit.fluxcd.io
update leases.coordination.k8s.io in carto-system named delivery-controller
watch secrets in carto-system named carto-status-key
update secrets in carto-system named carto-status-key
";

const DENIED_TO_DELIVERIES: &str = "
create kustomizations.kustomize.toolkit.fluxcd.io in dev
patch deliverables.carto.run in dev named app
create clusterdeliveries.carto.run
# The other family, and what belongs to the other controller.
list workloads.carto.run
patch workloads.carto.run/status in dev named app
patch clustersupplychains.carto.run/status named app
watch clusterimagetemplates.carto.run
update leases.coordination.k8s.io in carto-system named supplychain-controller
# It serves no webhook.
get secrets in carto-system named supplychain-controller-webhook
create secrets in carto-system
list secrets in carto-system
delete secrets in carto-system named carto-status-key
patch validatingwebhookconfigurations.admissionregistration.k8s.io named carto-supplychain-controller
get serviceaccounts in dev named app
impersonate serviceaccounts in dev named app
escalate clusterroles.rbac.authorization.k8s.io
";

const GRANTED_FOR_RUNNABLES: &str = "
watch runnables.carto.run
list clusterruntemplates.carto.run
patch runnables.carto.run/status in dev named app
watch serviceaccounts
create serviceaccounts/token in dev named app
create events in dev
watch jobs.batch
update leases.coordination.k8s.io in carto-system named runnable-controller
watch secrets in carto-system named carto-status-key
update secrets in carto-system named carto-status-key
";

const DENIED_TO_RUNNABLES: &str = "
create jobs.batch in dev
patch runnables.carto.run in dev named app
patch clusterruntemplates.carto.run named app
list workloads.carto.run
watch namespaces
watch artifacts.carto.run
patch deliverables.carto.run/status in dev named app
watch clustertemplates.carto.run
list secrets
create secrets in carto-system
list secrets in carto-system
delete secrets in carto-system named carto-status-key
get serviceaccounts in dev named app
impersonate serviceaccounts in dev named app
update leases.coordination.k8s.io in carto-system named delivery-controller
";

const GRANTED_FOR_CONVENTIONS: &str = "
watch podintents.conventions.carto.run
list clusterpodconventions.conventions.carto.run
patch podintents.conventions.carto.run/status in dev named app
watch serviceaccounts
watch secrets
get secrets in dev named pull
watch certificaterequests.cert-manager.io
create events in dev
update leases.coordination.k8s.io in carto-system named conventions-controller
update secrets in carto-system named conventions-controller-webhook
patch mutatingwebhookconfigurations.admissionregistration.k8s.io named carto-conventions-controller
patch validatingwebhookconfigurations.admissionregistration.k8s.io named carto-conventions-controller
";

const DENIED_TO_CONVENTIONS: &str = "
create deployments.apps in dev
create serviceaccounts/token in dev named app
patch podintents.conventions.carto.run in dev named app
delete podintents.conventions.carto.run in dev named app
patch clusterpodconventions.conventions.carto.run named add-env
list workloads.carto.run
watch configmaps
create secrets in dev
update secrets in dev named pull
delete secrets in carto-system named conventions-controller-webhook
update secrets in carto-system named supplychain-controller-webhook
impersonate serviceaccounts in dev named app
patch validatingwebhookconfigurations.admissionregistration.k8s.io named carto-supplychain-controller
";

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
    let of_conventions = (
        CONVENTIONS_CONTROLLER,
        GRANTED_FOR_CONVENTIONS,
        DENIED_TO_CONVENTIONS,
    );
    let all = [of_chains, of_deliveries, of_runnables, of_conventions];
    for (controller, granted, denied) in all {
        let controller = user(controller);
        for request in lines(granted) {
            // The kinds to watch are summed up by the controller manager, a moment later.
            control_plane.until_it_may(&controller, request).await;
        }
        for request in lines(denied) {
            assert!(
                !control_plane.may(&controller, request).await.unwrap(),
                "granted to {controller}: {request}"
            );
        }
    }

    let controllers = [
        SUPPLY_CHAIN_CONTROLLER,
        DELIVERY_CONTROLLER,
        RUNNABLE_CONTROLLER,
    ]
    .map(user);
    let kpack = "watch images.kpack.io";
    for controller in &controllers {
        assert!(!control_plane.may(controller, kpack).await.unwrap());
    }
    control_plane.apply_yaml(WATCH_KPACK).await.unwrap();
    for controller in &controllers {
        control_plane.until_it_may(controller, kpack).await;
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
    let hand_in = "create workloads.carto.run in dev";
    let enrich = "create podintents.conventions.carto.run in dev";
    let look = "watch deliverables.carto.run in dev";
    let elsewhere = "create workloads.carto.run in default";
    // As with the Go controller, whose roles have these names: bindings made for it grant nothing new.
    let run = "create runnables.carto.run in dev";
    let look_at_runs = "get runnables.carto.run in dev";

    control_plane.until_it_may("ed", hand_in).await;
    control_plane.until_it_may("ed", enrich).await;
    control_plane.until_it_may("vi", look).await;
    assert!(!control_plane.may("vi", hand_in).await.unwrap());
    assert!(!control_plane.may("vi", enrich).await.unwrap());
    assert!(!control_plane.may("ed", elsewhere).await.unwrap());
    assert!(!control_plane.may("ed", run).await.unwrap());
    assert!(!control_plane.may("vi", look_at_runs).await.unwrap());
}

pub(crate) const WATCH_KPACK: &str = r#"
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

fn lines(requests: &'static str) -> impl Iterator<Item = &'static str> {
    requests
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// A controller asked for nothing that install.yaml does not grant it. What owners' service accounts ask is another matter.
pub(crate) fn nothing_was_forbidden(control_plane: &ControlPlane, controller: &str) {
    let refused = forbidden_requests(control_plane, controller).unwrap();
    assert!(
        refused.is_empty(),
        "deploy lacks rights of {controller} for: {refused:#?}"
    );
}
