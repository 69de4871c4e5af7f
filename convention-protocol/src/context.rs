//! Request and answer of a convention.

use serde::{Deserialize, Serialize};

use crate::image::ImageConfig;
use crate::lenient::{list, null_is_absent};
use crate::template::PodTemplate;

/// The group of the protocol. Nothing of it is served by an API server.
pub const GROUP: &str = "webhooks.conventions.carto.run";
/// The only version of the protocol.
pub const VERSION: &str = "v1alpha1";
/// `<group>/<version>`, as a context has it in `apiVersion`.
pub const API_VERSION: &str = "webhooks.conventions.carto.run/v1alpha1";
/// What a context has in `kind`.
pub const KIND: &str = "PodConventionContext";

/// What is sent each way: a request has its `spec`, an answer its `status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodConventionContext {
    /// [`API_VERSION`]; an answer may leave it out.
    #[serde(deserialize_with = "null_is_absent")]
    pub api_version: String,
    /// [`KIND`]; an answer may leave it out.
    #[serde(deserialize_with = "null_is_absent")]
    pub kind: String,
    /// The name of the call.
    #[serde(deserialize_with = "null_is_absent")]
    pub metadata: ContextMetadata,
    /// The request.
    #[serde(deserialize_with = "null_is_absent")]
    pub spec: PodConventionContextSpec,
    /// The answer.
    #[serde(deserialize_with = "null_is_absent")]
    pub status: PodConventionContextStatus,
}

/// The name of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextMetadata {
    /// `<PodIntent>-<ClusterPodConvention>`; a webhook reads nothing from it.
    #[serde(deserialize_with = "null_is_absent")]
    pub name: String,
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodConventionContextSpec {
    /// The template as the conventions before left it.
    #[serde(deserialize_with = "null_is_absent")]
    pub template: PodTemplate,
    /// Its images, sorted, each once.
    #[serde(deserialize_with = "null_is_absent")]
    pub image_config: Vec<ImageConfig>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodConventionContextStatus {
    /// The whole template, changed or not.
    pub template: Option<PodTemplate>,
    /// Names for what was done; empty when nothing was.
    #[serde(deserialize_with = "list")]
    pub applied_conventions: Option<Vec<String>>,
}

impl PodConventionContext {
    /// What a convention is asked. Everything is there that Go would write, so that a webhook may lean on it.
    ///
    /// ```
    /// use convention_protocol::{PodConventionContext, PodTemplate};
    ///
    /// let request = PodConventionContext::request("app-add-env".to_owned(), PodTemplate::default(), Vec::new());
    /// assert_eq!(
    ///     serde_json::to_value(request)?["status"],
    ///     serde_json::json!({"template": {"metadata": {}, "spec": {"containers": null}}, "appliedConventions": null}),
    /// );
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn request(name: String, template: PodTemplate, images: Vec<ImageConfig>) -> Self {
        let template = PodTemplate {
            spec: template.spec.or_else(|| PodTemplate::empty().spec),
            ..template
        };
        Self {
            spec: PodConventionContextSpec {
                template,
                image_config: images,
            },
            status: PodConventionContextStatus {
                template: Some(PodTemplate::empty()),
                applied_conventions: None,
            },
            ..Self::named(name)
        }
    }

    /// The answer to this request. It does not repeat the request, which may hold megabytes of bills of materials.
    pub fn answer(&self, template: PodTemplate, applied: Vec<String>) -> PodConventionAnswer {
        let name = self.metadata.name.clone();
        let named = Self::named(name);
        PodConventionAnswer {
            api_version: named.api_version,
            kind: named.kind,
            metadata: named.metadata,
            status: PodConventionContextStatus {
                template: Some(template),
                applied_conventions: Some(applied),
            },
        }
    }

    fn named(name: String) -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            metadata: ContextMetadata { name },
            ..Self::default()
        }
    }
}

/// A [`PodConventionContext`] without `spec`: all that is read of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodConventionAnswer {
    /// [`API_VERSION`], or nothing.
    #[serde(deserialize_with = "null_is_absent")]
    pub api_version: String,
    /// [`KIND`], or nothing.
    #[serde(deserialize_with = "null_is_absent")]
    pub kind: String,
    /// The name of the call.
    #[serde(deserialize_with = "null_is_absent")]
    pub metadata: ContextMetadata,
    /// The answer.
    #[serde(deserialize_with = "null_is_absent")]
    pub status: PodConventionContextStatus,
}
