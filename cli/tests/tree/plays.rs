//! Owners as the engine leaves them: every play walks it against a cluster that is a list of objects.

use std::collections::BTreeMap;

use realizer::{RenderFailure, SubmitFailure, SubmitFailureKind, Unrealized, report_unrealized};
use serde_json::{Value, json};

use crate::scenario::{Scenario, documents};
use crate::stage::Stage;

/// What `carto tree` is given.
pub(crate) struct Scene {
    pub(crate) owner: Value,
    pub(crate) blueprint: Option<Value>,
    /// What can be read below the objects of the steps.
    pub(crate) cluster: Vec<Value>,
}

/// A scene by its name, which is that of its golden file.
pub(crate) type Play = (&'static str, fn() -> Scene);

pub(crate) const PLAYS: &[Play] = &[
    ("everything-is-ready", || settled().scene()),
    ("blueprint-may-not-be-read", || Scene {
        blueprint: None,
        ..settled().scene()
    }),
    ("not-looked-at-yet", || web_app().without_blueprint()),
    ("latest-change-not-looked-at", latest_change_not_looked_at),
    ("no-labels", no_labels),
    ("no-supply-chain-keeps-old-steps", no_supply_chain),
    ("two-supply-chains-match", two_supply_chains_match),
    ("template-missing", template_missing),
    ("service-account-missing", service_account_missing),
    ("root-cause-is-the-first-step-with-its-inputs", root_cause),
    ("waiting-tells-what-the-object-says", waiting),
    ("path-that-will-never-be-there", path_never_there),
    (
        "output-of-an-object-without-a-health-rule",
        without_a_health_rule,
    ),
    ("ytt-error-keeps-its-lines", ytt_error),
    ("no-right-to-stamp", no_right_to_stamp),
    ("rejected-by-the-api-server", rejected),
    ("object-of-another-step", object_of_another_step),
    ("extra-conditions-and-leftovers", leftovers),
    ("step-not-tried-yet", step_not_tried_yet),
    ("last-good-output-is-handed-on", last_good_output),
    ("steps-in-a-round", steps_in_a_round),
    (
        "steps-that-wait-for-one-another",
        steps_wait_for_one_another,
    ),
    (
        "control-characters-do-not-reach-the-terminal",
        control_characters,
    ),
    ("deliverable-that-is-being-deployed", deployment_goes_on),
    ("environment-a-revision-arrives", revision_arrives),
    ("environment-validation-runs", || validating().scene()),
    ("environment-update-is-held", update_is_held),
    ("environment-validation-failed", validation_failed),
    ("environment-validation-timed-out", validation_timed_out),
    ("environment-everything-passed", everything_passed),
    (
        "secret-values-are-never-shown",
        written_by_the_go_controller,
    ),
    ("runnable-not-looked-at-yet", || {
        of_runnable(&Stage::new(json!({})))
    }),
    ("runnable-without-the-right-to-run", runnable_without_right),
    ("runnable-whose-newest-run-failed", newest_run_failed),
    ("below-a-failed-job-under-a-runnable", failed_job),
    ("below-an-image-that-cannot-be-pulled", image_not_pulled),
    ("below-what-may-not-be-read", unreadable_below),
    ("below-a-run-that-is-gone", run_is_gone),
    ("below-a-deliverable-that-waits", deliverable_below),
];

const TEMPLATES: &str = "
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: git-source}
spec:
  urlPath: .status.artifact.url
  revisionPath: .status.artifact.revision
  healthRule: {singleConditionType: Ready}
  template:
    apiVersion: source.toolkit.fluxcd.io/v1
    kind: GitRepository
    metadata: {name: $(workload.metadata.name)$}
    spec: {url: https://git.example/app}
---
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: app-config}
spec:
  configPath: .data
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: web-app-config}
    data: {greeting: hello, revision: $(source.revision)$, image: $(image)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deployment}
spec:
  healthRule:
    multiMatch:
      healthy: {matchConditions: [{type: Available, status: 'True'}]}
      unhealthy: {matchConditions: [{type: Available, status: 'False'}]}
  template:
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web-app}
    spec: {image: $(image)$, greeting: $(configs.settings.config.greeting)$}
