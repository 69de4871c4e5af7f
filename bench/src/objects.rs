//! The objects of the bench: a kind to be stamped, a linear chain, Workloads, and what the floor writes in their place.

use serde_json::{Value, json};

use crate::family::Family;
use crate::layout::{Key, Owner};

/// Group of the stamped kind.
pub(crate) const STEP_GROUP: &str = "bench.carto.run";
/// `apiVersion` of the stamped kind.
pub(crate) const STEP_API: &str = "bench.carto.run/v1";
/// Group of the Runnables that no controller serves.
pub(crate) const TWIN_GROUP: &str = "twin.carto.run";
/// Their `apiVersion`.
pub(crate) const TWIN_API: &str = "twin.carto.run/v1alpha1";
/// Name of the chain.
pub(crate) const CHAIN: &str = "linear";
/// ServiceAccount in each namespace.
pub(crate) const ACCOUNT: &str = "builder";
/// ClusterRole with the rights on the stamped kind.
pub(crate) const ROLE: &str = "bench-steps";

pub(crate) const CARTO_API: &str = "carto.run/v1alpha1";
const SELECTOR: &str = "bench.carto.run/chain";

/// A definition of ours in the group of its twin.
pub(crate) fn twin_of(mut definition: Value) -> Value {
    let plural = definition["spec"]["names"]["plural"]
        .as_str()
        .unwrap_or_default();
    definition["metadata"]["name"] = json!(format!("{plural}.{TWIN_GROUP}"));
    definition["spec"]["group"] = json!(TWIN_GROUP);
    definition
}

/// The stamped kind: a spec that is passed on, and a status that says so.
pub(crate) fn step_crd() -> Value {
    let text = json!({"type": "string"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("steps.{STEP_GROUP}")},
        "spec": {
            "group": STEP_GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Step", "listKind": "StepList", "plural": "steps", "singular": "step"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"value": text, "revision": text, "note": text}},
                    "status": {"type": "object", "properties": {
                        "url": text,
                        "revision": text,
                        "observedGeneration": {"type": "integer", "format": "int64"},
                        "conditions": {"type": "array", "items": {"type": "object", "properties": {
                            "type": text, "status": text, "message": text,
                        }}},
                    }},
                }}},
            }],
        },
    })
}

/// The rights of the owners' ServiceAccounts.
pub(crate) fn role() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": ROLE},
        "rules": [{
            "apiGroups": [STEP_GROUP],
            "resources": ["steps"],
            "verbs": ["get", "list", "watch", "create", "patch", "update", "delete"],
        }],
    })
}

/// What the controllers are shipped with to watch, with the stamped kind; as a platform team would add it.
pub(crate) fn watched_role() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "bench-watched", "labels": {"carto.run/aggregate-to-watched": "true"}},
        "rules": [{"apiGroups": [STEP_GROUP], "resources": ["steps"], "verbs": ["list", "watch"]}],
    })
}

/// A ServiceAccount for a namespace.
pub(crate) fn account(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}})
}

/// Gives the ServiceAccount its rights.
pub(crate) fn role_binding(namespace: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": ROLE, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    })
}

/// The template of a step: the first reads the owner's source, each other one the output of the step before.
pub(crate) fn template(family: &Family, step: u8) -> Value {
    let (value, revision) = if step == 1 {
        (
            format!("$({}.spec.source.git.url)$", family.word),
            format!("$({}.spec.source.git.ref.tag)$", family.word),
        )
    } else {
        (
            "$(source.url)$".to_owned(),
            "$(source.revision)$".to_owned(),
        )
    };
    json!({
        "apiVersion": CARTO_API,
        "kind": "ClusterSourceTemplate",
        "metadata": {"name": template_name(step)},
        "spec": {
            "urlPath": ".status.url",
            "revisionPath": ".status.revision",
            "template": {
                "apiVersion": STEP_API,
                "kind": "Step",
                "metadata": {"name": format!("$({}.metadata.name)$-{step}", family.word)},
                "spec": {"value": value, "revision": revision},
            },
        },
    })
}

/// Name of the template of a step.
pub(crate) fn template_name(step: u8) -> String {
    format!("step-{step}")
}

