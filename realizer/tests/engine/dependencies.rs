//! Steps that wait until others are good.

use serde_json::{Value, json};

use crate::attribution::{push, settles};
use crate::scenario::Scenario;

/// The database is migrated before the application is deployed. Both are of the commit that the Workload names.
const DOCUMENTS: &str = "
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: migrate}
spec:
  observedCompletion:
    succeeded: {key: .status.phase, value: Done}
    failed: {key: .status.phase, value: Failed}
  template:
    apiVersion: test.run/v1
    kind: Migration
    metadata: {name: migration}
    spec: {revision: $(workload.spec.image)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: application}
    data: {image: $(workload.spec.image)$}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
  - {name: deploy, templateRef: {kind: ClusterTemplate, name: deploy}, dependsOn: [{resource: migrate}]}
  - {name: migrate, templateRef: {kind: ClusterTemplate, name: migrate}}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}}
spec: {image: '1'}
";

fn started() -> Scenario {
    let mut scenario = Scenario::new(DOCUMENTS);
    scenario.advance();
    scenario
}

fn migration_is(scenario: &mut Scenario, phase: &str) {
    let migration = scenario.cluster.object("migration");
    let generation = migration["metadata"]["generation"].clone();
    migration["status"] = json!({"observedGeneration": generation, "phase": phase});
    scenario.advance();
}

fn deployed(scenario: &mut Scenario) -> Value {
    if !scenario.cluster.names().contains(&"application") {
        return Value::Null;
    }
    scenario.cluster.object("application")["data"]["image"].clone()
}

const WAITS: &str = "Unknown/InputsNotReady/waiting for input(s) [success] of resource [deploy]: not available from \
                     resource(s) [migrate]";

#[test]
fn a_step_is_created_once_what_it_depends_on_is_good() {
    let mut scenario = started();
    assert_eq!(deployed(&mut scenario), Value::Null);
    assert_eq!(
        scenario.step_condition("deploy", "ResourceSubmitted"),
        WAITS
    );
    settles(&mut scenario);
    migration_is(&mut scenario, "Done");
    assert_eq!(deployed(&mut scenario), "1");
    assert_eq!(
        scenario.entry("deploy")["inputs"],
        json!([{"name": "migrate"}])
    );
    settles(&mut scenario);
}

#[test]
fn a_step_stays_as_it_is_until_what_it_depends_on_is_good_as_rendered_now() {
    let mut scenario = started();
    migration_is(&mut scenario, "Done");
    push(&mut scenario, "2");
    // The status of the former generation does not count, nor does one that failed.
    assert_eq!(deployed(&mut scenario), "1");
    migration_is(&mut scenario, "Failed");
    assert_eq!(deployed(&mut scenario), "1");
    assert_eq!(
        scenario.step_condition("deploy", "ResourceSubmitted"),
        WAITS
    );
    push(&mut scenario, "3");
    migration_is(&mut scenario, "Done");
    assert_eq!(deployed(&mut scenario), "3");
}

#[test]
fn what_a_step_handed_on_before_is_no_success_of_it_now() {
    let image = DOCUMENTS.replacen(
        "kind: ClusterTemplate\napiVersion: carto.run/v1alpha1\nmetadata: {name: migrate}\nspec:\n",
        "kind: ClusterImageTemplate\napiVersion: carto.run/v1alpha1\nmetadata: {name: migrate}\nspec:\n  imagePath: .spec.revision\n",
        1,
    );
    let image = image.replace(
        "templateRef: {kind: ClusterTemplate, name: migrate}",
        "templateRef: {kind: ClusterImageTemplate, name: migrate}",
    );
    let mut scenario = Scenario::new(&image);
    scenario.advance();
    migration_is(&mut scenario, "Done");
    push(&mut scenario, "2");
    assert_eq!(scenario.entry("migrate")["outputs"][0]["value"], "1");
    assert_eq!(deployed(&mut scenario), "1");
    migration_is(&mut scenario, "Done");
    assert_eq!(deployed(&mut scenario), "2");
}

