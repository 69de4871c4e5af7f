//! Where an owner's source comes from.

use serde::{Deserialize, Serialize};

/// The source of a Workload or Deliverable. Which of the fields are given is up to the user; nothing excludes another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Source {
    /// A git repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
    /// An OCI image that carries the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Path inside the repository or image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<String>,
}

/// A git repository and what to take of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GitSource {
    /// URL of the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Branch, tag or commit.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRef>,
}

/// Which state of the repository; more than one may be given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GitRef {
    /// Name of a branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Name of a tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// A commit id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}
