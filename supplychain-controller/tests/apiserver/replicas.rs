//! Replicas that share the owners among themselves (docs/behaviour/process.md#replicas).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::Another;
use tokio::time::Instant;

use crate::immutable::{WORKLOAD, branch, instant};
use crate::stage::{PATIENCE, Stage, condition};
use crate::unchanged::blueprint_of;

const RECORD: &str = "carto.run/replicas";

const OWN: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$-own}
data: {kind: $(workload.metadata.labels.kind)$}
";

const OWNER: &str = "
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, labels: {type: web, kind: first}}
spec: {serviceAccountName: sa}
";

/// What may pass from the death of a replica until others have served all of its share.
const SERVED_AGAIN: Duration = Duration::from_secs(15);
/// A busy machine may take longer, but not each time.
const DEATHS: [&str; 3] = ["second", "third", "fourth"];

/// One whose process may stand still for a minute: on a busy machine one would lose its share otherwise.
const PATIENT: [&str; 2] = [
    "--lease-duration-seconds=90",
    "--lease-renew-deadline-seconds=60",
];

fn replica(stage: &mut Stage, place: &str, name: &str, flags: &[&str]) -> Another {
    let (namespace, identity) = (
        format!("--lease-namespace={place}"),
        format!("--lease-identity={name}"),
    );
    let mut all = vec!["--share-owners", &*namespace, &*identity];
    all.extend(flags);
    stage.another_controller_with(&all)
}

/// What the Lease says of the replicas.
async fn record(stage: &Stage, place: &str) -> Option<Value> {
    let leases = test_support::objects_in(&stage.client, place, "coordination.k8s.io/v1", "Lease");
    let lease = leases.get_opt("supplychain-controller").await.unwrap()?;
    let text = lease.metadata.annotations?.get(RECORD)?.clone();
    serde_json::from_str(&text).ok()
}

/// Waits until these share, and none of them waits for another.
async fn share(stage: &Stage, place: &str, names: &[&str]) {
    let what = format!("{names:?} share the owners");
    eventually(&what, PATIENCE, async || {
        let record = record(stage, place).await?;
        let replicas = record["replicas"].as_object()?;
        let is_settled = replicas.values().all(|it| it["claims"] == record["view"]);
        let present: BTreeSet<&str> = replicas.keys().map(String::as_str).collect();
        (is_settled && present == names.iter().copied().collect()).then_some(())
    })
    .await;
}

/// In which of these namespaces a process has worked on an owner, by its log.
fn reconciled(process: &Another, namespaces: &[String]) -> BTreeSet<String> {
    let log = process.log();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("\"version\""))
        .collect();
    let is_in = |namespace: &&String| {
        let workload = format!("\"workload\":\"{namespace}/");
        lines.iter().any(|line| line.contains(&workload))
    };
    namespaces.iter().filter(is_in).cloned().collect()
}

/// So many further namespaces, each with this owner.
async fn owners(stage: &mut Stage, count: usize, owner: &str) -> Vec<String> {
    let mut namespaces = Vec::new();
    for _ in 0..count {
        stage.move_to_new_namespace().await;
        stage.apply(owner).await;
        namespaces.push(stage.namespace.clone());
    }
    namespaces
}

async fn edit(stage: &Stage, namespace: &str, name: &str, patch: &Value) {
    let api = test_support::objects_in(&stage.client, namespace, "carto.run/v1alpha1", "Workload");
    patched(&api, name, patch).await;
}

