//! What the bare client writes in the controller's place: objects and statuses of the same shape and size.

use api_types::runnable::MOST_RUNS;
use serde_json::{Value, json};

use crate::api::{STEPS, TEMPLATES};
use crate::family::Family;
use crate::layout::Key;
use crate::objects::{CHAIN, STEPS_NAME, TWIN_GROUP, template_name, url};

/// Some time: the API server only checks its form.
const MOMENT: &str = "2026-01-01T00:00:00Z";

/// The object of a step.
pub(crate) fn stamped(family: &Family, owner: &Key, uid: &str, step: u8, revision: &str) -> Value {
    let label = |part: &str| format!("carto.run/{}-{part}", family.word);
    let labels = json!({
        (label("name")): owner.name,
        (label("namespace")): owner.namespace,
        (family.blueprint_label): CHAIN,
        "carto.run/resource-name": template_name(step),
        "carto.run/template-kind": "ClusterSourceTemplate",
        "carto.run/cluster-template-name": template_name(step),
        "carto.run/template-lifecycle": "mutable",
    });
    child(family, owner, uid, &owner.step(step), &labels, revision)
}

/// The run of a round, but not with the label by which the controller watches its own.
pub(crate) fn run(family: &Family, owner: &Key, uid: &str, round: usize) -> Value {
    let labels = json!({
        (format!("{TWIN_GROUP}/runnable-name")): owner.name,
        (family.blueprint_label): CHAIN,
    });
    let run = owner.run(round);
    child(family, owner, uid, &run, &labels, &round_revision(round))
}