---
";

const IMAGE: &str = "
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: oci-image}
spec:
  imagePath: .status.artifact.digest
  healthRule: {singleConditionType: Ready}
  template:
    apiVersion: source.toolkit.fluxcd.io/v1
    kind: OCIRepository
    metadata: {name: web-app}
    spec: {url: oci://registry.example/web-app}
---
";

const CHAIN: &str = "
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: web-app}
spec:
  selector: {type: web-app}
  resources:
  - {name: source, templateRef: {kind: ClusterSourceTemplate, name: git-source}}
  - {name: image, templateRef: {kind: ClusterImageTemplate, name: oci-image}}
  - name: config
    templateRef: {kind: ClusterConfigTemplate, name: app-config}
    sources: [{name: source, resource: source}]
    images: [{name: image, resource: image}]
  - name: deploy
    templateRef: {kind: ClusterTemplate, name: deployment}
    images: [{name: image, resource: image}]
    configs: [{name: settings, resource: config}]
---
";

const WORKLOAD: &str = "
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: web-app, namespace: dev, labels: {type: web-app}}
spec: {serviceAccountName: web-app}
";

/// What plays have in common.
trait Acts {
    fn scene(self) -> Scene;
    fn without_blueprint(self) -> Scene;
    /// So many reconciles.
    fn walk(&mut self, times: usize);
    /// What the controller of the only object of this kind says of it.
    fn says(&mut self, kind: &str, status: Value);
}

impl Acts for Scenario {
    fn scene(self) -> Scene {
        Scene {
            blueprint: self.blueprints.first().cloned(),
            owner: self.owner,
            cluster: Vec::new(),
        }
    }

    fn without_blueprint(self) -> Scene {
        Scene {
            blueprint: None,
            owner: self.owner,
            cluster: Vec::new(),
        }
    }

    fn walk(&mut self, times: usize) {
        for _ in 0..times {
            self.advance();
        }
    }

    fn says(&mut self, kind: &str, status: Value) {
        let mut held = self.cluster.held.objects.iter_mut();
        let held = held.find(|held| held.object["kind"] == kind).unwrap();
        held.object["status"] = status;
    }
}

fn web_app() -> Scenario {
    Scenario::new(&format!("{TEMPLATES}{IMAGE}{CHAIN}{WORKLOAD}"))
}

/// One step, stamped from this template.
fn one_step(step: &str, kind: &str, template: &str, spec: &str) -> Scenario {
    Scenario::new(&format!(
        "
kind: {kind}
apiVersion: carto.run/v1alpha1
metadata: {{name: {template}}}
spec:
{spec}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {{name: web-app}}
spec:
  selector: {{type: web-app}}
  resources:
  - {{name: {step}, templateRef: {{kind: {kind}, name: {template}}}}}
---
{WORKLOAD}"
    ))
}

fn condition(type_: &str, status: &str, message: &str) -> Value {
    json!([{"type": type_, "status": status, "reason": "Told", "message": message}])
}

fn fetched(url: &str, revision: &str) -> Value {
    let message = format!("stored artifact for revision '{revision}'");
    json!({"artifact": {"url": url, "revision": revision},
        "conditions": condition("Ready", "True", &message)})
}

fn source_is_there(play: &mut Scenario) {
    let url = "http://flux/gitrepository/dev/web-app/5a3c.tar.gz";
    play.says("GitRepository", fetched(url, "main@sha1:5a3c0ffee"));
}

fn image_is_there(play: &mut Scenario) {
    let status = json!({"artifact": {"digest": "registry.example/web-app@sha256:0123"},
        "conditions": condition("Ready", "True", "stored artifact for digest '1.0@sha256:0123'")});
    play.says("OCIRepository", status);
}

/// Source and image are there, and what is made of them.
fn supplied() -> Scenario {
    let mut play = web_app();
    play.walk(1);
    source_is_there(&mut play);
    image_is_there(&mut play);
    play.walk(1);
    play
}

fn settled() -> Scenario {
    let mut play = supplied();
    let available = condition("Available", "True", "Deployment has minimum availability.");
    play.says("Deployment", json!({"conditions": available}));
    play.walk(1);
    play
}

