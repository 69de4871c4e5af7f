//! Rules that read other objects than the stamped one, on a real API server: with whose rights, and what wakes the owner.

use serde_json::{Value, json};
use test_support::{AuditEvent, Disturbance, eventually};

use crate::immutable::WORKLOAD;
use crate::overload::Trouble;
use crate::stage::{NOTHING, PATIENCE, Stage, condition, step};

/// `gated` hands on what it stamped once this holds.
fn chain(success: &str) -> String {
    format!(
        "
apiVersion: carto.run/v1alpha1
kind: ClusterConfigTemplate
metadata: {{name: gated}}
spec:
  configPath: .data.branch
  {success}
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: $(workload.metadata.name)$-gated}}
    data: {{branch: $(workload.spec.source.git.ref.branch)$}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {{name: deploy}}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: $(workload.metadata.name)$-deployed}}
    data: {{branch: $(config)$}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {{name: chain}}
spec:
  selector: {{type: web}}
  resources:
    - {{name: gated, templateRef: {{kind: ClusterConfigTemplate, name: gated}}}}
    - {{name: deploy, templateRef: {{kind: ClusterTemplate, name: deploy}}, configs: [{{name: config, resource: gated}}]}}
"
    )
}

/// A condition on a Test, which stands for a third party.
fn until_open(object: &str) -> String {
    format!(
        "observedCompletion: {{succeeded: {{object: {{apiVersion: test.run/v1alpha1, kind: Test, {object}}}, \
         key: .spec.value.open, value: 'yes'}}}}"
    )
}

const BY_NAME: &str = "name: gate-$(workload.metadata.name)$";

fn gate(name: &str, open: &str) -> String {
    format!(
        "apiVersion: test.run/v1alpha1\nkind: Test\nmetadata: {{name: {name}, labels: {{app: gate}}}}\n\
         spec: {{value: {{open: '{open}'}}}}\n"
    )
}

/// The step says this of what it waits for.
async fn waits(stage: &Stage, why: &str) -> Value {
    stage
        .until("app", &format!("it waits: {why}"), |owner| {
            let good = condition(&step(owner, "gated"), "OutputsGood");
            good["message"]
                .as_str()
                .is_some_and(|message| message.contains(why))
        })
        .await
}

async fn deployed(stage: &Stage, branch: &str) {
    eventually(
        &format!("{branch} is deployed"),
        PATIENCE,
        async || match stage.get("v1", "ConfigMap", "app-deployed").await {
            Some(deployed) if deployed["data"]["branch"] == branch => Ok(()),
            other => Err(format!("{other:?}")),
        },
    )
    .await;
}

async fn not_deployed(stage: &Stage) {
    stage.idle().await;
    assert_eq!(stage.get("v1", "ConfigMap", "app-deployed").await, None);
}

#[tokio::test]
async fn a_step_goes_on_at_once_when_the_object_comes_and_whenever_it_changes() {
    let mut stage = Stage::open().await;
    stage.apply(&chain(&until_open(BY_NAME))).await;
    stage.apply(WORKLOAD).await;
    waits(&stage, "object [Test/gate-app] is not there").await;
    // That of another namespace is none.
    let elsewhere = stage.plane.create_namespace("elsewhere").await.unwrap();
    let manifest = gate("gate-app", "yes");
    stage
        .plane
        .apply_yaml_in(&elsewhere, &manifest)
        .await
        .unwrap();
    assert_eq!(stage.traffic_of_reconciles("app", 3).await, NOTHING);
    not_deployed(&stage).await;

    let before = stage.place_in_the_log();
    stage.apply(&gate("gate-app", "no")).await;
    waits(
        &stage,
        "[.spec.value.open] of object [Test/gate-app] is not yes",
    )
    .await;
    stage.was_woken_since(before, "app").await;
    let before = stage.place_in_the_log();
    stage.apply(&gate("gate-app", "yes")).await;
    deployed(&stage, "a").await;
    stage.was_woken_since(before, "app").await;
    let ready = stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.traffic_of_reconciles("app", 5).await, NOTHING);

    // Another process finds all as it is, and reads nothing: status says by what it was good.
    let stamped = stage.get("v1", "ConfigMap", "app-gated").await;
    let (read, tokens) = (reads_of_gates(&stage), tokens(&stage));
    stage.kill_controller();
    stage.start_controller();
    stage.settle("app").await;
    assert_eq!(reads_of_gates(&stage), read);
    assert_eq!(self::tokens(&stage), tokens, "no token is needed");
    assert_eq!(stage.workload("app").await["status"], ready["status"]);
    assert_eq!(stage.get("v1", "ConfigMap", "app-gated").await, stamped);
    stage.delete("test.run/v1alpha1", "Test", "gate-app").await;
    waits(&stage, "object [Test/gate-app] is not there").await;
    deployed(&stage, "a").await;
}

