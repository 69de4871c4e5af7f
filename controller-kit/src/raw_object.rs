//! Objects as a watch delivers them: text, parsed apart from the watch.
//!
//! The API server takes objects that are nested 10,000 levels deep, a JSON parser here takes 128. If the watch itself
//! parsed them, one Workload with a deep parameter would end the listing of all Workloads, and with it the work for
//! every tenant; and the client would log the page it cannot read, Secrets included. So the watch takes each object as
//! text and reads no more of it than its name and version.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tracing::warn;

/// An object as text; with `METADATA_ONLY` the API server is asked for no more than metadata.
#[derive(Clone)]
pub(crate) struct RawObject<const METADATA_ONLY: bool> {
    /// Name, namespace and version, nothing else.
    metadata: ObjectMeta,
    text: Box<RawValue>,
}

/// What is read of an object in any case. What else it holds is skipped, however deep.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Outline {
    metadata: OutlineMetadata,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct OutlineMetadata {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
}

impl<'de, const METADATA_ONLY: bool> Deserialize<'de> for RawObject<METADATA_ONLY> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Outline { metadata } = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let metadata = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            resource_version: metadata.resource_version,
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, text })
    }
}

impl<const METADATA_ONLY: bool> RawObject<METADATA_ONLY> {
    /// The object. One that cannot be parsed comes without uid, so that nobody takes it for an object that is known.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(self.text.get()).unwrap_or_else(|error| {
            let text = |field: &Option<String>| field.clone().unwrap_or_default();
            let (namespace, name) = (text(&self.metadata.namespace), text(&self.metadata.name));
            warn!(%namespace, %name, %error, "this object cannot be read and is left alone; correct or delete it");
            let version = text(&self.metadata.resource_version);
            json!({"metadata": {"namespace": namespace, "name": name, "resourceVersion": version}})
        })
    }
}

impl<const METADATA_ONLY: bool> fmt::Debug for RawObject<METADATA_ONLY> {
    /// The contents may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawObject")
            .field("name", &self.metadata.name)
            .finish_non_exhaustive()
    }
}

impl<const METADATA_ONLY: bool> Resource for RawObject<METADATA_ONLY> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn metadata_api() -> bool {
        METADATA_ONLY
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::{ObjectList, WatchEvent};

    fn deep() -> String {
        format!(
            r#"{{"apiVersion":"v1","kind":"X","spec":{}1{},"metadata":{{"name":"deep","namespace":"n","uid":"u","resourceVersion":"7"}}}}"#,
            r#"{"a":"#.repeat(5000),
            "}".repeat(5000)
        )
    }

    #[test]
    fn one_deep_object_does_not_end_the_listing_of_the_others() {
        let list = format!(
            r#"{{"apiVersion":"v1","kind":"XList","metadata":{{"resourceVersion":"9"}},"items":[{},{{"metadata":{{"name":"flat","uid":"v"}},"spec":{{"b":2}}}}]}}"#,
            deep()
        );
        let list: ObjectList<RawObject<false>> = serde_json::from_str(&list).unwrap();
        let values: Vec<Value> = list.items.iter().map(RawObject::value).collect();
        assert_eq!(
            values,
            [
                json!({"metadata": {"name": "deep", "namespace": "n", "resourceVersion": "7"}}),
                json!({"metadata": {"name": "flat", "uid": "v"}, "spec": {"b": 2}}),
            ]
        );
    }

    #[test]
    fn one_deep_object_does_not_end_a_watch() {
        let event = format!(r#"{{"type":"MODIFIED","object":{}}}"#, deep());
        match serde_json::from_str::<WatchEvent<RawObject<true>>>(&event).unwrap() {
            WatchEvent::Modified(object) => {
                assert_eq!(object.meta().resource_version.as_deref(), Some("7"));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn its_debug_form_shows_no_contents() {
        let object: RawObject<false> =
            serde_json::from_str(r#"{"metadata":{"name":"s"},"data":{"password":"aHVudGVyMg=="}}"#)
                .unwrap();
        assert!(!format!("{object:?}").contains("aHVudGVyMg"));
    }
}
