//! The object that a Runnable selects (docs/behaviour/runnables.md#selector).

use std::collections::BTreeMap;

use api_types::runnable::ResourceSelector;
use serde_json::json;

use template_language::go_format;

/// Why there is no selected object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The API server does not say what it serves.
    #[error("failed to list server api resources: {0}")]
    Discovery(String),
    /// The objects cannot be listed.
    #[error("failed to list objects {} matching selector [{}]: unable to list from api server: {cause}", scope(*.namespaced), shown(labels))]
    List {
        /// Whether only the Runnable's namespace was looked at.
        namespaced: bool,
        /// What was asked for.
        labels: BTreeMap<String, String>,
        /// The API server's text.
        cause: String,
    },
    /// There is none.
    #[error("selector did not match any objects")]
    None,
    /// There are several.
    #[error("selector matched multiple objects")]
    Many,
}

fn scope(namespaced: bool) -> &'static str {
    if namespaced {
        "in namespace"
    } else {
        "at cluster scope"
    }
}

fn shown(labels: &BTreeMap<String, String>) -> String {
    go_format::display(&json!(labels))
}

/// The condition's message.
pub(super) fn message(selector: Option<&ResourceSelector>, error: &SelectError) -> String {
    let none = ResourceSelector::default();
    let selector = selector.unwrap_or(&none);
    format!(
        "unable to resolve selector [{}], apiVersion [{}], kind [{}]: {error}",
        shown(&selector.matching_labels),
        selector.resource.api_version.as_deref().unwrap_or_default(),
        selector.resource.kind.as_deref().unwrap_or_default(),
    )
}
