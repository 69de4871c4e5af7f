//! A node whose clock is wrong, or is set while the controller runs there: the API server's counts.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use test_support::stage::{Particulars, Port};
use test_support::{WrongClock, eventually};

use crate::chain::{CHAIN, WORKLOAD};
use crate::handover::{all_published, each_ran_once, edit_all, leads, populate, replica_as};
use crate::immutable::sink;
use crate::stage::{PATIENCE, Stage};

/// In seconds.
const AHEAD: i64 = 90 * 60;
const BEHIND: i64 = -24 * 3600;
const FAR_AHEAD: i64 = 3 * 3600;
/// More than any test takes, and less than the clocks are wrong by.
const NEAR: i64 = 1200;

/// No admission but that of the controller's own webhook says a word of it.
const REFUSED: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: refused}
spec:
  selector: {type: nobody}
  resources:
  - {name: same, templateRef: {kind: ClusterTemplate, name: same}}
  - {name: same, templateRef: {kind: ClusterTemplate, name: same}}
";

fn webhook(port: u16) -> String {
    format!(
        "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: hook}}
webhooks:
- name: supply-chain-validator.cartographer.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {{url: 'https://localhost:{port}/validate-carto-run-v1alpha1-clustersupplychain'}}
  rules: [{{apiGroups: [carto.run], apiVersions: [v1alpha1], operations: [CREATE, UPDATE], resources: [clustersupplychains]}}]
"
    )
}

/// Waits until the API server has the webhook's verdict, for which it has to take its certificate.
async fn until_asked(stage: &Stage) {
    eventually("the webhook is asked", PATIENCE, async || {
        let said = stage.plane.apply_yaml(REFUSED).await;
        let said = said.map_or_else(|error| format!("{error:#}"), |_| "admitted".to_owned());
        if said.contains("denied the request") {
            Ok(())
        } else {
            Err(said)
        }
    })
    .await;
}

async fn publish(stage: &Stage, url: &str) {
    let source = json!({"spec": {"source": {"git": {"url": url}}}});
    stage.edit_workload("app", source).await;
    sink(stage, url).await;
    stage.idle().await;
}

fn token_requests(stage: &Stage) -> usize {
    let asked = stage.audited();
    let objects = asked.iter().filter_map(|event| event.object_ref.as_ref());
    objects
        .filter(|object| object.subresource == "token")
        .count()
}

fn times(value: &Value) -> Vec<Timestamp> {
    match value {
        Value::String(text) => text.parse().ok().into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(times).collect(),
        Value::Object(fields) => fields.values().flat_map(times).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// All that is written down about the owner is of these minutes, as the API server counts them.
async fn tells_the_right_time(stage: &Stage) {
    let mark = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"generateName": "mark-", "namespace": stage.namespace}});
    let mark = stage.create_as("test", mark).await;
    let now = times(&mark["metadata"]["creationTimestamp"])[0];
    let mut told = times(&stage.workload("app").await["status"]);
    for event in stage.all("v1", "Event").await {
        told.extend(times(&event["firstTimestamp"]));
        told.extend(times(&event["lastTimestamp"]));
    }
    assert!(told.len() > 5, "{told:?}");
    for time in told {
        let off = time.duration_since(now).as_secs();
        assert!(off.abs() < NEAR, "{off} s, it was {now}");
    }
}

#[tokio::test]
async fn whatever_the_clock_of_the_node_says_users_are_served_as_by_the_api_servers() {
    let mut stage = Stage::set().await;
    let clock = WrongClock::new(stage.plane.folder(), "clock").unwrap();
    let port = Port::reserve();
    let flags = [
        format!("--port={}", port.number()),
        format!("--own-namespace={}", stage.namespace),
        "--webhook-secret=hook".to_owned(),
        "--webhook-service=localhost".to_owned(),
        "--webhook-configuration=hook".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let particulars = Particulars {
        flags: &flags,
        environment: clock.environment(),
        ..Particulars::default()
    };
    clock.set(AHEAD).unwrap();
    stage.start_controller_with(&particulars);
    stage.apply(&webhook(port.number())).await;
    until_asked(&stage).await;
    stage.apply(CHAIN).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    for url in ["one", "two", "three"] {
        publish(&stage, url).await;
    }
    // It is set while the controller runs.
    for (offset, url) in [(BEHIND, "four"), (FAR_AHEAD, "five"), (0, "six")] {
        clock.set(offset).unwrap();
        publish(&stage, url).await;
    }
    assert_eq!(token_requests(&stage), 1, "{:?}", stage.requests());
    stage.ready("app", "True", "Ready").await;
    tells_the_right_time(&stage).await;

    // The next process finds a certificate that does not count yet by its clock.
    let certificate = stage.get("v1", "Secret", "hook").await.unwrap()["data"].clone();
    stage.kill_controller();
    clock.set(BEHIND).unwrap();
    stage.start_controller_with(&particulars);
    publish(&stage, "seven").await;
    until_asked(&stage).await;
    let kept = stage.get("v1", "Secret", "hook").await.unwrap()["data"].clone();
    assert!(kept == certificate, "the authority was replaced");
    assert_eq!(token_requests(&stage), 2, "{:?}", stage.requests());
    tells_the_right_time(&stage).await;
    let told = "the clock of this machine was not that of the API server";
    assert_eq!(stage.log().matches(told).count(), 2, "once for each start");
}

async fn lease(stage: &Stage) -> Value {
    let lease = stage
        .get("coordination.k8s.io/v1", "Lease", "supplychain-controller")
        .await;
    lease.unwrap()["spec"].clone()
}

/// Waits until the leader has renewed its Lease some times; whoever waits for it has looked as often.
async fn renewed(stage: &Stage, times: usize) {
    for _ in 0..times {
        let before = lease(stage).await;
        eventually("the lease is renewed", PATIENCE, async || {
            lease(stage).await["renewTime"] != before["renewTime"]
        })
        .await;
    }
}

#[tokio::test]
async fn of_two_replicas_whose_clocks_differ_by_a_day_one_works() {
    let mut stage = Stage::set().await;
    let folder = stage.plane.folder().to_owned();
    let clocks = ["one", "two"].map(|name| WrongClock::new(&folder, name).unwrap());
    let set = |offsets: [i64; 2]| {
        for (clock, offset) in clocks.iter().zip(offsets) {
            clock.set(offset).unwrap();
        }
    };
    let replica = |stage: &mut Stage, name: &str, clock: &WrongClock| {
        let particulars = Particulars {
            environment: clock.environment(),
            ..Particulars::default()
        };
        replica_as(stage, name, &[], particulars)
    };
    set([AHEAD, 0]);
    let mut one = replica(&mut stage, "one", &clocks[0]);
    leads(&stage, "one").await;
    let two = replica(&mut stage, "two", &clocks[1]);
    populate(&stage).await;
    all_published(&stage, "a").await;
    for (offsets, branch) in [([BEHIND, AHEAD], "b"), ([AHEAD, BEHIND], "c")] {
        set(offsets);
        renewed(&stage, 3).await;
        edit_all(&stage, branch).await;
        all_published(&stage, branch).await;
    }
    let lease = lease(&stage).await;
    assert_eq!(lease["holderIdentity"], "one");
    assert_eq!(lease["leaseTransitions"], 0);
    assert!(!two.log().contains("\"leading\""), "{}", two.log());

    one.signal("TERM");
    one.ended().await;
    leads(&stage, "two").await;
    edit_all(&stage, "d").await;
    all_published(&stage, "d").await;
    each_ran_once(&stage, &["a", "b", "c", "d"]).await;
}
