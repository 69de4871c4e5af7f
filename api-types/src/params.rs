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
/// Exactly one of `value` and `default` is given in an admitted object; see [`BlueprintParam::setting`].
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

/// What a [`BlueprintParam`] sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamSetting<'a> {
    /// A value the owner cannot override.
    Fixed(&'a Value),
    /// A value the owner can override.
    Default(&'a Value),
}

impl BlueprintParam {
    /// What the param sets; `None` when it gives neither or both, which is not admitted.
    ///
    /// `null` is a value, but a `null` beside a value that is not null is as good as absent: the Go controller's API
    /// server dropped it, and manifests that render an unused `value: null` must keep working.
    ///
    /// ```
    /// use api_types::{BlueprintParam, params::ParamSetting};
    /// use serde_json::{Value, json};
    ///
    /// let param = |json| serde_json::from_value::<BlueprintParam>(json);
    /// assert_eq!(param(json!({"name": "a", "value": null}))?.setting(), Some(ParamSetting::Fixed(&Value::Null)));
    /// let both = param(json!({"name": "a", "value": null, "default": 5}))?;
    /// assert_eq!(both.setting(), Some(ParamSetting::Default(&json!(5))));
    /// assert_eq!(param(json!({"name": "a", "value": 1, "default": 5}))?.setting(), None);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn setting(&self) -> Option<ParamSetting<'_>> {
        match (&self.value, &self.default) {
            (Some(value), None | Some(Value::Null)) => Some(ParamSetting::Fixed(value)),
            (None | Some(Value::Null), Some(default)) => Some(ParamSetting::Default(default)),
            (None, None) | (Some(_), Some(_)) => None,
        }
    }
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