async fn patched(api: &Api<DynamicObject>, name: &str, patch: &Value) {
    let patch = kube::api::Patch::Merge(patch);
    api.patch(name, &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap();
}

async fn all_own(stage: &Stage, namespaces: &[String], kind: &str) -> Duration {
    let start = Instant::now();
    for namespace in namespaces {
        let maps = test_support::objects_in(&stage.client, namespace, "v1", "ConfigMap");
        let what = format!("the object in {namespace} is {kind}");
        eventually(&what, PATIENCE, async || {
            let own = maps.get_opt("app-own").await.unwrap()?;
            (own.data["data"]["kind"] == kind).then_some(())
        })
        .await;
    }
    start.elapsed()
}

/// The same of all at once.
async fn own_of_all(stage: &Stage, namespaces: &[String], kind: &str) {
    let resource = ApiResource::erase::<ConfigMap>(&());
    let maps: Api<DynamicObject> = Api::all_with(stage.client.clone(), &resource);
    let named = watcher::Config::default().fields("metadata.name=app-own");
    let mut maps = std::pin::pin!(watcher(maps, named).applied_objects());
    let mut left: BTreeSet<&str> = namespaces.iter().map(String::as_str).collect();
    let all = async {
        while !left.is_empty() {
            let map = maps.next().await.unwrap().unwrap();
            if map.data["data"]["kind"] == kind {
                left.remove(&*map.metadata.namespace.unwrap());
            }
        }
    };
    let all = tokio::time::timeout(PATIENCE, all).await;
    assert!(all.is_ok(), "the object is not {kind} in {left:?}");
}

#[tokio::test]
async fn three_share_the_owners_each_is_worked_on_by_one_and_the_share_of_a_dead_one_is_served_again()
 {
    let mut stage = Stage::set().await;
    let place = stage.namespace.clone();
    stage.apply(&five_steps("kind")).await;
    let replicas = ["r0", "r1", "r2"];
    let mut processes: BTreeMap<&str, Another> = BTreeMap::new();
    for name in replicas {
        // With the times of the Lease that they have in a cluster.
        processes.insert(name, replica(&mut stage, &place, name, &[]));
    }
    share(&stage, &place, &replicas).await;
    let count = asked_for().map_or(NAMESPACES, |_| MANY_NAMESPACES);
    let many = several_owners(count);
    let namespaces = owners(&mut stage, count, &many.join("---")).await;
    all_own(&stage, &namespaces, "first").await;
    for process in processes.values() {
        stage.idle_of(process).await;
    }
    let shares: Vec<BTreeSet<String>> = processes
        .values()
        .map(|it| reconciled(it, &namespaces))
        .collect();
    let sizes: Vec<usize> = shares.iter().map(BTreeSet::len).collect();
    assert_eq!(
        sizes.iter().sum::<usize>(),
        count,
        "each by exactly one: {sizes:?}"
    );
    assert!(sizes.iter().all(|size| *size >= 3), "{sizes:?}");
    not_sent_what_others_have(&stage, &namespaces, &shares).await;
    for process in processes.values() {
        stage.idle_of(process).await;
    }
    let mut held = 0.0;
    for (process, size) in processes.values().zip(&sizes) {
        assert_eq!(process.metric("carto_replicas", &[]).await, Some(3.0));
        assert_eq!(slots(process).await, Some(6.0), "a third of 16");
        let owners = process.metric("carto_owners", &[]).await.unwrap();
        let namespaces = process.metric("carto_share_namespaces", &[]).await.unwrap();
        let [size, each] = [*size, many.len()].map(|it| f64::from(u32::try_from(it).unwrap()));
        assert_eq!((owners, namespaces), (size * each, size));
        held += process.metric("carto_stamped_objects", &[]).await.unwrap();
        tell_memory(process, &format!("one of three, with {owners} owners")).await;
    }
    let all = f64::from(u32::try_from(count * many.len()).unwrap());
    assert!(
        held <= all * STEPS,
        "nobody holds what others see to: {held}"
    );
    let mut served = Vec::new();
    for kind in DEATHS {
        let death = one_dies(&stage, &mut processes, &namespaces, kind).await;
        served.push(death.served);
        if death.served <= SERVED_AGAIN {
            let expected = BTreeSet::from(["in one"]);
            assert_eq!(death.listed, expected, "{}", told_by(&processes));
        }
        share(&stage, &place, &["r0", "r2"]).await;
        if served.last() <= Some(&SERVED_AGAIN) {
            break;
        }
        processes.insert("r1", replica(&mut stage, &place, "r1", &[]));
        share(&stage, &place, &replicas).await;
    }
    assert!(served.last() <= Some(&SERVED_AGAIN), "{served:?}");
    tell(&format!(
        "the share of a dead one was served again after {served:.1?}"
    ));
    for process in processes.values_mut() {
        process.signal("TERM");
        process.ended().await;
    }
    let alone = replica(&mut stage, &place, "alone", &[]);
    share(&stage, &place, &["alone"]).await;
    // It has its share at once, and works on it once it has listed it.
    eventually("it has all owners", PATIENCE, async || {
        alone.metric("carto_owners", &[]).await == Some(all)
    })
    .await;
    stage.idle_of(&alone).await;
    assert_eq!(slots(&alone).await, Some(16.0));
    tell_memory(&alone, &format!("one alone that found all of {all} owners")).await;
    // What it holds of what it has applied itself is more.
    stage.apply(&five_steps("type")).await;
    all_own(&stage, &namespaces, "web").await;
    stage.idle_of(&alone).await;
    tell_memory(
        &alone,
        &format!("one alone that applied all of {all} owners"),
    )
    .await;
}

/// Waits until each of them has watches of owners and of what is stamped in which namespaces of others are left out; none leaves
/// out its own. A watch learns of others by what it is sent of them, so everything is changed until it has.
async fn not_sent_what_others_have(
    stage: &Stage,
    namespaces: &[String],
    shares: &[BTreeSet<String>],
) {
    for (resource, version, kind, name) in [
        ("workloads", "carto.run/v1alpha1", "Workload", "app"),
        ("configmaps", "v1", "ConfigMap", "app-own"),
    ] {
        let what = format!("{resource} of others are left out");
        let mut turn = 0;
        eventually(&what, PATIENCE, async || {
            let left_out = left_out(stage, resource, namespaces);
            let is_anyones = |it: &BTreeSet<String>| shares.iter().any(|own| own.is_disjoint(it));
            assert!(left_out.iter().all(is_anyones), "{left_out:?}");
            let most = |own: &BTreeSet<String>| {
                let its = left_out.iter().filter(|it| own.is_disjoint(it));
                its.map(BTreeSet::len).max().unwrap_or_default()
            };
            let leaves_out = |own: &BTreeSet<String>| 3 * most(own) >= namespaces.len() - own.len();
            if shares.iter().all(leaves_out) {
                return Some(());
            }
            turn += 1;
            let patch = json!({"metadata": {"annotations": {"turn": turn.to_string()}}});
            for namespace in namespaces {
                let api = test_support::objects_in(&stage.client, namespace, version, kind);
                patched(&api, name, &patch).await;
            }
            None
        })
        .await;
    }
}

/// Which of these namespaces each watch of a kind left out.
fn left_out(stage: &Stage, resource: &str, namespaces: &[String]) -> Vec<BTreeSet<String>> {
    let events = stage.plane.audit_events().unwrap();
    let watches = events.iter().filter(|event| {
        let object = event.object_ref.as_ref();
        event.verb == "watch" && object.is_some_and(|it| it.resource == resource)
    });
    let of_watch = |event: &test_support::AuditEvent| {
        let terms = event.request_uri.split("metadata.namespace%21%3D");
        let names = terms.map(|term| term.split(['%', '&']).next().unwrap_or_default().to_owned());
        names.filter(|it| namespaces.contains(it)).collect()
    };
    watches.map(of_watch).collect()
}

/// What they say besides their reconciles.
fn told_by(processes: &BTreeMap<&str, Another>) -> String {
    let logs: Vec<String> = processes.values().map(Another::log).collect();
    let lines = logs.iter().flat_map(|log| log.lines());
    let told = lines.filter(|line| !line.contains("\"version\""));
    told.collect::<Vec<_>>().join("\n")
}

/// Owners that it may have under way at once.
async fn slots(process: &Another) -> Option<f64> {
    let of_owners = ["queue=\"owners\""];
    process.metric("carto_queue_slots", &of_owners).await
}

/// What came of the death of a replica.
struct Death {
    /// How long it took until all owners were served.
    served: Duration,
    /// What the others listed meanwhile of owners and their objects: in one namespace, or in all.
    listed: BTreeSet<&'static str>,
}

/// kill -9 of `r1`, and at the same time a change of all owners.
async fn one_dies(
    stage: &Stage,
    processes: &mut BTreeMap<&str, Another>,
    namespaces: &[String],
    kind: &str,
) -> Death {
    for process in processes.values() {
        stage.idle_of(process).await;
    }
    let before = stage.plane.requests_by("carto-supplychain").unwrap().len();
    // A watch tells when: to ask for one after the other takes seconds where there are hundreds.
    let served = own_of_all(stage, namespaces, kind);
    drop(processes.remove("r1"));
    let died = Instant::now();
    let edited = async {
        for namespace in namespaces {
            let patch = json!({"metadata": {"labels": {"kind": kind}}});
            edit(stage, namespace, "app", &patch).await;
        }
    };
    tokio::join!(served, edited);
    let served = died.elapsed();
    for process in processes.values() {
        stage.idle_of(process).await;
    }
    // One apply for each step of an edited owner: nothing was done twice.
    let requests = stage.plane.requests_by("carto-supplychain").unwrap();
    let applies = requests[before..].iter().filter(|event| {
        let object = event.object_ref.as_ref();
        event.verb == "patch" && object.is_some_and(|object| object.resource == "configmaps")
    });
    assert_eq!(applies.count(), namespaces.len() * STEP_NAMES.len());
    let listings = requests[before..].iter().filter(|it| it.verb == "list");
    let listed = listings
        .filter_map(|event| event.object_ref.as_ref())
        .filter(|of| matches!(&*of.resource, "configmaps" | "workloads"))
        .map(|of| match &*of.namespace {
            "" => "in all",
            _ => "in one",
        });
    Death {
        served,
        listed: listed.collect(),
    }
}

const NAMESPACES: usize = 30;
/// Of very many owners.
const MANY_NAMESPACES: usize = 200;
const STEP_NAMES: [&str; 5] = ["first", "second", "third", "fourth", "own"];
const STEPS: f64 = 5.0;

/// Each makes an object of its own, which holds a label of the owner.
fn five_steps(label: &str) -> String {
    let own = OWN.replace("labels.kind", &format!("labels.{label}"));
    let objects = STEP_NAMES.map(|name| own.replace("-own", &format!("-{name}")));
    let steps: Vec<(&str, &str)> = STEP_NAMES
        .into_iter()
        .zip(objects.iter().map(String::as_str))
        .collect();
    blueprint_of(&steps)
}

/// How many owners are asked for in all, for `--nocapture` to tell what they cost.
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no command line of its own"
)]
fn asked_for() -> Option<usize> {
    let asked = std::env::var("CARTO_SHARED_OWNERS").ok()?;
    Some(asked.parse().unwrap())
}

