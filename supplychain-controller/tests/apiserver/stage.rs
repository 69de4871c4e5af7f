//! An API server of its own for each test, the CRDs, and the real binary.

use std::path::Path;
use std::time::Duration;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use test_support::{ControlPlane, Process, eventually};

/// Long enough for a loaded machine; tests wait for states, so a fast machine never waits this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) plane: ControlPlane,
    pub(crate) client: kube::Client,
    pub(crate) namespace: String,
    controller: Option<Process>,
    starts: u32,
}

impl Stage {
    /// Everything but the controller.
    pub(crate) async fn set() -> Self {
        let plane = ControlPlane::builder().audit().start().await.unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        plane
            .install_crds(root.join("../deploy/crds"))
            .await
            .unwrap();
        let stage = Self {
            client: plane.client().unwrap(),
            namespace: plane.create_namespace("dev").await.unwrap(),
            plane,
            controller: None,
            starts: 0,
        };
        stage.apply(include_str!("../fixtures/test-crd.yaml")).await;
        stage.apply(&rights(&stage.namespace)).await;
        stage
    }

    /// With the controller.
    pub(crate) async fn open() -> Self {
        let mut stage = Self::set().await;
        stage.start_controller();
        stage
    }

    pub(crate) fn start_controller(&mut self) {
        self.starts += 1;
        let log = self
            .plane
            .folder()
            .join(format!("controller-{}.log", self.starts));
        let controller = Process::builder(env!("CARGO_BIN_EXE_supplychain-controller"))
            .env("KUBECONFIG", self.plane.kubeconfig_path())
            .arg(format!(
                "--ytt={}",
                test_support::assets()
                    .unwrap()
                    .binary("ytt")
                    .unwrap()
                    .display()
            ))
            .args(["--health-port=0"])
            .arg("--log-level=debug")
            .start(log)
            .unwrap();
        self.controller = Some(controller);
    }

    /// kill -9.
    pub(crate) fn kill_controller(&mut self) {
        if let Some(mut controller) = self.controller.take() {
            controller.kill();
        }
    }

    pub(crate) async fn apply(&self, yaml: &str) {
        self.plane
            .apply_yaml_in(&self.namespace, yaml)
            .await
            .unwrap();
    }

    pub(crate) fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    pub(crate) async fn get(&self, api_version: &str, kind: &str, name: &str) -> Option<Value> {
        let object = self.api(api_version, kind).get_opt(name).await.unwrap()?;
        Some(serde_json::to_value(object).unwrap())
    }

    pub(crate) async fn workload(&self, name: &str) -> Value {
        self.get("carto.run/v1alpha1", "Workload", name)
            .await
            .unwrap()
    }

    /// What a third-party controller would report.
    pub(crate) async fn report(&self, name: &str, status: Value) {
        let api = self.api("test.run/v1alpha1", "Test");
        api.patch_status(
            name,
            &PatchParams::apply("downstream").force(),
            &Patch::Apply(json!({
            "apiVersion": "test.run/v1alpha1", "kind": "Test", "status": status})),
        )
        .await
        .unwrap();
    }

    /// Waits until the workload's Ready condition has this status and reason.
    pub(crate) async fn ready(&self, name: &str, status: &str, reason: &str) -> Value {
        eventually(
            &format!("workload {name} is Ready={status}, {reason}"),
            PATIENCE,
            async || {
                let workload = self.workload(name).await;
                let ready = condition(&workload["status"], "Ready");
                if ready["status"] == status && ready["reason"] == reason {
                    Ok(Some(workload))
                } else {
                    Err(workload["status"].clone())
                }
            },
        )
        .await
    }

    /// The controller's own requests so far, without watches, lists, discovery and its lease.
    pub(crate) fn requests(&self) -> Vec<String> {
        let own = self.plane.requests_by("carto-supplychain").unwrap();
        own.iter()
            .filter(|event| !matches!(event.verb.as_str(), "watch" | "list"))
            .filter(|event| event.object_ref.is_some())
            .filter(|event| {
                event
                    .object_ref
                    .as_ref()
                    .is_none_or(|object| object.resource != "events" && object.resource != "leases")
            })
            .map(|event| format!("{} {}", event.verb, event.request_uri))
            .collect()
    }
}

/// The condition of a type, or null.
pub(crate) fn condition(status: &Value, condition_type: &str) -> Value {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions
        .into_iter()
        .find(|condition| condition["type"] == condition_type)
        .unwrap_or_default()
}

/// A service account that may do everything with the kinds of these tests.
fn rights(namespace: &str) -> String {
    format!(
        r"
apiVersion: v1
kind: ServiceAccount
metadata: {{name: sa, namespace: {namespace}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: stamps, namespace: {namespace}}}
rules:
- apiGroups: [test.run]
  resources: [tests]
  verbs: [get, list, create, patch, delete]
- apiGroups: ['']
  resources: [configmaps]
  verbs: [get, list, create, patch, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: stamps, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: stamps}}
subjects: [{{kind: ServiceAccount, name: sa, namespace: {namespace}}}]
"
    )
}
