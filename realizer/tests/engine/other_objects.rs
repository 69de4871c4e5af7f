//! Rules that read other objects than the stamped one.

use proptest::prelude::*;
use realizer::{Observed, Unread};
use serde_json::{Value, json};

use crate::attribution::settles;
use crate::scenario::{Scenario, documents};
use crate::validation::{self, check, deployment, run, sequence};

/// `build` is good once the gate of its revision is open.
const DOCUMENTS: &str = "
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: build}
spec:
  configPath: .data.revision
  observedCompletion:
    succeeded:
      object: {apiVersion: v1, kind: ConfigMap, name: gate-$(workload.spec.image)$}
      key: .data.open
      value: 'yes'
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: build}
    data: {revision: $(workload.spec.image)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: application}
    data: {image: $(config)$}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
  - {name: build, templateRef: {kind: ClusterConfigTemplate, name: build}}
  - {name: deploy, templateRef: {kind: ClusterTemplate, name: deploy}, configs: [{name: config, resource: build}]}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}}
spec: {image: '1'}
";

fn started(documents: &str) -> Scenario {
    let mut scenario = Scenario::new(documents);
    scenario.advance();
    scenario
}

/// Somebody makes an object.
fn plant(scenario: &mut Scenario, namespace: &str, name: &str, open: &str) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"open": open},
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": "gate"}}});
    scenario.cluster.held.objects.push(Observed::of(object));
}

fn push(scenario: &mut Scenario, revision: &str) {
    scenario.owner["spec"]["image"] = json!(revision);
    scenario.advance();
}

fn deployed(scenario: &mut Scenario) -> Value {
    if !scenario.cluster.names().contains(&"application") {
        return Value::Null;
    }
    scenario.cluster.object("application")["data"]["image"].clone()
}

fn good(scenario: &Scenario) -> String {
    scenario.step_condition("build", "OutputsGood")
}

const PENDING: &str = "Unknown/Reconciling/resource [build] condition not met: success condition is not known yet: object";

#[test]
fn a_step_waits_for_another_object_of_its_namespace_and_names_it() {
    let mut scenario = started(DOCUMENTS);
    plant(&mut scenario, "elsewhere", "gate-1", "yes");
    scenario.advance();
    let missing = format!("{PENDING} [ConfigMap/gate-1] is not there; no output was good before");
    assert_eq!(good(&scenario), missing);
    assert_eq!(deployed(&mut scenario), Value::Null);
    settles(&mut scenario);
    plant(&mut scenario, "ns", "gate-1", "yes");
    scenario.advance();
    assert_eq!(good(&scenario), "True/Good/");
    assert_eq!(deployed(&mut scenario), "1");
    settles(&mut scenario);
    assert_eq!(reads(&scenario), 0, "nothing has changed");
    // It is asked for after what was submitted, and once where that was not written.
    scenario.cluster.unwatched.insert("build".to_owned());
    settles(&mut scenario);
    let log = &scenario.cluster.log;
    assert_eq!(log[..2], ["build: Unchanged", "build: read"], "{log:?}");
}

fn reads(scenario: &Scenario) -> usize {
    let log = scenario.cluster.log.iter();
    log.filter(|line| *line == "build: read").count()
}

/// After a restart, too: status says by what it was good.
#[test]
fn an_object_is_read_again_only_if_something_that_the_rule_goes_by_has_changed() {
    let mut scenario = started(DOCUMENTS);
    plant(&mut scenario, "ns", "gate-1", "yes");
    plant(&mut scenario, "ns", "gate-2", "yes");
    scenario.advance();
    let good_by = |scenario: &Scenario| scenario.entry("build")["applied"]["goodBy"].clone();
    let first = good_by(&scenario);
    assert!(first.is_string(), "{first}");
    settles(&mut scenario);
    assert_eq!(reads(&scenario), 0);

    // Another version of it is read. It says the same, so nothing is written, and it is read each time.
    scenario.cluster.object("gate-1")["metadata"]["labels"]["app"] = json!("other");
    for _ in 0..2 {
        settles(&mut scenario);
        assert_eq!(reads(&scenario), 1);
    }
    assert_eq!(good_by(&scenario), first);

    // The next write says it.
    push(&mut scenario, "2");
    assert_ne!(good_by(&scenario), first);
    settles(&mut scenario);
    assert_eq!(reads(&scenario), 0);

    // What is there in the same version has another meaning for another rule.
    scenario.apply(&documents(DOCUMENTS)[0].to_string().replace("yes", "no"));
    scenario.advance();
    assert!(good(&scenario).contains("is not no"), "{}", good(&scenario));
}