fn latest_change_not_looked_at() -> Scene {
    let mut play = settled();
    play.owner["metadata"]["generation"] = json!(2);
    play.scene()
}

fn no_labels() -> Scene {
    let mut play = web_app();
    play.owner["metadata"]["labels"] = json!({});
    play.walk(1);
    play.without_blueprint()
}

fn no_supply_chain() -> Scene {
    let mut play = settled();
    play.owner["metadata"]["labels"] = json!({"app": "x"});
    play.walk(1);
    play.scene()
}

fn two_supply_chains_match() -> Scene {
    let mut play = web_app();
    play.apply(&CHAIN.replace("{name: web-app}", "{name: web-app-v2}"));
    play.walk(1);
    play.without_blueprint()
}

fn template_missing() -> Scene {
    let mut play = Scenario::new(&format!("{TEMPLATES}{CHAIN}{WORKLOAD}"));
    play.walk(1);
    play.scene()
}

fn service_account_missing() -> Scene {
    let mut play = supplied();
    let owner = play.parsed_owner();
    let blueprints = play.compiled_blueprints();
    let account = ("dev".to_owned(), "web-app".to_owned());
    let why = "ServiceAccount \"web-app\" not found".to_owned();
    let outcome = report_unrealized(
        &owner,
        Unrealized::ServiceAccount(&blueprints[0], account, why),
        play.now,
    );
    play.owner["status"] = outcome.status;
    play.scene()
}

fn root_cause() -> Scene {
    let mut play = web_app();
    play.walk(1);
    image_is_there(&mut play);
    let why = "failed to checkout and determine revision: unable to clone 'https://git.example/app': authentication required";
    let status = json!({"conditions": condition("Ready", "False", why)});
    play.says("GitRepository", status);
    play.walk(1);
    play.scene()
}

fn waiting() -> Scene {
    let mut play = web_app();
    play.walk(1);
    image_is_there(&mut play);
    let status = json!({"conditions": condition("Ready", "Unknown", "building artifact")});
    play.says("GitRepository", status);
    play.walk(1);
    play.scene()
}

fn path_never_there() -> Scene {
    let mut play = web_app();
    play.apply(&IMAGE.replace("artifact.digest", "artifact.digset"));
    play.walk(1);
    source_is_there(&mut play);
    image_is_there(&mut play);
    play.walk(1);
    play.scene()
}

fn without_a_health_rule() -> Scene {
    let template = "
  configPath: .data.sttings
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: web-app}, data: {settings: x}}";
    let mut play = one_step("config", "ClusterConfigTemplate", "app-config", template);
    play.walk(1);
    play.scene()
}

fn ytt_error() -> Scene {
    let template = "
  configPath: .data
  ytt: |
    #@ load('@ytt:data', 'data')
    kind: ConfigMap
    apiVersion: v1
    metadata: #@ datta.values";
    let mut play = one_step("config", "ClusterConfigTemplate", "app-config", template);
    let complaint = "unable to apply ytt template: ytt: Error:\n- undefined: datta\n    in <toplevel>\n      stdin.yml:4 | metadata: #@ datta.values";
    let failure = RenderFailure::from(complaint.to_owned());
    play.cluster.ytt.insert("config".to_owned(), Err(failure));
    play.walk(1);
    play.scene()
}

fn failure(kind: SubmitFailureKind, message: &str) -> SubmitFailure {
    SubmitFailure {
        kind,
        message: message.to_owned(),
    }
}

fn no_right_to_stamp() -> Scene {
    let template =
        "\n  template: {apiVersion: v1, kind: Service, metadata: {name: web-app}, spec: {}}";
    let mut play = one_step("service", "ClusterTemplate", "service", template);
    let refusal = r#"create: services "web-app" is forbidden: User "system:serviceaccount:dev:web-app" cannot patch resource "services" in API group "" in the namespace "dev""#;
    let refusal = failure(SubmitFailureKind::Forbidden, refusal);
    play.cluster.failing.insert("service".to_owned(), refusal);
    play.walk(1);
    play.scene()
}

