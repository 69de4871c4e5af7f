//! The CustomResourceDefinitions.
//!
//! Lists hold parts of pods, whose schemas are those of a PodIntent's template. What one object decides is a rule of the
//! schema, so that it holds while the webhook is down. Whether a spec may be changed is not: a flag says it.

use conventions::pod::{Part, conditions_schema, label_selector_schema};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::origin::Origin;
use crate::preset::{ConflictPolicy, Mode, most_of};
use crate::target::ContainerType;

/// Objects of a cluster that are in a group of Kubernetes must say that Kubernetes did not approve of it.
const APPROVAL: &str = "unapproved, compatible re-implementation of what Kubernetes had until 1.19";
/// Of volumes, as of all that is a label of DNS.
const LONGEST_NAME: usize = 63;

const SELECTOR_RULE: &str = "(has(self.allPods) && self.allPods) != (has(self.selector) && (has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0 || has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0))";
const SELECTOR_MESSAGE: &str =
    "spec.selector must not be empty, unless allPods is true: then it must be";
const SOMETHING_RULE: &str = "has(self.env) && size(self.env) > 0 || has(self.envFrom) && size(self.envFrom) > 0 || has(self.volumes) && size(self.volumes) > 0 || has(self.volumeMounts) && size(self.volumeMounts) > 0";
const SOMETHING_MESSAGE: &str =
    "spec.volumes.env.envFrom.volumeMounts: Required value: must specify at least one";
const MOUNTS_RULE: &str = "!has(self.volumeMounts) || self.volumeMounts.all(mount, has(self.volumes) && self.volumes.exists(volume, volume.name == mount.name))";
const MOUNTS_MESSAGE: &str = "each of spec.volumeMounts must name one of spec.volumes";

/// The definitions that every cluster gets: PodPreset and ClusterPodPreset.
///
/// ```
/// let names: Vec<String> = pod_presets::crds().into_iter().filter_map(|crd| crd.metadata.name).collect();
/// assert_eq!(names, ["podpresets.settings.carto.run", "clusterpodpresets.settings.carto.run"]);
/// ```
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![crd(Origin::Namespaced), crd(Origin::Cluster)]
}

/// The definition for manifests that were written for Kubernetes until 1.19.
pub fn optional_crds() -> Vec<CustomResourceDefinition> {
    vec![crd(Origin::NamespacedOld)]
}

fn crd(origin: Origin) -> CustomResourceDefinition {
    let (group, kind, plural) = (origin.group(), origin.kind(), origin.plural());
    let scope = if origin.is_namespaced() {
        "Namespaced"
    } else {
        "Cluster"
    };
    let mut definition = json!({
        "metadata": {
            "name": format!("{plural}.{group}"),
            "labels": {"app.kubernetes.io/component": "conventions"},
        },
        "spec": {
            "group": group,
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "scope": scope,
            "versions": [{
                "name": Origin::VERSION,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(),
                "schema": {"openAPIV3Schema": root(origin)},
            }],
        },
    });
    if origin == Origin::NamespacedOld {
        definition["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": APPROVAL});
    }
    // All of it is written here, from no input, and a test makes each.
    serde_json::from_value(definition).expect("a definition that we wrote is one")
}

fn columns() -> Value {
    let column = |name: &str, type_: &str, path: &str| json!({"name": name, "type": type_, "jsonPath": path});
    json!([
        column(
            "Valid",
            "string",
            r#".status.conditions[?(@.type=="Valid")].status"#
        ),
        column("Applied", "integer", ".status.applied"),
        column("Conflicts", "integer", ".status.conflicts"),
        column("Age", "date", ".metadata.creationTimestamp"),
    ])
}

fn root(origin: Origin) -> Value {
    let longest = origin.longest_name();
    json!({
        "type": "object",
        "description": "What is added to pods when they are created.",
        "required": ["spec"],
        "properties": {
            "apiVersion": text("Version of the schema of this object."),
            "kind": text("Kind of this object."),
            "metadata": {"type": "object"},
            "spec": spec(origin),
            "status": status(),
        },
        "x-kubernetes-validations": [{
            "rule": format!("size(self.metadata.name) <= {longest}"),
            "message": format!("metadata.name must be no more than {longest} characters: pods are marked with it"),
        }],
    })
}