/// What happens to a chain.
#[derive(Clone, Debug)]
enum Event {
    Pushed(u8),
    Planted(u8, &'static str),
    Labelled(u8),
    Pruned(u8),
    Tampered,
    Deleted,
    Expects(&'static str),
    Killed,
}

fn event() -> impl Strategy<Value = Event> {
    let said = || prop_oneof![Just("yes"), Just("no")];
    prop_oneof![
        (1..3_u8).prop_map(Event::Pushed),
        (1..3_u8, said()).prop_map(|(gate, open)| Event::Planted(gate, open)),
        (1..3_u8).prop_map(Event::Labelled),
        (1..3_u8).prop_map(Event::Pruned),
        Just(Event::Tampered),
        Just(Event::Deleted),
        said().prop_map(Event::Expects),
        Just(Event::Killed),
    ]
}

impl Event {
    fn happens(&self, scenario: &mut Scenario) {
        match *self {
            Self::Pushed(revision) => scenario.owner["spec"]["image"] = json!(revision.to_string()),
            Self::Planted(gate, open) => {
                scenario.cluster.prune(&format!("gate-{gate}"));
                plant(scenario, "ns", &format!("gate-{gate}"), open);
            }
            Self::Labelled(gate) => {
                let name = format!("gate-{gate}");
                if let Some(object) = scenario.cluster.held.object(&name) {
                    let turn = object["metadata"]["labels"]["turn"].as_u64();
                    object["metadata"]["labels"]["turn"] = json!(turn.unwrap_or_default() + 1);
                }
            }
            Self::Pruned(gate) => scenario.cluster.prune(&format!("gate-{gate}")),
            Self::Tampered => {
                if scenario.cluster.names().contains(&"build") {
                    scenario.cluster.tamper("build");
                }
            }
            Self::Deleted => scenario.cluster.prune("build"),
            Self::Expects(open) => {
                let template = documents(DOCUMENTS)[0].to_string();
                scenario.apply(&template.replace("\"yes\"", &format!("{open:?}")));
            }
            Self::Killed => scenario.advance_and_die(),
        }
        scenario.advance();
    }
}

proptest! {
    /// It spares reads, and decides nothing.
    #[test]
    fn what_is_not_read_again_would_have_come_to_the_same(events in prop::collection::vec(event(), 1..12)) {
        let mut watched = started(DOCUMENTS);
        let mut unwatched = started(DOCUMENTS);
        unwatched.cluster.unwatched.insert("build".to_owned());
        for event in &events {
            event.happens(&mut watched);
            event.happens(&mut unwatched);
            prop_assert_eq!(good(&watched), good(&unwatched), "{:?}", event);
            prop_assert_eq!(deployed(&mut watched), deployed(&mut unwatched), "{:?}", event);
        }
    }
}

#[test]
fn the_last_good_output_goes_on_while_the_object_of_the_next_revision_is_awaited() {
    let mut scenario = started(DOCUMENTS);
    plant(&mut scenario, "ns", "gate-1", "yes");
    scenario.advance();
    push(&mut scenario, "2");
    let missing = format!(
        "{PENDING} [ConfigMap/gate-2] is not there; the last good outputs are handed on meanwhile"
    );
    assert_eq!(good(&scenario), missing);
    assert_eq!(deployed(&mut scenario), "1");
    plant(&mut scenario, "ns", "gate-2", "yes");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "2");
}

#[test]
fn an_object_that_may_not_be_read_or_is_not_answered_is_no_fault_of_the_stamped_one() {
    let refused = Unread::Refused("configmaps is forbidden".to_owned());
    let unavailable = Unread::Unavailable("503".to_owned());
    for (why, ready) in [
        (refused, "ConditionNotMet"),
        (unavailable, "APIServerUnavailable"),
    ] {
        let mut scenario = started(DOCUMENTS);
        plant(&mut scenario, "ns", "gate-1", "yes");
        scenario.cluster.unread.insert("build".to_owned(), why);
        scenario.advance();
        assert!(good(&scenario).starts_with(PENDING), "{}", good(&scenario));
        let told = scenario.step_condition("build", "ResourceSubmitted");
        assert!(told.contains(ready), "{told}");
        assert_eq!(deployed(&mut scenario), Value::Null);
        scenario.cluster.unread.clear();
        scenario.advance();
        assert_eq!(deployed(&mut scenario), "1");
    }
}

#[test]
fn only_one_object_may_have_the_labels() {
    let by_labels = DOCUMENTS.replace(
        "name: gate-$(workload.spec.image)$",
        "matchLabels: {app: $(params.app)$}",
    );
    let by_labels = by_labels.replace(
        "  configPath",
        "  params: [{name: app, default: gate}]\n  configPath",
    );
    let mut scenario = started(&by_labels);
    plant(&mut scenario, "ns", "b", "yes");
    plant(&mut scenario, "ns", "a", "yes");
    scenario.advance();
    let several = "[ConfigMap with labels app=gate] is not one but several: a, b; give its labels to one only";
    assert_eq!(
        good(&scenario),
        format!("{PENDING} {several}; no output was good before")
    );
    scenario.cluster.prune("b");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "1");
}

