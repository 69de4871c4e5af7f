//! Parameters as owners, blueprints and templates declare them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json_any;

/// A parameter an owner sets; `spec.params[]` of Workload and Deliverable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerParam {
    /// Name of the parameter.
    pub name: String,
    /// Any JSON; `null` is a value.
    pub value: Value,
}

/// A parameter a blueprint sets, for all its resources or for one.
///
/// Exactly one of `value` and `default` is given in an admitted object.
///
/// ```
/// use api_types::BlueprintParam;
///
/// let param: BlueprintParam = serde_json::from_str(r#"{"name": "debug", "value": null}"#)?;
/// assert_eq!(param.value, Some(serde_json::Value::Null));
/// assert_eq!(param.default, None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BlueprintParam {
    /// Name of the parameter.
    pub name: String,
    /// Any JSON the owner cannot override; `Some(Value::Null)` when `null` is written.
    #[serde(
        deserialize_with = "json_any::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub value: Option<Value>,
    /// Any JSON the owner can override; `Some(Value::Null)` when `null` is written.
    #[serde(
        deserialize_with = "json_any::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub default: Option<Value>,
}

/// A parameter a template takes, with the value it has when nobody sets it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TemplateParam {
    /// Name of the parameter.
    pub name: String,
    /// Any JSON; `null` is a value.
    pub default: Value,
}
