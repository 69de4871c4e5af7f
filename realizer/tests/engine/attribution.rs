//! Outputs that are tied to what made them: when they are read, what status says of them, and what goes on meanwhile.

use serde_json::{Value, json};

use crate::scenario::Scenario;
use crate::validation::{self, check, deployment, run, sequence};

/// `build` is a resource as the proposal describes it: it keeps its latest good output, whatever it reconciles now.
pub(crate) const DOCUMENTS: &str = "
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: source}
spec:
  urlPath: .data.url
  revisionPath: .data.revision
  alwaysSuccessful: true
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: source}
    data: {url: 'https://example.com/app', revision: $(workload.spec.image)$}
---
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: build}
spec:
  imagePath: .status.latestGoodOutput
  observedCompletion:
    succeeded:
    - {key: '.status.conditions[?(@.type==\"Ready\")].status', value: 'True'}
    failed: {key: '.status.conditions[?(@.type==\"Ready\")].status', value: 'False'}
  template:
    apiVersion: test.run/v1
    kind: Build
    metadata: {name: build}
    spec: {revision: $(source.revision)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: application}
    data: {image: $(image)$}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: source}}
  - {name: build, templateRef: {kind: ClusterImageTemplate, name: build}, sources: [{name: source, resource: fetch}]}
  - {name: deploy, templateRef: {kind: ClusterTemplate, name: deploy}, images: [{name: image, resource: build}]}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}}
spec: {image: '1'}
";

const READY: &str = r#".status.conditions[?(@.type=="Ready")].status"#;

pub(crate) fn started() -> Scenario {
    let mut scenario = Scenario::new(DOCUMENTS);
    scenario.advance();
    scenario
}

/// Revision 1 is built and deployed.
pub(crate) fn built() -> Scenario {
    let mut scenario = started();
    says(&mut scenario, "True", Some("image@1"));
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@1");
    scenario
}

pub(crate) fn push(scenario: &mut Scenario, revision: &str) {
    scenario.owner["spec"]["image"] = json!(revision);
    scenario.advance();
}

/// The controller of the build has come to the present spec, and says this.
pub(crate) fn says(scenario: &mut Scenario, ready: &str, output: Option<&str>) {
    let build = scenario.cluster.object("build");
    let generation = build["metadata"]["generation"].clone();
    lags(scenario, ready, output);
    scenario.cluster.object("build")["status"]["observedGeneration"] = generation;
}

/// As [`says`], of the spec that it has come to before.
fn lags(scenario: &mut Scenario, ready: &str, output: Option<&str>) {
    let status = &mut scenario.cluster.object("build")["status"];
    status["conditions"] = json!([{"type": "Ready", "status": ready}]);
    if let Some(output) = output {
        status["latestGoodOutput"] = json!(output);
    }
}

pub(crate) fn deployed(scenario: &mut Scenario) -> Value {
    if !scenario.cluster.names().contains(&"application") {
        return Value::Null;
    }
    scenario.cluster.object("application")["data"]["image"].clone()
}

pub(crate) fn output(scenario: &Scenario) -> &Value {
    &scenario.entry("build")["outputs"][0]
}

pub(crate) fn identity(scenario: &Scenario, step: &str) -> Value {
    scenario.entry(step)["outputs"][0]["provenance"]["identity"].clone()
}

/// Reconciling again changes and writes nothing.
#[track_caller]
pub(crate) fn settles(scenario: &mut Scenario) {
    scenario.cluster.log.clear();
    let outcome = scenario.reconcile();
    assert!(!outcome.changed, "{}", outcome.status);
    assert!(outcome.events.is_empty(), "{:?}", outcome.events);
    let log = &scenario.cluster.log;
    let writes = |line: &&String| line.ends_with("Created") || line.ends_with("Patched");
    assert_eq!(log.iter().find(writes), None, "{log:?}");
}