fn with_waiting_updates(documents: &str) -> String {
    let policy = "  updatePolicy: {whenReconciling: Wait}\n  configPath";
    documents.replace("  configPath", policy)
}

/// Each update is judged by the object that it was rendered with, not by that of the update which waits.
#[test]
fn an_update_that_waits_does_not_lend_its_object_to_the_one_that_is_applied() {
    let waits = with_waiting_updates(DOCUMENTS);
    let mut scenario = started(&waits);
    plant(&mut scenario, "ns", "gate-2", "yes");
    push(&mut scenario, "2");
    assert_eq!(scenario.cluster.object("build")["data"]["revision"], "1");
    assert!(
        good(&scenario).contains("[ConfigMap/gate-1] is not there"),
        "{}",
        good(&scenario)
    );
    assert_eq!(deployed(&mut scenario), Value::Null);
    plant(&mut scenario, "ns", "gate-1", "yes");
    scenario.advance();
    assert_eq!(
        deployed(&mut scenario),
        "1",
        "what the first came to is not lost"
    );
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "2");
    settles(&mut scenario);
}

/// It is too large to be kept, so that nobody knows what of it is in an object that was made anew.
#[test]
fn an_update_that_takes_the_place_of_one_that_is_not_kept_is_not_judged_by_its_object() {
    let large = DOCUMENTS.replace(
        "data: {revision: $(workload.spec.image)$}",
        &format!(
            "data: {{revision: $(workload.spec.image)$, large: {}}}",
            "x".repeat(40_000)
        ),
    );
    let waits = with_waiting_updates(&large);
    let mut second = started(&large);
    push(&mut second, "2");
    let mut held = second.cluster.held.objects.iter();
    let build = held.find(|held| held.object["metadata"]["name"] == "build");
    let mut forged = build.unwrap().clone();
    forged.object["metadata"]["uid"] = json!("forged");

    let mut scenario = started(&waits);
    plant(&mut scenario, "ns", "gate-1", "yes");
    scenario.cluster.prune("build");
    scenario.cluster.held.objects.push(forged);
    push(&mut scenario, "2");
    assert!(
        good(&scenario).contains("[ConfigMap/gate-2] is not there"),
        "{}",
        good(&scenario)
    );
    assert_eq!(deployed(&mut scenario), Value::Null);
    plant(&mut scenario, "ns", "gate-2", "yes");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "2");
    settles(&mut scenario);
}

#[test]
fn a_run_that_ended_stays_so_whatever_becomes_of_the_object() {
    let runs = DOCUMENTS.replace("  configPath", "  lifecycle: immutable\n  configPath");
    let runs = runs.replace(
        "metadata: {name: build}\n    data",
        "metadata: {generateName: build-}\n    data",
    );
    let mut scenario = started(&runs);
    assert!(good(&scenario).starts_with(PENDING), "{}", good(&scenario));
    plant(&mut scenario, "ns", "gate-1", "yes");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "1");
    assert_eq!(scenario.entry("build")["runs"][0]["result"], "Succeeded");
    settles(&mut scenario);
    let made = scenario.cluster.names().len();
    scenario.cluster.prune("gate-1");
    scenario.advance();
    assert_eq!(scenario.entry("build")["runs"][0]["result"], "Succeeded");
    assert_eq!(scenario.cluster.names().len(), made - 1, "no other run");
    assert_eq!(deployed(&mut scenario), "1");
}

