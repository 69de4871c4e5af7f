use api_types::runnable::{RunResult, Runnable, RunnableStatus};
use api_types::validation::validate;
use serde::de::DeserializeOwned;

use super::*;
use crate::family::{DELIVERY, RUNNABLE, SUPPLY_CHAIN, TWIN, TWIN_INTENT};

fn key() -> Key {
    Key::new("team-0", "app-0")
}

fn read<T: DeserializeOwned>(object: anyhow::Result<Value>) -> T {
    serde_json::from_value(object.unwrap()).unwrap()
}

fn status<S: DeserializeOwned>(object: anyhow::Result<Value>) -> S {
    read(object.map(|mut object| object["status"].take()))
}

#[test]
fn blueprints_and_their_templates_are_valid() {
    let families = [&SUPPLY_CHAIN, &DELIVERY, &RUNNABLE];
    let all = families.map(|family| blueprint(family, LINEAR, 5).unwrap());
    assert_eq!(all.each_ref().map(Vec::len), [6, 6, 1]);
    let rules =
        [WITH_RULES, WITHOUT_RULES].map(|chain| blueprint(&SUPPLY_CHAIN, chain, 5).unwrap());
    for (_, object) in all.into_iter().chain(rules).flatten() {
        let kind = object["kind"].as_str().unwrap();
        let verdict = validate(kind, &object);
        assert!(verdict.error.is_none(), "{kind}: {verdict:?}");
        assert!(verdict.warnings.is_empty(), "{kind}: {verdict:?}");
    }
}

#[test]
fn each_step_takes_the_output_of_the_one_before() {
    let objects = blueprint(&SUPPLY_CHAIN, LINEAR, 3).unwrap();
    let sources = |step: usize| &objects[3].1["spec"]["resources"][step]["sources"];
    assert_eq!(sources(0), &Value::Null);
    assert_eq!(sources(2)[0]["resource"], "step-2");
    let value = |step: usize| &objects[step].1["spec"]["template"]["spec"]["value"];
    assert_eq!(value(0), "$(workload.spec.source.git.url)$");
    assert_eq!(value(2), "$(source.url)$");
}

/// But for what each template says of when its outputs are good, and for names.
#[test]
fn two_chains_differ_in_their_rules_only() {
    let of = |chain: Chain| {
        let objects = blueprint(&SUPPLY_CHAIN, chain, 5).unwrap();
        objects.into_iter().map(|(_, object)| object)
    };
    let mut rules = Vec::new();
    for (mut with, mut without) in of(WITH_RULES).zip(of(WITHOUT_RULES)) {
        let spec = with["spec"].as_object_mut().unwrap();
        for rule in RULES {
            rules.extend(spec.remove(rule).map(|_| rule));
        }
        without["metadata"]["name"] = with["metadata"]["name"].clone();
        let named = WITHOUT_RULES.name;
        let same = without.to_string().replace(named, WITH_RULES.name);
        assert_eq!(same, with.to_string());
    }
    let [matches, completion, always, inputs, wait, foreign] = RULES;
    let expected = [
        [matches, wait].as_slice(),
        &[completion, wait, foreign],
        &[always, foreign],
        &[inputs, wait],
        &[completion, wait, foreign],
    ]
    .concat();
    assert_eq!(rules, expected);
}

const RULES: [&str; 6] = [
    "observedMatches",
    "observedCompletion",
    "alwaysSuccessful",
    "inputsOnStatus",
    "updatePolicy",
    "foreignFields",
];

#[test]
fn owners_are_read_by_their_own_types() {
    let delivered: api_types::Deliverable = read(owner(&DELIVERY, &key(), "v1"));
    let account = delivered.spec.service_account_name;
    assert_eq!(account.as_deref(), Some("builder"));

    let runnable = owner(&RUNNABLE, &key(), "v1").unwrap();
    let twin = owner(&TWIN, &key(), "v1").unwrap();
    assert_eq!(runnable["spec"], twin["spec"]);
    assert_ne!(runnable["apiVersion"], twin["apiVersion"]);
    let runnable: Runnable = read(Ok(runnable));
    assert_eq!(runnable.spec.run_template_ref.name, CHAIN);
    let changed = new_revision(&RUNNABLE, "v2");
    assert!(runnable.spec.inputs["revision"] != changed["spec"]["inputs"]["revision"]);
}

#[test]
fn the_status_of_a_chains_owner_is_one_a_controller_could_write() {
    let of = |done| chain_status(&SUPPLY_CHAIN, &key(), done, 5);
    let progress: api_types::WorkloadStatus = status(of(2));
    let stamped = progress.resources.iter();
    let stamped = stamped.filter(|step| step.stamped_ref.is_some());
    assert_eq!(stamped.count(), 2);
    let ready: api_types::WorkloadStatus = status(of(5));
    assert_eq!(ready.conditions.len(), 4);
    let mut steps = ready.resources.iter();
    assert!(steps.all(|step| step.outputs.len() == 2 && step.conditions.len() == 3));
    let delivered: api_types::DeliverableStatus = status(chain_status(&DELIVERY, &key(), 5, 5));
    assert!(delivered.resources.len() == 5 && delivered.delivery_ref.name.is_some());
}

#[test]
fn the_status_of_a_runnable_is_one_a_controller_could_write() {
    let written: RunnableStatus = status(run_status(&key(), 2, false));
    assert_eq!((written.runs.len(), written.outputs.len()), (3, 2));
    assert!(written.stamped_ref.is_some() && written.conditions.len() == 3);
    let begun: RunnableStatus = status(run_status(&key(), 2, true));
    assert_eq!((begun.runs.len(), begun.outputs.len()), (3, 2));
    assert_eq!(begun.runs[0].result, RunResult::Running);
    assert_eq!(begun.outputs["revision"], round_revision(1));
    let first: RunnableStatus = status(run_status(&key(), 0, true));
    assert!(first.outputs.is_empty());
}

#[test]
fn what_is_stamped_belongs_to_its_owner_and_a_run_to_nobody_our_controller_knows() {
    let stamped = stamped(&DELIVERY, &key(), "uid", 1, "v1").unwrap();
    let metadata = &stamped["metadata"];
    assert_eq!(metadata["ownerReferences"][0]["kind"], "Deliverable");
    assert_eq!(metadata["labels"]["carto.run/deliverable-name"], "app-0");
    let run = run(&TWIN, &key(), "uid", 0).unwrap();
    let metadata = &run["metadata"];
    assert_eq!(metadata["labels"]["carto.run/runnable-name"], Value::Null);
    let api = &metadata["ownerReferences"][0]["apiVersion"];
    assert_eq!(api, "twin.carto.run/v1alpha1");
}

#[test]
fn what_is_written_of_a_podintent_is_read_by_the_types_of_the_controller() {
    let image = Image {
        tagged: "r/app:v1".to_owned(),
        pinned: "r/app:v1@sha256:0".to_owned(),
        config: json!({}),
    };
    let mut object = intent(&TWIN_INTENT, &key(), &image.tagged, MEASURED).unwrap();
    let template = object["spec"]["template"].clone();
    let names: Vec<String> = (0..5).map(convention_name).collect();
    object["status"] = intent_status(&template, &names, &image).unwrap()["status"].take();
    let read: conventions::PodIntent = read(Ok(object));
    let status = read.status.unwrap();
    assert_eq!((status.conditions.len(), status.images.len()), (2, 1));
    assert_eq!(status.conventions.len(), 5);
    assert_eq!(status.template, Some(read.spec.template));
}
