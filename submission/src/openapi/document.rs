//! The parts of an OpenAPI v3 document that decide whether an object fits. Everything else, most of all
//! the descriptions, is skipped while reading.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) components: Components,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Components {
    pub(super) schemas: BTreeMap<String, Node>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Node {
    #[serde(rename = "$ref")]
    pub(super) reference: Option<String>,
    pub(super) all_of: Vec<Self>,
    pub(super) properties: BTreeMap<String, Self>,
    pub(super) additional_properties: Option<AdditionalProperties>,
    pub(super) items: Option<Box<Self>>,
    pub(super) default: Option<Value>,
    pub(super) nullable: bool,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub(super) preserve_unknown_fields: bool,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub(super) int_or_string: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    pub(super) list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub(super) list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-group-version-kind")]
    pub(super) kinds: Vec<GroupVersionKind>,
}

/// Values of a map: anything, nothing said, or this.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum AdditionalProperties {
    Allowed(bool),
    Schema(Box<Node>),
}

#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(default)]
pub(super) struct GroupVersionKind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}