/// What is read goes with the rendering whose inputs name it: an earlier run is not judged by the gate of the next one.
#[test]
fn a_run_is_not_judged_by_the_object_of_another_one() {
    let runs = DOCUMENTS.replace("  configPath", "  lifecycle: immutable\n  configPath");
    let runs = runs.replace(
        "metadata: {name: build}\n    data",
        "metadata: {generateName: build-}\n    data",
    );
    let mut scenario = started(&runs);
    plant(&mut scenario, "ns", "gate-2", "yes");
    push(&mut scenario, "2");
    assert_eq!(deployed(&mut scenario), "2");
    let of_runs = scenario.entry("build")["runs"].clone();
    assert_eq!(of_runs[0]["result"], "Succeeded");
    assert_eq!(of_runs[1]["result"], "Running", "nobody opened its gate");
    // It goes, and is asked for again: it came to nothing.
    let first = of_runs[1]["name"].as_str().unwrap().to_owned();
    scenario.cluster.prune(&first);
    push(&mut scenario, "1");
    assert_eq!(deployed(&mut scenario), "2");
    plant(&mut scenario, "ns", "gate-1", "yes");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "1");
}

/// A Secret that a rule reads, and a ConfigMap that another step filled from one, are compared and never shown.
#[test]
fn nothing_that_another_object_holds_is_told() {
    for kind in ["Secret", "ConfigMap"] {
        let documents = DOCUMENTS.replace(
            "object: {apiVersion: v1, kind: ConfigMap,",
            &format!("object: {{apiVersion: v1, kind: {kind},"),
        );
        let mut scenario = started(&documents);
        let object = json!({"apiVersion": "v1", "kind": kind, "data": {"open": "hunter2"},
            "metadata": {"namespace": "ns", "name": "gate-1"}});
        scenario.cluster.held.objects.push(Observed::of(object));
        scenario.advance();
        assert!(
            good(&scenario).contains("is not yes"),
            "{}",
            good(&scenario)
        );
        let status = scenario.owner["status"].to_string();
        assert!(!status.contains("hunter2"), "{status}");
    }
}

#[test]
fn a_template_that_reads_no_other_object_asks_for_none() {
    let plain = DOCUMENTS.replace(
        "      object: {apiVersion: v1, kind: ConfigMap, name: gate-$(workload.spec.image)$}\n",
        "",
    );
    let scenario = started(&plain);
    assert!(
        !scenario
            .cluster
            .log
            .iter()
            .any(|line| line.ends_with("read"))
    );
}

/// What is in an environment is judged by the object of its own revision, whatever comes in meanwhile.
#[test]
fn an_environment_is_not_judged_by_the_object_of_what_comes_in() {
    let template = "
kind: ClusterDeploymentTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  observedCompletion:
    succeeded:
    - {key: .status.phase, value: Ready}
    - {object: {apiVersion: v1, kind: ConfigMap, name: gate-$(deployment.revision)$}, key: .data.open, value: 'yes'}
  template:
    apiVersion: test.run/v1alpha1
    kind: App
    metadata: {name: app}
    spec: {revision: $(deployment.revision)$}
";
    let mut scenario = sequence();
    scenario.apply(template);
    let deployer = |scenario: &Scenario| scenario.step_condition("deployer", "OutputsGood");
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Ready");
    scenario.advance();
    assert!(
        deployer(&scenario).contains("[ConfigMap/gate-A] is not there"),
        "{}",
        deployer(&scenario)
    );
    assert!(!scenario.cluster.names().contains(&"run-1"));
    plant(&mut scenario, "ns", "gate-A", "yes");
    scenario.advance();
    assert_eq!(deployer(&scenario), "True/Good/");
    validation::push(&mut scenario, "B");
    scenario.advance();
    assert_eq!(validation::deployed(&mut scenario), "A");
    assert_eq!(deployer(&scenario), "True/Good/");
    run(&mut scenario, "run-1", "True");
    scenario.advance();
    check(&mut scenario);
    for _ in 0..3 {
        scenario.advance();
    }
    assert_eq!(validation::deployed(&mut scenario), "B");
    deployment(&mut scenario, "Ready");
    scenario.advance();
    assert!(
        deployer(&scenario).contains("[ConfigMap/gate-B] is not there"),
        "{}",
        deployer(&scenario)
    );
    plant(&mut scenario, "ns", "gate-B", "yes");
    scenario.advance();
    assert_eq!(deployer(&scenario), "True/Good/");
}
