//! Two controllers that know nothing of each other: one stamps what the other works on.

use anyhow::ensure;
use e2e::binaries::{DELIVERY_CONTROLLER, SUPPLY_CHAIN_CONTROLLER};
use e2e::stack::{self, install, installed_controller};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use test_support::{ControlPlane, eventually};

use crate::LIMIT;
use crate::rights::nothing_was_forbidden;

const BLUEPRINTS: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: hand-over}
spec:
  healthRule: {singleConditionType: Ready}
  template:
    apiVersion: carto.run/v1alpha1
    kind: Deliverable
    metadata: {name: $(workload.metadata.name)$, labels: {type: greeting}}
    spec:
      serviceAccountName: $(workload.spec.serviceAccountName)$
      params: $(workload.spec.params)$
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources: [{name: hand-over, templateRef: {kind: ClusterTemplate, name: hand-over}}]
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: greet}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(deliverable.metadata.name)$-greeting}
    data: {text: $(params.text)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterDelivery
metadata: {name: delivery}
spec:
  selector: {type: greeting}
  resources: [{name: greet, templateRef: {kind: ClusterTemplate, name: greet}}]
";

const WORKLOAD: &str = r"
apiVersion: v1
kind: ServiceAccount
metadata: {name: app}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: app, namespace: default}
rules:
  - {apiGroups: [''], resources: [configmaps], verbs: [get, list, create, patch, delete]}
  - {apiGroups: [carto.run], resources: [deliverables], verbs: [get, list, create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: app, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: app}
subjects: [{kind: ServiceAccount, name: app, namespace: default}]
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, labels: {type: web}}
spec: {serviceAccountName: app, params: [{name: text, value: Hello}]}
";

#[tokio::test]
async fn a_workload_hands_over_to_a_deliverable_and_sees_how_it_does() {
    let control_plane = ControlPlane::builder()
        .controller_manager(true)
        .audit()
        .start()
        .await
        .unwrap();
    install(&control_plane).await.unwrap();
    let _chains = installed_controller(&control_plane, SUPPLY_CHAIN_CONTROLLER)
        .await
        .unwrap();
    let deliveries = installed_controller(&control_plane, DELIVERY_CONTROLLER)
        .await
        .unwrap();
    control_plane.apply_yaml(BLUEPRINTS).await.unwrap();
    control_plane.apply_yaml(WORKLOAD).await.unwrap();
    await_greeting(&control_plane, "Hello").await;
    crate::carto::wait_until_ready(&control_plane, "default", "app").await;

    // Each one goes on alone; what the other missed it sees in the objects.
    drop(deliveries);
    let changed = WORKLOAD.replace("value: Hello", "value: Moin");
    control_plane.apply_yaml(&changed).await.unwrap();
    crate::carto::wait_until_ready(&control_plane, "default", "app").await;
    let _deliveries = installed_controller(&control_plane, DELIVERY_CONTROLLER)
        .await
        .unwrap();
    await_greeting(&control_plane, "Moin").await;

    for controller in [SUPPLY_CHAIN_CONTROLLER, DELIVERY_CONTROLLER] {
        nothing_was_forbidden(&control_plane, controller);
    }
    for (controller, kinds) in [
        (
            SUPPLY_CHAIN_CONTROLLER,
            ["clustersupplychains", "workloads"],
        ),
        (DELIVERY_CONTROLLER, ["clusterdeliveries", "deliverables"]),
    ] {
        // A request is audited later than it is carried out.
        let written = eventually("both statuses are written", LIMIT, async || {
            let written = statuses_written_by(&control_plane, controller);
            ensure!(written.len() >= kinds.len(), "{written:?}");
            anyhow::Ok(Some(written))
        })
        .await;
        assert_eq!(written, kinds);
    }
}

async fn await_greeting(control_plane: &ControlPlane, text: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(control_plane.client().unwrap(), "default");
    eventually("the greeting is there", LIMIT, async || {
        let found = maps.get_opt("app-greeting").await?;
        let data = found.and_then(|map| map.data).unwrap_or_default();
        ensure!(
            data.get("text").is_some_and(|found| found == text),
            "{data:?}"
        );
        anyhow::Ok(())
    })
    .await;
}

fn statuses_written_by(control_plane: &ControlPlane, controller: &str) -> Vec<String> {
    let user = stack::user(controller);
    let events = control_plane.audit_events().unwrap();
    let mut kinds: Vec<String> = events
        .into_iter()
        .filter(|event| event.user.username == user && event.is_write())
        .filter_map(|event| event.object_ref)
        .filter(|object| object.subresource == "status")
        .map(|object| object.resource)
        .collect();
    kinds.sort();
    kinds.dedup();
    kinds
}
