//! What is written: blueprints and owners, as a platform team and developers write them; what
//! controllers downstream say of stamped objects; and what the bare client writes in the
//! controller's place, of the same shape and size. How they look is in the folder `templates`; what
//! is put into them is here.

use anyhow::Context as _;
use api_types::runnable::MOST_RUNS;
use serde::Serialize;
use serde_json::{Value, json};
use test_support::documents;

use crate::api::{ACCOUNTS, Kind, ROLE_BINDINGS, TEMPLATES};
use crate::family::Family;
use crate::images::Image;
use crate::layout::Key;
use crate::templates::render;

/// Name of the blueprint.
pub(crate) const CHAIN: &str = "linear";
/// What nearly everything is measured with.
pub(crate) const LINEAR: Chain = Chain {
    name: CHAIN,
    templates: "step",
    mixed: false,
    rules: false,
};
/// A chain whose templates say when their outputs are good.
pub(crate) const WITH_RULES: Chain = Chain {
    name: "with-rules",
    templates: "with-rules",
    mixed: true,
    rules: true,
};
/// The same, but that they do not.
pub(crate) const WITHOUT_RULES: Chain = Chain {
    name: "without-rules",
    templates: "without-rules",
    rules: false,
    ..WITH_RULES
};
/// The revision that the owner of a chain names first.
pub(crate) const FIRST_REVISION: &str = "v1";
/// Runs that have succeeded and are kept, of each Runnable.
pub(crate) const KEPT: usize = 1;
/// Label of the templates and conventions that are measured.
pub(crate) const MEASURED: &str = "measured";
/// Label of those with large bills of materials.
pub(crate) const BOMS: &str = "boms";

/// A chain of steps.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Chain {
    /// Of the blueprint; also the label that selects it.
    pub(crate) name: &'static str,
    /// What the names of its templates begin with.
    templates: &'static str,
    /// Whether some outputs are there as soon as the object is.
    mixed: bool,
    /// Whether each template says when its outputs are good, and lets updates wait where it can.
    rules: bool,
}

fn object(file: &str, values: impl Serialize) -> anyhow::Result<Value> {
    let text = render(file, values)?;
    serde_json::from_str(&text).with_context(|| format!("{file}: {text}"))
}

/// A definition of ours in the group of its twin.
pub(crate) fn twin_of(mut definition: Value) -> Value {
    let plural = definition["spec"]["names"]["plural"].as_str();
    let name = format!("{}.twin.carto.run", plural.unwrap_or_default());
    definition["metadata"]["name"] = json!(name);
    definition["spec"]["group"] = json!("twin.carto.run");
    definition
}

/// What a namespace of owners needs, and of which kind it is.
pub(crate) fn account(namespace: &str) -> anyhow::Result<Vec<(Kind, Value)>> {
    let objects = documents(&render("account.yaml", json!({"namespace": namespace}))?)?;
    Ok([ACCOUNTS, ROLE_BINDINGS].into_iter().zip(objects).collect())
}

/// The blueprint of a family, after the templates it needs: a chain of so many steps, or what one run is.
pub(crate) fn blueprint(
    family: &Family,
    chain: Chain,
    steps: u8,
) -> anyhow::Result<Vec<(Kind, Value)>> {
    let file = match family.kind {
        // Each convention names its webhook, which is not there yet.
        "PodIntent" => return Ok(Vec::new()),
        "Runnable" => "run.yaml",
        _ => "chain.yaml",
    };
    let word = family.kind.to_lowercase();
    let values = json!({"family": family, "word": word, "chain": chain, "steps": steps});
    let mut objects = documents(&render(file, values)?)?;
    let last = objects.pop().context("no blueprint")?;
    let templates = objects.into_iter().map(|template| (TEMPLATES, template));
    Ok(templates.chain([(family.blueprints, last)]).collect())
}

/// Name of the template of a step.
pub(crate) fn template_name(step: u8) -> String {
    format!("{}-{step}", LINEAR.templates)
}

/// What a developer or operator writes.
pub(crate) fn owner(family: &Family, key: &Key, revision: &str) -> anyhow::Result<Value> {
    owner_of(LINEAR, family, key, revision)
}

/// The same, for a chain.
fn owner_of(chain: Chain, family: &Family, key: &Key, revision: &str) -> anyhow::Result<Value> {
    let file = if family.is_run() {
        "run-owner.json"
    } else {
        "chain-owner.json"
    };
    let url = url(key);
    object(
        file,
        json!({"family": family, "key": key, "chain": chain.name, "url": url,
            "revision": revision, "kept": KEPT}),
    )
}

