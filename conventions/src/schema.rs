//! The CustomResourceDefinitions.
//!
//! What Kubernetes itself defines is generated from its own definitions ([`kubernetes`]); what is ours is written here.
//! The Go controller's schemas are a part of them. What it only refuses at admission is an enum here, and what it only
//! fills in at admission a default, so that both hold while the webhook is down.

mod facets;
pub(crate) mod kubernetes;
pub(crate) mod shape;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceValidation, JSONSchemaProps,
};
use kube_core::CustomResourceExt;
use serde_json::{Value, json};

use crate::convention::{
    ClusterPodConvention, FailurePolicy, MOST_TIMEOUT_SECONDS, Priority, SelectorTarget,
};
use crate::intent::{DEFAULT_SERVICE_ACCOUNT, PodIntent};

/// By this label tools know kinds that have a PodSpec at `spec.template.spec`.
const PODSPECABLE: (&str, &str) = ("duck.knative.dev/podspecable", "true");
/// What all objects of conventions carry.
const COMPONENT: (&str, &str) = ("app.kubernetes.io/component", "conventions");

/// Both CustomResourceDefinitions.
///
/// ```
/// let names: Vec<String> = conventions::crds().into_iter().filter_map(|crd| crd.metadata.name).collect();
/// assert_eq!(names, ["podintents.conventions.carto.run", "clusterpodconventions.conventions.carto.run"]);
/// ```
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut intent = crd::<PodIntent>(intent());
    let labels = intent.metadata.labels.get_or_insert_default();
    labels.insert(PODSPECABLE.0.to_owned(), PODSPECABLE.1.to_owned());
    vec![intent, crd::<ClusterPodConvention>(convention())]
}

/// The derived definition (names, scope, columns, subresource) with the schema.
fn crd<K: CustomResourceExt>(schema: Value) -> CustomResourceDefinition {
    let mut crd = K::crd();
    let schema = CustomResourceValidation {
        open_api_v3_schema: Some(props(schema)),
    };
    for version in &mut crd.spec.versions {
        version.schema = Some(schema.clone());
        version.selectable_fields = None;
        version.subresources = version
            .subresources
            .take()
            .filter(|sub| sub.status.is_some());
    }
    let names = &mut crd.spec.names;
    names.short_names = None;
    names.categories = Some(vec!["conventions".to_owned()]);
    names.list_kind = Some(format!("{}List", names.kind));
    let labels = crd.metadata.labels.get_or_insert_default();
    labels.insert(COMPONENT.0.to_owned(), COMPONENT.1.to_owned());
    crd
}

/// All schemas are made in this module, from no input, and a test makes each.
fn props(schema: Value) -> JSONSchemaProps {
    serde_json::from_value(schema).expect("a schema that we wrote is one")
}

fn intent() -> Value {
    json!({
        "type": "object",
        "description": "A pod template that conventions are applied to; status.template is what they made of it.",
        "required": ["spec"],
        "properties": {
            "apiVersion": text("Version of the schema of this object."),
            "kind": text("Kind of this object."),
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "description": "The template, and with which credentials its images are read.",
                "required": ["template"],
                "properties": {
                    "imagePullSecrets": {
                        "type": "array",
                        "description": "Secrets of this namespace with credentials for the images, asked before those of the service account.",
                        "items": kubernetes::local_object_reference(),
                    },
                    "serviceAccountName": {
                        "type": "string",
                        "description": "ServiceAccount of this namespace whose pull secrets are used.",
                        "default": DEFAULT_SERVICE_ACCOUNT,
                    },
                    "template": template("The template that conventions are applied to."),
                },
            },
            "status": {
                "type": "object",
                "description": "What became of it.",
                "properties": {
                    "conditions": conditions(),
                    "observedGeneration": {
                        "type": "integer",
                        "format": "int64",
                        "description": "Generation of the object that the conditions are about. The template is up to date if it is the object's, and Ready is True.",
                    },
                    "template": template("The decorated template. After a failure it is the last good one."),
                    "inputsDigest": text("A digest of what the template was made from and by whom; as long as it is the same, no webhook is asked again."),
                    "templateInputsDigest": text("A digest of what the template was made from, credentials and authorities aside; absent if a convention was left out."),
                    "conventions": considered(),
                    "images": images(),
                },
            },
        },
    })
}

fn considered() -> Value {
    let whole = |description: &str| json!({"type": "integer", "format": "int64", "description": description});
    json!({
        "type": "array",
        "description": "The conventions that were considered last: those that match in the order of application, then the others.",
        "items": {
            "type": "object",
            "description": "A convention, and what became of it.",
            "required": ["name", "matched"],
            "properties": {
                "bomsLeftOut": list_of_texts("Images whose bills of materials it was not sent, since there was no room for them in its request."),
                "changes": whole("How many passes in a row it made another template of the same inputs."),
                "durationMillis": whole("How long its webhook took to answer."),
                "error": text("Why it was not applied, if it should have been."),
                "matched": {"type": "boolean", "description": "Whether it is for this PodIntent."},
                "name": text("Name of the ClusterPodConvention."),
                "outputDigest": text("A digest of the template that it made."),
                "receipts": list_of_texts("What it says that it did."),
                "selector": whole("Which of its selectors matched first, counted from 0; absent if it has none."),
            },
        },
    })
}