#[tokio::test]
async fn several_objects_with_the_labels_are_told_by_name() {
    let stage = Stage::open().await;
    stage
        .apply(&chain(&until_open("matchLabels: {app: gate}")))
        .await;
    for name in ["b", "a"] {
        stage.apply(&gate(name, "yes")).await;
    }
    stage.apply(WORKLOAD).await;
    let several = "object [Test with labels app=gate] is not one but several: a, b; give its labels to one only";
    let owner = waits(&stage, several).await;
    let ready = condition(&owner["status"], "Ready");
    assert_eq!(ready["reason"], "ConditionNotMet", "{ready}");
    not_deployed(&stage).await;
    assert_eq!(stage.traffic_of_reconciles("app", 3).await, NOTHING);
    stage.delete("test.run/v1alpha1", "Test", "b").await;
    deployed(&stage, "a").await;
}

/// A pair compares with an object of the cluster, which no namespace has.
#[tokio::test]
async fn a_pair_reads_an_object_of_the_cluster() {
    let stage = Stage::open().await;
    stage
        .apply(&chain(
            "observedMatches: [{input: .data.branch, output: '.metadata.labels.branch', \
             object: {apiVersion: v1, kind: Namespace, name: $(workload.metadata.namespace)$}}]",
        ))
        .await;
    stage.apply(WORKLOAD).await;
    let namespace = stage.namespace.clone();
    let forbidden = format!(
        "User \"system:serviceaccount:{namespace}:sa\" cannot get resource \"namespaces\" in API group \"\""
    );
    waits(&stage, &forbidden).await;
    not_deployed(&stage).await;
    let before = stage.place_in_the_log();
    stage
        .grant(
            "reads-namespace",
            "[{apiGroups: [''], resources: [namespaces], verbs: [get]}]",
        )
        .await;
    waits(
        &stage,
        &format!("object [Namespace/{namespace}] has nothing at [.metadata.labels.branch]"),
    )
    .await;
    stage.was_woken_since(before, "app").await;
    let labels = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}, labels: {{branch: a}}}}\n"
    );
    stage.plane.apply_yaml_in("", &labels).await.unwrap();
    deployed(&stage, "a").await;
    stage.settle("app").await;
    assert_eq!(stage.traffic_of_reconciles("app", 3).await, NOTHING);
}

/// What the owner's account may not read is not read for it, though the controller may; nothing of it is told.
#[tokio::test]
async fn a_right_of_the_account_is_missing_until_it_is_granted() {
    let stage = Stage::open().await;
    let secret = "observedCompletion: {succeeded: {object: {apiVersion: v1, kind: Secret, name: gate}, \
                  key: .data.open, value: eWVz}}";
    stage.apply(&chain(secret)).await;
    let gate = |open: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: gate}}\nstringData: {{open: {open}}}\n"
        )
    };
    stage.apply(&gate("hunter2")).await;
    stage.apply(WORKLOAD).await;
    waits(&stage, "cannot get resource \"secrets\" in API group \"\"").await;
    let before = stage.place_in_the_log();
    stage
        .grant(
            "reads-secrets",
            "[{apiGroups: [''], resources: [secrets], verbs: [get]}]",
        )
        .await;
    let owner = waits(&stage, "[.data.open] of object [Secret/gate] is not eWVz").await;
    stage.was_woken_since(before, "app").await;
    let told = owner["status"].to_string() + &stage.events().await.join("\n") + &stage.log();
    for secret in ["hunter2", "aHVudGVyMg"] {
        assert!(!told.contains(secret), "{told}");
    }
    stage.apply(&gate("'yes'")).await;
    deployed(&stage, "a").await;
}

/// Whoever may write names into an owner makes nobody read another place.
#[tokio::test]
async fn a_name_that_leads_elsewhere_is_not_asked_for() {
    let stage = Stage::open().await;
    stage
        .apply(&chain(&until_open(
            "name: $(workload.spec.source.git.ref.branch)$",
        )))
        .await;
    stage.apply(WORKLOAD).await;
    waits(&stage, "object [Test/a] is not there").await;
    for name in ["../../../namespaces", "a,metadata.namespace=b", ".."] {
        stage
            .edit_workload(
                "app",
                json!({"spec": {"source": {"git": {"ref": {"branch": name}}}}}),
            )
            .await;
        let why = format!(
            "cannot be read: name [$(workload.spec.source.git.ref.branch)$] is [{name}], which is none"
        );
        waits(&stage, &why).await;
    }
    not_deployed(&stage).await;
}