fn rejected() -> Scene {
    let mut play = settled();
    let refusal = r#"patch: deployments.apps "web-app" is forbidden: User "system:serviceaccount:dev:web-app" cannot patch resource "deployments" in API group "apps" in the namespace "dev""#;
    let refusal = failure(SubmitFailureKind::Forbidden, refusal);
    play.cluster.failing.insert("deploy".to_owned(), refusal);
    play.walk(1);
    play.scene()
}

fn object_of_another_step() -> Scene {
    let template =
        "\n  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: twice}, data: {}}";
    let mut play = one_step("two", "ClusterTemplate", "second", template);
    let why = "object [dev/twice] belongs to resource [one] of the same workload; give the two templates different names";
    let contested = failure(SubmitFailureKind::Contested, why);
    play.cluster.failing.insert("two".to_owned(), contested);
    play.walk(1);
    play.scene()
}

fn leftovers() -> Scene {
    let mut play = settled();
    let why = "deployments.apps \"web-app\" is forbidden";
    let undeletable = failure(SubmitFailureKind::Forbidden, why);
    play.cluster
        .undeletable
        .insert("web-app".to_owned(), undeletable);
    let (without_deploy, _) = CHAIN.split_once("  - name: deploy").unwrap();
    play.apply(without_deploy);
    play.walk(1);
    play.scene()
}

fn step_not_tried_yet() -> Scene {
    let mut play = web_app();
    let (without_image, _) = CHAIN.split_once("  - {name: image").unwrap();
    play.apply(without_image);
    play.walk(1);
    // The blueprint has more steps now than when the status was written.
    play.apply(CHAIN);
    play.scene()
}

const ROUND: &str = "
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: ok}
spec:
  configPath: .data
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: ok}, data: {}}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: web-app}
spec:
  selector: {type: web-app}
  resources:
  - {name: one, templateRef: {kind: ClusterConfigTemplate, name: ok}, configs: [{name: in, resource: two}]}
  - {name: two, templateRef: {kind: ClusterConfigTemplate, name: ok}, configs: [{name: in, resource: one}]}
---
";

fn steps_in_a_round() -> Scene {
    let mut play = Scenario::new(&format!("{ROUND}{WORKLOAD}"));
    play.walk(1);
    play.scene()
}

const ROUND_WITH_OPTIONS: &str = "
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: web-app}
spec:
  selector: {type: web-app}
  resources:
  - name: deploy
    templateRef: {kind: ClusterTemplate, name: release}
    configs: [{name: settings, resource: config}]
  - name: config
    templateRef:
      kind: ClusterConfigTemplate
      options:
      - {name: app-config, selector: {matchLabels: {type: web-app}}}
      - {name: other-config, selector: {matchLabels: {type: other}}}
    configs: [{name: config, resource: deploy}]
  - {name: source, templateRef: {kind: ClusterSourceTemplate, name: git-source}}
---
";

fn steps_wait_for_one_another() -> Scene {
    let other = "
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: release}
spec:
  template:
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web-app}
    spec: {greeting: $(config.greeting)$}
---
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: app-config}
spec:
  configPath: .data
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: web-app-config}, data: {all: $(config)$}}
---
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: other-config}
spec: {configPath: .data, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}}
---
";
    let mut play = Scenario::new(&format!("{TEMPLATES}{other}{ROUND_WITH_OPTIONS}{WORKLOAD}"));
    play.walk(1);
    source_is_there(&mut play);
    play.walk(1);
    play.scene()
}

fn control_characters() -> Scene {
    let mut play = web_app();
    play.walk(1);
    let mut status = fetched("\u{1b}[2J\u{1b}[Hgone", &"x".repeat(150));
    status["conditions"] = condition("Ready", "False", "bad \u{1b}[31mred\u{7}");
    play.says("GitRepository", status);
    play.walk(1);
    play.scene()
}