#[test]
fn nothing_is_read_before_the_object_is_good() {
    let mut scenario = started();
    assert_eq!(deployed(&mut scenario), Value::Null);
    assert_eq!(
        scenario.step_condition("build", "OutputsGood"),
        "Unknown/Reconciling/resource [build] condition not met: the object has no status yet; no output was good before"
    );
    for (ready, output) in [("Unknown", Some("image@0")), ("False", None)] {
        says(&mut scenario, ready, output);
        scenario.advance();
        assert_eq!(deployed(&mut scenario), Value::Null, "{ready}");
    }
    assert_eq!(
        scenario.step_condition("build", "OutputsGood"),
        format!(
            "False/Failed/resource [build] failed condition met: failure condition [{READY}] was: False; no output was good \
             before"
        )
    );
    says(&mut scenario, "True", Some("image@1"));
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@1");
    assert_eq!(
        scenario.step_condition("build", "OutputsGood"),
        "True/Good/"
    );
    assert_eq!(scenario.owner_condition("Ready"), "True/Ready/");
    settles(&mut scenario);
}

#[test]
fn a_step_that_was_good_hands_on_its_last_good_output_meanwhile() {
    let mut scenario = built();
    let good = output(&scenario).clone();
    assert_eq!(good["current"], true);
    push(&mut scenario, "2");
    assert_eq!(deployed(&mut scenario), "image@1");
    let kept = output(&scenario).clone();
    assert_eq!(kept["current"], false);
    assert_eq!(kept["provenance"], good["provenance"]);
    assert_eq!(kept["value"], "image@1");
    let under_way = scenario.entry("build")["underWay"].clone();
    assert_eq!(
        under_way["inputs"],
        json!([{"name": "fetch", "identity": identity(&scenario, "fetch")}])
    );
    assert_eq!(under_way["since"], "2024-05-01T10:03:00Z");
    settles(&mut scenario);
    // It does not matter what becomes of the object that depends on it.
    scenario.cluster.prune("application");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@1");
    says(&mut scenario, "True", Some("image@2"));
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@2");
    assert_eq!(output(&scenario)["current"], true);
    assert_eq!(scenario.entry("build")["underWay"], Value::Null);
    settles(&mut scenario);
}

#[test]
fn a_step_that_cannot_be_rendered_any_more_hands_on_its_last_good_output() {
    let mut scenario = built();
    scenario.cluster.failing.insert(
        "build".to_owned(),
        realizer::SubmitFailure {
            kind: realizer::SubmitFailureKind::Forbidden,
            message: "patch: no".to_owned(),
        },
    );
    push(&mut scenario, "2");
    scenario.cluster.prune("application");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@1");
    assert_eq!(output(&scenario)["current"], false);
    assert_eq!(
        scenario.step_condition("build", "OutputsGood"),
        "Unknown/Reconciling/nothing was submitted for what goes into the step now; the last good outputs are handed on \
         meanwhile"
    );
    settles(&mut scenario);
}

/// The first counter-example of the proposal: updates at any time, and reading whenever the object has ended, well or badly.
#[test]
fn an_output_that_one_of_several_updates_made_is_not_attributed_to_the_last_one() {
    let mut scenario = built();
    push(&mut scenario, "2");
    push(&mut scenario, "3");
    // Revision 2 was built, and 3 failed.
    says(&mut scenario, "False", Some("image@2"));
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@1");
    assert_eq!(output(&scenario)["value"], "image@1");
    assert_eq!(output(&scenario)["current"], false);
}

/// The second one: updates only once the object has ended, and reading at any time.
#[test]
fn an_output_of_the_former_spec_is_not_attributed_to_the_one_just_submitted() {
    let mut scenario = built();
    let before = identity(&scenario, "build");
    // The world changes just before the update: the former spec is built again.
    push(&mut scenario, "2");
    for ready in ["Unknown", "True"] {
        lags(&mut scenario, ready, Some("image@1-rebuilt"));
        scenario.advance();
        assert_eq!(deployed(&mut scenario), "image@1", "{ready}");
        assert_eq!(identity(&scenario, "build"), before, "{ready}");
    }
}