fn spec(origin: Origin) -> Value {
    let mut selector = label_selector_schema();
    selector["description"] = "Which pods, by their labels. It must not be empty.".into();
    let mut spec = json!({
        "type": "object",
        "description": "Which pods, and what is added to them.",
        "properties": {
            "allPods": {"type": "boolean", "description": "It is for every pod; there is no selector then."},
            "conflictPolicy": one_of(
                "What follows when a pod has something else: nothing is injected (Skip), what is there stays (KeepExisting), it is replaced (Override), or the pod is refused (Deny).",
                &ConflictPolicy::ALL.map(ConflictPolicy::as_str),
            ),
            "containers": containers(),
            "env": parts(Part::EnvVar, "Variables that are added to containers."),
            "envFrom": parts(Part::EnvFromSource, "Where containers have more variables from."),
            "mode": one_of(
                "Whether pods are changed (Enforce), or it is only told what would be (Audit).",
                &Mode::ALL.map(Mode::as_str),
            ),
            "multiMount": {"type": "boolean", "description": "A container may see a volume at several paths: mounts are known by their paths only."},
            "selector": selector,
            "volumeMounts": parts(Part::VolumeMount, "Where containers see the volumes."),
            "volumes": parts(Part::Volume, "Volumes that are added to pods."),
        },
        "x-kubernetes-validations": [
            {"rule": SELECTOR_RULE, "message": SELECTOR_MESSAGE},
            {"rule": SOMETHING_RULE, "message": SOMETHING_MESSAGE},
            {"rule": MOUNTS_RULE, "message": MOUNTS_MESSAGE},
        ],
    });
    if origin == Origin::Cluster {
        let mut selector = label_selector_schema();
        selector["description"] =
            "In which namespaces, by their labels; if it is empty, in every one.".into();
        spec["properties"]["namespaceSelector"] = selector;
        spec["required"] = json!(["namespaceSelector"]);
    }
    spec
}

fn parts(part: Part, description: &str) -> Value {
    let mut item = part.schema();
    let mut list = json!({"type": "array", "description": description, "maxItems": most_of(part)});
    let key = match part {
        Part::Volume => Some("name"),
        Part::VolumeMount => Some("mountPath"),
        Part::EnvVar | Part::EnvFromSource => None,
    };
    if let Some(key) = key {
        item["properties"]["name"]["maxLength"] = LONGEST_NAME.into();
        list["x-kubernetes-list-type"] = "map".into();
        list["x-kubernetes-list-map-keys"] = json!([key]);
    }
    list["items"] = item;
    list
}

fn containers() -> Value {
    let types = ContainerType::ALL.map(ContainerType::as_str);
    let names = |description: &str| json!({"type": "array", "description": description, "items": {"type": "string"}});
    json!({
        "type": "object",
        "description": "Which containers; without it all but those that are added to running pods.",
        "properties": {
            "exclude": names("Not those with these names."),
            "names": names("Those with these names; * is any name."),
            "types": {
                "type": "array",
                "description": "Those of these types; if there are none, App, Init and Sidecar.",
                "items": {"type": "string", "enum": types},
            },
        },
    })
}

fn status() -> Value {
    let count = |description: &str| json!({"type": "integer", "format": "int64", "description": description});
    json!({
        "type": "object",
        "description": "What became of it. Counts are of pods.",
        "properties": {
            "applied": count("Pods that have it."),
            "conditions": conditions_schema(),
            "conflicts": count("Pods that did not get it because they had something else."),
            "lastConflicts": {
                "type": "array",
                "description": "The last of these, newest first.",
                "items": {
                    "type": "object",
                    "description": "A pod that had something else.",
                    "required": ["time", "kind", "name", "field", "key"],
                    "properties": {
                        "container": text("The container; absent for volumes."),
                        "field": text("In what: env, envFrom, volume, volumeMount or mountPath."),
                        "key": text("Name or path."),
                        "kind": text("Kind of the pod's controller, or Pod."),
                        "name": text("Name of that."),
                        "namespace": text("Namespace of the pod."),
                        "time": {"type": "string", "format": "date-time", "description": "When."},
                        "with": text("With whom: Pod, or the preset that comes before."),
                    },
                },
            },
            "matched": count("Pods that it selects."),
            "observedGeneration": count("Generation of the object that the conditions are about."),
            "observedResourceVersion": text("Version of the object in which that generation was first seen. Pods are marked with it."),
            "staleOwners": {
                "type": "array",
                "description": "Who the pods with an older version belong to.",
                "items": {
                    "type": "object",
                    "description": "Whoever makes pods, some of which have an older version.",
                    "required": ["kind", "name", "pods"],
                    "properties": {
                        "kind": text("Kind of the controller, or Pod."),
                        "name": text("Its name."),
                        "namespace": text("Namespace of the pods."),
                        "pods": count("How many."),
                    },
                },
            },
            "stalePods": count("Pods that have an older version of it."),
        },
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// One of these texts, the first where nothing is said. An empty one, which clients in Go write for none, is that as well.
fn one_of(description: &str, texts: &[&str]) -> Value {
    let all: Vec<&str> = [""].into_iter().chain(texts.iter().copied()).collect();
    json!({"type": "string", "description": description, "enum": all})
}
