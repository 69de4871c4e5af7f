//! The controller's binary with nothing but a kubeconfig and the CRDs.

use std::collections::BTreeSet;
use std::process::Command;

use e2e::Controller;
use e2e::binaries::{
    self, DELIVERY_CONTROLLER, RUNNABLE_CONTROLLER, SUPPLY_CHAIN_CONTROLLER, workspace,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use test_support::{ControlPlane, eventually};

use crate::LIMIT;

#[tokio::test]
async fn a_kubeconfig_and_the_crds_are_all_the_binary_needs() {
    let (control_plane, _controller) = with_smallest_chain().await;

    let maps: Api<ConfigMap> = Api::namespaced(control_plane.client().unwrap(), "default");
    let published = eventually("the last step is stamped", LIMIT, async || {
        maps.get_opt("app-published").await
    })
    .await;
    assert_eq!(published.data.unwrap()["greeting"], "hello from app");
    crate::carto::wait_until_ready(&control_plane, "default", "app").await;
}

/// A control plane with the CRDs, the controller as an administrator, and [`SMALLEST`].
pub(crate) async fn with_smallest_chain() -> (ControlPlane, Controller) {
    let control_plane = ControlPlane::start().await.unwrap();
    control_plane
        .install_crds(workspace().join("deploy/crds"))
        .await
        .unwrap();
    let controller = Controller::start(
        SUPPLY_CHAIN_CONTROLLER,
        control_plane.kubeconfig_path(),
        &[],
    )
    .await
    .unwrap();
    control_plane.apply_yaml(SMALLEST).await.unwrap();
    (control_plane, controller)
}

/// Two steps, one giving to the other, with the rights of a service account that may write ConfigMaps.
pub(crate) const SMALLEST: &str = r"
apiVersion: v1
kind: ServiceAccount
metadata: {name: app}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: app, namespace: default}
rules:
  - {apiGroups: [''], resources: [configmaps], verbs: [get, list, create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: app, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: app}
subjects: [{kind: ServiceAccount, name: app, namespace: default}]
---
apiVersion: carto.run/v1alpha1
kind: ClusterConfigTemplate
metadata: {name: greet}
spec:
  configPath: .data.greeting
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-greeting}
    data: {greeting: hello from $(workload.metadata.name)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: publish}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-published}
    data: {greeting: $(config)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: smallest}
spec:
  selector: {type: smallest}
  resources:
    - {name: greet, templateRef: {kind: ClusterConfigTemplate, name: greet}}
    - name: publish
      templateRef: {kind: ClusterTemplate, name: publish}
      configs: [{name: greeting, resource: greet}]
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, labels: {type: smallest}}
spec: {serviceAccountName: app}
";

#[test]
fn help_of_each_controller_lists_every_flag_and_no_others() {
    for (controller, at_once) in [
        (SUPPLY_CHAIN_CONTROLLER, "max-concurrent-workloads"),
        (DELIVERY_CONTROLLER, "max-concurrent-deliveries"),
        (RUNNABLE_CONTROLLER, "max-concurrent-runnables"),
    ] {
        lists_every_flag(controller, at_once);
    }
}

fn lists_every_flag(controller: &'static str, at_once: &'static str) {
    let output = Command::new(binaries::controller(controller).unwrap())
        .arg("--help")
        .output()
        .unwrap();
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).unwrap();
    let listed: BTreeSet<&str> = help
        .lines()
        .map(|line| line.trim_start().trim_start_matches("-h, "))
        .filter_map(|line| line.strip_prefix("--"))
        .map(|line| {
            line.split([' ', '[', '='])
                .next()
                .unwrap_or(line)
                .trim_end()
        })
        .collect();
    let expected: BTreeSet<&str> = FLAGS.split_whitespace().chain([at_once]).collect();
    assert_eq!(
        listed, expected,
        "a flag of {controller} came or went: correct this list, docs/behaviour/process.md and, where it is used, deploy/install.yaml"
    );
}

const FLAGS: &str = "
    kubeconfig ytt ytt-memory-limit shutdown-seconds help
    dev log-level otlp-endpoint status-key-secret
    port cert-dir webhook-secret webhook-service webhook-configuration metrics-port health-port own-namespace
    max-stamping-depth max-owner-size max-rendering-size
    shard watch-label-selector watch-namespaces share-owners
    only-webhook default-service-account no-lent-accounts
    leader-elect lease-name lease-namespace lease-identity
    lease-duration-seconds lease-renew-deadline-seconds lease-retry-seconds
";