/// The third one: updates and reading only once the object has ended.
#[test]
fn an_output_that_stands_beside_a_failure_is_attributed_to_nobody() {
    let mut scenario = built();
    push(&mut scenario, "2");
    // Either revision 1 made it, before the update, or revision 2, before the world changed again.
    says(&mut scenario, "False", Some("image@of-whom"));
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@1");
    says(&mut scenario, "True", Some("image@2"));
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@2");
}

#[test]
fn what_somebody_else_makes_the_object_yield_goes_nowhere() {
    let mut scenario = built();
    let before = output(&scenario).clone();
    // Its spec is changed, and its controller has built that.
    let build = scenario.cluster.object("build");
    build["spec"]["revision"] = json!("evil");
    build["metadata"]["generation"] = json!(2);
    scenario.cluster.tamper("build");
    says(&mut scenario, "True", Some("image@evil"));
    // It is changed back by the same walk, but its controller has not come to that.
    scenario.advance();
    assert_eq!(scenario.cluster.object("build")["spec"]["revision"], "1");
    assert_eq!(deployed(&mut scenario), "image@1");
    assert_eq!(output(&scenario)["current"], false);
    says(&mut scenario, "True", Some("image@1"));
    scenario.advance();
    assert_eq!(*output(&scenario), before, "the same output as before");
    settles(&mut scenario);
}

#[test]
fn what_cannot_be_changed_back_yet_is_not_read() {
    let mut scenario = built();
    scenario.cluster.undone.insert("build".to_owned());
    says(&mut scenario, "True", Some("image@evil"));
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@1");
    let told = scenario.step_condition("build", "OutputsGood");
    assert!(
        told.starts_with("Unknown/Reconciling/object [ns/build]"),
        "{told}"
    );
    assert!(
        told.ends_with("the last good outputs are handed on meanwhile"),
        "{told}"
    );
}

#[test]
fn an_output_is_known_by_all_that_made_it() {
    let mut scenario = built();
    let provenance = output(&scenario)["provenance"].clone();
    assert_eq!(
        provenance["object"],
        json!({"uid": "uid-2", "generation": 1})
    );
    assert_eq!(provenance["accepted"], "2024-05-01T10:02:00Z");
    assert_eq!(
        provenance["inputs"],
        json!([{"name": "fetch", "identity": identity(&scenario, "fetch")}])
    );
    // The same image of another revision.
    let (fetch, build) = (identity(&scenario, "fetch"), identity(&scenario, "build"));
    push(&mut scenario, "2");
    says(&mut scenario, "True", Some("image@1"));
    scenario.advance();
    assert_ne!(identity(&scenario, "fetch"), fetch);
    assert_ne!(identity(&scenario, "build"), build);
    assert_eq!(
        output(&scenario)["digest"],
        scenario.entry("build")["outputs"][0]["digest"]
    );
    settles(&mut scenario);
    // And back again: the values and the inputs are those of the first time, so it is the same output.
    push(&mut scenario, "1");
    says(&mut scenario, "True", Some("image@1"));
    scenario.advance();
    assert_eq!(identity(&scenario, "fetch"), fetch);
    assert_eq!(identity(&scenario, "build"), build);
}

#[test]
fn what_means_something_else_by_now_is_dropped() {
    for (edit, is_kept) in [
        (("kind: Build", "kind: Build, labels: {}").0, true),
        ("imagePath: .status.otherOutput", false),
    ] {
        let mut scenario = built();
        let edited = if is_kept {
            DOCUMENTS.replace(
                "spec: {revision: $(source.revision)$}",
                "spec: {revision: $(source.revision)$, more: 1}",
            )
        } else {
            DOCUMENTS.replace("imagePath: .status.latestGoodOutput", edit)
        };
        scenario.apply(&edited);
        scenario.cluster.prune("application");
        scenario.advance();
        let expected = if is_kept {
            json!("image@1")
        } else {
            Value::Null
        };
        assert_eq!(deployed(&mut scenario), expected, "{edit}");
    }
}

