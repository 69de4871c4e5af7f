//! The stage with the conventions controller on it.

use std::ops::{Deref, DerefMut};

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use test_support::stage::{Cast, Particulars, condition};
use test_support::{ControlPlane, LossyProxy, Stage, all_objects};

use crate::webhook::{Does, Webhook};

const CAST: Cast = Cast {
    binary: env!("CARGO_BIN_EXE_conventions-controller"),
    user_agent: "carto-conventions",
    api_version: "conventions.carto.run/v1alpha1",
    owner_kind: "PodIntent",
};

/// The smallest PodIntent.
pub(crate) const INTENT: &str = r#"
apiVersion: conventions.carto.run/v1alpha1
kind: PodIntent
metadata: {name: app, labels: {of: intent}}
spec:
  serviceAccountName: sa
  template:
    metadata: {labels: {app: web}, annotations: {a: b}}
    spec:
      containers:
      - {name: web, resources: {limits: {cpu: "0.5"}}}
"#;

/// One with this label on its template.
pub(crate) fn intent(name: &str, app: &str) -> String {
    json!({
        "apiVersion": "conventions.carto.run/v1alpha1", "kind": "PodIntent", "metadata": {"name": name},
        "spec": {"serviceAccountName": "sa", "template": {
            "metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "web"}]}}},
    })
    .to_string()
}

/// The stage, with what is of conventions.
pub(crate) struct Intents {
    pub(crate) stage: Stage,
}

impl Deref for Intents {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl DerefMut for Intents {
    fn deref_mut(&mut self) -> &mut Stage {
        &mut self.stage
    }
}

impl Intents {
    /// Has a service account `sa` be in a namespace.
    pub(crate) async fn grant_account(&self, namespace: &str) {
        let account = format!(
            "{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: sa, namespace: {namespace}}}}}"
        );
        self.stage.apply(&account).await;
    }

    /// A merge patch of a ClusterPodConvention.
    pub(crate) async fn edit_convention(&self, name: &str, patch: Value) {
        let all = all_objects(&self.stage.client, CAST.api_version, "ClusterPodConvention");
        all.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }
}

/// Everything but the controller.
pub(crate) async fn set() -> Intents {
    let stage = Stage::set(CAST).await;
    Intents { stage }
}

/// The same on this control plane.
pub(crate) async fn set_on(plane: ControlPlane) -> Intents {
    let stage = Stage::on(CAST, plane).await;
    Intents { stage }
}

/// Starts the controller with these flags.
pub(crate) fn start(stage: &mut Intents, flags: &[&str]) {
    let cache = stage.plane.folder().join("images");
    let cache = format!("--image-cache={}", cache.display());
    let flags: Vec<&str> = flags.iter().copied().chain([&*cache]).collect();
    stage.start_controller_with(&Particulars {
        flags: &flags,
        ..Particulars::default()
    });
}

/// Starts the controller behind a network of its own.
pub(crate) fn start_behind(stage: &mut Intents, network: &LossyProxy) {
    let cache = stage.plane.folder().join("images");
    let cache = format!("--image-cache={}", cache.display());
    stage.start_controller_with(&Particulars {
        kubeconfig: Some(network.kubeconfig()),
        flags: &[&cache],
        ..Particulars::default()
    });
}

/// kill -9, and starts it again.
pub(crate) fn restart(stage: &mut Intents, flags: &[&str]) {
    stage.kill_controller();
    start(stage, flags);
}

/// With the controller and one PodIntent.
pub(crate) async fn open() -> Intents {
    let mut stage = set().await;
    start(&mut stage, &[]);
    stage.apply(INTENT).await;
    stage
}

/// With the controller, started with these flags, and a convention of this name for all PodIntents
/// whose webhook does this.
pub(crate) async fn open_with(name: &str, does: Does, flags: &[&str]) -> (Intents, Webhook) {
    let mut stage = set().await;
    let webhook = Webhook::start(does).await;
    let convention = webhook.convention(name, json!({}), json!({}));
    stage.apply(&convention).await;
    start(&mut stage, flags);
    (stage, webhook)
}

/// The same with a convention `add-env`, which adds variable `A`.
pub(crate) async fn open_with_env() -> (Intents, Webhook) {
    open_with("add-env", Does::AddsEnv("A", "b"), &[]).await
}

/// A PodIntent `app` with one container that has an image.
pub(crate) fn with_image(image: &str, secrets: &Value) -> String {
    json!({
        "apiVersion": "conventions.carto.run/v1alpha1", "kind": "PodIntent", "metadata": {"name": "app"},
        "spec": {"serviceAccountName": "sa", "imagePullSecrets": secrets, "template": {
            "spec": {"containers": [{"name": "web", "image": image}, {"name": "none"}]}}},
    })
    .to_string()
}

/// Waits until the PodIntent is Ready.
pub(crate) async fn applied(stage: &Stage, name: &str) -> Value {
    stage.ready(name, "True", "ConventionsApplied").await
}

/// Type, status, reason and message of each condition.
pub(crate) fn said(intent: &Value) -> Vec<Value> {
    let conditions = intent["status"]["conditions"].as_array().unwrap();
    let said = conditions
        .iter()
        .map(|it| json!([it["type"], it["status"], it["reason"], it["message"]]));
    said.collect()
}

/// Waits until Ready is False for this reason with this message.
pub(crate) async fn fails(stage: &Stage, name: &str, reason: &str, message: &str) -> Value {
    let what = format!("Ready is False, {reason}: {message}");
    stage
        .until(name, &what, |intent| {
            let ready = condition(&intent["status"], "Ready");
            ready["status"] == "False" && ready["reason"] == reason && ready["message"] == message
        })
        .await
}

/// The variables of the first container of the template in status.
pub(crate) fn env(intent: &Value) -> Vec<String> {
    let env = &intent["status"]["template"]["spec"]["containers"][0]["env"];
    let env = env.as_array().into_iter().flatten();
    env.map(|it| {
        format!(
            "{}={}",
            it["name"].as_str().unwrap(),
            it["value"].as_str().unwrap()
        )
    })
    .collect()
}

/// The receipts in the template in status.
pub(crate) fn receipts(intent: &Value) -> &str {
    let annotations = &intent["status"]["template"]["metadata"]["annotations"];
    annotations["conventions.carto.run/applied-conventions"]
        .as_str()
        .unwrap_or_default()
}
