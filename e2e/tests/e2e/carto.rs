//! The `carto` command on a real cluster.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::ensure;
use e2e::binaries::{self, workspace};
use k8s_openapi::api::core::v1::ConfigMap;
use test_support::{ControlPlane, Process, eventually, objects_in, service_account};

use crate::LIMIT;

/// Runs `carto tree` with a kubeconfig and more arguments.
fn carto(kubeconfig: &Path, arguments: &[&str]) -> Output {
    Command::new(binaries::carto().unwrap())
        .env("KUBECONFIG", kubeconfig)
        .arg("tree")
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// As a script waits for a Workload. When it does not become ready, the message is the tree.
pub(crate) async fn wait_until_ready(control_plane: &ControlPlane, namespace: &str, name: &str) {
    let kubeconfig = control_plane.kubeconfig_path().to_path_buf();
    let arguments = [
        name.to_owned(),
        "-n".into(),
        namespace.to_owned(),
        "--until-ready".into(),
        format!("--timeout={}s", LIMIT.as_secs()),
    ];
    let waited = tokio::task::spawn_blocking(move || {
        carto(&kubeconfig, &arguments.each_ref().map(String::as_str))
    });
    let output = waited.await.unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    assert!(
        stdout(&output).starts_with(&format!("✓ workload {namespace}/{name} is ready\n")),
        "{}",
        stdout(&output)
    );
}

const WORKLOAD: &str = "
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, labels: {type: web}}
spec: {}
";

async fn cluster_with_a_workload() -> ControlPlane {
    let control_plane = ControlPlane::start().await.unwrap();
    control_plane
        .install_crds(workspace().join("deploy/crds"))
        .await
        .unwrap();
    control_plane.apply_yaml(WORKLOAD).await.unwrap();
    control_plane
}

#[tokio::test]
async fn what_is_missing_is_named_together_with_the_next_thing_to_do() {
    let output = carto(Path::new("/nowhere/kubeconfig"), &["app"]);
    assert!(!output.status.success());
    assert!(
        stderr(&output).contains("no usable kubeconfig"),
        "{}",
        stderr(&output)
    );
    assert!(
        stderr(&output).contains("--kubeconfig FILE"),
        "{}",
        stderr(&output)
    );

    let control_plane = ControlPlane::start().await.unwrap();
    let admin = control_plane.kubeconfig_path().to_path_buf();
    let output = carto(&admin, &["app"]);
    assert!(!output.status.success());
    assert!(
        stderr(&output).contains("kubectl apply --server-side -f deploy/crds"),
        "{}",
        stderr(&output)
    );

    control_plane
        .install_crds(workspace().join("deploy/crds"))
        .await
        .unwrap();
    let output = carto(&admin, &["app", "-n", "nowhere"]);
    assert!(
        stderr(&output).contains("namespace nowhere does not exist"),
        "{}",
        stderr(&output)
    );
    let output = carto(&admin, &["app"]);
    assert!(
        stderr(&output)
            .contains("workload app does not exist in namespace default, nor does any other"),
        "{}",
        stderr(&output)
    );

    control_plane.apply_yaml(WORKLOAD).await.unwrap();
    let output = carto(&admin, &["wld/apq"]);
    assert!(
        stderr(&output).contains("name one that does: app\n"),
        "{}",
        stderr(&output)
    );

    let stranger = control_plane.kubeconfig_as_user("stranger", &[]).unwrap();
    let output = carto(&stranger, &["app"]);
    assert!(!output.status.success());
    assert!(
        stderr(&output).contains("you may not list workloads in namespace default"),
        "{}",
        stderr(&output)
    );

    control_plane.stop_apiserver();
    let output = carto(&admin, &["app"]);
    assert!(
        stderr(&output).contains("cannot be reached"),
        "{}",
        stderr(&output)
    );
}