/// The chain of so many steps.
pub(crate) fn chain(family: &Family, steps: u8) -> Value {
    let resource = |step: u8| {
        let mut resource = json!({
            "name": template_name(step),
            "templateRef": {"kind": "ClusterSourceTemplate", "name": template_name(step)},
        });
        if step > 1 {
            resource["sources"] = json!([{"name": "source", "resource": template_name(step - 1)}]);
        }
        resource
    };
    json!({
        "apiVersion": CARTO_API,
        "kind": family.blueprint_kind,
        "metadata": {"name": CHAIN},
        "spec": {"selector": {SELECTOR: CHAIN}, "resources": (1..=steps).map(resource).collect::<Vec<_>>()},
    })
}

/// What a developer or operator writes: the owner of a chain.
pub(crate) fn chain_owner(family: &Family, owner: &Owner, revision: &str) -> Value {
    json!({
        "apiVersion": CARTO_API,
        "kind": family.kind,
        "metadata": {"name": owner.key.name, "namespace": owner.key.namespace, "labels": {SELECTOR: CHAIN}},
        "spec": {
            "serviceAccountName": ACCOUNT,
            "source": {"git": {"url": url(owner), "ref": {"tag": revision}}},
        },
    })
}

/// A change of the source, as a merge patch of an owner.
pub(crate) fn new_revision(revision: &str) -> Value {
    json!({"spec": {"source": {"git": {"ref": {"tag": revision}}}}})
}

/// What a controller downstream reports of a step.
pub(crate) fn step_status(url: &str, revision: &str, generation: i64) -> Value {
    json!({"status": {"url": url, "revision": revision, "observedGeneration": generation}})
}

/// What a controller downstream reports of a step that is a run: it has succeeded, too.
pub(crate) fn run_status(url: &str, revision: &str, generation: i64) -> Value {
    let mut status = step_status(url, revision, generation);
    status["status"]["conditions"] =
        json!([{"type": "Succeeded", "status": "True", "message": "done"}]);
    status
}

