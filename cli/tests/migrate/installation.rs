//! An installation of the Go controller: owners that it realized, its Deployment and its webhook. carto is installed beside
//! it, with no replicas. There are no nodes: what a kubelet would report is written by the tests.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use test_support::stage::Cast;
use test_support::{Stage, all_objects, eventually};
use tokio::process::{Child, Command};

/// No controller is started.
const NOBODY: Cast = Cast {
    binary: "",
    user_agent: "nobody",
    api_version: "carto.run/v1alpha1",
    owner_kind: "Workload",
};

const CHAIN: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: run}
spec:
  lifecycle: immutable
  urlPath: .status.url
  revisionPath: .status.rev
  healthRule: {singleConditionType: Ready}
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {generateName: $(workload.metadata.name)$-run-}
    spec: {value: {branch: $(workload.spec.source.git.ref.branch)$, empty: {}}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: sink}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-sink}
    data: {url: $(source.url)$, dropped: later}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: run, templateRef: {kind: ClusterSourceTemplate, name: run}}
    - name: publish
      templateRef: {kind: ClusterTemplate, options: [
        {name: sink, selector: {matchFields: [{key: spec.source.git.url, operator: Exists}]}},
        {name: other, selector: {matchFields: [{key: spec.source.git.url, operator: DoesNotExist}]}}]}
      sources: [{resource: run, name: code}]
";

const RIGHTS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: watched, labels: {carto.run/aggregate-to-watched: "true"}}
rules:
  - {apiGroups: [""], resources: [configmaps], verbs: [list, watch]}
  - {apiGroups: [test.run], resources: [tests], verbs: ["*"]}
"#;

const WEBHOOKS: &str = r"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: cartographer-validating-webhook-configuration, labels: {kept: label}}
webhooks:
  - name: supply-chain-validator.cartographer.com
    clientConfig: {service: {name: cartographer-webhook, namespace: cartographer-system, path: /validate}}
    rules: [{apiGroups: [carto.run], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [clustersupplychains]}]
    failurePolicy: Ignore
    timeoutSeconds: 1
    sideEffects: None
    admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: carto-supplychain-controller}
webhooks:
  - name: supply-chain-validator.cartographer.com
    clientConfig: {service: {name: supplychain-controller, namespace: carto-system, path: /validate}}
    rules: [{apiGroups: [carto.run], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [clustersupplychains]}]
    failurePolicy: Ignore
    timeoutSeconds: 1
    sideEffects: None
    admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: somebody-elses}
webhooks:
  - name: other.example.com
    clientConfig: {service: {name: other, namespace: elsewhere}}
    rules: [{apiGroups: [carto.run], apiVersions: [v1alpha1], operations: [DELETE], resources: [workloads]}]
    failurePolicy: Ignore
    timeoutSeconds: 1
    sideEffects: None
    admissionReviewVersions: [v1]
";

pub(crate) struct Installation {
    pub(crate) stage: Stage,
}

impl Installation {
    /// Of the Go controller, with owners `app-0` and so on.
    pub(crate) async fn of(owners: usize) -> Self {
        let stage = Stage::set(NOBODY).await;
        let installation = Self { stage };
        installation.install().await;
        for owner in 0..owners {
            installation.realize(&format!("app-{owner}")).await;
        }
        installation
    }