#[tokio::test]
async fn a_workload_nobody_works_on_is_said_to_be_just_that_and_waiting_for_it_fails() {
    let control_plane = cluster_with_a_workload().await;
    let admin = control_plane.kubeconfig_path().to_path_buf();
    let output = carto(&admin, &["app"]);
    assert!(output.status.success());
    assert!(
        stdout(&output).starts_with("… workload default/app has not been reconciled yet\n  next: "),
        "{}",
        stdout(&output)
    );
    assert!(!stdout(&output).contains('\u{1b}'), "colours in a pipe");

    // A busy machine may not even have had a look at it within a second.
    let waited = [1, 5, 25].into_iter().find_map(|seconds| {
        let timeout = format!("--timeout={seconds}s");
        let output = carto(&admin, &["app", "--until-ready", &timeout]);
        assert_eq!(output.status.code(), Some(1));
        let complaint = format!("did not become ready within {seconds} s");
        let said = stderr(&output);
        assert!(said.contains(&complaint), "{said}");
        Some(stdout(&output)).filter(|shown| !shown.is_empty())
    });
    let shown = waited.unwrap_or_default();
    assert!(shown.starts_with("… workload default/app"), "{shown}");

    let output = carto(&admin, &["app", "-o", "json"]);
    let tree: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        (&tree["ready"], &tree["headline"]["state"]),
        (&false.into(), &"waiting".into())
    );
}

#[tokio::test]
async fn a_developer_who_may_not_read_blueprints_sees_the_steps_of_the_status() {
    let control_plane = cluster_with_a_workload().await;
    control_plane.apply_yaml(DEVELOPER).await.unwrap();
    let look = "list workloads.carto.run in default";
    control_plane.until_it_may("dora", look).await;
    let status = serde_json::json!({"status": {
        "supplyChainRef": {"kind": "ClusterSupplyChain", "name": "chain"},
        "resources": [{"name": "fetch", "inputs": [{"name": "start"}]}],
    }});
    let patch = kube::api::Patch::Merge(&status);
    workloads(&control_plane)
        .patch_status("app", &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap();

    let developer = control_plane.kubeconfig_as_user("dora", &[]).unwrap();
    let output = carto(&developer, &["app"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let shown = stdout(&output);
    assert!(
        shown.contains("ClusterSupplyChain chain (could not be read; steps as in the status)"),
        "{shown}"
    );
    assert!(shown.contains("inputs    from start"), "{shown}");
}

const DEVELOPER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: dora, namespace: default}
rules: [{apiGroups: [carto.run], resources: [workloads], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: dora, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: dora}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: dora}]
";

#[tokio::test]
async fn a_watch_shows_every_change_until_it_is_interrupted() {
    let control_plane = cluster_with_a_workload().await;
    let home = tempfile::tempdir().unwrap();
    let mut watch = Process::builder(binaries::carto().unwrap())
        .env("KUBECONFIG", control_plane.kubeconfig_path())
        .args(["tree", "app", "--watch"])
        .start(home.path().join("watch"))
        .unwrap();
    await_lines(&watch, &["has not been reconciled yet"]).await;
    control_plane
        .apply_yaml(&WORKLOAD.replace("spec: {}", "spec: {image: a}"))
        .await
        .unwrap();
    set_status(&control_plane, "WorkloadLabelsMissing", 2).await;
    await_lines(
        &watch,
        &["has not been reconciled yet", "WorkloadLabelsMissing"],
    )
    .await;
    set_status(&control_plane, "SupplyChainNotFound", 2).await;
    await_lines(&watch, &["WorkloadLabelsMissing", "SupplyChainNotFound"]).await;
    watch.signal("INT").unwrap();
    eventually("the watch has ended", LIMIT, async || !watch.is_running()).await;
}

#[tokio::test]
async fn a_watch_ends_when_the_workload_is_deleted() {
    let control_plane = cluster_with_a_workload().await;
    let home = tempfile::tempdir().unwrap();
    let mut watch = Process::builder(binaries::carto().unwrap())
        .env("KUBECONFIG", control_plane.kubeconfig_path())
        .args(["tree", "app", "--watch", "--output=json"])
        .start(home.path().join("watch"))
        .unwrap();
    await_lines(&watch, &["\"ready\":false"]).await;
    workloads(&control_plane)
        .delete("app", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    eventually("the watch has ended", LIMIT, async || !watch.is_running()).await;
    assert!(
        watch
            .log_tail()
            .contains("workload default/app was deleted"),
        "{}",
        watch.log_tail()
    );
}

#[tokio::test]
async fn a_revoked_right_is_named_and_granting_it_again_is_all_that_is_needed() {
    let (control_plane, _controller) = crate::bare::with_smallest_chain().await;
    wait_until_ready(&control_plane, "default", "app").await;

    let nothing_granted = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: app, namespace: default}
rules: []
";
    control_plane.apply_yaml(nothing_granted).await.unwrap();
    // In force before there is something to write.
    let account = service_account("default", "app");
    control_plane
        .until_it_may_not(&account, "patch configmaps in default")
        .await;
    let other_greeting = crate::bare::SMALLEST
        .split("---")
        .find(|document| document.contains("name: greet}"))
        .unwrap()
        .replace("hello from", "good morning from");
    control_plane.apply_yaml(&other_greeting).await.unwrap();
    let admin = control_plane.kubeconfig_path().to_path_buf();
    eventually("the tree says what to grant to whom", LIMIT, async || {
        let shown = stdout(&carto(&admin, &["app"]));
        ensure!(shown.starts_with("✗ workload default/app is blocked at step greet: "), "{shown}");
        ensure!(shown.contains("kubectl create role app-configmaps -n default --verb=get,list,create,patch,delete --resource=configmaps && "), "{shown}");
        ensure!(shown.contains(" --serviceaccount=default:app"), "{shown}");
        anyhow::Ok(())
    })
    .await;
    let maps: kube::Api<ConfigMap> =
        kube::Api::namespaced(control_plane.client().unwrap(), "default");
    assert_eq!(
        maps.get("app-published").await.unwrap().data.unwrap()["greeting"],
        "hello from app"
    );

    let granted = crate::bare::SMALLEST
        .split("---")
        .find(|document| document.contains("kind: Role\n"))
        .unwrap();
    control_plane.apply_yaml(granted).await.unwrap();
    eventually("the chain goes on by itself", LIMIT, async || {
        let greeting = maps
            .get("app-published")
            .await?
            .data
            .unwrap_or_default()
            .remove("greeting");
        ensure!(
            greeting.as_deref() == Some("good morning from app"),
            "{greeting:?}"
        );
        anyhow::Ok(())
    })
    .await;
    wait_until_ready(&control_plane, "default", "app").await;
}

/// A Workload whose step stamped a Runnable, that ran a Job, that made a Pod, that failed; nobody works on any of them.
const FAILED_RUN: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: tester}
---
apiVersion: carto.run/v1alpha1
kind: Runnable
metadata: {name: app-test}
spec: {runTemplateRef: {name: tests}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: app-test-1}
spec:
  managedBy: example.com/nobody
  template: {spec: {restartPolicy: Never, containers: [{name: test, image: tests}]}}