fn child(
    family: &Family,
    owner: &Key,
    uid: &str,
    key: &Key,
    labels: &Value,
    revision: &str,
) -> Value {
    json!({
        "apiVersion": STEPS.api,
        "kind": "Step",
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": labels,
            "annotations": {"carto.run/rendered-digest": digest()},
            "ownerReferences": [{
                "apiVersion": family.owners.api,
                "kind": family.kind,
                "name": owner.name,
                "uid": uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {"value": url(owner), "revision": revision},
    })
}

/// What the inputs of a round are called.
pub(crate) fn round_revision(round: usize) -> String {
    format!("v{round}")
}

/// The status of the owner of a chain when so many steps are done.
pub(crate) fn chain_status(family: &Family, owner: &Key, done: u8, of: u8) -> Value {
    let ready = if done == of { "True" } else { "Unknown" };
    let types = [
        family.blueprint_condition,
        "ResourcesSubmitted",
        "ResourcesHealthy",
        "Ready",
    ];
    let step = |step| step_entry(owner, step, step <= done);
    json!({"status": {
        "observedGeneration": 1,
        (family.blueprint_ref): {"kind": family.blueprint_kind, "name": CHAIN},
        "conditions": conditions(&types, ready),
        "resources": (1..=of).map(step).collect::<Vec<_>>(),
    }})
}

fn step_entry(owner: &Key, step: u8, done: bool) -> Value {
    let types = ["ResourceSubmitted", "Healthy", "Ready"];
    let mut entry = json!({
        "name": template_name(step),
        "conditions": conditions(&types, if done { "True" } else { "Unknown" }),
    });
    if done {
        entry["stampedRef"] = stamped_ref(&owner.step(step));
        entry["templateRef"] = json!({"apiVersion": TEMPLATES.api, "kind": "ClusterSourceTemplate", "name": template_name(step)});
        entry["outputs"] = json!([output("url", &url(owner)), output("revision", "v1")]);
    }
    if step > 1 {
        entry["inputs"] = json!([{"name": template_name(step - 1)}]);
    }
    entry
}

/// The status of a Runnable when the run of a round has begun. Nobody can avoid this write: a run whose name does not stand in the
/// status is not known to be ours, and would be run again if somebody deletes it.
pub(crate) fn begun_status(family: &Family, owner: &Key, round: usize) -> Value {
    let mut begun = runnable_status(family, owner, round);
    begun["status"]["runs"][0] = json!({
        "name": owner.run(round).name,
        "digest": digest(),
        "started": MOMENT,
        "result": "Running",
    });
    begun["status"]["conditions"] = conditions(&["Ready"], "Unknown").into();
    // Those of the run before hold until this one has succeeded.
    begun["status"]["outputs"] = match round.checked_sub(1) {
        Some(before) => json!({"url": url(owner), "revision": round_revision(before)}),
        None => json!({}),
    };
    begun
}

/// The status of a Runnable when the run of a round has succeeded.
pub(crate) fn runnable_status(family: &Family, owner: &Key, round: usize) -> Value {
    let types = [
        family.blueprint_condition,
        "StampedObjectCondition",
        "Ready",
    ];
    let record = |past| {
        json!({
            "name": owner.run(past).name,
            "digest": digest(),
            "started": MOMENT,
            "finished": MOMENT,
            "result": "Succeeded",
            "message": "done",
        })
    };
    json!({"status": {
        "observedGeneration": round + 1,
        "conditions": conditions(&types, "True"),
        "stampedRef": stamped_ref(&owner.run(round)),
        "runs": (0..=round).rev().take(MOST_RUNS).map(record).collect::<Vec<_>>(),
        "outputs": {"url": url(owner), "revision": round_revision(round)},
    }})
}

fn stamped_ref(key: &Key) -> Value {
    json!({
        "apiVersion": STEPS.api,
        "kind": "Step",
        "namespace": key.namespace,
        "name": key.name,
        "resource": STEPS_NAME,
    })
}

pub(crate) fn conditions(types: &[&str], status: &str) -> Vec<Value> {
    let condition = |of_type: &&str| {
        json!({
            "type": of_type,
            "status": status,
            "reason": "ResourceSubmissionComplete",
            "message": "",
            "lastTransitionTime": MOMENT,
        })
    };
    types.iter().map(condition).collect()
}

fn output(name: &str, preview: &str) -> Value {
    json!({
        "name": name,
        "preview": format!("{preview}\n"),
        "digest": digest(),
        "lastTransitionTime": MOMENT,
    })
}

pub(crate) fn digest() -> String {
    format!("sha256:{}", "0".repeat(64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{DELIVERY, SUPPLY_CHAIN, TWIN};
    use serde::de::DeserializeOwned;

    fn owner() -> Key {
        Key::new("team-0", "app-0")
    }

    fn status<S: DeserializeOwned>(mut object: Value) -> S {
        serde_json::from_value(object["status"].take()).unwrap()
    }

    #[test]
    fn the_status_of_a_chains_owner_is_one_a_controller_could_write() {
        let of = |done| chain_status(&SUPPLY_CHAIN, &owner(), done, 5);
        let progress: api_types::WorkloadStatus = status(of(2));
        let stamped = progress.resources.iter();
        let stamped = stamped.filter(|step| step.stamped_ref.is_some());
        assert_eq!(stamped.count(), 2);
        let ready: api_types::WorkloadStatus = status(of(5));
        assert_eq!(ready.conditions.len(), 4);
        let mut steps = ready.resources.iter();
        assert!(steps.all(|step| step.outputs.len() == 2 && step.conditions.len() == 3));
        let delivered = chain_status(&DELIVERY, &owner(), 5, 5);
        let delivered: api_types::DeliverableStatus = status(delivered);
        assert!(delivered.resources.len() == 5 && delivered.delivery_ref.name.is_some());
    }

    #[test]
    fn the_status_of_a_runnable_is_one_a_controller_could_write() {
        let written = runnable_status(&TWIN, &owner(), 2);
        let written: api_types::runnable::RunnableStatus = status(written);
        assert_eq!((written.runs.len(), written.outputs.len()), (3, 2));
        assert!(written.stamped_ref.is_some() && written.conditions.len() == 3);
        let begun: api_types::runnable::RunnableStatus = status(begun_status(&TWIN, &owner(), 2));
        assert_eq!((begun.runs.len(), begun.outputs.len()), (3, 2));
        assert_eq!(
            begun.runs[0].result,
            api_types::runnable::RunResult::Running
        );
        assert_eq!(begun.outputs["revision"], round_revision(1));
    }

    #[test]
    fn what_is_stamped_belongs_to_its_owner_and_a_run_to_nobody_our_controller_knows() {
        let stamped = stamped(&DELIVERY, &owner(), "uid", 1, "v1");
        let metadata = &stamped["metadata"];
        assert_eq!(metadata["ownerReferences"][0]["kind"], "Deliverable");
        assert_eq!(metadata["labels"]["carto.run/deliverable-name"], "app-0");
        let run = run(&TWIN, &owner(), "uid", 0);
        let metadata = &run["metadata"];
        assert_eq!(metadata["labels"]["carto.run/runnable-name"], Value::Null);
        let api = &metadata["ownerReferences"][0]["apiVersion"];
        assert_eq!(api, "twin.carto.run/v1alpha1");
    }
}