/// Those of one of so many namespaces: `app`, and more if they are asked for.
fn several_owners(namespaces: usize) -> Vec<String> {
    let others = 1..asked_for().unwrap_or_default() / namespaces;
    let others = others.map(|number| OWNER.replace("name: app", &format!("name: app-{number}")));
    std::iter::once(OWNER.to_owned()).chain(others).collect()
}

async fn tell_memory(process: &Another, what: &str) {
    let bytes = process.metric("process_resident_memory_bytes", &[]).await;
    tell(&format!(
        "{what}: {:.1} MiB",
        bytes.unwrap() / 1024.0 / 1024.0
    ));
}

#[expect(
    clippy::print_stdout,
    reason = "a measurement for whoever asks for one"
)]
fn tell(measured: &str) {
    println!("{measured}");
}

/// The branches of all runs in a namespace.
async fn runs(stage: &Stage, namespace: &str) -> Vec<String> {
    let runs = stage.all_in(namespace, "test.run/v1alpha1", "Test").await;
    let branch = |run: &Value| {
        let name = &run["metadata"]["labels"]["carto.run/workload-name"];
        format!("{name} {}", run["spec"]["value"]["branch"])
    };
    runs.iter().map(branch).collect()
}

async fn all_published(stage: &Stage, namespaces: &[String], last: &str) {
    for namespace in namespaces {
        let maps = test_support::objects_in(&stage.client, namespace, "v1", "ConfigMap");
        for owner in ["app", "other"] {
            let what = format!("{owner} in {namespace} has published {last}");
            eventually(&what, PATIENCE, async || {
                let sink = maps.get_opt(&format!("{owner}-sink")).await.unwrap()?;
                (sink.data["data"]["url"] == last).then_some(())
            })
            .await;
        }
    }
}