";

#[tokio::test]
async fn one_call_shows_why_a_job_under_a_runnable_failed() {
    let control_plane = cluster_with_a_workload().await;
    control_plane.apply_yaml(FAILED_RUN).await.unwrap();
    let uid =
        object(&control_plane, "batch/v1", "Job", "app-test-1").await["metadata"]["uid"].clone();
    let pod = format!(
        "
apiVersion: v1
kind: Pod
metadata:
  name: app-test-1-x7k2p
  labels: {{batch.kubernetes.io/job-name: app-test-1}}
  ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: app-test-1, uid: {uid}, controller: true}}]
spec: {{serviceAccountName: tester, restartPolicy: Never, containers: [{{name: test, image: tests}}]}}
"
    );
    control_plane.apply_yaml(&pod).await.unwrap();
    let at = "2026-01-01T00:00:00Z";
    let told = |type_: &str, status: &str, reason: &str, message: &str| serde_json::json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": at});
    let failed = "Job has reached the specified backoff limit";
    let reference = |api_version: &str, kind: &str, name: &str| serde_json::json!({"apiVersion": api_version, "kind": kind, "namespace": "default", "name": name});
    let ended =
        serde_json::json!({"exitCode": 2, "reason": "Error", "message": "2 of 7 tests failed"});
    for (api_version, kind, name, status) in [
        (
            "v1",
            "Pod",
            "app-test-1-x7k2p",
            serde_json::json!({"phase": "Failed", "containerStatuses": [{"name": "test", "image": "tests", "imageID": "",
                "ready": false, "restartCount": 0, "state": {"terminated": ended}}]}),
        ),
        (
            "batch/v1",
            "Job",
            "app-test-1",
            serde_json::json!({"startTime": at, "failed": 1, "conditions": [
                told("FailureTarget", "True", "BackoffLimitExceeded", failed),
                told("Failed", "True", "BackoffLimitExceeded", failed)]}),
        ),
        (
            "carto.run/v1alpha1",
            "Runnable",
            "app-test",
            serde_json::json!({"observedGeneration": 1, "stampedRef": reference("batch/v1", "Job", "app-test-1"),
                "runs": [{"name": "app-test-1", "result": "Failed", "message": failed}], "conditions": [told("Ready", "False", "MatchedCondition", failed)]}),
        ),
        (
            "carto.run/v1alpha1",
            "Workload",
            "app",
            serde_json::json!({"observedGeneration": 1, "conditions": [told("SupplyChainReady", "True", "Ready", ""),
                told("Ready", "False", "HealthyConditionRule", failed)],
                "resources": [{"name": "test", "stampedRef": reference("carto.run/v1alpha1", "Runnable", "app-test"),
                    "conditions": [told("Healthy", "False", "ReadyCondition", failed), told("Ready", "False", "ReadyCondition", failed)]}]}),
        ),
    ] {
        let patch = kube::api::Patch::Merge(serde_json::json!({"status": status}));
        objects(&control_plane, api_version, kind)
            .patch_status(name, &kube::api::PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    // From the Workload, and from the Runnable by its short name.
    for (target, job) in [
        ("app", "└─ ✗ Job/app-test-1: BackoffLimitExceeded"),
        ("run/app-test", "✗ BackoffLimitExceeded"),
    ] {
        let output = carto(control_plane.kubeconfig_path(), &[target]);
        let shown = stdout(&output);
        for line in [
            "  because: Pod/app-test-1-x7k2p: container test ended with code 2: Error: 2 of 7 tests failed",
            "  next: read its log: kubectl logs -n default app-test-1-x7k2p -c test",
        ] {
            let is_shown = shown.lines().any(|it| it == line);
            assert!(is_shown, "{shown}{}", stderr(&output));
        }
        assert!(shown.contains(job), "{shown}");
    }
}

fn objects(
    control_plane: &ControlPlane,
    api_version: &str,
    kind: &str,
) -> kube::Api<kube::api::DynamicObject> {
    objects_in(
        &control_plane.client().unwrap(),
        "default",
        api_version,
        kind,
    )
}

async fn object(
    control_plane: &ControlPlane,
    api_version: &str,
    kind: &str,
    name: &str,
) -> serde_json::Value {
    let object = objects(control_plane, api_version, kind).get(name).await;
    serde_json::to_value(object.unwrap()).unwrap()
}

async fn await_lines(process: &Process, expected: &[&str]) {
    eventually("the change is shown", LIMIT, async || {
        let shown = process.log_tail();
        ensure!(
            expected.iter().all(|text| shown.contains(text)),
            "shown: {shown}"
        );
        anyhow::Ok(())
    })
    .await;
}

fn workloads(control_plane: &ControlPlane) -> kube::Api<kube::api::DynamicObject> {
    objects(control_plane, "carto.run/v1alpha1", "Workload")
}

/// Writes a status as a controller would.
async fn set_status(control_plane: &ControlPlane, reason: &str, generation: i64) {
    let condition = |type_: &str| serde_json::json!({"type": type_, "status": "False", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = serde_json::json!({"status": {
        "observedGeneration": generation,
        "conditions": [condition("SupplyChainReady"), condition("Ready")],
    }});
    let patch = kube::api::Patch::Merge(&status);
    workloads(control_plane)
        .patch_status("app", &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap();
}