#[test]
fn under_another_blueprint_or_template_nothing_is_left_of_a_last_good_output() {
    for (from, to) in [
        ("metadata: {name: chain}", "metadata: {name: other}"),
        ("name: build}\nspec", "name: kaniko}\nspec"),
    ] {
        let mut scenario = built();
        scenario.blueprints.clear();
        let edited = DOCUMENTS.replace(from, to).replace(
            "ClusterImageTemplate, name: build",
            match to {
                "name: kaniko}\nspec" => "ClusterImageTemplate, name: kaniko",
                _ => "ClusterImageTemplate, name: build",
            },
        );
        scenario.apply(&edited);
        push(&mut scenario, "2");
        assert_eq!(output(&scenario)["value"], Value::Null, "{to}");
        scenario.cluster.prune("application");
        scenario.advance();
        assert_eq!(deployed(&mut scenario), Value::Null, "{to}");
    }
}

#[test]
fn when_another_option_is_chosen_the_last_good_output_of_the_former_one_is_dropped() {
    let start = DOCUMENTS.find("kind: ClusterImageTemplate").unwrap();
    let end = start + DOCUMENTS[start..].find("---\n").unwrap();
    let other = DOCUMENTS[start..end].replace(
        "metadata: {name: build}\nspec",
        "metadata: {name: kaniko}\nspec",
    );
    let by_option = "{kind: ClusterImageTemplate, options: [
      {name: build, selector: {matchLabels: {builder: build}}}, {name: kaniko, selector: {matchLabels: {builder: kaniko}}}]}";
    let documents = DOCUMENTS
        .replace("{kind: ClusterImageTemplate, name: build}", by_option)
        .replace("labels: {type: web}", "labels: {type: web, builder: build}");
    let mut scenario = Scenario::new(&format!("{other}---\n{documents}"));
    scenario.advance();
    says(&mut scenario, "True", Some("image@1"));
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@1");
    push(&mut scenario, "2");
    assert_eq!(output(&scenario)["value"], "image@1");
    scenario.owner["metadata"]["labels"]["builder"] = json!("kaniko");
    scenario.advance();
    assert_eq!(output(&scenario)["value"], Value::Null);
    scenario.cluster.prune("application");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), Value::Null);
}

#[test]
fn a_value_of_a_secret_is_not_kept_and_the_step_says_that_it_waits() {
    let mut scenario = Scenario::new(&DOCUMENTS.replace(
        "    kind: ConfigMap\n    metadata: {name: source}",
        "    kind: Secret\n    metadata: {name: source}",
    ));
    scenario.advance();
    says(&mut scenario, "True", Some("image-of-1"));
    scenario.advance();
    let source = &scenario.entry("fetch")["outputs"][1];
    assert_eq!(source["preview"], "<redacted>");
    assert_eq!(source["value"], Value::Null);
    assert!(
        !source["provenance"]["identity"]
            .as_str()
            .unwrap()
            .is_empty()
    );
    scenario.cluster.undone.insert("fetch".to_owned());
    scenario.advance();
    let told = scenario.step_condition("fetch", "OutputsGood");
    assert!(
        told.ends_with(
            "the last good outputs come from a Secret, so they are not kept: later steps wait"
        ),
        "{told}"
    );
    assert_eq!(
        scenario
            .step_condition("build", "ResourceSubmitted")
            .split('/')
            .nth(1),
        Some("TemplateStampFailure")
    );
    // The build does without: what it was good at before is none of a Secret.
    settles(&mut scenario);
}

#[test]
fn a_large_value_is_not_kept_in_status_and_the_step_says_so() {
    let mut scenario = started();
    let large = "x".repeat(9000);
    says(&mut scenario, "True", Some(&large));
    scenario.artifacts.unwritable = true;
    scenario.advance();
    assert_eq!(deployed(&mut scenario), large);
    assert_eq!(output(&scenario)["value"], Value::Null);
    push(&mut scenario, "2");
    let told = scenario.step_condition("build", "OutputsGood");
    assert!(
        told.ends_with("too large to be kept: later steps wait"),
        "{told}"
    );
}

