//! The template kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde_json::json;

use super::build::{
    Object, Refine, any, any_object, boolean, integer, list, map, object, plain_text, text,
};
use super::core::field_requirement;
use super::root;
use crate::duration::DURATION_PATTERN;
use crate::templates::{ForeignFields, Lifecycle, UpdatePolicy, WhenReconciling};

pub(super) fn source() -> Object {
    let spec = spec()
        .required(
            "revisionPath",
            text(
                "JSONPath of the revision in the stamped object, such as .status.artifact.revision; see urlPath.",
            ),
        )
        .required(
            "urlPath",
            text(
                "JSONPath, in the stamped object, of the url that the step gives, such as .status.artifact.url. The \
                 dialect of kubectl; a path that begins with $ is standard JSONPath (RFC 9535).",
            ),
        );
    root(
        "Stamps an object that yields source: a url and a revision.",
        with_success(spec),
    )
}

pub(super) fn image() -> Object {
    let spec = spec().required(
        "imagePath",
        text(
            "JSONPath of the image in the stamped object, such as .status.latestImage. The dialect of kubectl; a path \
             that begins with $ is standard JSONPath (RFC 9535).",
        ),
    );
    root("Stamps an object that yields an image.", with_success(spec))
}

pub(super) fn config() -> Object {
    let spec = spec().required(
        "configPath",
        text(
            "JSONPath of the configuration in the stamped object, such as .data.manifests. The dialect of kubectl; a \
             path that begins with $ is standard JSONPath (RFC 9535).",
        ),
    );
    root(
        "Stamps an object that yields configuration.",
        with_success(spec),
    )
}

pub(super) fn plain() -> Object {
    root(
        "Creates an object for each owner that is given outputs of other steps and gives none.",
        with_success(spec()),
    )
}

pub(super) fn deployment() -> Object {
    root(
        "Stamps an object that deploys; hands its deployment on once the object says that it is done.",
        with_success(spec()),
    )
}

pub(super) fn validation() -> Object {
    let spec = with_observed(spec(), Reads::Stamped)
        .optional(
            "failed",
            completion_condition(
                "What says failed, beside observedMatches; as observedCompletion.succeeded.",
                Reads::Stamped,
            ),
        )
        .optional(
            "timeout",
            text(
                "How long the environment is kept for the validation, from when the revision was put into it: a \
                 duration such as 90s, 30m or 1h, which is the default; 0 for ever.",
            )
            .pattern(DURATION_PATTERN),
        );
    root(
        "Stamps an object that validates what is deployed; hands its deployment on once the validation succeeded.",
        spec,
    )
}

/// What the rules of a template may read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// The stamped object alone.
    Stamped,
    /// Other objects, too.
    Others,
}

/// With the two rules that the Go controller has, of deployments.
fn with_observed(spec: Object, reads: Reads) -> Object {
    let completion =
        object("Values that say succeeded or failed, once the object has observed its generation.")
            .optional(
                "failed",
                completion_condition("What says failed; asked first; as succeeded.", reads),
            )
            .required(
                "succeeded",
                completion_condition(
                    "What says succeeded: key and value; or allOf or anyOf with a list of conditions, or not with one, up to \
                     four deep; a list means allOf.",
                    reads,
                ),
            );
    spec.optional("observedCompletion", completion).optional(
        "observedMatches",
        list("Pairs of paths whose values must be equal.", matched(reads)),
    )
}

fn matched(reads: Reads) -> Object {
    let matched = object("Two paths whose values must be equal.")
        .required(
            "input",
            text("JSONPath of the value that was asked for, such as spec.inputs.revision."),
        )
        .required(
            "output",
            text("JSONPath of the value that was reached, such as status.outputs.revision."),
        );
    match reads {
        Reads::Stamped => matched,
        Reads::Others => matched.optional(
            "object",
            other_object("The object that output is read from, if that is not the stamped one."),
        ),
    }
}

/// An object beside the stamped one.
fn other_object(description: &str) -> Object {
    let description = format!(
        "{description} In the owner's namespace, if its kind has namespaces; read with the owner's rights. Texts may hold \
         $(...)$."
    );
    object(&description)
        .required("apiVersion", text("Its group and version."))
        .required("kind", text("Its kind."))
        .optional(
            "matchLabels",
            map(
                "Labels that it alone has: exactly one of name and matchLabels.",
                plain_text(),
            ),
        )
        .optional(
            "name",
            text("Its name: exactly one of name and matchLabels."),
        )
}

