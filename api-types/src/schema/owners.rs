//! Workload and Deliverable.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::artifacts::references;
use super::build::{
    Object, Refine, any, boolean, integer, list, list_by, map, object, plain_text, text, time,
};
use super::core::{conditions, env, object_reference, owner_params, resources, source, status};
use super::root;
use crate::runnable::RunResult;
use crate::status::{SummaryState, ValidationVerdict};

pub(super) fn workload() -> Object {
    let spec = object("The code or image, and what the supply chain should know about it.")
        .optional("build", object("What the build needs.").optional("env", env("Environment of the build.")))
        .optional("env", env("Environment of the running application."))
        .optional("image", text("A prebuilt image, as an alternative to source."))
        .optional("params", owner_params("Parameters for the templates of the supply chain."))
        .optional("resources", resources("Compute resources of the running application."))
        .optional(
            "serviceAccountName",
            text("ServiceAccount in this namespace whose rights are used; wins over the supply chain's."),
        )
        .optional("serviceClaims", service_claims())
        .optional("source", source());
    let status = owner_status("supplyChainRef", "The chosen supply chain.");
    root(
        "What a developer submits to get an application built and running.",
        spec,
    )
    .optional("status", status)
}

fn service_claims() -> JSONSchemaProps {
    let reference = object("The service.")
        .required("apiVersion", text("API version of the service."))
        .required("kind", text("Kind of the service."))
        .required("name", text("Name of the service."));
    list(
        "Services the application needs.",
        object("A service.")
            .required("name", text("Name of the claim."))
            .optional("ref", reference),
    )
}

pub(super) fn deliverable() -> Object {
    let spec = object("What is to be deployed, and what the delivery should know about it.")
        .optional(
            "params",
            owner_params("Parameters for the templates of the delivery."),
        )
        .optional(
            "serviceAccountName",
            text(
                "ServiceAccount in this namespace whose rights are used; wins over the delivery's.",
            ),
        )
        .optional("source", source());
    let status = owner_status("deliveryRef", "The chosen delivery.").optional(
        "environments",
        list_by(
            "The environments that are validated.",
            "resource",
            environment(),
        ),
    );
    root("Configuration that is to be deployed.", spec).optional("status", status)
}

fn owner_status(reference: &str, description: &str) -> Object {
    let blueprint_ref = object(description)
        .optional("apiVersion", text("Not written."))
        .optional("kind", text("Kind of the blueprint."))
        .optional("name", text("Name of the blueprint."))
        .optional("namespace", text("Not written."));
    status("What the controller has done, and what it waits for.")
        .optional(
            "pendingRemovals",
            list(
                "Objects that are no longer wanted and could not be deleted yet.",
                stamped_ref("An object to be deleted.")
                    .optional("message", text("Why it is still there.")),
            ),
        )
        .optional(
            "resources",
            list(
                "One entry per resource of the blueprint.",
                resource_status(),
            ),
        )
        .optional("stampedFor", stamped_for())
        .optional("summary", summary())
        .optional(reference, blueprint_ref)
}

pub(super) fn stamped_for() -> JSONSchemaProps {
    list(
        "The owners that led to this one, each stamped for the one before it, the first one first.",
        text("Kind and name of an owner."),
    )
}

fn summary() -> Object {
    object("Why it is not Ready, in one line; absent while it is.")
        .required("message", text("What the condition says."))
        .optional("next", text("What to do about it."))
        .optional(
            "object",
            text("The object of that resource: plural name and group of its kind, and its name."),
        )
        .required("reason", text("Reason of the condition that says so."))
        .required(
            "since",
            time("Since when state, step and reason are these."),
        )
        .required(
            "state",
            text("Whether it goes on by itself.")
                .one_of(&SummaryState::ALL.map(SummaryState::as_str)),
        )
        .optional(
            "step",
            text("The resource of the blueprint that holds it back, if it is one."),
        )
}