/// As long as the stamped object decides by itself, nothing is asked for. Then it is, once.
#[tokio::test]
async fn an_object_is_read_once_the_stamped_one_has_come_so_far() {
    let stage = Stage::open().await;
    stage
        .apply(&chain(
            "observedMatches: [{input: .data.branch, output: .metadata.annotations.built}, \
             {input: .data.branch, output: .spec.value.open, \
             object: {apiVersion: test.run/v1alpha1, kind: Test, name: gate-$(workload.metadata.name)$}}]",
        ))
        .await;
    stage.apply(&gate("gate-app", "a")).await;
    stage.apply(WORKLOAD).await;
    for (branch, before) in [("a", 0), ("b", 1)] {
        let source = json!({"git": {"ref": {"branch": branch}}});
        stage
            .edit_workload("app", json!({"spec": {"source": source}}))
            .await;
        let why = "output [.metadata.annotations.built]";
        if branch == "a" {
            waits(&stage, why).await;
        } else {
            waits(&stage, "input [.data.branch] and output").await;
        }
        // What becomes of the other object meanwhile wakes the owner, which reads nothing.
        stage.apply(&gate("gate-app", branch)).await;
        stage.settle("app").await;
        assert_eq!(reads_of_gates(&stage), before);

        let built = json!({"metadata": {"annotations": {"built": branch}}});
        stage.edit("v1", "ConfigMap", "app-gated", built).await;
        deployed(&stage, branch).await;
        stage.settle("app").await;
        assert_eq!(reads_of_gates(&stage), before + 1);
    }
}

#[tokio::test]
async fn of_owners_that_wait_for_one_object_one_reads_it_for_all() {
    let stage = Stage::open().await;
    stage.apply(&chain(&until_open("name: gate-of-all"))).await;
    let names: Vec<String> = (1..=8).map(|number| format!("app-{number}")).collect();
    for name in &names {
        stage.apply(&WORKLOAD.replace("app", name)).await;
    }
    for name in &names {
        stage
            .until(name, "it waits for the object", |owner| {
                let good = condition(&step(owner, "gated"), "OutputsGood");
                let message = good["message"].as_str();
                message.is_some_and(|it| it.contains("[Test/gate-of-all] is not there"))
            })
            .await;
    }
    stage.idle().await;
    let before = reads_of_gates(&stage);
    stage.apply(&gate("gate-of-all", "yes")).await;
    for name in &names {
        stage.ready(name, "True", "Ready").await;
    }
    stage.idle().await;
    assert_eq!(reads_of_gates(&stage), before + 1);
}

/// One that was refused was not carried out, so what was read since the apply before still does.
#[tokio::test]
async fn a_submission_without_an_answer_has_an_object_read_anew_and_a_refused_one_does_not() {
    let mut stage = Stage::set().await;
    let trouble = Trouble::with(&stage, |parts, _| {
        let is_of_deployed = parts.uri.path().ends_with("/configmaps/app-deployed");
        is_of_deployed.then_some(Disturbance::Broken)
    })
    .await;
    stage.start_controller_as(trouble.network.kubeconfig());
    let platform = chain(&until_open(BY_NAME));
    stage.apply(&platform).await;
    stage.apply(&gate("gate-app", "yes")).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage.settle("app").await;
    let read = reads_of_gates(&stage);

    let deploys = "data: {branch: $(config)$";
    stage
        .apply(&platform.replace(deploys, "data: {'no key': '', branch: $(config)$"))
        .await;
    stage
        .ready("app", "False", "TemplateRejectedByAPIServer")
        .await;
    for turn in 0..3 {
        let turn = json!({"metadata": {"labels": {"turn": turn.to_string()}}});
        stage.edit_workload("app", turn).await;
        stage.settle("app").await;
    }
    assert_eq!(reads_of_gates(&stage), read, "it was refused");

    trouble.switch(true);
    stage
        .apply(&platform.replace(deploys, "data: {more: '', branch: $(config)$"))
        .await;
    trouble
        .until_met("it was sent", |met| !met.is_empty())
        .await;
    trouble.switch(false);
    stage.ready("app", "True", "Ready").await;
    stage.settle("app").await;
    assert!(
        reads_of_gates(&stage) > read,
        "it may have been carried out"
    );
}

/// How many tokens were asked for.
fn tokens(stage: &Stage) -> usize {
    let events = stage.plane.audit_events().unwrap();
    let is_token = |event: &&AuditEvent| {
        let of = event.object_ref.as_ref();
        event.stage == "ResponseComplete" && of.is_some_and(|of| of.subresource == "token")
    };
    events.iter().filter(is_token).count()
}

/// How often the owner's account has read one.
fn reads_of_gates(stage: &Stage) -> usize {
    let account = format!("system:serviceaccount:{}:sa", stage.namespace);
    let events = stage.plane.audit_events().unwrap();
    let is_read = |event: &&AuditEvent| {
        let of = event.object_ref.as_ref();
        event.stage == "ResponseComplete"
            && event.verb == "get"
            && event.user.username == account
            && of.is_some_and(|of| of.resource == "tests" && of.name.starts_with("gate-"))
    };
    events.iter().filter(is_read).count()
}
