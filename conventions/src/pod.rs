//! Parts of pods, for other kinds that hold some: their schemas, and whether a value is one.

use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{EnvFromSource, EnvVar, Volume, VolumeMount};
use serde_json::Value;

use crate::schema::shape::{Fault, Shape};
use crate::schema::{self, kubernetes};

/// A part of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A variable of a container.
    EnvVar,
    /// Where a container has many variables from.
    EnvFromSource,
    /// A volume of the pod.
    Volume,
    /// Where a container sees a volume.
    VolumeMount,
}

static ENV_VAR: LazyLock<Shape> = LazyLock::new(|| Shape::of(&Part::EnvVar.schema()));
static ENV_FROM: LazyLock<Shape> = LazyLock::new(|| Shape::of(&Part::EnvFromSource.schema()));
static VOLUME: LazyLock<Shape> = LazyLock::new(|| Shape::of(&Part::Volume.schema()));
static MOUNT: LazyLock<Shape> = LazyLock::new(|| Shape::of(&Part::VolumeMount.schema()));

impl Part {
    /// Its schema as in the PodSpec of a PodIntent: without descriptions, and fields of newer versions of Kubernetes are kept.
    pub fn schema(self) -> Value {
        match self {
            Self::EnvVar => kubernetes::part::<EnvVar>(),
            Self::EnvFromSource => kubernetes::part::<EnvFromSource>(),
            Self::Volume => kubernetes::part::<Volume>(),
            Self::VolumeMount => kubernetes::part::<VolumeMount>(),
        }
    }

    /// Whether a value at this path is one, as far as types and required fields go.
    ///
    /// ```
    /// use conventions::pod::Part;
    /// use serde_json::json;
    ///
    /// assert!(Part::EnvVar.check(&json!({"name": "A", "value": "1"}), "env[0]").is_ok());
    /// let fault = Part::EnvVar.check(&json!({"name": "A", "value": 1}), "env[0]").unwrap_err();
    /// assert_eq!(fault.field, "env[0].value");
    /// ```
    ///
    /// # Errors
    ///
    /// The first fault; whoever wrote the value must correct it.
    pub fn check(self, value: &Value, path: &str) -> Result<(), Fault> {
        let shape = match self {
            Self::EnvVar => &ENV_VAR,
            Self::EnvFromSource => &ENV_FROM,
            Self::Volume => &VOLUME,
            Self::VolumeMount => &MOUNT,
        };
        shape.check(value, path)
    }
}

/// The schema of a selector by labels.
pub fn label_selector_schema() -> Value {
    kubernetes::label_selector()
}

/// The schema of a list of conditions.
pub fn conditions_schema() -> Value {
    schema::conditions()
}