const RUN: &str = "
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: build}
spec:
  imagePath: .status.image
  lifecycle: immutable
  observedCompletion:
    succeeded: {key: .status.succeeded, value: '1'}
    failed: {anyOf: [{key: .status.failed, value: '1'}, {key: .status.phase, value: Lost}]}
  template:
    apiVersion: test.run/v1
    kind: Build
    metadata: {generateName: run-}
    spec: {revision: $(source.revision)$}
";

pub(crate) fn ran() -> Scenario {
    let mut scenario = Scenario::new(DOCUMENTS);
    scenario.apply(RUN);
    scenario.advance();
    scenario.cluster.object("run-1")["status"] = json!({"succeeded": 1, "image": "image@1"});
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@1");
    settles(&mut scenario);
    scenario
}

#[test]
fn a_run_is_good_once_it_says_so_whether_or_not_it_counts_generations() {
    let mut scenario = ran();
    push(&mut scenario, "2");
    assert_eq!(deployed(&mut scenario), "image@1");
    scenario.cluster.object("run-2")["status"] = json!({"failed": 1, "image": "image@2"});
    scenario.advance();
    assert_eq!(
        scenario.step_condition("build", "OutputsGood"),
        "False/Failed/resource [build] failed condition met: failure condition holds: ([.status.failed] is 1 or \
         [.status.phase] is Lost); the last good outputs are handed on meanwhile"
    );
    assert_eq!(deployed(&mut scenario), "image@1");
    settles(&mut scenario);
}

#[test]
fn a_run_that_is_gone_keeps_what_it_came_to() {
    let mut scenario = ran();
    let before = output(&scenario).clone();
    scenario.cluster.prune("run-1");
    scenario.cluster.prune("application");
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["source", "application"]);
    assert_eq!(*output(&scenario), before);
    assert_eq!(
        scenario.step_condition("build", "OutputsGood"),
        "True/Good/"
    );
    settles(&mut scenario);
    push(&mut scenario, "2");
    scenario.cluster.object("run-2")["status"] = json!({"failed": 1});
    scenario.advance();
    scenario.cluster.prune("run-2");
    scenario.advance();
    assert_eq!(
        scenario.cluster.names(),
        ["source", "application"],
        "it is not run again"
    );
    assert_eq!(
        scenario.step_condition("build", "OutputsGood"),
        "False/Failed/resource [build] failed condition met: run [run-2] failed; the last good outputs are handed on \
         meanwhile"
    );
}

#[test]
fn a_run_whose_spec_somebody_changed_is_not_read() {
    let mut scenario = Scenario::new(DOCUMENTS);
    scenario.apply(RUN);
    scenario.advance();
    scenario.cluster.object("run-1")["status"] = json!({"succeeded": 1, "image": "image@evil"});
    scenario.cluster.held.objects[1].unchanged = false;
    scenario.advance();
    assert_eq!(deployed(&mut scenario), Value::Null);
    let told = scenario.step_condition("build", "OutputsGood");
    assert!(told.contains("does not hold what is rendered"), "{told}");
    assert!(!scenario.owner["status"].to_string().contains("evil"));
    // As the condition says.
    scenario.cluster.prune("run-1");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), Value::Null);
    assert_eq!(scenario.cluster.names(), ["source", "run-1"], "made again");
}

