//! In place of a kubelet, where there is no node: the Pods of Jobs end as the test says, and the Job controller of Kubernetes
//! does the rest.

use std::pin::pin;

use futures::TryStreamExt as _;
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use test_support::objects_in;

/// Has the Pods of a namespace end, each with the code that its container comes to; one without a code goes on. Returns only
/// when the API server refuses.
pub(crate) async fn run(
    client: Client,
    namespace: &str,
    code: impl Fn(&Value) -> anyhow::Result<Option<u8>>,
) -> anyhow::Result<()> {
    let pods = objects_in(&client, namespace, "v1", "Pod");
    let changes = watcher(pods.clone(), watcher::Config::default());
    let mut changes = pin!(changes.default_backoff().applied_objects());
    while let Some(pod) = changes.try_next().await? {
        if pod.data["status"]["phase"] != "Pending" || pod.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let Some(code) = code(&pod.data["spec"]["containers"][0])? else {
            continue;
        };
        let name = pod.metadata.name.clone().unwrap_or_default();
        let (ended, params) = (Patch::Merge(ended(&pod, code)), PatchParams::default());
        match pods.patch_status(&name, &params, &ended).await {
            // Its Job went meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// What a kubelet would say.
fn ended(pod: &DynamicObject, code: u8) -> Value {
    let container = &pod.data["spec"]["containers"][0];
    let (phase, reason) = if code == 0 {
        ("Succeeded", "Completed")
    } else {
        ("Failed", "Error")
    };
    let status = json!({
        "name": container["name"], "image": container["image"], "imageID": "",
        "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": code, "reason": reason}},
    });
    json!({"status": {"phase": phase, "containerStatuses": [status]}})
}

/// The variable of a container.
pub(crate) fn variable<'a>(container: &'a Value, name: &str) -> &'a str {
    let mut variables = container["env"].as_array().into_iter().flatten();
    let found = variables.find(|variable| variable["name"] == name);
    found
        .and_then(|variable| variable["value"].as_str())
        .unwrap_or_default()
}