    async fn install(&self) {
        let stage = &self.stage;
        for manifest in [CHAIN, RIGHTS, WEBHOOKS] {
            stage.apply(manifest).await;
        }
        let ready = json!({"status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2023-05-01T00:00:00Z"}]}});
        all_objects(&stage.client, "carto.run/v1alpha1", "ClusterSupplyChain")
            .patch_status("chain", &PatchParams::default(), &Patch::Merge(ready))
            .await
            .unwrap();
        // The chart was told to make three of the one; who made the other by hand wrote nothing down.
        let written = "{carto.run/wanted-replicas: \"3\"}";
        for (namespace, name, replicas, annotations) in [
            ("cartographer-system", "cartographer-controller", 2, "{}"),
            ("carto-system", "supplychain-controller", 0, written),
            ("carto-system", "runnable-controller", 0, "{}"),
        ] {
            stage
                .apply(&format!(
                    r"
apiVersion: v1
kind: Namespace
metadata: {{name: {namespace}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {namespace}, labels: {{app.kubernetes.io/name: {name}}}, annotations: {annotations}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: controller, image: example/controller}}]}}
"
                ))
                .await;
        }
    }

    /// An owner, and what the Go controller made of it.
    pub(crate) async fn realize(&self, app: &str) {
        let stage = &self.stage;
        stage
            .apply(&format!(
                r"
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {{name: {app}, labels: {{type: web}}}}
spec: {{serviceAccountName: sa, source: {{git: {{url: https://git.example/app, ref: {{branch: a}}}}}}}}
"
            ))
            .await;
        let workload = stage.owner(app).await;
        let source = ["ClusterSourceTemplate", "run", "immutable"];
        let run = json!({"apiVersion": "test.run/v1alpha1", "kind": "Test", "metadata": {"name": format!("{app}-run-x7k2p")},
            "spec": {"value": {"branch": "a"}}});
        self.create(&workload, "run", source, run).await;
        let done = json!({"url": "url-a", "rev": "1", "conditions": [{"type": "Ready", "status": "True"}]});
        stage.report(&format!("{app}-run-x7k2p"), done).await;
        let sink = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("{app}-sink")},
            "data": {"url": "url-a", "dropped": "later"}});
        self.create(
            &workload,
            "publish",
            ["ClusterTemplate", "", "mutable"],
            sink,
        )
        .await;
        stage
            .edit(
                "v1",
                "ConfigMap",
                &format!("{app}-sink"),
                json!({"data": {"mine": "1"}}),
            )
            .await;
        stage.set_owner_status(app, self.status(app)).await;
    }

    pub(crate) async fn create(
        &self,
        owner: &Value,
        step: &str,
        template: [&str; 3],
        object: Value,
    ) {
        let object = self.stage.left_by_go(owner, step, template, object);
        self.stage.create_as("cartographer", object).await;
    }

    /// The status of an owner, as the Go controller writes it.
    fn status(&self, app: &str) -> Value {
        let namespace = &self.stage.namespace;
        let time = "2023-05-01T00:00:00Z";
        let output = |name: &str, value: &str| json!({"name": name, "preview": value, "digest": "sha256:0", "lastTransitionTime": time});
        let stamped = |api_version: &str, kind: &str, name: String, resource: &str| json!({"apiVersion": api_version, "kind": kind, "name": name, "namespace": namespace, "resource": resource});
        json!({
            "observedGeneration": 1,
            "supplyChainRef": {"kind": "ClusterSupplyChain", "name": "chain"},
            "resources": [
                {"name": "run", "templateRef": {"kind": "ClusterSourceTemplate", "name": "run", "apiVersion": "carto.run/v1alpha1"},
                 "stampedRef": stamped("test.run/v1alpha1", "Test", format!("{app}-run-x7k2p"), "tests.test.run"),
                 "outputs": [output("url", "url-a"), output("revision", "1")]},
                {"name": "publish", "templateRef": {"kind": "ClusterTemplate", "name": "sink", "apiVersion": "carto.run/v1alpha1"},
                 "stampedRef": stamped("v1", "ConfigMap", format!("{app}-sink"), "configmaps"),
                 "inputs": [{"name": "run"}]},
            ],
        })
    }

    /// Changes an object of the cluster.
    pub(crate) async fn patch(&self, kind: &str, name: &str, patch: Value) {
        all_objects(&self.stage.client, "carto.run/v1alpha1", kind)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        Self::command_at(self.stage.plane.kubeconfig_path(), arguments)
    }

    /// `carto migrate` by way of a kubeconfig.
    pub(crate) fn command_at(kubeconfig: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_carto"));
        command
            .arg("migrate")
            .args(arguments)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs `carto migrate` to its end: whether it succeeded, and all it said.
    pub(crate) async fn run(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.command(arguments).output().await.unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    /// Starts `carto migrate`.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    /// What `carto migrate plan` says, and whether nothing stands in the way.
    pub(crate) async fn plan(&self) -> (bool, Value) {
        let (is_clear, said) = self.run(&["plan", "-o", "json"]).await;
        let plan: Result<Value, _> = serde_json::from_str(&said);
        assert!(plan.is_ok(), "{said}");
        (is_clear, plan.unwrap())
    }

    pub(crate) fn state_file(&self) -> PathBuf {
        self.stage.plane.folder().join("migration.json")
    }

    pub(crate) fn deployments(&self, namespace: &str) -> Api<Deployment> {
        Api::namespaced(self.stage.client.clone(), namespace)
    }

    pub(crate) async fn replicas(&self, namespace: &str, name: &str) -> i32 {
        let deployment = self.deployments(namespace).get(name).await.unwrap();
        deployment.spec.unwrap().replicas.unwrap()
    }

    /// Waits until a Deployment is to have so many Pods, and says that they are ready.
    pub(crate) async fn becomes_ready(&self, namespace: &str, name: &str, replicas: i32) {
        let what = format!("Deployment {name} is to have {replicas} replicas");
        eventually(&what, test_support::stage::PATIENCE, async || {
            self.replicas(namespace, name).await == replicas
        })
        .await;
        let api = self.deployments(namespace);
        let generation = api.get(name).await.unwrap().metadata.generation;
        let status = json!({"status": {
            "observedGeneration": generation, "replicas": replicas, "readyReplicas": replicas}});
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap();
    }

    pub(crate) async fn webhooks(&self) -> Vec<String> {
        let api = all_objects(
            &self.stage.client,
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
        );
        let listed = api.list(&kube::api::ListParams::default()).await.unwrap();
        let names = listed.items.into_iter();
        names.map(|it| it.metadata.name.unwrap()).collect()
    }
}