/// These owners.
pub(crate) fn all_owners(
    family: &Family,
    keys: &[Key],
    revision: &str,
) -> impl Iterator<Item = (Key, anyhow::Result<Value>)> {
    let of = move |key: &Key| (key.clone(), owner(family, key, revision));
    keys.iter().map(of)
}

/// Owners of a chain, as they are written first.
pub(crate) fn all_owners_of(
    chain: Chain,
    family: &Family,
    keys: &[Key],
) -> impl Iterator<Item = (Key, anyhow::Result<Value>)> {
    let of = move |key: &Key| (key.clone(), owner_of(chain, family, key, FIRST_REVISION));
    keys.iter().map(of)
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
fn url(owner: &Key) -> String {
    format!("https://git.example/{}/{}.git", owner.namespace, owner.name)
}

/// What a controller downstream reports of a step.
pub(crate) fn step_status(url: &str, revision: &str, generation: i64) -> Value {
    let succeeded = json!({"type": "Succeeded", "status": "True", "message": "done"});
    json!({"status": {"url": url, "revision": revision, "observedGeneration": generation,
        "conditions": [succeeded]}})
}

/// The object of a step of a chain.
pub(crate) fn stamped(
    family: &Family,
    owner: &Key,
    uid: &str,
    step: u8,
    revision: &str,
) -> anyhow::Result<Value> {
    let word = family.kind.to_lowercase();
    let values = json!({"family": family, "word": word, "owner": owner, "uid": uid,
        "url": url(owner), "step": owner.step(step), "number": step, "revision": revision});
    object("step.json", values)
}

/// The run of a round.
pub(crate) fn run(family: &Family, owner: &Key, uid: &str, round: usize) -> anyhow::Result<Value> {
    let values = json!({"family": family, "owner": owner, "uid": uid, "url": url(owner),
        "step": owner.run(round), "revision": round_revision(round)});
    object("step.json", values)
}

/// What the inputs of a round are called.
pub(crate) fn round_revision(round: usize) -> String {
    format!("v{round}")
}

/// The status of the owner of a chain when so many steps are done.
pub(crate) fn chain_status(
    family: &Family,
    owner: &Key,
    done: u8,
    of: u8,
) -> anyhow::Result<Value> {
    let steps: Vec<String> = (1..=of).map(|step| owner.step(step).name).collect();
    let url = url(owner);
    let values =
        json!({"family": family, "owner": owner, "url": url, "steps": steps, "done": done});
    object("chain-status.json", values)
}

/// The status of a Runnable when the run of a round has begun, or has succeeded.
pub(crate) fn run_status(owner: &Key, round: usize, begun: bool) -> anyhow::Result<Value> {
    let runs = (0..=round).rev().take(MOST_RUNS);
    let runs: Vec<String> = runs.map(|past| owner.run(past).name).collect();
    let good = round.checked_sub(usize::from(begun));
    let values = json!({"owner": owner, "generation": round + 1, "begun": begun, "runs": runs,
        "url": url(owner), "revision": good.map(round_revision)});
    object("run-status.json", values)
}

/// Name of a convention.
pub(crate) fn convention_name(number: usize) -> String {
    format!("convention-{number}")
}

/// A convention for templates with a label.
pub(crate) fn convention(name: &str, label: &str, client_config: &Value) -> anyhow::Result<Value> {
    let values = json!({"name": name, "label": label, "client_config": client_config});
    object("convention.json", values)
}

/// A PodIntent, whose template has a label.
pub(crate) fn intent(
    family: &Family,
    key: &Key,
    image: &str,
    label: &str,
) -> anyhow::Result<Value> {
    let values = json!({"family": family, "key": key, "image": image, "label": label});
    object("intent.json", values)
}

/// What a webhook is asked.
pub(crate) fn intent_context(
    key: &Key,
    convention: &str,
    template: &Value,
    image: &Image,
) -> anyhow::Result<Value> {
    let values =
        json!({"key": key, "convention": convention, "template": template, "image": image});
    object("intent-context.json", values)
}

/// The status of a PodIntent when these conventions have made this of its template.
pub(crate) fn intent_status(
    template: &Value,
    conventions: &[String],
    image: &Image,
) -> anyhow::Result<Value> {
    let values = json!({"template": template, "conventions": conventions, "image": image});
    object("intent-status.json", values)
}

#[cfg(test)]
mod tests;
