//! What is done with every example: the platform team applies one folder, a developer another.

use anyhow::Context;
use serde_json::Value;
use test_support::{ControlPlane, as_yaml};

use crate::manifests::documents;

/// The developer's namespace, as the examples have it.
pub const NAMESPACE: &str = "dev";

/// Applies what the platform team of an example applies, once `adapt` has changed each object to fit this machine. The path is
/// relative to the repository.
///
/// # Errors
///
/// When the API server refuses.
pub async fn apply_platform(
    control_plane: &ControlPlane,
    example: &str,
    adapt: impl Fn(&mut Value),
) -> anyhow::Result<()> {
    let folder = format!("{example}/platform");
    let mut objects = documents(&folder)?;
    objects.iter_mut().for_each(adapt);
    control_plane
        .apply_yaml(&as_yaml(&objects))
        .await
        .context(folder)?;
    Ok(())
}

/// Sets a param that a blueprint fixes for one of its steps. Where the object is no blueprint, or fixes no such param, nothing
/// happens.
pub fn fix_param(object: &mut Value, name: &str, value: impl Into<Value>) {
    let value = value.into();
    let steps = object.pointer_mut("/spec/resources");
    for step in steps.and_then(Value::as_array_mut).into_iter().flatten() {
        let params = step.get_mut("params").and_then(Value::as_array_mut);
        for param in params.into_iter().flatten() {
            if param["name"] == name {
                param["value"] = value.clone();
            }
        }
    }
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
        .apply_yaml_in(NAMESPACE, &as_yaml(&objects))
        .await
        .context(folder)?;
    Ok(())
}

/// One param of an owner.
pub fn param(name: &str, value: impl Into<Value>) -> Value {
    serde_json::json!({"name": name, "value": value.into()})
}