/// A Job as it is written without any rule of when outputs are good.
#[test]
fn an_earlier_run_that_is_healthy_is_no_success_of_the_present_one() {
    let run = DOCUMENTS.replace(
        "  observedCompletion:\n    succeeded: {key: .status.phase, value: Done}\n    failed: {key: .status.phase, value: Failed}\n",
        "  lifecycle: immutable\n  healthRule: {singleConditionType: Done}\n",
    );
    let run = run.replace(
        "metadata: {name: migration}",
        "metadata: {generateName: migration-}",
    );
    let mut scenario = Scenario::new(&run);
    scenario.advance();
    let ends = |scenario: &mut Scenario, name: &str, status: &str| {
        let conditions = json!([{"type": "Done", "status": status}]);
        scenario.cluster.object(name)["status"] = json!({"conditions": conditions});
        scenario.advance();
    };
    assert_eq!(deployed(&mut scenario), Value::Null);
    ends(&mut scenario, "migration-1", "True");
    assert_eq!(deployed(&mut scenario), "1");
    push(&mut scenario, "2");
    assert_eq!(deployed(&mut scenario), "1");
    ends(&mut scenario, "migration-2", "False");
    assert_eq!(deployed(&mut scenario), "1");
    push(&mut scenario, "3");
    ends(&mut scenario, "migration-3", "True");
    assert_eq!(deployed(&mut scenario), "3");
}

/// A step that hands an image through is good as the step that it comes from, and waits as any other.
#[test]
fn what_passes_through_is_good_as_what_it_comes_from() {
    let option = |name: &str, key: &str| {
        format!("{{{name}, selector: {{matchFields: [{{key: spec.image, operator: {key}}}]}}}}")
    };
    let options = format!(
        "[{}, {}]",
        option("passThrough: image", "Exists"),
        option("name: build", "DoesNotExist")
    );
    let build = "
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: build}
spec:
  imagePath: .spec.revision
  observedCompletion: {succeeded: {key: .status.phase, value: Done}}
  template:
    apiVersion: test.run/v1
    kind: Migration
    metadata: {name: migration}
    spec: {revision: $(workload.spec.image)$}
---";
    let step = format!(
        "  - {{name: pass, templateRef: {{kind: ClusterImageTemplate, options: {options}}}, images: [{{name: image, resource: migrate}}]}}\n"
    );
    let chain = DOCUMENTS.replace(
        "{kind: ClusterTemplate, name: migrate}}",
        "{kind: ClusterImageTemplate, name: build}}",
    );
    let chain = chain.replace(
        "dependsOn: [{resource: migrate}]",
        "dependsOn: [{resource: pass}]",
    );
    let chain = chain.replace("  resources:\n", &format!("  resources:\n{step}"));
    let mut scenario = Scenario::new(&format!("{build}{chain}"));
    scenario.advance();
    assert_eq!(deployed(&mut scenario), Value::Null);
    migration_is(&mut scenario, "Done");
    assert_eq!(deployed(&mut scenario), "1");
    push(&mut scenario, "2");
    // The image of before is handed through.
    assert_eq!(scenario.entry("pass")["outputs"][0]["preview"], "\"1\"\n");
    assert_eq!(deployed(&mut scenario), "1");
    migration_is(&mut scenario, "Done");
    assert_eq!(deployed(&mut scenario), "2");
}

#[test]
fn a_template_without_rules_is_good_once_its_object_is_there() {
    let plain = DOCUMENTS.replace(
        "  observedCompletion:\n    succeeded: {key: .status.phase, value: Done}\n    failed: {key: .status.phase, value: Failed}\n",
        "",
    );
    let mut scenario = Scenario::new(&plain);
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "1");
    let order: Vec<_> = scenario.cluster.names();
    assert!(order.contains(&"migration"));
}

#[test]
fn a_step_that_depends_on_itself_or_on_nothing_that_is_there_is_told_so() {
    for (name, problem) in [
        (
            "deploy",
            "resource [deploy] takes its own output; the input will never be there",
        ),
        (
            "nobody",
            "resource [deploy] takes input [success] from resource [nobody], which does not exist",
        ),
    ] {
        let lost = DOCUMENTS.replace(
            "dependsOn: [{resource: migrate}]",
            &format!("dependsOn: [{{resource: {name}}}]"),
        );
        let mut scenario = Scenario::new(&lost);
        scenario.advance();
        assert_eq!(deployed(&mut scenario), Value::Null);
        let told = scenario.step_condition("deploy", "ResourceSubmitted");
        assert!(
            told.ends_with(&format!("from resource(s) [{name}]; {problem}")),
            "{told}"
        );
    }
}
