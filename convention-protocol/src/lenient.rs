//! Reading as Go does: `null` is what is not there.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// Reads `null` as the value that an absent field has.
pub(crate) fn null_is_absent<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads texts by key; `null` is no map, and as a value an empty text.
pub(crate) fn texts<'de, D>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: Deserializer<'de>,
{
    let texts: BTreeMap<String, Option<String>> = null_is_absent(deserializer)?;
    let texts = texts.into_iter();
    Ok(texts
        .map(|(key, text)| (key, text.unwrap_or_default()))
        .collect())
}

/// Reads a list of texts that may be absent; `null` in it is an empty text.
pub(crate) fn list<'de, D>(deserializer: D) -> Result<Option<Vec<String>>, D::Error>
where
    D: Deserializer<'de>,
{
    let list = Option::<Vec<Option<String>>>::deserialize(deserializer)?;
    Ok(list.map(|texts| texts.into_iter().map(Option::unwrap_or_default).collect()))
}
