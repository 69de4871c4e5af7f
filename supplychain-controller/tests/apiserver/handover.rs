//! Two processes, one of which works at a time (docs/behaviour/process.md#probes).

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::{Another, Particulars};
use tokio::net::TcpListener;

use crate::immutable::{WORKLOAD, branch, instant, sink_of};
use crate::stage::{PATIENCE, Stage, step};

pub(crate) const OWNERS: usize = 10;

/// One replica; the Lease is where the owners are.
pub(crate) fn replica(stage: &mut Stage, name: &str, times: &[&str]) -> Another {
    replica_as(stage, name, times, Particulars::default())
}

/// The same with these particulars, its flags aside.
pub(crate) fn replica_as(
    stage: &mut Stage,
    name: &str,
    times: &[&str],
    particulars: Particulars<'_>,
) -> Another {
    let namespace = format!("--lease-namespace={}", stage.namespace);
    let identity = format!("--lease-identity={name}");
    let mut flags = vec!["--leader-elect=true", "--lease-retry-seconds=1"];
    flags.extend([&*namespace, &*identity]);
    flags.extend(times);
    stage.another_controller_as(&Particulars {
        flags: &flags,
        ..particulars
    })
}

pub(crate) async fn leads(stage: &Stage, identity: &str) {
    eventually(&format!("{identity} leads"), PATIENCE, async || {
        let lease = stage
            .get("coordination.k8s.io/v1", "Lease", "supplychain-controller")
            .await?;
        (lease["spec"]["holderIdentity"] == identity).then_some(())
    })
    .await;
}

pub(crate) fn owners() -> impl Iterator<Item = String> {
    (0..OWNERS).map(|number| format!("app{number}"))
}

pub(crate) async fn edit_all(stage: &Stage, branch_name: &str) {
    for owner in owners() {
        stage.edit_workload(&owner, branch(branch_name)).await;
    }
}

pub(crate) async fn all_published(stage: &Stage, branch_name: &str) {
    for owner in owners() {
        sink_of(stage, &owner, branch_name).await;
    }
}

/// Every owner's runs, oldest first, by branch; nothing is ever deleted here.
async fn runs_of(stage: &Stage, owner: &str) -> Vec<String> {
    let runs = stage.tests().await;
    let of_owner = runs
        .iter()
        .filter(|run| run["metadata"]["labels"]["carto.run/workload-name"] == owner);
    of_owner
        .map(|run| {
            let branch = &run["spec"]["value"]["branch"];
            branch.as_str().unwrap_or_default().to_owned()
        })
        .collect()
}

/// No rendering ran twice.
pub(crate) async fn each_ran_once(stage: &Stage, branches: &[&str]) {
    for owner in owners() {
        assert_eq!(runs_of(stage, &owner).await, branches, "{owner}");
    }
}

pub(crate) async fn populate(stage: &Stage) {
    stage.apply(&instant(50)).await;
    let all: Vec<String> = owners()
        .map(|owner| WORKLOAD.replace("name: app", &format!("name: {owner}")))
        .collect();
    stage.apply(&all.join("---\n")).await;
}

#[tokio::test]
async fn the_standby_goes_on_where_the_leader_was_stopped() {
    let mut stage = Stage::set().await;
    // A leader that gets no processor for a while keeps the lease: it is to end by being handed over.
    let times = [
        "--lease-duration-seconds=90",
        "--lease-renew-deadline-seconds=60",
    ];
    let mut leader = replica(&mut stage, "r0", &times);
    leads(&stage, "r0").await;
    populate(&stage).await;
    all_published(&stage, "a").await;
    let mut branches = vec!["a".to_owned()];
    for round in 1..=3 {
        let (before, after) = (format!("r{}", round - 1), format!("r{round}"));
        let standby = replica(&mut stage, &after, &times);
        eventually("the standby runs", PATIENCE, async || {
            standby.metric("carto_leader", &[]).await == Some(0.0)
        })
        .await;
        let branch_name = format!("b{round}");
        edit_all(&stage, &branch_name).await;
        leader.signal("TERM");
        leader.ended().await;
        assert!(
            leader.log().contains("lease released"),
            "{before} hands over"
        );
        leads(&stage, &after).await;
        all_published(&stage, &branch_name).await;
        branches.push(branch_name);
        leader = standby;
    }
    stage.idle_of(&leader).await;
    let branches: Vec<&str> = branches.iter().map(String::as_str).collect();
    each_ran_once(&stage, &branches).await;
}

