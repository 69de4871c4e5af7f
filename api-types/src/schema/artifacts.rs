//! Artifact.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::build::{Object, any, integer, list, object, text, time};
use super::owners::provenance;

pub(super) fn artifact() -> Object {
    // Nothing is stamped for it, so that its name may be longer than a label.
    let metadata = JSONSchemaProps {
        type_: Some("object".to_owned()),
        ..JSONSchemaProps::default()
    };
    object("Outputs of a step, kept by the controller. What is believed of it is what the status of its owner says.")
        .optional("apiVersion", text("Version of the schema of this object."))
        .optional("kind", text("Kind of this object."))
        .required("metadata", metadata)
        .required("spec", spec())
}

fn spec() -> Object {
    let owner = object("For whom it is kept.")
        .required("kind", text("Workload or Deliverable."))
        .required("name", text("Its name."))
        .required("uid", text("Its uid."));
    let output = object("A value.")
        .required("name", text("Name of the output."))
        .required("value", any("The value."));
    object("The values, and what made them.")
        .required("outputs", list("The values.", output))
        .required("owner", owner)
        .required("provenance", provenance())
        .optional(
            "rendering",
            text("Digest of what was rendered. Absent where anything of it comes from a Secret."),
        )
        .required("step", text("Name of the resource in the blueprint."))
}

/// An Artifact that a status names.
pub(super) fn references() -> JSONSchemaProps {
    let reference = object("An Artifact.")
        .required("accepted", time("When its outputs were accepted."))
        .required("bytes", integer("How many bytes its values have as JSON."))
        .required("digest", text("Digest of its values."))
        .required("identity", text("Identity of its outputs."))
        .required("name", text("Name of the Artifact."));
    list(
        "The Artifacts that keep outputs of the resource, the newest first.",
        reference,
    )
}
