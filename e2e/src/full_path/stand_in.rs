//! What stands in for Jobs where there is no node: objects of a kind that no controller knows, and this in place of one.

use std::pin::pin;

use futures::TryStreamExt as _;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};

use super::runs::{container, variable};
use super::{Adaptation, CONFIG_REPOSITORY, FullPath};
use crate::binaries::workspace;
use crate::path_stack::PathStack;

/// The example without Pods: tests pass at once, and manifests are written by [`work`].
pub const WITHOUT_PODS: Adaptation = Adaptation {
    image: "registry.example.com/team/full-path:1.0.0",
    replicas: 0,
    runs: ("test.run/v1alpha1", "Test"),
    platform: tests_instead_of_jobs,
    more_kinds: &[("test.run", "tests")],
};

const WATCHED: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: carto-watched-tests, labels: {carto.run/aggregate-to-watched: "true"}}
rules: [{apiGroups: [test.run], resources: [tests], verbs: [list, watch]}]
"#;

/// Installs the kind, and lets the controllers watch it.
///
/// # Errors
///
/// When the API server refuses.
pub async fn install(stack: &PathStack) -> anyhow::Result<()> {
    let crd = workspace().join("test-support/fixtures/test-crd.yaml");
    let control_plane = &stack.control_plane;
    control_plane
        .apply_yaml(&std::fs::read_to_string(crd)?)
        .await?;
    control_plane.apply_yaml(WATCHED).await?;
    Ok(())
}

/// The same run, but for what runs it.
fn tests_instead_of_jobs(object: &mut Value) {
    if object["kind"] != "ClusterRunTemplate" {
        return;
    }
    let spec = &mut object["spec"];
    spec["template"] = json!({
        "apiVersion": "test.run/v1alpha1",
        "kind": "Test",
        "metadata": spec["template"]["metadata"],
        "spec": {"value": container(&spec["template"])},
    });
    let outputs = spec.get_mut("outputs").and_then(Value::as_object_mut);
    for path in outputs.into_iter().flat_map(|outputs| outputs.values_mut()) {
        let of_job = path.as_str().unwrap_or_default();
        *path = json!(of_job.replace(".spec.template.spec.containers[0]", ".spec.value"));
    }
}

/// Does what the containers would do, run by run, for ever.
///
/// # Errors
///
/// When the API server or git refuse.
pub async fn work(path: &FullPath<'_>) -> anyhow::Result<()> {
    let changes = watcher(path.runs_api(), watcher::Config::default());
    let mut runs = pin!(changes.default_backoff().applied_objects());
    while let Some(run) = runs.try_next().await? {
        if run.data["status"]["conditions"].is_array() || run.metadata.deletion_timestamp.is_some()
        {
            continue;
        }
        write_manifests(path, &run)?;
        let name = run.metadata.name.unwrap_or_default();
        let done = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
        let written = path
            .runs_api()
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(&done))
            .await;
        match written {
            // Replaced or swept meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// What the script of ClusterRunTemplate `config-write` does. A run that tests has no manifests.
fn write_manifests(path: &FullPath<'_>, run: &DynamicObject) -> anyhow::Result<()> {
    let container = container(&run.data);
    let manifests = variable(container, "MANIFESTS");
    if manifests.is_empty() || path.newest_manifests()? == manifests {
        return Ok(());
    }
    let (name, revision) = (variable(container, "NAME"), variable(container, "REVISION"));
    path.stack.git.commit(
        CONFIG_REPOSITORY,
        &[("manifests.yaml", &manifests)],
        &format!("{name} at {revision}"),
    )?;
    Ok(())
}
