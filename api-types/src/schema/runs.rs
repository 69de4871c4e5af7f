//! Runnable and ClusterRunTemplate.

use serde_json::json;

use super::build::{Object, Refine, any, any_object, map, object, plain_text, text};
use super::core::{conditions, observed_generation};
use super::root;
use super::templates::retention_policy;

pub(super) fn runnable() -> Object {
    let spec = object("Which template, with which inputs.")
        .optional(
            "inputs",
            map("Inputs for the template, by name.", any("Any JSON.")),
        )
        .optional(
            "retentionPolicy",
            retention_policy("How many finished objects are kept.")
                .with_default(json!({"maxFailedRuns": 10, "maxSuccessfulRuns": 10})),
        )
        .required(
            "runTemplateRef",
            object("The ClusterRunTemplate.")
                .optional("kind", text("Ignored; always ClusterRunTemplate."))
                .required(
                    "name",
                    text("Name of the ClusterRunTemplate.").min_length(1),
                ),
        )
        .optional("selector", selector())
        .optional(
            "serviceAccountName",
            text("ServiceAccount in this namespace whose rights are used; default when absent."),
        );
    let status = object("What became of it.")
        .optional(
            "conditions",
            conditions("What is known, in a fixed order; Ready sums up."),
        )
        .optional("observedGeneration", observed_generation())
        .optional(
            "outputs",
            map(
                "Outputs of the newest object that succeeded, by name.",
                any("Any JSON."),
            ),
        );
    root(
        "An object that is created anew whenever its inputs change.",
        spec,
    )
    .optional("status", status)
}

fn selector() -> Object {
    object("An object of the cluster the template may read; exactly one must match.")
        .required(
            "matchingLabels",
            map("Labels the object must have.", plain_text()),
        )
        .required(
            "resource",
            object("Kind of the object.")
                .optional("apiVersion", text("API version of the object."))
                .optional("kind", text("Kind of the object.")),
        )
}

pub(super) fn run_template() -> Object {
    let spec = object("What is created, and what is read from it.")
        .optional(
            "outputs",
            map("Path in the created object, by output name.", plain_text()),
        )
        .required(
            "template",
            any_object("The object to create, with $(...)$ tags."),
        );
    root(
        "The object a Runnable creates, and where its outputs are.",
        spec,
    )
}