fn environment() -> Object {
    let deployed = arrival(
        "What is in the environment.",
        "When it was put into the environment.",
    )
    .optional(
        "unproven",
        boolean("Whether only the object itself says so, because status was lost; it is not handed on then."),
    );
    let arriving = arrival(
        "What is about to be put into the environment, or has just been.",
        "When that was written down.",
    );
    let waiting = revision("The newest revision that waits until the deployed one is validated.")
        .required("since", time("Since when it waits."));
    object("An environment, and what of it is known.")
        .required("resource", text("Name of the deploying resource."))
        .optional("deployed", deployed)
        .optional("arriving", arriving)
        .optional(
            "disregarded",
            text(
                "Digest of an annotation carto.run/environment on the object that somebody else wrote.",
            ),
        )
        .optional("waiting", waiting)
        .optional(
            "validations",
            list_by(
                "One entry per validating resource behind the environment.",
                "resource",
                validation(),
            ),
        )
}

fn revision(description: &str) -> Object {
    object(description)
        .required("revision", text("The revision."))
        .required("url", text("Where it comes from."))
}

fn arrival(description: &str, since: &str) -> Object {
    revision(description)
        .required(
            "arrival",
            integer("Number of the revision in the order in which the environment received them.")
                .minimum(1),
        )
        .required("since", time(since))
        .optional(
            "record",
            text(
                "What the object says of it in annotation carto.run/environment; sealed if it comes from a Secret.",
            ),
        )
}

fn validation() -> Object {
    object("What a validation says of the revision in the environment.")
        .required("resource", text("Name of the validating resource."))
        .required(
            "verdict",
            text("How the validation went so far.")
                .one_of(&ValidationVerdict::ALL.map(ValidationVerdict::as_str)),
        )
        .required(
            "arrival",
            integer("Number of the arrival that it is about.").minimum(0),
        )
        .optional("message", text("The reason in words for people."))
        .required("since", time("When the verdict last changed."))
}

pub(super) fn stamped_ref(description: &str) -> Object {
    object_reference(description).optional(
        "resource",
        text("Plural name and group of the object's kind."),
    )
}

fn resource_status() -> Object {
    let output = object("An output that was read.")
        .required("digest", text("SHA-256 of the whole value as YAML."))
        .required("lastTransitionTime", time("When the digest last changed."))
        .required("name", text("Name of the output."))
        .required(
            "preview",
            text("The first 1024 bytes of the value as YAML."),
        )
        .optional(
            "current",
            boolean(
                "Whether the object has it as it is rendered now; otherwise it is the last good one. Where the template says \
                 when its outputs are good.",
            ),
        )
        .optional("provenance", provenance_of_output())
        .optional(
            "value",
            any("The value, which goes on downstream while there is no new one."),
        );
    object("What a resource of the blueprint came to.")
        .optional("applied", applied())
        .optional("artifacts", references())
        .optional("conditions", conditions())
        .optional(
            "inputs",
            list(
                "The resources whose outputs are taken.",
                object("A resource.")
                    .required("name", text("Name of the resource in the blueprint.")),
            ),
        )
        .required("name", text("Name of the resource in the blueprint."))
        .optional("outputs", list("What can be read now.", output))
        .optional(
            "runs",
            list("The objects of an immutable template, newest first.", run()),
        )
        .optional(
            "stampedRef",
            stamped_ref("The object that was last submitted."),
        )
        .optional(
            "templateRef",
            object_reference("The template it was stamped from."),
        )
        .optional("underWay", under_way())
        .optional("updates", updates())
}

fn updates() -> Object {
    object("The updates of a resource whose template waits with them.")
        .required(
            "applied",
            update("The one that is applied.", "Since when it is."),
        )
        .optional("failure", text("Why the newest one failed, if it did."))
        .required("newest", integer("Number of the newest one.").minimum(1))
        .optional(
            "newestDigest",
            text("Digest of the newest one. Absent where it is the one that is applied."),
        )
        .required(
            "readFrom",
            text("Digest of what the template reads on the object."),
        )
        .optional(
            "waiting",
            list(
                "Those that wait, oldest first.",
                update("One that waits.", "When it came."),
            ),
        )
}

