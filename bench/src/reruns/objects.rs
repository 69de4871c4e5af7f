//! A ClusterRunTemplate, its Runnables, and what the floor writes in the controller's place.

use serde_json::{Value, json};

use crate::family::RUNNABLE;
use crate::layout::{Key, Owner};
use crate::objects::{
    ACCOUNT, CARTO_API, CHAIN, MOMENT, STEP_API, STEP_GROUP, TWIN_API, TWIN_GROUP, condition, url,
};

/// Runs that have succeeded and are kept, of each Runnable: the fewest there may be, so that each run costs a deletion.
pub(crate) const KEPT: usize = 1;

/// Stamps a step of the Runnable's inputs.
pub(crate) fn run_template() -> Value {
    json!({
        "apiVersion": CARTO_API,
        "kind": RUNNABLE.blueprint_kind,
        "metadata": {"name": CHAIN},
        "spec": {
            "outputs": {"url": ".status.url", "revision": ".status.revision"},
            "template": {
                "apiVersion": STEP_API,
                "kind": "Step",
                "metadata": {"generateName": "$(runnable.metadata.name)$-"},
                "spec": {"value": "$(runnable.spec.inputs.url)$", "revision": "$(runnable.spec.inputs.revision)$"},
            },
        },
    })
}

/// The same for the bare client.
pub(crate) fn twin(owner: &Owner, revision: &str) -> Value {
    let mut twin = runnable(owner, revision);
    twin["apiVersion"] = json!(TWIN_API);
    twin
}

/// What a developer writes.
pub(crate) fn runnable(owner: &Owner, revision: &str) -> Value {
    json!({
        "apiVersion": CARTO_API,
        "kind": RUNNABLE.kind,
        "metadata": {"name": owner.key.name, "namespace": owner.key.namespace},
        "spec": {
            "serviceAccountName": ACCOUNT,
            (RUNNABLE.blueprint_ref): {"name": CHAIN},
            "inputs": {"url": url(owner), "revision": revision},
            "retentionPolicy": {"maxFailedRuns": KEPT, "maxSuccessfulRuns": KEPT},
        },
    })
}

/// New inputs, as a merge patch of a Runnable.
pub(crate) fn new_input(revision: &str) -> Value {
    json!({"spec": {"inputs": {"revision": revision}}})
}

/// What the inputs of a round are called.
pub(crate) fn revision(round: usize) -> String {
    format!("v{round}")
}

/// Where the bare client puts the run of a round.
pub(crate) fn run_key(owner: &Owner, round: usize) -> Key {
    Key {
        namespace: owner.key.namespace.clone(),
        name: format!("{}-run{round}", owner.key.name),
    }
}

/// The run that the bare client creates in the controller's place: of the same shape and size, but not with the label by which
/// the controller watches its own.
pub(crate) fn run(owner: &Owner, uid: &str, round: usize) -> Value {
    let Key { namespace, name } = run_key(owner, round);
    json!({
        "apiVersion": STEP_API,
        "kind": "Step",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                (format!("{TWIN_GROUP}/runnable-name")): owner.key.name,
                (RUNNABLE.blueprint_label): CHAIN,
            },
            "annotations": {"carto.run/rendered-digest": digest()},
            "ownerReferences": [{
                "apiVersion": TWIN_API,
                "kind": RUNNABLE.kind,
                "name": owner.key.name,
                "uid": uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {"value": url(owner), "revision": revision(round)},
    })
}

/// The status that the bare client writes in the controller's place when the run of a round has succeeded. Nobody needs
/// to say that a run has started when it is over at once.
pub(crate) fn runnable_status(owner: &Owner, round: usize) -> Value {
    let Key { namespace, name } = run_key(owner, round);
    let runs: Vec<Value> = (0..=round).rev().map(|past| record(owner, past)).collect();
    let conditions = [
        RUNNABLE.blueprint_condition,
        "StampedObjectCondition",
        "Ready",
    ];
    json!({"status": {
        "observedGeneration": round + 1,
        "conditions": conditions.map(|of_type| condition(of_type, "True")),
        "stampedRef": {
            "apiVersion": STEP_API,
            "kind": "Step",
            "namespace": namespace,
            "name": name,
            "resource": format!("steps.{STEP_GROUP}"),
        },
        "runs": runs,
        "outputs": {"url": url(owner), "revision": revision(round)},
    }})
}

fn record(owner: &Owner, round: usize) -> Value {
    json!({
        "name": run_key(owner, round).name,
        "digest": digest(),
        "started": MOMENT,
        "finished": MOMENT,
        "result": "Succeeded",
        "message": "done",
    })
}

fn digest() -> String {
    format!("sha256:{}", "0".repeat(64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{TEAM, owners};
    use api_types::validation::validate;

    #[test]
    fn the_run_template_is_valid() {
        let verdict = validate(RUNNABLE.blueprint_kind, &run_template());
        assert!(
            verdict.error.is_none() && verdict.warnings.is_empty(),
            "{verdict:?}"
        );
    }

    #[test]
    fn each_round_keeps_one_run_and_asks_for_another() {
        let owner = &owners(TEAM, 1)[0];
        let read: api_types::runnable::Runnable =
            serde_json::from_value(runnable(owner, &revision(0))).unwrap();
        assert_eq!(read.spec.run_template_ref.name, CHAIN);
        assert_eq!(read.spec.inputs["revision"], "v0");
        assert_eq!(new_input(&revision(1))["spec"]["inputs"]["revision"], "v1");
        assert_ne!(run_key(owner, 0), run_key(owner, 1));
    }

    #[test]
    fn the_controller_has_nothing_to_do_with_twins() {
        let owner = &owners(TEAM, 1)[0];
        let (own, twin) = (runnable(owner, "v0"), twin(owner, "v0"));
        assert_eq!(own["spec"], twin["spec"]);
        assert_ne!(own["apiVersion"], twin["apiVersion"]);
        let run = run(owner, "uid", 0);
        assert_eq!(
            run["metadata"]["labels"]["carto.run/runnable-name"],
            Value::Null
        );
        assert_eq!(
            run["metadata"]["ownerReferences"][0]["apiVersion"],
            twin["apiVersion"]
        );
    }

    #[test]
    fn the_floors_status_is_one_the_controller_could_write() {
        let owner = &owners(TEAM, 1)[0];
        let status: api_types::runnable::RunnableStatus =
            serde_json::from_value(runnable_status(owner, 2)["status"].take()).unwrap();
        assert_eq!((status.runs.len(), status.outputs.len()), (3, 2));
        assert!(status.stamped_ref.is_some() && status.conditions.len() == 3);
    }
}
