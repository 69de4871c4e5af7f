//! What is done with every example: the platform team applies one folder, a developer another.

use anyhow::Context;
use serde_json::Value;
use test_support::ControlPlane;

use crate::manifests::{documents, text};

/// The developer's namespace, as the examples have it.
pub const NAMESPACE: &str = "dev";

/// Applies what the platform team of an example applies. The path is relative to the repository.
///
/// # Errors
///
/// When the API server refuses.
pub async fn apply_platform(control_plane: &ControlPlane, example: &str) -> anyhow::Result<()> {
    let folder = format!("{example}/platform");
    control_plane
        .apply_yaml(&text(&documents(&folder)?))
        .await
        .context(folder)?;
    Ok(())
}

/// Creates the developer's namespace and applies what the developer of an example applies, once `adapt` has changed the
/// owner (the object with the service account's name) to fit this machine.
///
/// # Errors
///
/// When the example has no owner, `adapt` fails or the API server refuses.
pub async fn hand_in(
    control_plane: &ControlPlane,
    example: &str,
    adapt: impl FnOnce(&mut Value) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let folder = format!("{example}/developer");
    let mut objects = documents(&folder)?;
    let owner = objects
        .iter_mut()
        .find(|object| object["spec"]["serviceAccountName"].is_string())
        .with_context(|| format!("{folder} has no owner"))?;
    adapt(owner)?;
    let namespace = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    control_plane
        .apply_yaml(&namespace.to_string())
        .await
        .context("namespace")?;
    control_plane
        .apply_yaml_in(NAMESPACE, &text(&objects))
        .await
        .context(folder)?;
    Ok(())
}

/// One param of an owner.
pub fn param(name: &str, value: impl Into<Value>) -> Value {
    serde_json::json!({"name": name, "value": value.into()})
}
