//! Webhooks of a controller that runs on this machine, beside the cluster.

use std::time::Duration;

use anyhow::Context as _;
use kube::api::DynamicObject;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use super::ControlPlane;
use crate::all_objects;

impl ControlPlane {
    /// Applies a configuration of webhooks with the address of this machine in place of a Service,
    /// and waits until the controller has written its authority into it. The API server waits for
    /// an answer for so many seconds; and acts on the configuration a moment later.
    ///
    /// # Errors
    ///
    /// When it is refused, or the controller writes no authority in time.
    pub async fn register_webhooks(
        &self,
        mut configuration: Value,
        port: u16,
        timeout_seconds: u8,
        limit: Duration,
    ) -> anyhow::Result<()> {
        let webhooks = configuration["webhooks"].as_array_mut();
        for webhook in webhooks.into_iter().flatten() {
            let path = webhook["clientConfig"]["service"]["path"].as_str();
            let path = path.unwrap_or_default();
            webhook["clientConfig"] = json!({"url": format!("https://localhost:{port}{path}")});
            webhook["timeoutSeconds"] = json!(timeout_seconds);
        }
        self.apply_yaml(&configuration.to_string()).await?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
        let kind = text(&configuration["kind"])?;
        let name = text(&configuration["metadata"]["name"])?;
        let client = self.client()?;
        let all = all_objects(&client, "admissionregistration.k8s.io/v1", &kind);
        let trusted = await_condition(all, &name, |found: Option<&DynamicObject>| {
            let webhooks = found.and_then(|found| found.data["webhooks"].as_array());
            let is_trusted = |webhook: &Value| webhook["clientConfig"]["caBundle"].is_string();
            webhooks.is_some_and(|webhooks| webhooks.iter().all(is_trusted))
        });
        let trusted = tokio::time::timeout(limit, trusted).await;
        trusted.context("the controller wrote no caBundle")??;
        Ok(())
    }
}