#[tokio::test]
async fn a_leader_that_was_frozen_stops_working_when_it_wakes_up() {
    let mut stage = Stage::set().await;
    let times = [
        "--lease-duration-seconds=6",
        "--lease-renew-deadline-seconds=4",
    ];
    let mut frozen = replica(&mut stage, "frozen", &times);
    leads(&stage, "frozen").await;
    populate(&stage).await;
    all_published(&stage, "a").await;
    let standby = replica(&mut stage, "standby", &times);
    edit_all(&stage, "b").await;
    frozen.signal("STOP");
    leads(&stage, "standby").await;
    all_published(&stage, "b").await;
    edit_all(&stage, "c").await;
    frozen.signal("CONT");
    eventually("it has noticed", PATIENCE, async || {
        frozen.log().contains("not leading any more")
    })
    .await;
    all_published(&stage, "c").await;
    edit_all(&stage, "d").await;
    all_published(&stage, "d").await;
    stage.idle_of(&standby).await;
    each_ran_once(&stage, &["a", "b", "c", "d"]).await;
}

/// Holds back every creation of a run from now on: the API server calls a webhook that accepts the connection and says
/// nothing.
async fn hanging_webhook(stage: &Stage) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let namespace = &stage.namespace;
    stage
        .apply(&format!(
            "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: hangs}}
webhooks:
- name: hangs.test.run
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 30
  clientConfig: {{url: 'https://127.0.0.1:{port}/'}}
  namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
  rules: [{{apiGroups: [test.run], apiVersions: ['*'], resources: [tests], operations: [CREATE]}}]
"
        ))
        .await;
    // It learns of the webhook later than whoever wrote it: until then a run would be created.
    let probe = json!({"apiVersion": "test.run/v1alpha1", "kind": "Test", "metadata": {"name": "probe"}, "spec": {}});
    let probe = serde_json::from_value(probe).unwrap();
    let dry = kube::api::PostParams {
        dry_run: true,
        ..Default::default()
    };
    let runs = stage.api("test.run/v1alpha1", "Test");
    eventually("the webhook is called", PATIENCE, async || {
        tokio::select! {
            called = listener.accept() => called.map(|_| true),
            _ = runs.create(&dry, &probe) => Ok(false),
        }
    })
    .await;
    listener
}

#[tokio::test]
async fn a_request_that_hangs_does_not_keep_the_lease_from_the_next_replica() {
    let mut stage = Stage::set().await;
    let mut leader = replica(&mut stage, "first", &["--shutdown-seconds=2"]);
    leads(&stage, "first").await;
    let webhook = hanging_webhook(&stage).await;
    stage.apply(&instant(3)).await;
    stage.apply(WORKLOAD).await;
    let asked = tokio::time::timeout(PATIENCE, webhook.accept()).await;
    let (asked, _) = asked.unwrap().unwrap();
    let _second = replica(&mut stage, "second", &[]);
    leader.signal("TERM");
    leader.ended().await;
    let log = leader.log();
    assert!(log.contains("reconciles under way are dropped"), "{log}");
    assert!(log.contains("lease released"), "{log}");
    leads(&stage, "second").await;
    let hooks = kube::Api::<
        k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration,
    >::all(stage.client.clone());
    hooks
        .delete("hangs", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    // Who still waits for an answer has none now.
    drop((asked, webhook));
    stage.ready("app", "True", "Ready").await;
    assert_eq!(runs_of(&stage, "app").await, ["a"]);
}

/// A leader that lost its Lease created a run of an older version of the owner, after its successor had made that of the
/// newest: both are the second.
#[tokio::test]
async fn a_run_that_the_former_leader_made_late_is_not_the_newest() {
    let stage = Stage::open().await;
    stage.apply(&instant(3)).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage.edit_workload("app", branch("newer")).await;
    let runs = crate::immutable::runs_up_to(&stage, "newer").await;
    stage.idle().await;
    let newest = &runs[1];
    let annotations = &newest["metadata"]["annotations"];
    let generation: i64 = annotations["carto.run/owner-generation"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let late = json!({
        "apiVersion": "test.run/v1alpha1", "kind": "Test",
        // Behind every name of ours, if both were made within a second.
        "metadata": {"name": "zz-late", "labels": newest["metadata"]["labels"],
            "ownerReferences": newest["metadata"]["ownerReferences"],
            "annotations": {
                "carto.run/rendered-digest": "sha256:older",
                "carto.run/submission": annotations["carto.run/submission"],
                "carto.run/owner-generation": (generation - 1).to_string()}},
        "spec": {"value": {"branch": "older"}},
    });
    stage.create_as("carto-supplychain", late).await;
    stage.reconcile("app").await;
    let workload = stage
        .until("app", "its newest run is reported", |workload: &Value| {
            step(workload, "run")["stampedRef"]["name"] == newest["metadata"]["name"]
        })
        .await;
    assert_eq!(
        step(&workload, "run")["outputs"][0]["preview"]
            .as_str()
            .map(str::trim_end),
        Some("newer")
    );
    let mut ran = runs_of(&stage, "app").await;
    ran.sort();
    assert_eq!(ran, ["a", "newer", "older"], "nothing was submitted again");
}