/// Changes all owners without a pause, until told to stop. Returns the last branch.
async fn storm(
    stage: &Stage,
    namespaces: &[String],
    round: usize,
    until: impl Future<Output = ()>,
) -> String {
    let mut number = 0;
    let editing = async {
        loop {
            number += 1;
            let patch = branch(&format!("b{round}-{number}"));
            for namespace in namespaces {
                for owner in ["app", "other"] {
                    edit(stage, namespace, owner, &patch).await;
                }
            }
        }
    };
    tokio::select! {
        () = editing => {}
        () = until => {}
    }
    let last = format!("b{round}-last");
    for namespace in namespaces {
        for owner in ["app", "other"] {
            edit(stage, namespace, owner, &branch(&last)).await;
        }
    }
    last
}

#[tokio::test]
async fn replicas_come_go_and_freeze_in_a_storm_of_changes_and_no_run_is_made_twice() {
    let mut stage = Stage::set().await;
    let place = stage.namespace.clone();
    stage.apply(&instant(1000)).await;
    let both = format!(
        "{WORKLOAD}---{}",
        WORKLOAD.replace("name: app", "name: other")
    );
    let namespaces = owners(&mut stage, 8, &both).await;
    let times = [
        "--lease-retry-seconds=1",
        "--lease-duration-seconds=8",
        "--lease-renew-deadline-seconds=5",
    ];
    let mut first = replica(&mut stage, &place, "r0", &times);
    share(&stage, &place, &["r0"]).await;
    // Two come while everything moves.
    let (second, mut third) = (
        replica(&mut stage, &place, "r1", &times),
        replica(&mut stage, &place, "r2", &times),
    );
    let last = storm(
        &stage,
        &namespaces,
        1,
        share(&stage, &place, &["r0", "r1", "r2"]),
    )
    .await;
    all_published(&stage, &namespaces, &last).await;
    // One goes in order, and one stands still until the others have its share, and wakes up.
    first.signal("TERM");
    let last = storm(&stage, &namespaces, 2, share(&stage, &place, &["r1", "r2"])).await;
    first.ended().await;
    all_published(&stage, &namespaces, &last).await;
    third.signal("STOP");
    storm(&stage, &namespaces, 3, share(&stage, &place, &["r1"])).await;
    third.signal("CONT");
    let last = storm(&stage, &namespaces, 4, share(&stage, &place, &["r1", "r2"])).await;
    all_published(&stage, &namespaces, &last).await;
    // One is killed.
    drop(second);
    let last = storm(&stage, &namespaces, 5, share(&stage, &place, &["r2"])).await;
    all_published(&stage, &namespaces, &last).await;
    stage.idle_of(&third).await;
    let mut made = 0;
    for namespace in &namespaces {
        let runs = runs(&stage, namespace).await;
        let different: BTreeSet<&String> = runs.iter().collect();
        assert_eq!(different.len(), runs.len(), "{namespace}: {runs:?}");
        made += runs.len();
    }
    assert!(made >= 8 * 2 * 6, "{made}");
}