fn update(description: &str, since: &str) -> Object {
    let deployment = object("The deployment that went in.")
        .required("revision", any("Its revision."))
        .required("url", any("Its url."));
    let made_from = object(
        "What it was rendered from. Of the one that is applied, template, params and inputs are absent where the provenance \
         of the outputs says the same.",
    )
        .optional(
            "context",
            map(
                "The inputs that the object is to report, by path.",
                any("Any JSON."),
            ),
        )
        .optional("deployment", deployment)
        .optional("inputs", inputs_of_provenance())
        .optional("params", text("Digest of the parameters."))
        .optional("template", text("Digest of the template's spec."));
    object(description)
        .required("digest", text("Digest of what was rendered."))
        .optional("madeFrom", made_from)
        .required(
            "number",
            integer("Its number in the order in which they came.").minimum(1),
        )
        .optional(
            "rendering",
            text(
                "What was rendered, as JSON, without namespace, owner reference and labels that the step puts on each. Absent where a \
                 value of a Secret goes in, or it is large; of the one that is applied also once the object is good.",
            ),
        )
        .required("since", time(since))
}

pub(super) fn provenance() -> Object {
    made("What made it.", Object::required)
}

/// An output that the same made as the one before it has the identity only.
fn provenance_of_output() -> Object {
    made(
        "What made it. Only the identity, if the same made the output before it.",
        Object::optional,
    )
}

fn made(
    description: &str,
    with: impl Fn(Object, &'static str, JSONSchemaProps) -> Object,
) -> Object {
    let from = object("The object that it was read from.")
        .optional(
            "generation",
            integer("Its generation when the output was accepted."),
        )
        .required("uid", text("Its uid."));
    let identity =
        "By which it is told from all other outputs: a digest of its values and of what made them.";
    let always = object(description)
        .required("identity", text(identity))
        .optional(
            "foreignFields",
            list(
                "The fields of the object that others had set then, and that are not rendered.",
                plain_text(),
            ),
        )
        .optional("inputs", inputs_of_provenance());
    let read_from = "Digest of what the outputs of the template are and where they are read.";
    let fields = [
        ("accepted", time("When it was accepted.")),
        ("object", from.into()),
        ("params", text("Digest of the parameters.")),
        ("readFrom", text(read_from)),
        ("template", text("Digest of the template's spec.")),
    ];
    let add = |object, (name, schema)| with(object, name, schema);
    fields.into_iter().fold(always, add)
}

fn under_way() -> Object {
    object("What is under way while the outputs are not current.")
        .optional("inputs", inputs_of_provenance())
        .required("since", time("Since when they are not current."))
}

fn inputs_of_provenance() -> JSONSchemaProps {
    let input = object("An output that went in.")
        .required(
            "identity",
            text("Its identity, or a digest of its values where nothing says what made them."),
        )
        .required("name", text("Name of the resource that provides it."));
    list("The outputs that it was rendered from.", input)
}

fn applied() -> Object {
    object("What the object of a mutable template was when it was last applied.")
        .optional(
            "beside",
            list(
                "A digest of each value that the API server itself put beside these.",
                plain_text(),
            ),
        )
        .optional(
            "doubtful",
            list(
                "Digests of the inputs with which it held values of somebody else: what it reports of them is not read.",
                plain_text(),
            ),
        )
        .optional(
            "goodBy",
            text("Digest of what its rule went by when it was good, the versions of other objects among it."),
        )
        .optional(
            "state",
            text("Digest of the rendering and of the values that the API server then held in its fields."),
        )
        .required("uid", text("Uid of the object."))
        .optional("values", text("Digest of the values that the API server then held in its fields."))
}

fn run() -> Object {
    let results =
        [RunResult::Running, RunResult::Succeeded, RunResult::Failed].map(RunResult::as_str);
    object("An object of an immutable template.")
        .optional(
            "beside",
            list(
                "A digest of each value that it held beside what was rendered when it was made.",
                plain_text(),
            ),
        )
        .optional("digest", text("Digest of its rendering."))
        .required("name", text("Name of the object."))
        .optional(
            "outputs",
            map(
                "The values that were read from it, by output.",
                any("Any JSON."),
            ),
        )
        .required("result", text("What came of it.").one_of(&results))
        .required(
            "sequence",
            integer("Position among the objects of the resource; the highest is the newest.")
                .minimum(0),
        )
        .optional(
            "state",
            text(
                "Digest of the rendering and of the values that the object held when it was made.",
            ),
        )
        .required("uid", text("Uid of the object."))
}
