//! The API server, etcd behind it, or the network before it stands still for two minutes: connections stay, and nobody answers.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::stage::{Particulars, Reports};
use test_support::{BlackHole, eventually};

use crate::handover::{all_published, each_ran_once, edit_all, owners, populate, replica_as};
use crate::stage::{NOTHING, PATIENCE, Stage};

/// Longer than a Lease, and than any request is waited for.
const STANDSTILL: Duration = Duration::from_mins(2);
/// From the end of it.
const SETTLED_WITHIN: Duration = Duration::from_mins(1);

/// Two replicas reach the API server by this way, if it is not the usual one.
async fn stands_still(
    mut stage: Stage,
    way: Option<&Path>,
    stop: impl FnOnce(&Stage),
    go_on: impl FnOnce(&Stage),
) {
    let replicas = ["one", "two"].map(|name| {
        let particulars = Particulars {
            kubeconfig: way,
            ..Particulars::default()
        };
        replica_as(&mut stage, name, &[], particulars)
    });
    populate(&stage).await;
    all_published(&stage, "a").await;
    // What is published is seen before the status that says so: a first one may still say that there is no blueprint yet.
    all_ready(&stage).await;
    let reports = Reports::of_owners(&stage).await;
    edit_all(&stage, "b").await;
    stop(&stage);
    // The time is what is tested, not what is waited for.
    tokio::time::sleep(STANDSTILL).await;
    go_on(&stage);
    let thawed = Instant::now();
    all_published(&stage, "b").await;
    let took = thawed.elapsed();
    assert!(took < SETTLED_WITHIN, "settled {took:?} after the end");

    edit_all(&stage, "c").await;
    all_published(&stage, "c").await;
    each_ran_once(&stage, &["a", "b", "c"]).await;
    let settled = all_ready(&stage).await;
    assert_eq!(reports.unready(&settled).await, BTreeSet::new());
    let mut warnings = stage.events().await;
    warnings.retain(|event| event.starts_with("Warning"));
    assert_eq!(warnings, NOTHING);
    let one_leads = eventually("one of them leads", PATIENCE, async || {
        let mut leading = Vec::new();
        for replica in &replicas {
            leading.push(replica.metric("carto_leader", &[]).await?);
        }
        (leading.iter().sum::<f64>() > 0.5).then_some(leading)
    })
    .await;
    assert!((one_leads.iter().sum::<f64>() - 1.0).abs() < 0.1);
    never_at_once(&replicas.map(|replica| replica.log()));
}

/// Waits until every owner is Ready, and returns all.
async fn all_ready(stage: &Stage) -> Vec<Value> {
    let mut settled = Vec::new();
    for owner in owners() {
        stage.ready(&owner, "True", "Ready").await;
        settled.push(stage.owner(&owner).await);
    }
    settled
}

/// Each process says when it begins to lead and when it ends; no two spans overlap.
fn never_at_once(logs: &[String]) {
    let mut spans = Vec::new();
    for log in logs {
        let mut since: Option<String> = None;
        for line in log.lines() {
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            let at = line["timestamp"].as_str().unwrap_or_default().to_owned();
            match line["message"].as_str().unwrap_or_default() {
                "leading" => since = since.or(Some(at)),
                "not leading any more" | "lease released" => {
                    spans.extend(since.take().map(|since| (since, at)));
                }
                _ => {}
            }
        }
        spans.extend(since.map(|since| (since, "9999".to_owned())));
    }
    spans.sort();
    assert!(!spans.is_empty(), "nobody said that he leads: {logs:?}");
    for pair in spans.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "two lead at once: {spans:?}");
    }
}

#[tokio::test]
async fn an_api_server_that_stands_still_has_nothing_run_twice_and_nobody_told_that_he_failed() {
    let stage = Stage::set().await;
    let freeze = |stage: &Stage| stage.plane.freeze_apiserver();
    stands_still(stage, None, freeze, |stage| stage.plane.thaw()).await;
}

#[tokio::test]
async fn an_etcd_that_stands_still_has_nothing_run_twice_and_nobody_told_that_he_failed() {
    let stage = Stage::set().await;
    let freeze = |stage: &Stage| stage.plane.freeze_etcd();
    stands_still(stage, None, freeze, |stage| stage.plane.thaw()).await;
}

/// Also those of the watches, and without an end that anybody hears of.
#[tokio::test]
async fn connections_that_nothing_comes_through_have_nothing_run_twice_and_nobody_told_that_he_failed()
 {
    let stage = Stage::set().await;
    let network = BlackHole::before(&stage.plane).await.unwrap();
    let way = network.kubeconfig();
    stands_still(stage, Some(way), |_| network.close(), |_| network.open()).await;
}