/// Who may write the Lease is trusted; what he writes by mistake is over when it has been silent for as long as a replica.
#[tokio::test]
async fn what_stands_in_the_lease_by_mistake_is_told_and_gone_soon_and_no_tenant_may_write_it() {
    let mut stage = Stage::set().await;
    let place = stage.namespace.clone();
    stage.apply(&blueprint_of(&[("own", OWN)])).await;
    let times = [
        "--lease-retry-seconds=1",
        "--lease-duration-seconds=5",
        "--lease-renew-deadline-seconds=3",
    ];
    let one = replica(&mut stage, &place, "r0", &times);
    share(&stage, &place, &["r0"]).await;
    let namespaces = owners(&mut stage, 1, OWNER).await;
    all_own(&stage, &namespaces, "first").await;
    let tenant = stage.tenant().await;
    let lease = json!({"metadata": {"namespace": place, "annotations": {RECORD: "mine"}}});
    for kind in ["Lease"] {
        let refused = tenant.patch(
            "coordination.k8s.io/v1",
            kind,
            "supplychain-controller",
            lease.clone(),
        );
        let error = refused.await.unwrap_err();
        assert!(error.to_string().contains("forbidden"), "{error}");
    }
    let entry = json!({"process": "0", "beat": 1, "lasts": 5, "claims": 1});
    let names: Vec<String> = (0..1000).map(|number| format!("bogus-{number}")).collect();
    let bogus: serde_json::Map<_, _> = names.iter().map(|it| (it.clone(), entry.clone())).collect();
    let bogus = json!({"view": 1, "views": {"1": names}, "replicas": bogus}).to_string();
    let leases = test_support::objects_in(&stage.client, &place, "coordination.k8s.io/v1", "Lease");
    let patch = json!({"metadata": {"annotations": {RECORD: bogus}}});
    leases
        .patch(
            "supplychain-controller",
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Merge(&patch),
        )
        .await
        .unwrap();
    eventually("it is told", PATIENCE, async || {
        one.log().contains("there is no record of the replicas")
    })
    .await;
    share(&stage, &place, &["r0"]).await;
    let edited = json!({"metadata": {"labels": {"kind": "second"}}});
    edit(&stage, &namespaces[0], "app", &edited).await;
    all_own(&stage, &namespaces, "second").await;
    let ready = stage
        .all_in(&namespaces[0], "carto.run/v1alpha1", "Workload")
        .await;
    assert_eq!(condition(&ready[0]["status"], "Ready")["status"], "True");
}