const DELIVERY: &str = "
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: git-source}
spec:
  urlPath: .spec.url
  revisionPath: .spec.revision
  template:
    apiVersion: source.toolkit.fluxcd.io/v1
    kind: GitRepository
    metadata: {name: web-app}
    spec: {url: https://git.example/ops, revision: $(deliverable.spec.source.git.ref.branch)$}
---
kind: ClusterDeploymentTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: app-deploy}
spec:
  observedCompletion: {succeeded: {key: '.status.conditions[0].status', value: 'True'}}
  template:
    apiVersion: kappctrl.k14s.io/v1alpha1
    kind: App
    metadata: {name: web-app}
    spec: {revision: $(deployment.revision)$}
---
kind: ClusterDeploymentValidationTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: smoke-test}
spec:
  lifecycle: tekton
  timeout: 10m
  template:
    apiVersion: tekton.dev/v1
    kind: TaskRun
    metadata: {generateName: smoke-test-}
    spec: {revision: $(deployment.revision)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: promote}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: promoted}
    data: {revision: $(source.revision)$}
---
kind: ClusterDelivery
apiVersion: carto.run/v1alpha1
metadata: {name: delivery}
spec:
  selector: {type: web-app}
  resources:
  - {name: source, templateRef: {kind: ClusterSourceTemplate, name: git-source}}
  - name: staging
    templateRef: {kind: ClusterDeploymentTemplate, name: app-deploy}
    deployment: {resource: source}
  - name: smoke-test
    templateRef: {kind: ClusterDeploymentValidationTemplate, name: smoke-test}
    deployment: {resource: staging}
  - name: promote
    templateRef: {kind: ClusterTemplate, name: promote}
    sources: [{name: source, resource: smoke-test}]
---
kind: Deliverable
apiVersion: carto.run/v1alpha1
metadata: {name: web-app, namespace: dev, labels: {type: web-app}}
spec: {serviceAccountName: web-app, source: {git: {ref: {branch: first}}}}
";

fn push(play: &mut Scenario, revision: &str) {
    play.owner["spec"]["source"]["git"]["ref"]["branch"] = json!(revision);
}

fn deployed(play: &mut Scenario) {
    let mut status = json!({"conditions": condition("ReconcileSucceeded", "True", "")});
    let objects = play.cluster.objects();
    let mut objects = objects.iter();
    let app = objects.find(|object| object["kind"] == "App").unwrap();
    status["observedGeneration"] = app["metadata"]["generation"].clone();
    play.says("App", status);
}

fn tested(play: &mut Scenario, status: &str, message: &str) {
    let status = json!({"conditions": condition("Succeeded", status, message)});
    play.says("TaskRun", status);
}

/// Without a validation: there is no environment to be kept.
fn deployment_goes_on() -> Scene {
    let (before, rest) = DELIVERY.split_once("  - name: smoke-test\n").unwrap();
    let (_, owner) = rest.split_once("---\n").unwrap();
    let mut play = Scenario::new(&format!("{before}---\n{owner}"));
    play.walk(1);
    deployed(&mut play);
    push(&mut play, "second");
    play.walk(1);
    play.scene()
}

fn revision_arrives() -> Scene {
    let mut play = Scenario::new(DELIVERY);
    play.walk(1);
    play.scene()
}

/// The first revision is in the environment, and its test runs.
fn validating() -> Scenario {
    let mut play = Scenario::new(DELIVERY);
    play.advance_with_arrival();
    deployed(&mut play);
    play.walk(1);
    tested(&mut play, "Unknown", "2 of 7 tests have run");
    play.walk(1);
    play
}

fn update_is_held() -> Scene {
    let mut play = validating();
    push(&mut play, "second");
    play.walk(1);
    play.scene()
}

fn validation_failed() -> Scene {
    let mut play = validating();
    tested(&mut play, "False", "checkout answers 500");
    play.walk(1);
    play.scene()
}

fn validation_timed_out() -> Scene {
    let mut play = validating();
    play.walk(11);
    play.scene()
}

fn everything_passed() -> Scene {
    let mut play = validating();
    tested(&mut play, "True", "");
    play.walk(1);
    play.scene()
}

fn of_runnable(stage: &Stage) -> Scene {
    Scene {
        owner: stage.runnable.clone(),
        blueprint: None,
        cluster: Vec::new(),
    }
}

