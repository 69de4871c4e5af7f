//! Tekton Pipelines on a node, with the manifests and the programs of its Go module.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use test_support::{ControlPlane, Node, as_yaml, documents, eventually, objects_in, yaml_files};

use crate::binaries::workspace;
use crate::command::ran;

/// Where its controllers run.
const NAMESPACE: &str = "tekton-pipelines";
/// What its manifests say in place of an image, followed by a program.
const PROGRAM: &str = "ko://github.com/tektoncd/pipeline/cmd/";
/// The image of all its programs, from hack/node/image.sh.
const IMAGE: &str = "carto-test/tekton:1";
/// After this argument stands the image whose shell writes scripts.
const SHELL: &str = "-shell-image";
/// Those of its manifests that users apply; not the scaling of the webhook, nor the program that sends events elsewhere.
const LEFT_OUT: [&str; 2] = ["events.yaml", "webhook-hpa.yaml"];
const LIMIT: Duration = Duration::from_mins(3);

/// Installs Tekton Pipelines, and waits until its controller works and its webhook admits runs.
///
/// # Errors
///
/// When Tekton is not built (`make node`), or the API server refuses a manifest.
pub async fn install(control_plane: &ControlPlane, node: &Node) -> anyhow::Result<()> {
    let config = import_image(node)?;
    let namespace = std::fs::read_to_string(config.join("100-namespace/100-namespace.yaml"))?;
    control_plane.apply_yaml(&namespace).await?;
    control_plane.install_crds(config.join("300-crds")).await?;
    for file in yaml_files(&config)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if !LEFT_OUT.contains(&&*name) {
            let mut objects = documents(&std::fs::read_to_string(&file)?)?;
            objects.iter_mut().for_each(name_images);
            let applied = control_plane.apply_yaml(&as_yaml(&objects)).await;
            applied.with_context(|| file.display().to_string())?;
        }
    }
    for name in ["tekton-pipelines-controller", "tekton-pipelines-webhook"] {
        is_available(control_plane, name).await?;
    }
    admits_runs(control_plane).await
}

/// The folder of manifests, once the node has the image.
fn import_image(node: &Node) -> anyhow::Result<PathBuf> {
    let scripts = workspace().join("hack/node");
    let archive = node.folder().join("tekton.tar");
    ran(Command::new(scripts.join("image.sh"))
        .arg(&archive)
        .arg("tekton"))?;
    node.import_image(&archive)?;
    let built = ran(Command::new(scripts.join("build.sh")).arg("--path"))?;
    Ok(Path::new(built.trim()).join("tekton/config"))
}

/// Its releases have an image for each program; here they are in one.
fn name_images(object: &mut Value) {
    let containers = object.pointer_mut("/spec/template/spec/containers");
    for container in containers
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let program = container["image"].as_str().map(str::to_owned);
        let Some(program) = program.as_deref().and_then(|it| it.strip_prefix(PROGRAM)) else {
            continue;
        };
        container["command"] = json!([format!("/ko-app/{program}")]);
        container["image"] = json!(IMAGE);
        let mut of_shell = false;
        for argument in container["args"].as_array_mut().into_iter().flatten() {
            let text = argument.as_str().unwrap_or_default();
            let is_flag = text == SHELL;
            if of_shell {
                *argument = json!(Node::TOOLS_IMAGE);
            } else if text.starts_with(PROGRAM) {
                *argument = json!(IMAGE);
            }
            of_shell = is_flag;
        }
    }
}

async fn is_available(control_plane: &ControlPlane, name: &str) -> anyhow::Result<()> {
    let deployments = objects_in(&control_plane.client()?, NAMESPACE, "apps/v1", "Deployment");
    eventually(&format!("{name} is available"), LIMIT, async || {
        let status = deployments.get(name).await?.data["status"].take();
        ensure!(status["availableReplicas"] == 1, "{status}");
        anyhow::Ok(())
    })
    .await;
    Ok(())
}

/// The webhook is registered a moment after it answers its probe: until then a run is not defaulted, and its controller
/// does not take it.
async fn admits_runs(control_plane: &ControlPlane) -> anyhow::Result<()> {
    let client = control_plane.client()?;
    let configurations = test_support::all_objects(
        &client,
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
    );
    eventually("the webhook of Tekton is registered", LIMIT, async || {
        let found = configurations.get("webhook.pipeline.tekton.dev").await?;
        let webhook = &found.data["webhooks"][0];
        let registered =
            webhook["rules"].is_array() && webhook["clientConfig"]["caBundle"].is_string();
        ensure!(registered, "{webhook}");
        anyhow::Ok(())
    })
    .await;
    Ok(())
}

/// The results of a TaskRun that has succeeded, by name.
///
/// # Errors
///
/// The API server cannot be asked.
///
/// # Panics
///
/// When it has not within some minutes; the message has its status.
pub async fn results_of(
    control_plane: &ControlPlane,
    namespace: &str,
    run: &str,
) -> anyhow::Result<BTreeMap<String, String>> {
    let runs = objects_in(
        &control_plane.client()?,
        namespace,
        "tekton.dev/v1",
        "TaskRun",
    );
    let status = eventually(&format!("TaskRun {run} succeeds"), LIMIT, async || {
        let status = runs.get(run).await?.data["status"].take();
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let succeeded = conditions.any(|it| it["type"] == "Succeeded" && it["status"] == "True");
        ensure!(succeeded, "{status:#}");
        anyhow::Ok(Some(status))
    })
    .await;
    let results = status["results"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(results
        .map(|result| (text(&result["name"]), text(&result["value"])))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_commands_of_one_image_and_other_arguments_stay() {
        let mut object = json!({"spec": {"template": {"spec": {"containers": [{
            "image": format!("{PROGRAM}controller"),
            "args": ["-nop-image", format!("{PROGRAM}nop"), SHELL, "busybox", "-shell-image-win", "other"],
        }]}}}});
        name_images(&mut object);
        let expected = json!({
            "image": IMAGE,
            "command": ["/ko-app/controller"],
            "args": ["-nop-image", IMAGE, SHELL, Node::TOOLS_IMAGE, "-shell-image-win", "other"],
        });
        assert_eq!(
            object["spec"]["template"]["spec"]["containers"][0],
            expected
        );
    }
}