/// The replicas that share, and one that would lead alone, wait for one another.
#[tokio::test]
async fn from_one_that_leads_to_several_that_share_nobody_works_beside_another() {
    let mut stage = Stage::set().await;
    let place = stage.namespace.clone();
    stage.apply(&blueprint_of(&[("own", OWN)])).await;
    let namespaces = owners(&mut stage, 2, OWNER).await;
    let lease_namespace = format!("--lease-namespace={place}");
    let mut flags = vec![
        "--leader-elect=true",
        "--lease-identity=alone",
        "--lease-retry-seconds=1",
        &*lease_namespace,
    ];
    flags.extend(PATIENT);
    let mut alone = stage.another_controller_with(&flags);
    all_own(&stage, &namespaces, "first").await;
    let retry = ["--lease-retry-seconds=1", PATIENT[0], PATIENT[1]];
    let (a, b) = (
        replica(&mut stage, &place, "r0", &retry),
        replica(&mut stage, &place, "r1", &retry),
    );
    eventually("they wait", PATIENCE, async || {
        a.metric("carto_leader", &[]).await == Some(0.0)
            && b.metric("carto_leader", &[]).await == Some(0.0)
    })
    .await;
    alone.signal("TERM");
    alone.ended().await;
    share(&stage, &place, &["r0", "r1"]).await;
    let before = stage.plane.requests_by("carto-supplychain").unwrap().len();
    for process in [&a, &b] {
        stage.idle_of(process).await;
    }
    // What is there is read, and found as it should be.
    let requests = stage.plane.requests_by("carto-supplychain").unwrap();
    let writes = requests[before..].iter().filter(|event| {
        let resource = event.object_ref.as_ref().map(|object| &*object.resource);
        !["get", "list", "watch"].contains(&&*event.verb) && resource != Some("leases")
    });
    assert_eq!(writes.count(), 0);
    for namespace in &namespaces {
        edit(
            &stage,
            namespace,
            "app",
            &json!({"metadata": {"labels": {"kind": "second"}}}),
        )
        .await;
    }
    all_own(&stage, &namespaces, "second").await;
}

/// The API server compares a status with the one that is known as text, in which it has escaped some characters.
#[tokio::test]
async fn a_status_with_characters_that_go_escapes_is_written_again() {
    let mut stage = Stage::set().await;
    let place = stage.namespace.clone();
    let named = "\"$(workload.metadata.annotations['a&<b>'])$\"";
    let fails = OWN.replace("$(workload.metadata.labels.kind)$", named);
    stage.apply(&blueprint_of(&[("own", &*fails)])).await;
    let _replica = replica(&mut stage, &place, "r0", &[]);
    share(&stage, &place, &["r0"]).await;
    stage.move_to_new_namespace().await;
    stage.apply(OWNER).await;
    stage
        .until("app", "its message has them", |owner| {
            let ready = condition(&owner["status"], "Ready");
            ready["message"].to_string().contains("a&<b>")
        })
        .await;
    stage.apply(&blueprint_of(&[("own", OWN)])).await;
    stage.ready("app", "True", "Ready").await;
}