fn runnable_without_right() -> Scene {
    let mut stage = Stage::new(json!({"serviceAccountName": "tester"}));
    let refusal = r#"create: taskruns.tekton.dev "run-3396fb2c69" is forbidden: User "system:serviceaccount:dev:tester" cannot patch resource "taskruns" in API group "tekton.dev" in the namespace "dev""#;
    stage.fails = Some(failure(SubmitFailureKind::Forbidden, refusal));
    stage.walk();
    of_runnable(&stage)
}

fn newest_run_failed() -> Scene {
    let mut stage = Stage::new(json!({}));
    stage.walk();
    stage.pass(5);
    stage.end("run-1", "True", "{\"lines\": 81.5}");
    stage.walk();
    stage.pass(60);
    stage.input("b");
    stage.walk();
    stage.pass(9);
    stage.end("run-2", "False", "");
    stage.walk();
    of_runnable(&stage)
}

/// A Workload whose only step stamps the Runnable `app`, and that Runnable, whose run is a Job.
fn workload_of(stage: &Stage) -> Scenario {
    let template = "
  healthRule: {singleConditionType: Ready}
  configPath: .status.outputs.out
  template:
    apiVersion: carto.run/v1alpha1
    kind: Runnable
    metadata: {name: app}
    spec: {runTemplateRef: {name: tests}}";
    let mut play = one_step("test", "ClusterConfigTemplate", "source-test", template);
    play.walk(1);
    play.says("Runnable", stage.runnable["status"].clone());
    play.walk(1);
    play
}

fn job_stage() -> Stage {
    let mut stage = Stage::new(json!({}));
    stage.template["spec"]["template"] = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "run-"},
        "spec": {"revision": "$(runnable.spec.inputs.revision)$"}});
    stage.template["spec"]["healthRule"] = json!({"multiMatch": {
        "healthy": {"matchConditions": [{"type": "Complete", "status": "True"}]},
        "unhealthy": {"matchConditions": [{"type": "Failed", "status": "True"}]}}});
    stage.walk();
    stage
}

/// The Job that was run last, with this status.
fn job(stage: &mut Stage, status: Value) -> Value {
    let run = stage.cluster.objects.last_mut().unwrap();
    run.object["status"] = status;
    let job = run.object.clone();
    stage.walk();
    job
}

fn pod_of(job: &Value, status: Value) -> Value {
    let controller =
        json!({"kind": "Job", "uid": job["metadata"]["uid"], "controller": true, "name": "run-1"});
    json!({"apiVersion": "v1", "kind": "Pod", "status": status,
        "metadata": {"namespace": "dev", "name": "run-1-x7k2p", "ownerReferences": [controller],
            "labels": {"batch.kubernetes.io/job-name": "run-1"}}})
}

