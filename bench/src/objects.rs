//! What a platform team and developers write: blueprints and owners. And what is said downstream.

pub(crate) mod intents;

use serde_json::{Value, json};
use test_support::documents;

use crate::api::{ACCOUNTS, Kind, ROLE_BINDINGS, TEMPLATES};
use crate::family::{CONVENTIONS, Family};
use crate::layout::Key;

/// Name of its definition.
pub(crate) const STEPS_NAME: &str = "steps.bench.carto.run";
/// Group of the Runnables that no controller serves.
pub(crate) const TWIN_GROUP: &str = "twin.carto.run";
/// Name of the blueprint.
pub(crate) const CHAIN: &str = "linear";
/// The revision that the owner of a chain names first.
pub(crate) const FIRST_REVISION: &str = "v1";
/// Runs that have succeeded and are kept, of each Runnable: the fewest there may be, so that each run costs a deletion.
pub(crate) const KEPT: usize = 1;
/// ServiceAccount in each namespace.
const ACCOUNT: &str = "builder";
const ACCOUNT_OF: &str = include_str!("../manifests/account.yaml");
const TEMPLATE: &str = include_str!("../manifests/template.yaml");
const RUN_TEMPLATE: &str = include_str!("../manifests/run-template.yaml");
const SELECTOR: &str = "bench.carto.run/chain";

/// A definition of ours in the group of its twin.
pub(crate) fn twin_of(mut definition: Value) -> Value {
    let plural = definition["spec"]["names"]["plural"].as_str();
    let name = format!("{}.{TWIN_GROUP}", plural.unwrap_or_default());
    definition["metadata"]["name"] = json!(name);
    definition["spec"]["group"] = json!(TWIN_GROUP);
    definition
}

/// What a namespace of owners needs, and of which kind it is.
pub(crate) fn account(namespace: &str) -> anyhow::Result<Vec<(Kind, Value)>> {
    let objects = documents(&ACCOUNT_OF.replace("NAMESPACE", namespace))?;
    Ok([ACCOUNTS, ROLE_BINDINGS].into_iter().zip(objects).collect())
}

/// The blueprint of a family, after the templates it needs: a chain of so many steps, or what one run is.
pub(crate) fn blueprint(family: &Family, steps: u8) -> anyhow::Result<Vec<(Kind, Value)>> {
    if family.is_run() {
        let template = documents(RUN_TEMPLATE)?;
        return Ok([family.blueprints].into_iter().zip(template).collect());
    }
    // Each convention names its webhook, which is not there yet.
    if family.is(&CONVENTIONS) {
        return Ok(Vec::new());
    }
    let mut objects = Vec::new();
    for step in 1..=steps {
        let templates = documents(&template(family, step))?;
        objects.extend([TEMPLATES].into_iter().zip(templates));
    }
    objects.push((family.blueprints, chain(family, steps)));
    Ok(objects)
}

/// The first reads the owner's source, each other one the output of the step before.
fn template(family: &Family, step: u8) -> String {
    let (url, revision) = match step {
        1 => ("OWNER.spec.source.git.url", "OWNER.spec.source.git.ref.tag"),
        _ => ("source.url", "source.revision"),
    };
    TEMPLATE
        .replace("URL", url)
        .replace("REVISION", revision)
        .replace("OWNER", family.word)
        .replace("NUMBER", &step.to_string())
}

/// Name of the template of a step.
pub(crate) fn template_name(step: u8) -> String {
    format!("step-{step}")
}

fn chain(family: &Family, steps: u8) -> Value {
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
        "apiVersion": family.blueprints.api,
        "kind": family.blueprint_kind,
        "metadata": {"name": CHAIN},
        "spec": {"selector": {SELECTOR: CHAIN}, "resources": (1..=steps).map(resource).collect::<Vec<_>>()},
    })
}

/// What a developer or operator writes.
pub(crate) fn owner(family: &Family, owner: &Key, revision: &str) -> Value {
    let mut object = json!({
        "apiVersion": family.owners.api,
        "kind": family.kind,
        "metadata": {"name": owner.name, "namespace": owner.namespace},
        "spec": {"serviceAccountName": ACCOUNT},
    });
    let spec = &mut object["spec"];
    if family.is_run() {
        spec[family.blueprint_ref] = json!({"name": CHAIN});
        spec["inputs"] = json!({"url": url(owner), "revision": revision});
        spec["retentionPolicy"] = json!({"maxFailedRuns": KEPT, "maxSuccessfulRuns": KEPT});
    } else {
        spec["source"] = json!({"git": {"url": url(owner), "ref": {"tag": revision}}});
        object["metadata"]["labels"] = json!({SELECTOR: CHAIN});
    }
    object
}

/// A change of the source or the inputs, as a merge patch of an owner.
pub(crate) fn new_revision(family: &Family, revision: &str) -> Value {
    if family.is_run() {
        json!({"spec": {"inputs": {"revision": revision}}})
    } else {
        json!({"spec": {"source": {"git": {"ref": {"tag": revision}}}}})
    }
}

/// The source of an owner, which all objects of its chain carry.
pub(crate) fn url(owner: &Key) -> String {
    format!("https://git.example/{}/{}.git", owner.namespace, owner.name)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{DELIVERY, RUNNABLE, SUPPLY_CHAIN, TWIN};
    use api_types::validation::validate;

    #[test]
    fn blueprints_and_their_templates_are_valid() {
        let families = [&SUPPLY_CHAIN, &DELIVERY, &RUNNABLE];
        for (_, object) in families
            .map(|family| blueprint(family, 5).unwrap())
            .concat()
        {
            let kind = object["kind"].as_str().unwrap();
            let verdict = validate(kind, &object);
            assert!(verdict.error.is_none(), "{kind}: {verdict:?}");
            assert!(verdict.warnings.is_empty(), "{kind}: {verdict:?}");
        }
    }

    #[test]
    fn each_step_takes_the_output_of_the_one_before() {
        let chain = chain(&SUPPLY_CHAIN, 3);
        let sources = |step: usize| &chain["spec"]["resources"][step]["sources"];
        assert_eq!(sources(0), &Value::Null);
        assert_eq!(sources(2)[0]["resource"], "step-2");
    }

    #[test]
    fn owners_are_read_by_their_own_types() {
        let key = Key::new("team-0", "app-0");
        let object = owner(&DELIVERY, &key, "v1");
        let read: api_types::Deliverable = serde_json::from_value(object).unwrap();
        assert_eq!(read.spec.service_account_name.as_deref(), Some(ACCOUNT));

        let runnable = owner(&RUNNABLE, &key, "v1");
        let twin = owner(&TWIN, &key, "v1");
        assert_eq!(runnable["spec"], twin["spec"]);
        assert_ne!(runnable["apiVersion"], twin["apiVersion"]);
        let read: api_types::runnable::Runnable = serde_json::from_value(runnable).unwrap();
        assert_eq!(read.spec.run_template_ref.name, CHAIN);
        let changed = new_revision(&RUNNABLE, "v2");
        assert!(read.spec.inputs["revision"] != changed["spec"]["inputs"]["revision"]);
    }
}
