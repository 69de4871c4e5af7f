//! A chain of two steps: an object of somebody else's controller, and a ConfigMap with what was read of it.

use anyhow::ensure;
use e2e::Controller;
use e2e::binaries::SUPPLY_CHAIN_CONTROLLER;
use e2e::stack::{forbidden_requests, install, installed_controller};
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use test_support::stage::{Versions, condition, step};
use test_support::{ControlPlane, eventually, objects_in};

use crate::LIMIT;

pub(crate) const NAMESPACE: &str = "dev";
const NAME: &str = "app";

/// All but the template `step`.
const CHAIN: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: told}
spec:
  alwaysSuccessful: true
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$}
    data: {told: $(config)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: app}
  resources:
    - {name: step, templateRef: {kind: ClusterConfigTemplate, name: step}}
    - {name: told, templateRef: {kind: ClusterTemplate, name: told}, configs: [{name: config, resource: step}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: dev}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: app, namespace: dev}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: app, namespace: dev}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: app, namespace: dev}]
";

/// The chain, on a cluster of its own.
pub(crate) struct Chain {
    pub(crate) plane: ControlPlane,
    pub(crate) client: Client,
    _controller: Controller,
}

impl Chain {
    pub(crate) async fn new() -> Self {
        let plane = ControlPlane::builder().deployments().audit();
        let plane = plane.start().await.unwrap();
        install(&plane).await.unwrap();
        let controller = installed_controller(&plane, SUPPLY_CHAIN_CONTROLLER).await;
        plane.apply_yaml(CHAIN).await.unwrap();
        Self {
            client: plane.client().unwrap(),
            plane,
            _controller: controller.unwrap(),
        }
    }

    /// The template of the step, and a Workload with this image.
    pub(crate) async fn hand_in(&self, template: &str, image: &str) {
        self.plane.apply_yaml(template).await.unwrap();
        let workload = json!({
            "apiVersion": "carto.run/v1alpha1", "kind": "Workload",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"type": "app"}},
            "spec": {"serviceAccountName": "app", "image": image},
        });
        let applied = self.plane.apply_yaml(&workload.to_string()).await;
        applied.unwrap();
    }

    /// Another image from now on.
    pub(crate) async fn changes_to(&self, image: &str) {
        let workloads = objects_in(&self.client, NAMESPACE, "carto.run/v1alpha1", "Workload");
        let patch = Patch::Merge(json!({"spec": {"image": image}}));
        let params = PatchParams::default();
        workloads.patch(NAME, &params, &patch).await.unwrap();
    }

    /// Waits until the step says this of its outputs, and `is_told` holds of what was handed on. Returns the step.
    pub(crate) async fn comes_to(&self, reason: &str, is_told: impl Fn(&str) -> bool) -> Value {
        let what = format!("the step is {reason}, and its output handed on");
        eventually(&what, LIMIT, async || {
            let maps = objects_in(&self.client, NAMESPACE, "v1", "ConfigMap");
            let told = maps.get_opt(NAME).await?;
            let told = told.map_or(Value::Null, |map| map.data["data"]["told"].clone());
            let workloads = objects_in(&self.client, NAMESPACE, "carto.run/v1alpha1", "Workload");
            let workload = serde_json::to_value(workloads.get(NAME).await?)?;
            let step = step(&workload, "step");
            let is_so = condition(&step, "OutputsGood")["reason"] == reason;
            ensure!(
                is_so && told.as_str().is_some_and(&is_told),
                "{told}, {step:#}"
            );
            anyhow::Ok(Some(step))
        })
        .await
    }

    /// Every value that was handed on up to now, since `versions` began.
    pub(crate) async fn told(&self, versions: Versions) -> Vec<String> {
        let maps = objects_in(&self.client, NAMESPACE, "v1", "ConfigMap");
        let last = serde_json::to_value(maps.get(NAME).await.unwrap()).unwrap();
        let seen = versions.up_to(&last).await;
        let told = seen.iter().filter_map(|map| map["data"]["told"].as_str());
        let mut told: Vec<_> = told.map(str::to_owned).collect();
        told.dedup();
        told
    }

    /// What is handed on from now on is noted.
    pub(crate) async fn notes(&self) -> Versions {
        let maps = objects_in(&self.client, NAMESPACE, "v1", "ConfigMap");
        Versions::in_api(maps).await
    }

    /// Our controller asked for nothing that it may not.
    pub(crate) fn nothing_was_forbidden(&self) {
        let refused = forbidden_requests(&self.plane, SUPPLY_CHAIN_CONTROLLER).unwrap();
        assert!(refused.is_empty(), "{refused:#?}");
    }
}
