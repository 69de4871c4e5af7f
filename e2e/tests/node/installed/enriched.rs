//! What the platform adds to Pods: presets when a Pod is created, conventions when its template is made.

use std::process::Command;

use anyhow::{Context, ensure};
use e2e::binaries;
use e2e::example::NAMESPACE;
use e2e::manifests::documents;
use kube::api::ListParams;
use serde_json::{Value, json};
use test_support::{CONTROLLERS_NAMESPACE, TestAuthority, as_yaml, eventually, objects_in};

use super::{Installed, LIMIT};

/// The convention of examples/conventions, its Service and its image.
const CONVENTION: &str = "security-baseline";
const PRESET: &str = "examples/presets/ca-bundle.yaml";

/// The next Pod of the example trusts the company's authority.
pub(super) async fn pods_get_presets(installed: &Installed<'_>) -> anyhow::Result<()> {
    let control_plane = &installed.stack.control_plane;
    control_plane
        .apply_yaml(&as_yaml(&documents(PRESET)?))
        .await?;
    installed.a_commit_arrives("Salut").await?;
    runs(installed, "app.kubernetes.io/name=full-path", |pod| {
        let variables = pod["spec"]["containers"][0]["env"].as_array();
        let mut variables = variables.into_iter().flatten();
        variables.any(|it| it["name"] == "SSL_CERT_FILE")
    })
    .await
}

/// A convention that runs as a Pod is asked at its Service, by name, and what it adds is what runs.
pub(super) async fn pods_get_conventions(installed: &Installed<'_>) -> anyhow::Result<()> {
    let authority = TestAuthority::new("conventions")?;
    let host = format!("{CONVENTION}.{CONTROLLERS_NAMESPACE}.svc");
    let key_pair = authority.sign(&[&host])?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": CONVENTION, "namespace": CONTROLLERS_NAMESPACE},
        "stringData": {"tls.crt": key_pair.certificate_pem(), "tls.key": key_pair.key_pem()},
    });
    let control_plane = &installed.stack.control_plane;
    control_plane.apply_yaml(&secret.to_string()).await?;
    let image = import_convention(installed)?;
    let values = json!({
        "image": {"repository": image, "tag": "1"},
        "certificate": {"secretName": CONVENTION, "caBundle": authority.pem()},
    });
    let release = installed.release;
    release.install_beside(CONVENTION, "convention-webhook", &values)?;
    control_plane
        .apply_yaml(&chain(&an_application(installed)?))
        .await?;
    runs(installed, "app.kubernetes.io/name=enriched", |pod| {
        pod["spec"]["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    })
    .await
}

/// The node has the image afterwards; returns its name without the tag.
fn import_convention(installed: &Installed<'_>) -> anyhow::Result<String> {
    let node = installed.stack.node().context("there is a node")?;
    let archive = node.folder().join("convention.tar");
    let made = Command::new(binaries::workspace().join("hack/node/image.sh"))
        .arg(&archive)
        .args([
            CONVENTION.as_ref(),
            binaries::convention(CONVENTION)?.as_os_str(),
        ])
        .output()?;
    let said = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "hack/node/image.sh: {said}");
    node.import_image(&archive)?;
    Ok(format!("docker.io/carto-test/{CONVENTION}"))
}

/// The reference of an image in the registry, which conventions read and the node pulls.
fn an_application(installed: &Installed<'_>) -> anyhow::Result<String> {
    let node = installed.stack.node().context("there is a node")?;
    let archive = node.folder().join("tools.tar");
    installed.registry.push(&archive, "team/application:1.0.0")
}

/// Waits until the only Pod with this label in the developer's namespace runs, and is as it should be.
async fn runs(
    installed: &Installed<'_>,
    label: &str,
    is_right: impl Fn(&Value) -> bool,
) -> anyhow::Result<()> {
    let client = installed.stack.control_plane.client()?;
    let pods = objects_in(&client, NAMESPACE, "v1", "Pod");
    eventually(&format!("a Pod with {label} runs"), LIMIT, async || {
        let mut found = pods.list(&ListParams::default().labels(label)).await?.items;
        found.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        ensure!(found.len() == 1, "{found:#?}");
        let pod = serde_json::to_value(&found[0])?;
        ensure!(
            pod["status"]["phase"] == "Running" && is_right(&pod),
            "{pod:#}"
        );
        anyhow::Ok(())
    })
    .await;
    Ok(())
}

/// A chain of two steps: a PodIntent, and a Deployment of what becomes of it.
fn chain(image: &str) -> String {
    format!(
        r#"
apiVersion: carto.run/v1alpha1
kind: ClusterConfigTemplate
metadata: {{name: enriched-pod}}
spec:
  configPath: .status.template
  healthRule: {{singleConditionType: Ready}}
  template:
    apiVersion: conventions.carto.run/v1alpha1
    kind: PodIntent
    metadata: {{name: $(workload.metadata.name)$}}
    spec:
      template:
        metadata: {{labels: {{app.kubernetes.io/name: $(workload.metadata.name)$}}}}
        spec: {{containers: [{{name: app, image: $(workload.spec.image)$}}]}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {{name: enriched-deployment}}
spec:
  template:
    apiVersion: apps/v1
    kind: Deployment
    metadata: {{name: $(workload.metadata.name)$}}
    spec:
      selector: {{matchLabels: {{app.kubernetes.io/name: $(workload.metadata.name)$}}}}
      template: $(config)$
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {{name: enriched}}
spec:
  selector: {{type: enriched}}
  resources:
  - name: pod
    templateRef: {{kind: ClusterConfigTemplate, name: enriched-pod}}
  - name: deploy
    templateRef: {{kind: ClusterTemplate, name: enriched-deployment}}
    configs: [{{name: pod, resource: pod}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: enriched, namespace: {NAMESPACE}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: enriched, namespace: {NAMESPACE}}}
rules:
- apiGroups: [conventions.carto.run]
  resources: [podintents]
  verbs: [get, list, create, patch, delete]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, create, patch, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: enriched, namespace: {NAMESPACE}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: enriched}}
subjects: [{{kind: ServiceAccount, name: enriched, namespace: {NAMESPACE}}}]
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {{name: enriched, namespace: {NAMESPACE}, labels: {{type: enriched}}}}
spec: {{serviceAccountName: enriched, image: "{image}"}}
"#
    )
}
