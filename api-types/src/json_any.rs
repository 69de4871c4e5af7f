//! Reading fields that take any JSON, where `null` is a value.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a present field as `Some`, also when its value is `null`; with `#[serde(default)]` an absent one is `None`.
///
/// Plain `Option<Value>` reads `null` as absent, which is how null params vanished in the Go controller (#1048).
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads `null` as an absent field, as Go does when it decodes into a struct.
pub(crate) fn null_is_absent<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