#[test]
fn reported_inputs_tell_which_inputs_an_output_is_of() {
    let mut scenario = Scenario::new(DOCUMENTS);
    scenario.apply(
        "
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: build}
spec:
  imagePath: .status.latestImage.image
  inputsOnStatus:
  - {templatingContextPath: sources.source.url, objectPath: status.latestImage.source.url}
  - {templatingContextPath: .sources.source.revision, objectPath: $(status.latestImage.source.revision)$}
  failed: {key: .status.phase, value: Failed}
  template:
    apiVersion: test.run/v1
    kind: Build
    metadata: {name: build}
    spec: {revision: $(source.revision)$}
",
    );
    scenario.advance();
    let reports = |scenario: &mut Scenario, revision: &str| {
        scenario.cluster.object("build")["status"] = json!({"latestImage": {
            "image": format!("image@{revision}"),
            "source": {"url": "https://example.com/app", "revision": revision},
        }});
        scenario.advance();
    };
    assert_eq!(
        scenario.step_condition("build", "OutputsGood"),
        "Unknown/Reconciling/resource [build] condition not met: could not find input [sources.source.url] on \
         [status.latestImage.source.url]: jsonpath returned empty list: status.latestImage.source.url; no output was good before"
    );
    reports(&mut scenario, "0");
    assert_eq!(
        scenario.step_condition("build", "OutputsGood"),
        "Unknown/Reconciling/resource [build] condition not met: object reports at \
         [$(status.latestImage.source.revision)$] another input than [.sources.source.revision]: 0 != 1; no output was good \
         before"
    );
    reports(&mut scenario, "1");
    assert_eq!(deployed(&mut scenario), "image@1");
    push(&mut scenario, "2");
    assert_eq!(deployed(&mut scenario), "image@1");
    assert_eq!(output(&scenario)["current"], false);
    scenario.cluster.object("build")["status"]["phase"] = json!("Failed");
    scenario.advance();
    assert!(
        scenario
            .step_condition("build", "OutputsGood")
            .starts_with("False/Failed/")
    );
    reports(&mut scenario, "2");
    assert_eq!(deployed(&mut scenario), "image@2");
    settles(&mut scenario);
}

/// Of templates that use none of it, status says what it said before.
#[test]
fn a_template_that_says_nothing_of_it_has_none_of_it_in_status() {
    let plain = DOCUMENTS
        .replace("  alwaysSuccessful: true\n", "")
        .split("  observedCompletion:")
        .map(|part| match part.split_once("'False'}\n") {
            Some((_, rest)) => rest.to_owned(),
            None => part.to_owned(),
        })
        .collect::<Vec<_>>()
        .concat();
    let mut scenario = Scenario::new(&plain);
    scenario.advance();
    says(&mut scenario, "False", Some("image@1"));
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@1");
    let status = scenario.owner["status"].to_string();
    for field in [
        "current",
        "provenance",
        "underWay",
        "OutputsGood",
        "\"value\"",
    ] {
        assert!(!status.contains(field), "{field}: {status}");
    }
}

/// What is in an environment is said by its record, whatever goes in: no provenance is made up for it.
#[test]
fn an_environment_of_such_a_template_is_locked_and_promoted_as_any_other() {
    let template = "
kind: ClusterDeploymentTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  observedCompletion:
    succeeded: [{key: .status.phase, value: Ready}]
    failed: {anyOf: [{key: .status.phase, value: Failed}]}
  template:
    apiVersion: test.run/v1alpha1
    kind: App
    metadata: {name: app}
    spec: {revision: $(deployment.revision)$}
";
    let mut scenario = sequence();
    scenario.apply(template);
    let promoted = |scenario: &mut Scenario| match scenario.cluster.held.object("promoted") {
        Some(promoted) => promoted["data"]["revision"].clone(),
        None => Value::Null,
    };
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Ready");
    scenario.advance();
    // Another one comes while this one is tested.
    validation::push(&mut scenario, "B");
    scenario.advance();
    assert_eq!(validation::deployed(&mut scenario), "A");
    assert_eq!(
        scenario.step_condition("deployer", "OutputsGood"),
        "True/Good/"
    );
    let output = &scenario.entry("deployer")["outputs"][1];
    assert_eq!(
        (&output["preview"], &output["provenance"]),
        (&json!("A\n"), &Value::Null)
    );
    run(&mut scenario, "run-1", "True");
    scenario.advance();
    check(&mut scenario);
    scenario.advance();
    assert_eq!(promoted(&mut scenario), "A");
    // Status announces what waited, and then it arrives.
    scenario.advance();
    scenario.advance();
    assert_eq!(validation::deployed(&mut scenario), "B");
    deployment(&mut scenario, "Failed");
    scenario.advance();
    let told = scenario.step_condition("deployer", "OutputsGood");
    assert!(told.starts_with("False/Failed/"), "{told}");
    assert_eq!(promoted(&mut scenario), "A");
}
