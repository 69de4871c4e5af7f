//! Runs of Tekton: one that a Runnable stamps, and one of a template with lifecycle `tekton`.

use anyhow::{Context, ensure};
use e2e::example::NAMESPACE;
use e2e::tekton;
use serde_json::Value;
use test_support::{Node, eventually, objects_in};

use super::{Installed, LIMIT};

/// Both runs succeed, and what they result in is an output of their owner.
pub(super) async fn are_stamped(installed: &Installed<'_>) -> anyhow::Result<()> {
    let control_plane = &installed.stack.control_plane;
    let node = installed.stack.node().context("there is a node")?;
    tekton::install(control_plane, node).await?;
    control_plane.apply_yaml(&owners()).await?;
    let outputs = reported(installed, "Runnable", "/status/outputs/greeting").await?;
    ensure!(outputs == "hello runnable", "{outputs}");
    let preview = "/status/resources/0/outputs/0/preview";
    let preview = reported(installed, "Workload", preview).await?;
    ensure!(preview == "hello workload\n", "{preview}");
    Ok(())
}

/// A value in the status of the owner named `tekton` of this kind, once it is Ready.
async fn reported(installed: &Installed<'_>, kind: &str, path: &str) -> anyhow::Result<Value> {
    let client = installed.stack.control_plane.client()?;
    let owners = objects_in(&client, NAMESPACE, "carto.run/v1alpha1", kind);
    let what = format!("{kind} tekton is Ready");
    let owner = eventually(&what, LIMIT, async || {
        let owner = serde_json::to_value(owners.get("tekton").await?)?;
        let conditions = owner["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.any(|it| it["type"] == "Ready" && it["status"] == "True");
        ensure!(ready, "{:#}", owner["status"]);
        anyhow::Ok(Some(owner))
    })
    .await;
    Ok(owner.pointer(path).cloned().unwrap_or_default())
}

fn owners() -> String {
    let image = Node::TOOLS_IMAGE;
    let run = |whom: &str| {
        format!(
            r#"
    apiVersion: tekton.dev/v1
    kind: TaskRun
    metadata: {{generateName: tekton-{whom}-}}
    spec:
      serviceAccountName: tekton
      params: [{{name: whom, value: {whom}}}]
      taskSpec:
        params: [{{name: whom}}]
        results: [{{name: greeting}}]
        steps:
        - name: greet
          image: {image}
          script: |
            #!/bin/sh
            printf 'hello %s' "$(params.whom)" >"$(results.greeting.path)"
"#
        )
    };
    let (of_runnable, of_workload) = (run("runnable"), run("workload"));
    format!(
        r#"
apiVersion: carto.run/v1alpha1
kind: ClusterRunTemplate
metadata: {{name: tekton}}
spec:
  outputs: {{greeting: '.status.results[?(@.name=="greeting")].value'}}
  template: {of_runnable}
---
apiVersion: carto.run/v1alpha1
kind: ClusterConfigTemplate
metadata: {{name: tekton}}
spec:
  lifecycle: tekton
  observedCompletion:
    succeeded: {{key: '.status.conditions[?(@.type=="Succeeded")].status', value: "True"}}
    failed: {{key: '.status.conditions[?(@.type=="Succeeded")].status', value: "False"}}
  configPath: '.status.results[?(@.name=="greeting")].value'
  template: {of_workload}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {{name: tekton}}
spec:
  selector: {{type: tekton}}
  resources:
  - name: greet
    templateRef: {{kind: ClusterConfigTemplate, name: tekton}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: tekton, namespace: {NAMESPACE}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: tekton, namespace: {NAMESPACE}}}
rules:
- apiGroups: [tekton.dev]
  resources: [taskruns]
  verbs: [get, list, create, patch, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: tekton, namespace: {NAMESPACE}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: tekton}}
subjects: [{{kind: ServiceAccount, name: tekton, namespace: {NAMESPACE}}}]
---
apiVersion: carto.run/v1alpha1
kind: Runnable
metadata: {{name: tekton, namespace: {NAMESPACE}}}
spec: {{serviceAccountName: tekton, runTemplateRef: {{name: tekton}}}}
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {{name: tekton, namespace: {NAMESPACE}, labels: {{type: tekton}}}}
spec: {{serviceAccountName: tekton}}
"#
    )
}
