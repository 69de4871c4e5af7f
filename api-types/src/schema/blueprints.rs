//! ClusterSupplyChain and ClusterDelivery.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::build::{Object, Refine, any, integer, list, map, object, plain_text, text};
use super::core::{field_requirement, match_expressions, status};
use super::root;
use crate::artifact::MOST_RETAINED;
use crate::templates::TemplateKind;

pub(super) fn supply_chain() -> Object {
    let kinds = [
        TemplateKind::Source,
        TemplateKind::Image,
        TemplateKind::Plain,
        TemplateKind::Config,
    ];
    let resource = resource(kinds).optional("images", inputs("Inputs that carry an image."));
    root(
        "The steps that turn a Workload into objects, and which Workloads they are for.",
        spec(resource),
    )
    .optional("status", status("What is known of it."))
}

pub(super) fn delivery() -> Object {
    let kinds = [
        TemplateKind::Source,
        TemplateKind::Deployment,
        TemplateKind::Validation,
        TemplateKind::Plain,
        TemplateKind::Config,
    ];
    let deployment = object("The deployment that goes in.")
        .required("resource", text("Name of the step that provides it."));
    let resource = resource(kinds).optional("deployment", deployment);
    root(
        "The steps that turn a Deliverable into objects, and which Deliverables they are for.",
        spec(resource),
    )
    .optional("status", status("What is known of it."))
}

fn spec(resource: Object) -> Object {
    object("Which owners, and which steps.")
        .optional("allowedNamespaces", allowed_namespaces())
        .optional("artifacts", artifacts())
        .optional("params", params("Parameters for all steps."))
        .required(
            "resources",
            list(
                "The steps, in the order in which they are reported.",
                resource,
            ),
        )
        .optional("selector", map("Labels an owner must have.", plain_text()))
        .optional(
            "selectorMatchExpressions",
            match_expressions("Label requirements an owner must meet."),
        )
        .optional(
            "selectorMatchFields",
            list(
                "Field requirements an owner must meet.",
                field_requirement(),
            ),
        )
        .optional(
            "serviceAccountRef",
            object("ServiceAccount used for owners that name none.")
                .required("name", text("Name of the ServiceAccount."))
                .optional("namespace", text("Its namespace; the owner's when absent.")),
        )
}

fn allowed_namespaces() -> Object {
    object("Labels that the namespace of an owner must have; owners elsewhere are refused. All namespaces when absent.")
        .optional(
            "matchExpressions",
            match_expressions("Label requirements that the namespace must meet."),
        )
        .optional(
            "matchLabels",
            map("Labels that the namespace must have.", plain_text()),
        )
        .atomic()
}

fn artifacts() -> Object {
    object("Which outputs are kept as Artifacts, beyond those that are needed.").optional(
        "retain",
        integer(
            "How many of the outputs of each step are kept with their values, of templates that say when outputs are good. 0 \
             when absent.",
        )
        .minimum(0)
        .maximum(MOST_RETAINED),
    )
}

fn params(description: &str) -> JSONSchemaProps {
    list(
        description,
        object("A parameter: exactly one of value and default.")
            .optional("default", any("Any JSON; the owner can override it."))
            .required("name", text("Name of the parameter."))
            .optional("value", any("Any JSON; the owner cannot override it.")),
    )
}

fn inputs(description: &str) -> JSONSchemaProps {
    list(
        description,
        object("An output of another step.")
            .required("name", text("Name by which the template refers to it."))
            .required("resource", text("Name of the step that provides it.")),
    )
}

fn resource<const N: usize>(kinds: [TemplateKind; N]) -> Object {
    let dependency = object("A step that must be good.").required(
        "resource",
        text("Name of the step, whatever its template is."),
    );
    object("A step.")
        .optional("configs", inputs("Inputs that carry configuration."))
        .optional(
            "dependsOn",
            list(
                "Steps that must be good, as they are rendered now, before this one is created or changed. Nothing of them goes in.",
                dependency,
            ),
        )
        .required(
            "name",
            text("Name of the step, unique within the blueprint."),
        )
        .optional(
            "params",
            params("Parameters for this step; they replace the blueprint's of the same name."),
        )
        .optional("sources", inputs("Inputs that carry a url and a revision."))
        .required("templateRef", template_reference(kinds))
}

fn template_reference<const N: usize>(kinds: [TemplateKind; N]) -> Object {
    let option = object("A template, or an input to hand through, for owners that match.")
        .optional("name", text("Name of the template.").min_length(1))
        .optional(
            "passThrough",
            text("Local name of the input that becomes the output, with nothing stamped."),
        )
        .required(
            "selector",
            object("Which owners the option is for.")
                .optional(
                    "matchExpressions",
                    match_expressions("Label requirements an owner must meet."),
                )
                .optional(
                    "matchFields",
                    list(
                        "Field requirements an owner must meet.",
                        field_requirement(),
                    ),
                )
                .optional(
                    "matchLabels",
                    map("Labels an owner must have.", plain_text()),
                )
                .atomic(),
        );
    object("The template: exactly one of name and options.")
        .required(
            "kind",
            text("Kind of the template.").one_of(&kinds.map(TemplateKind::as_str)),
        )
        .optional("name", text("Name of the template.").min_length(1))
        .optional(
            "options",
            list("What the template is chosen from, by the owner.", option).min_items(2),
        )
}
