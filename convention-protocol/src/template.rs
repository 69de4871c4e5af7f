//! A pod template.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::lenient::{null_is_absent, texts};

/// A pod template as its author wrote it. Of the metadata five keys are kept, of the spec everything.
///
/// ```
/// use convention_protocol::PodTemplate;
///
/// let text = r#"{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","notYetKnown":[1.50]}]}}"#;
/// let template: PodTemplate = serde_json::from_str(text)?;
/// assert_eq!(template.metadata.labels["app"], "web");
/// assert_eq!(serde_json::to_value(&template)?, serde_json::from_str::<serde_json::Value>(text)?);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodTemplate {
    /// Names, labels and annotations.
    #[serde(deserialize_with = "null_is_absent")]
    pub metadata: TemplateMetadata,
    /// The PodSpec, any field of any version of Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Map<String, Value>>,
}

/// The metadata of a template. Other keys are dropped: the controller never hands them on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Name, if any.
    #[serde(
        deserialize_with = "null_is_absent",
        skip_serializing_if = "String::is_empty"
    )]
    pub name: String,
    /// What a name is made of, if any.
    #[serde(
        deserialize_with = "null_is_absent",
        skip_serializing_if = "String::is_empty"
    )]
    pub generate_name: String,
    /// Namespace, if any.
    #[serde(
        deserialize_with = "null_is_absent",
        skip_serializing_if = "String::is_empty"
    )]
    pub namespace: String,
    /// Labels of the pods.
    #[serde(deserialize_with = "texts", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pods.
    #[serde(deserialize_with = "texts", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The lists whose images are resolved. Ephemeral containers are not of a template.
const CONTAINER_LISTS: [&str; 2] = ["initContainers", "containers"];

impl PodTemplate {
    /// A template without anything, as Go writes it.
    pub(crate) fn empty() -> Self {
        Self {
            metadata: TemplateMetadata::default(),
            spec: Some(Map::from_iter([("containers".to_owned(), Value::Null)])),
        }
    }

    /// The distinct images of init containers and containers, sorted. A container without an image has none.
    ///
    /// ```
    /// use convention_protocol::PodTemplate;
    ///
    /// let template: PodTemplate = serde_json::from_str(
    ///     r#"{"spec": {"initContainers": [{"name": "b", "image": "b"}],
    ///         "containers": [{"name": "a", "image": "a"}, {"name": "none"}, {"name": "c", "image": "b"}]}}"#,
    /// )?;
    /// assert_eq!(template.images().into_iter().collect::<Vec<_>>(), ["a", "b"]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn images(&self) -> BTreeSet<&str> {
        let lists = CONTAINER_LISTS.iter().filter_map(|list| self.list(list));
        lists
            .flatten()
            .filter_map(|container| container.get("image")?.as_str())
            .filter(|image| !image.is_empty())
            .collect()
    }

    /// Replaces images, by the text that each has now. Nothing else is touched.
    pub fn replace_images(&mut self, images: &BTreeMap<String, String>) {
        let Some(spec) = &mut self.spec else { return };
        for list in CONTAINER_LISTS {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                let Some(image) = container.get_mut("image") else {
                    continue;
                };
                if let Some(new) = image.as_str().and_then(|image| images.get(image)) {
                    *image = json!(new);
                }
            }
        }
    }

    /// How many containers it has, init containers aside.
    pub fn containers(&self) -> usize {
        self.list("containers").map_or(0, Vec::len)
    }

    fn list(&self, name: &str) -> Option<&Vec<Value>> {
        self.spec.as_ref()?.get(name)?.as_array()
    }
}