fn failed_job() -> Scene {
    let mut stage = job_stage();
    let why = "Job has reached the specified backoff limit";
    let status = json!({"failed": 1, "conditions": [
        {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": why}]});
    let job = job(&mut stage, status);
    let ended = json!({"terminated": {"exitCode": 2, "reason": "Error", "message": "2 of 7 tests failed\nsee the log"}});
    let pod = pod_of(
        &job,
        json!({"phase": "Failed", "containerStatuses": [{"name": "test", "state": ended}]}),
    );
    let mut stranger = pod_of(
        &json!({"metadata": {"uid": "another"}}),
        json!({"phase": "Failed"}),
    );
    stranger["metadata"]["name"] = json!("copies-the-label");
    Scene {
        cluster: vec![stage.runnable.clone(), job, stranger, pod],
        ..workload_of(&stage).scene()
    }
}

fn image_not_pulled() -> Scene {
    let mut stage = job_stage();
    let job = job(&mut stage, json!({"active": 1}));
    let waits = json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"registry.example/tests:1\""}});
    let status =
        json!({"phase": "Pending", "containerStatuses": [{"name": "test", "state": waits}]});
    let pod = pod_of(&job, status);
    Scene {
        cluster: vec![stage.runnable.clone(), job, pod],
        ..workload_of(&stage).scene()
    }
}

fn unreadable_below() -> Scene {
    let stage = job_stage();
    Scene {
        cluster: vec![stage.runnable.clone(), json!({"unreadable": "Job"})],
        ..workload_of(&stage).scene()
    }
}

fn run_is_gone() -> Scene {
    let mut stage = job_stage();
    let complete = json!([{"type": "Complete", "status": "True"}]);
    job(&mut stage, json!({"result": "ok", "conditions": complete}));
    Scene {
        cluster: vec![stage.runnable.clone()],
        ..workload_of(&stage).scene()
    }
}

/// A Deliverable that a Workload stamps, and that waits for its validation.
fn deliverable_below() -> Scene {
    let template = "
  template:
    apiVersion: carto.run/v1alpha1
    kind: Deliverable
    metadata: {name: web-app}
    spec: {serviceAccountName: web-app}";
    let mut play = one_step("deliver", "ClusterTemplate", "deliverable", template);
    play.walk(1);
    Scene {
        cluster: vec![validating().owner],
        ..play.scene()
    }
}

/// Our controllers write no Secret value into a status. The Go controller did: this is one of its statuses.
fn written_by_the_go_controller() -> Scene {
    let objects = documents(include_str!("written-by-the-go-controller.yaml"));
    Scene {
        owner: objects.into_iter().next().unwrap(),
        blueprint: None,
        cluster: Vec::new(),
    }
}

const ATTRIBUTED: &str = "
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: source}
spec:
  urlPath: .status.url
  revisionPath: .status.revision
  observedMatches: [{input: .spec.commit, output: .status.commit}]
  template:
    apiVersion: test.run/v1
    kind: Repository
    metadata: {name: app}
    spec: {commit: $(workload.spec.image)$}
---
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: image}
spec:
  imagePath: .status.image
  observedCompletion: {succeeded: {key: .status.phase, value: Built}}
  template:
    apiVersion: test.run/v1
    kind: Build
    metadata: {name: app}
    spec: {revision: $(source.revision)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: app}
    data: {image: $(image)$}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
  - {name: source, templateRef: {kind: ClusterSourceTemplate, name: source}}
  - {name: image, templateRef: {kind: ClusterImageTemplate, name: image}, sources: [{name: source, resource: source}]}
  - {name: deploy, templateRef: {kind: ClusterTemplate, name: deploy}, images: [{name: image, resource: image}]}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}}
spec: {image: '4711'}
";

/// A commit is built and deployed.
pub(crate) fn traceable() -> Scene {
    attributed().scene()
}

fn attributed() -> Scenario {
    built_from(ATTRIBUTED)
}

fn built_from(documents: &str) -> Scenario {
    let mut scenario = Scenario::new(documents);
    scenario.advance();
    commit_is_fetched(&mut scenario, "4711");
    scenario.advance();
    let build = scenario.cluster.held.objects.iter_mut();
    let mut builds = build.filter(|held| held.object["kind"] == "Build");
    let image = format!("registry/app@sha256:{}", "ab".repeat(32));
    builds.next().unwrap().object["status"] =
        json!({"observedGeneration": 1, "phase": "Built", "image": image});
    scenario.advance();
    scenario
}

fn commit_is_fetched(scenario: &mut Scenario, commit: &str) {
    scenario.cluster.object("app")["status"] = json!({
        "url": "https://git.example.com/app", "revision": format!("main@sha1:{commit}"), "commit": commit,
    });
}

/// As [`traceable`], and the next commit is being built.
fn last_good_output() -> Scene {
    next_commit(attributed()).scene()
}

/// The same, and the Artifacts that tell what there was, by name.
pub(crate) fn kept() -> (Scene, BTreeMap<String, Value>) {
    let retained = ATTRIBUTED.replace("  selector:", "  artifacts: {retain: 3}\n  selector:");
    let scenario = next_commit(built_from(&retained));
    let artifacts = scenario.artifacts.held.clone();
    (scenario.scene(), artifacts)
}

fn next_commit(mut scenario: Scenario) -> Scenario {
    scenario.owner["spec"]["image"] = json!("4712");
    scenario.advance();
    commit_is_fetched(&mut scenario, "4712");
    scenario.advance();
    scenario
}
