//! Runnable and ClusterRunTemplate.

use serde_json::json;

use super::build::{
    Object, Refine, any, any_object, integer, list, map, object, plain_text, text, time,
};
use super::core::status;
use super::owners::{stamped_for, stamped_ref};
use super::root;
use super::templates::{health_rule, retention_policy};
use crate::duration::DURATION_PATTERN;
use crate::runnable::{Concurrency, MOST_ATTEMPTS, RunResult};

pub(super) fn runnable() -> Object {
    root(
        "An object that is created anew whenever its inputs change.",
        runnable_spec(),
    )
    .optional("status", runnable_status())
}

fn runnable_spec() -> Object {
    object("Which template, with which inputs.")
        .optional(
            "concurrency",
            text(
                "What happens when the inputs change while a run is going. Allow (also when absent): another run starts \
                 beside it. Queue: the newest inputs wait until it has ended. Replace: it is deleted.",
            )
                .one_of(&Concurrency::ALL.map(Concurrency::as_str)),
        )
        .optional(
            "inputs",
            map("Inputs for the template, by name.", any("Any JSON.")),
        )
        .optional(
            "retentionPolicy",
            retention_policy("How many finished runs are kept.")
                .with_default(json!({"maxFailedRuns": 10, "maxSuccessfulRuns": 10})),
        )
        .optional("retry", retry())
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
        )
}

fn runnable_status() -> Object {
    status("What the controller has done, what it waits for, and how the runs went.")
        .optional(
            "lastRerunRequestedAt",
            text("The request for a rerun that runs are made for."),
        )
        .optional(
            "outputs",
            map(
                "Outputs of the newest object that succeeded, by name.",
                any("Any JSON."),
            ),
        )
        .optional("runs", list("The runs, newest first.", run()))
        .optional("stampedFor", stamped_for())
        .optional(
            "stampedRef",
            stamped_ref("The object that was submitted last."),
        )
}

fn retry() -> Object {
    object("Whether a failed run is tried again with the same inputs.")
        .optional(
            "backoff",
            text(
                "How long after the first failure, as in 30s; doubles each time. 10s when absent.",
            )
            .pattern(DURATION_PATTERN),
        )
        .required(
            "maxAttempts",
            integer("How many runs at the most, the first included.")
                .minimum(1)
                .maximum(MOST_ATTEMPTS),
        )
}

fn run() -> Object {
    let results = RunResult::ALL.map(RunResult::as_str);
    object("A run.")
        .optional(
            "digest",
            text("Digest of what it was made from: rendering, attempt and request for a rerun."),
        )
        .optional(
            "finished",
            time("When it ended, or was seen to have ended."),
        )
        .optional("message", text("Why, in the words of the object."))
        .required("name", text("Name of the object."))
        .required("result", text("What came of it.").one_of(&results))
        .optional(
            "sequence",
            integer("Position among the runs; the highest is the newest.").minimum(0),
        )
        .optional("started", time("When it was created."))
        .optional("uid", text("Uid of the object."))
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
        .optional(
            "healthRule",
            health_rule(
                "When a run has succeeded or failed: exactly one of the fields. By its condition Succeeded when absent.",
            ),
        )
        .optional(
            "template",
            any_object("The object to create, with $(...)$ tags: exactly one of template and ytt."),
        )
        .optional(
            "ytt",
            text("The object to create, as a ytt document: exactly one of template and ytt."),
        );
    root(
        "The object a Runnable creates, and where its outputs are.",
        spec,
    )
}