fn images() -> Value {
    json!({
        "type": "array",
        "description": "The images that were resolved for the template.",
        "items": {
            "type": "object",
            "description": "An image, and what its text stood for.",
            "required": ["image", "reference"],
            "properties": {
                "boms": list_of_texts("Names of its bills of materials."),
                "configDigest": text("Digest of the image's configuration."),
                "digest": text("Digest of the manifest or index."),
                "image": text("The text that a container had."),
                "reference": text("The text that it has now."),
            },
        },
    })
}

fn list_of_texts(description: &str) -> Value {
    json!({"type": "array", "description": description, "items": {"type": "string"}})
}

/// A PodTemplateSpec, of whose metadata five keys are kept.
fn template(description: &str) -> Value {
    let texts = |description: &str| json!({"type": "object", "description": description, "additionalProperties": {"type": "string"}});
    json!({
        "type": "object",
        "description": description,
        "properties": {
            "metadata": {
                "type": "object",
                "description": "Metadata of the pods; other keys are not kept.",
                "properties": {
                    "annotations": texts("Annotations of the pods."),
                    "generateName": text("What the name is made of."),
                    "labels": texts("Labels of the pods; conventions may be selected by them."),
                    "name": text("Name."),
                    "namespace": text("Namespace."),
                },
            },
            "spec": kubernetes::pod_spec(),
        },
    })
}

pub(crate) fn conditions() -> Value {
    use api_types::ConditionStatus::{False, True, Unknown};
    let statuses = [True, False, Unknown].map(api_types::ConditionStatus::as_str);
    json!({
        "type": "array",
        "description": "What is known, sorted by type; Ready sums up.",
        "items": {
            "type": "object",
            "description": "What is known about one aspect.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {"type": "string", "format": "date-time", "description": "When the condition last changed."},
                "message": {"type": "string", "maxLength": 32768, "description": "The reason in words for people; may be empty."},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0, "description": "Generation of the object that the condition is about."},
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "The reason as one word for programs.",
                },
                "status": {"type": "string", "enum": statuses, "description": "Whether it holds."},
                "type": {
                    "type": "string",
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                    "description": "The aspect that the condition is about.",
                },
            },
        },
    })
}

fn convention() -> Value {
    json!({
        "type": "object",
        "description": "A webhook that decorates pod templates.",
        "required": ["spec"],
        "properties": {
            "apiVersion": text("Version of the schema of this object."),
            "kind": text("Kind of this object."),
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "description": "Which templates, when among other conventions, and who is asked.",
                "properties": {
                    "priority": one_of(
                        "When among other conventions; those of one priority in the order of their names.",
                        &Priority::ALL.map(Priority::as_str),
                        Priority::default().as_str(),
                    ),
                    "selectorTarget": one_of(
                        "Whose labels the selectors are matched with.",
                        &SelectorTarget::ALL.map(SelectorTarget::as_str),
                        SelectorTarget::default().as_str(),
                    ),
                    "selectors": {
                        "type": "array",
                        "description": "One of them must match; without any, everything does.",
                        "items": kubernetes::label_selector(),
                    },
                    "webhook": webhook(),
                    "podPresets": {
                        "type": "object",
                        "description": "Instead of a webhook: the template gets what pod presets add to pods. Needs the flag --pod-presets.",
                    },
                },
                "x-kubernetes-validations": [{
                    "rule": "!has(self.webhook) || !has(self.podPresets)",
                    "message": "only one of webhook and podPresets may be there",
                    "reason": "FieldValueForbidden",
                    "fieldPath": ".podPresets",
                }],
            },
        },
    })
}

fn webhook() -> Value {
    let mut client_config = kubernetes::webhook_client_config();
    client_config["description"] = "Where the webhook is: exactly one of url and service.".into();
    client_config["properties"]["service"]["properties"]["port"]["default"] = 443.into();
    json!({
        "type": "object",
        "description": "The webhook that is asked.",
        "required": ["clientConfig"],
        "properties": {
            "certificate": {
                "type": "object",
                "description": "A Certificate of cert-manager whose authority is trusted; it goes before caBundle.",
                "required": ["name", "namespace"],
                "properties": {
                    "name": text("Name of the Certificate."),
                    "namespace": text("Namespace of the Certificate."),
                },
            },
            "clientConfig": client_config,
            "failurePolicy": one_of(
                "What follows when the webhook fails: nothing is applied (Fail), or the template goes on without it (Ignore).",
                &FailurePolicy::ALL.map(FailurePolicy::as_str),
                FailurePolicy::default().as_str(),
            ),
            "timeoutSeconds": {
                "type": "integer",
                "format": "int32",
                "description": "Seconds that one call may take, tries included.",
                "minimum": 1,
                "maximum": MOST_TIMEOUT_SECONDS,
                "default": MOST_TIMEOUT_SECONDS,
            },
        },
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// One of these texts; an empty one, which clients in Go write for none, is the default too.
fn one_of(description: &str, texts: &[&str], default: &str) -> Value {
    let texts: Vec<&str> = [""].into_iter().chain(texts.iter().copied()).collect();
    json!({"type": "string", "description": description, "enum": texts, "default": default})
}
