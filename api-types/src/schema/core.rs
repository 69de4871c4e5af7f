//! Schemas that come from Kubernetes itself, and what several kinds share.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::build::{
    Object, Refine, any, boolean, integer, list, list_by, map, object, plain_text, quantity, text,
    time,
};
use crate::condition::ConditionStatus;
use crate::selector::FieldOperator;

/// core/v1 EnvVar.
pub(super) fn env(description: &str) -> JSONSchemaProps {
    list(
        description,
        object("An environment variable.")
            .required("name", text("Name of the variable."))
            .optional(
                "value",
                text("Value of the variable; $(NAME) refers to earlier variables."),
            )
            .optional("valueFrom", env_source()),
    )
}

fn env_source() -> Object {
    let key_of = |what: &str| {
        object(&format!("A key of a {what}."))
            .required("key", text("The key."))
            .optional("name", text(&format!("Name of the {what}.")))
            .optional(
                "optional",
                boolean(&format!("Whether the {what} or its key may be missing.")),
            )
            .atomic()
    };
    object("Where the value comes from, when it is not given here.")
        .optional("configMapKeyRef", key_of("ConfigMap"))
        .optional(
            "fieldRef",
            object("A field of the pod.")
                .optional(
                    "apiVersion",
                    text("Version of the schema the path is written in."),
                )
                .required("fieldPath", text("Path of the field."))
                .atomic(),
        )
        .optional(
            "resourceFieldRef",
            object("A resource limit or request of a container.")
                .optional("containerName", text("Name of the container."))
                .optional("divisor", quantity())
                .required("resource", text("Which resource."))
                .atomic(),
        )
        .optional("secretKeyRef", key_of("Secret"))
}

/// core/v1 ResourceRequirements.
pub(super) fn resources(description: &str) -> Object {
    object(description)
        .optional(
            "claims",
            list_by(
                "Names of resource claims of the pod.",
                "name",
                object("A resource claim.").required("name", text("Name of the claim.")),
            ),
        )
        .optional(
            "limits",
            map(
                "The most that may be used of each resource, such as memory: 512Mi.",
                quantity(),
            ),
        )
        .optional(
            "requests",
            map(
                "How much of each resource is reserved, such as cpu: 100m.",
                quantity(),
            ),
        )
}

/// core/v1 ObjectReference.
pub(super) fn object_reference(description: &str) -> Object {
    object(description)
        .optional("apiVersion", text("API version of the object."))
        .optional("fieldPath", text("Part of the object."))
        .optional("kind", text("Kind of the object."))
        .optional("name", text("Name of the object."))
        .optional("namespace", text("Namespace of the object."))
        .optional("resourceVersion", text("Version of the object's state."))
        .optional("uid", text("Uid of the object."))
        .atomic()
}

/// The status of a kind, with what every kind has in it.
pub(super) fn status(description: &str) -> Object {
    object(description)
        .optional("conditions", conditions())
        .optional(
            "observedGeneration",
            integer("Generation of the object that this status is about."),
        )
}

/// `conditions` of a kind, and of a step.
pub(super) fn conditions() -> JSONSchemaProps {
    list(
        "What is known, in a fixed order; Ready sums up.",
        object("What is known about one aspect.")
            .required("lastTransitionTime", time("When the condition last changed."))
            .required("message", text("The reason in words for people; may be empty.").max_length(32768))
            .optional("observedGeneration", integer("Generation of the object that the condition is about.").minimum(0))
            .required(
                "reason",
                text("The reason as one word for programs, such as ResourceSubmissionComplete.")
                    .min_length(1)
                    .max_length(1024)
                    .pattern("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
            )
            .required("status", text("Whether it holds.").one_of(&ConditionStatus::ALL.map(ConditionStatus::as_str)))
            .required(
                "type",
                text("The aspect that the condition is about, such as Ready.").max_length(316).pattern(
                    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                ),
            ),
    )
}

/// Parameters with a required value, as owners give them.
pub(super) fn owner_params(description: &str) -> JSONSchemaProps {
    list(
        description,
        object("A parameter.")
            .required("name", text("Name of the parameter."))
            .required("value", any("Any JSON.")),
    )
}

/// The git, image and subPath of an owner.
pub(super) fn source() -> Object {
    let reference = object("Which state of the repository.")
        .optional("branch", text("Name of a branch."))
        .optional("commit", text("A commit id."))
        .optional("tag", text("Name of a tag."));
    object("Where the source is.")
        .optional(
            "git",
            object("A git repository.")
                .optional("ref", reference)
                .optional("url", text("URL of the repository.")),
        )
        .optional("image", text("An OCI image that carries the source."))
        .optional("subPath", text("Path inside the repository or image."))
}

/// metav1 label requirements: the operator is any text here, and checked at admission.
pub(super) fn match_expressions(description: &str) -> JSONSchemaProps {
    list(
        description,
        object("A requirement on a label.")
            .required("key", text("Key of the label."))
            .required("operator", text("In, NotIn, Exists or DoesNotExist."))
            .optional("values", list("Values, for In and NotIn.", plain_text())),
    )
}

/// The fields of a requirement on a field.
pub(super) fn field_requirement() -> Object {
    object("A requirement on a field.")
        .required(
            "key",
            text("Path of the field, from the root of the object, e.g. spec.source.git.url.")
                .min_length(1),
        )
        .required(
            "operator",
            text("How the value is compared.")
                .one_of(&FieldOperator::ALL.map(FieldOperator::as_str)),
        )
        .optional("values", list("Values, for In and NotIn.", plain_text()))
}