/// When outputs are read, of templates that stamp what gives or deploys something.
fn with_success(spec: Object) -> Object {
    let input = object("An input that the object reports.")
        .required(
            "objectPath",
            text("JSONPath of the input in the stamped object, such as .status.latestImage.source.revision."),
        )
        .required(
            "templatingContextPath",
            text("Its path in what the template sees, such as sources.source.revision."),
        );
    with_observed(spec, Reads::Others)
        .optional(
            "alwaysSuccessful",
            boolean(
                "Outputs are read as soon as the object holds what was rendered: for kinds that no controller reconciles, \
                 such as ConfigMaps. One of observedCompletion, observedMatches, alwaysSuccessful and inputsOnStatus at most.",
            ),
        )
        .optional(
            "failed",
            completion_condition(
                "What says failed, beside observedMatches or inputsOnStatus; as observedCompletion.succeeded.",
                Reads::Others,
            ),
        )
        .optional(
            "foreignFields",
            text(
                "What becomes of outputs while others have set fields of the object that are not rendered, metadata and status \
                 aside. Allow, which is the default: they are read, and their provenance names the fields. Refuse: they are \
                 not read until the fields are gone.",
            )
            .one_of(&ForeignFields::ALL.map(ForeignFields::as_str)),
        )
        .optional(
            "inputsOnStatus",
            list(
                "Outputs are read whenever the object reports the inputs that it is rendered from.",
                input,
            ),
        )
        .optional("updatePolicy", update_policy())
}

fn update_policy() -> Object {
    object("What becomes of an update that comes while the object is neither good nor failed.")
        .optional(
            "depth",
            integer("How many updates may wait, 10 unless given; the oldest is dropped first.")
                .minimum(1)
                .maximum(UpdatePolicy::MOST_DEPTH),
        )
        .optional(
            "timeout",
            text(
                "How long an update may take before a newer one takes its place: a duration such as 90s, 30m or 1h, which is \
                 the default; 0 for ever.",
            )
            .pattern(DURATION_PATTERN),
        )
        .required(
            "whenReconciling",
            text(
                "Apply: it is applied at once. Wait: it waits until the object is good or has failed; then the newest is \
                 applied, and if that fails, the one before it, until one is good.",
            )
            .one_of(&WhenReconciling::ALL.map(WhenReconciling::as_str)),
        )
}

/// A condition or a list of them. Conditions are nested, which a schema cannot say, so it says no type.
fn completion_condition(description: &str, reads: Reads) -> JSONSchemaProps {
    let fields = object("")
        .optional("key", text("Path in the stamped object."))
        .optional("value", text("The text expected there."));
    let fields = match reads {
        Reads::Stamped => fields,
        Reads::Others => fields.optional(
            "object",
            other_object("The object that key is read from, if that is not the stamped one."),
        ),
    };
    JSONSchemaProps {
        description: Some(description.to_owned()),
        type_: None,
        x_kubernetes_preserve_unknown_fields: Some(true),
        ..fields.into()
    }
}

fn spec() -> Object {
    let param = object("A parameter.")
        .required(
            "default",
            any("Any JSON; used when nobody sets the parameter."),
        )
        .required("name", text("Name of the parameter."));
    object("What is stamped, and what is read from it.")
        .optional(
            "adopt",
            boolean("Whether an object that is there already, and was made by somebody else, is taken over."),
        )
        .optional(
            "healthRule",
            health_rule("When the stamped object is healthy: exactly one of the fields."),
        )
        .optional(
            "lifecycle",
            text(
                "What happens when the template renders something else. mutable: the object is updated. immutable: a new \
                 object is created, and outputs are those of the newest healthy one. tekton: as immutable, for runs of \
                 Tekton, which are healthy once they have succeeded.",
            )
                .one_of(&Lifecycle::ALL.map(Lifecycle::as_str))
                .defaults_to(json!(Lifecycle::default().as_str())),
        )
        .optional("params", list("The parameters the template takes.", param))
        .optional(
            "retentionPolicy",
            retention_policy("How many objects are kept of those that an immutable or tekton step created; the newest is always kept."),
        )
        .optional(
            "template",
            any_object(
                "The object to create. $(...)$ is replaced by a value: workload or deliverable (the owner), params.NAME, \
                 sources.NAME.url, sources.NAME.revision, images.NAME.image, configs.NAME.config, deployment.url, \
                 deployment.revision; with a single input also source.url, source.revision, image, config. Exactly one of template and ytt.",
            ),
        )
        .optional(
            "ytt",
            text("The object to stamp, as a ytt document: exactly one of template and ytt."),
        )
}

pub(super) fn retention_policy(description: &str) -> Object {
    object(description)
        .required("maxFailedRuns", integer("Failed ones to keep.").minimum(1))
        .required(
            "maxSuccessfulRuns",
            integer("Successful ones to keep.").minimum(1),
        )
}

pub(super) fn health_rule(description: &str) -> Object {
    let condition = object("A condition of the stamped object.")
        .required("status", text("Its status."))
        .required("type", text("Its type."));
    let field = field_requirement().optional(
        "messagePath",
        text("Path of the message that explains the match."),
    );
    let side = |description: &str| {
        object(description)
            .optional(
                "matchConditions",
                list("Conditions of the stamped object.", condition.clone()),
            )
            .optional(
                "matchFields",
                list("Fields of the stamped object.", field.clone()),
            )
    };
    object(description)
        .optional("alwaysHealthy", any_object("As soon as it exists."))
        .optional(
            "multiMatch",
            object("By several conditions and fields.")
                .required("healthy", side("All of these must match."))
                .required("unhealthy", side("Any of these suffices; asked first.")),
        )
        .optional(
            "singleConditionType",
            text("When its condition of this type is True."),
        )
}