/// The object that the bare client applies in the controller's place: of the same shape and size.
pub(crate) fn stamped(
    family: &Family,
    owner: &Owner,
    uid: &str,
    step: u8,
    revision: &str,
) -> Value {
    let label = |part: &str| format!("carto.run/{}-{part}", family.word);
    let Key { namespace, name } = owner.step(step);
    json!({
        "apiVersion": STEP_API,
        "kind": "Step",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                (label("name")): owner.key.name,
                (label("namespace")): owner.key.namespace,
                (family.blueprint_label): CHAIN,
                "carto.run/resource-name": template_name(step),
                "carto.run/template-kind": "ClusterSourceTemplate",
                "carto.run/cluster-template-name": template_name(step),
                "carto.run/template-lifecycle": "mutable",
            },
            "annotations": {"carto.run/rendered-digest": format!("sha256:{}", "0".repeat(64))},
            "ownerReferences": [{
                "apiVersion": CARTO_API,
                "kind": family.kind,
                "name": owner.key.name,
                "uid": uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {"value": url(owner), "revision": revision},
    })
}

/// The status that the bare client writes in the controller's place when so many steps are done.
pub(crate) fn owner_status(family: &Family, owner: &Owner, done: u8, of: u8) -> Value {
    let ready = if done == of { "True" } else { "Unknown" };
    let conditions = [
        family.blueprint_condition,
        "ResourcesSubmitted",
        "ResourcesHealthy",
        "Ready",
    ];
    json!({"status": {
        "observedGeneration": 1,
        (family.blueprint_ref): {"kind": family.blueprint_kind, "name": CHAIN},
        "conditions": conditions.map(|of_type| condition(of_type, ready)),
        "resources": (1..=of).map(|step| resource_status(owner, step, step <= done)).collect::<Vec<_>>(),
    }})
}

fn resource_status(owner: &Owner, step: u8, done: bool) -> Value {
    let Key { namespace, name } = owner.step(step);
    let conditions = ["ResourceSubmitted", "Healthy", "Ready"];
    let mut status = json!({
        "name": template_name(step),
        "conditions": conditions.map(|of_type| condition(of_type, if done { "True" } else { "Unknown" })),
    });
    if done {
        status["stampedRef"] = json!({
            "apiVersion": STEP_API,
            "kind": "Step",
            "namespace": namespace,
            "name": name,
            "resource": format!("steps.{STEP_GROUP}"),
        });
        status["templateRef"] = json!({"apiVersion": CARTO_API, "kind": "ClusterSourceTemplate", "name": template_name(step)});
        status["outputs"] = json!([output("url", &url(owner)), output("revision", "v1")]);
    }
    if step > 1 {
        status["inputs"] = json!([{"name": template_name(step - 1)}]);
    }
    status
}

/// A condition of an owner.
pub(crate) fn condition(of_type: &str, status: &str) -> Value {
    json!({
        "type": of_type,
        "status": status,
        "reason": "ResourceSubmissionComplete",
        "message": "",
        "lastTransitionTime": MOMENT,
    })
}

fn output(name: &str, preview: &str) -> Value {
    json!({
        "name": name,
        "preview": format!("{preview}\n"),
        "digest": format!("sha256:{}", "0".repeat(64)),
        "lastTransitionTime": MOMENT,
    })
}

/// Some time: the API server only checks its form.
pub(crate) const MOMENT: &str = "2026-01-01T00:00:00Z";

/// The source of an owner, which all objects of its chain carry.
pub(crate) fn url(owner: &Owner) -> String {
    format!(
        "https://git.example/{}/{}.git",
        owner.key.namespace, owner.key.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{DELIVERY, SUPPLY_CHAIN};
    use crate::layout::{TEAM, owners};
    use api_types::validation::validate;

    #[test]
    fn the_chain_and_its_templates_are_valid() {
        for object in [&SUPPLY_CHAIN, &DELIVERY].into_iter().flat_map(|family| {
            let templates = (1..=5).map(move |step| template(family, step));
            templates.chain([chain(family, 5)])
        }) {
            let kind = object["kind"].as_str().unwrap().to_owned();
            let verdict = validate(&kind, &object);
            assert!(
                verdict.error.is_none() && verdict.warnings.is_empty(),
                "{kind}: {verdict:?}"
            );
        }
    }

    #[test]
    fn each_step_takes_the_output_of_the_one_before() {
        let chain = chain(&SUPPLY_CHAIN, 3);
        assert_eq!(chain["spec"]["resources"][0]["sources"], Value::Null);
        assert_eq!(
            chain["spec"]["resources"][2]["sources"][0]["resource"],
            "step-2"
        );
    }

    #[test]
    fn a_deliverable_is_read_by_its_own_types_and_leaves_its_own_labels() {
        let owner = &owners(TEAM, 1)[0];
        let deliverable: api_types::Deliverable =
            serde_json::from_value(chain_owner(&DELIVERY, owner, "v1")).unwrap();
        assert_eq!(
            deliverable.spec.service_account_name.as_deref(),
            Some(ACCOUNT)
        );
        let stamped = stamped(&DELIVERY, owner, "uid", 1, "v1");
        assert_eq!(
            stamped["metadata"]["ownerReferences"][0]["kind"],
            "Deliverable"
        );
        assert_eq!(
            stamped["metadata"]["labels"]["carto.run/deliverable-name"],
            "app-0"
        );
        let mut status = owner_status(&DELIVERY, owner, 5, 5);
        let status: api_types::DeliverableStatus =
            serde_json::from_value(status["status"].take()).unwrap();
        assert!(status.resources.len() == 5 && status.delivery_ref.name.is_some());
    }

    #[test]
    fn the_floors_status_is_one_a_controller_could_write() {
        let owner = &owners(TEAM, 1)[0];
        let of = |done| -> api_types::WorkloadStatus {
            serde_json::from_value(owner_status(&SUPPLY_CHAIN, owner, done, 5)["status"].take())
                .unwrap()
        };
        let (progress, ready) = (of(2), of(5));
        assert_eq!(
            progress
                .resources
                .iter()
                .filter(|step| step.stamped_ref.is_some())
                .count(),
            2
        );
        assert!(
            ready
                .resources
                .iter()
                .all(|step| step.outputs.len() == 2 && step.conditions.len() == 3)
        );
        assert_eq!(ready.conditions.len(), 4);
    }
}
