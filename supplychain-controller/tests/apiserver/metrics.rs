//! What the controller exports is what `docs/metrics.md` says, and is true.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use test_support::eventually;
use test_support::stage::Another;

use crate::stage::{PATIENCE, Stage, condition};

/// A metric: its type and its labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Metric {
    kind: String,
    labels: BTreeSet<String>,
}

/// The table that is for all controllers: the one before the first section.
fn documented() -> BTreeMap<String, Metric> {
    let page = include_str!("../../../docs/metrics.md");
    let page = page.split("\n## ").next().unwrap_or_default();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let mut next = || cells.next().unwrap_or_default();
        let (name, kind, labels) = (next(), next().to_owned(), next());
        let labels = labels.split(", ").filter(|label| !label.is_empty());
        let plain = |text: &str| text.trim_matches('`').to_owned();
        let labels = labels.map(plain).collect();
        assert!(!next().is_empty(), "{name} means nothing");
        (plain(name), Metric { kind, labels })
    })
    .collect()
}

/// What a process exports.
fn exported(text: &str) -> BTreeMap<String, Metric> {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    for line in text.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').unwrap();
            let metric = metrics.entry(name.to_owned()).or_default();
            kind.clone_into(&mut metric.kind);
        } else if let Some((series, labels)) = line.split_once('{')
            && !line.starts_with('#')
        {
            let parts = ["_bucket", "_sum", "_count"];
            let name = parts.iter().find_map(|part| {
                let name = series.strip_suffix(part)?;
                metrics.contains_key(name).then_some(name)
            });
            let metric = metrics.get_mut(name.unwrap_or(series)).unwrap();
            let names = labels.split("=\"").filter_map(|part| {
                let start = part.rfind([',', '{']).map_or(0, |comma| comma + 1);
                Some(part[start..].to_owned()).filter(|name| !name.contains(['"', '}']))
            });
            metric.labels.extend(names.filter(|name| name != "le"));
        }
    }
    metrics
}

const YTT: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: sink}
spec:
  ytt: |
    #@ load('@ytt:data', 'data')
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: #@ data.values.workload.metadata.name + '-sink'
    data:
      url: #@ data.values.source.url
";

/// A controller that has made an owner Ready by its chain, one step of which is rendered by ytt; it serves the webhooks.
async fn busy() -> (Stage, Another) {
    let mut stage = Stage::set().await;
    stage.apply(crate::chain::CHAIN).await;
    stage.apply(YTT).await;
    stage.apply(crate::chain::WORKLOAD).await;
    let controller = stage.another_controller_with(&[
        "--port=0",
        "--webhook-secret=webhook",
        "--webhook-service=webhook",
    ]);
    stage.ready("app", "True", "Ready").await;
    (stage, controller)
}

#[tokio::test]
async fn everything_on_the_page_is_exported_and_everything_exported_is_on_the_page() {
    let documented = documented();
    assert!(documented.len() > 30, "another form: {documented:?}");
    let (_stage, controller) = busy().await;
    let differing = |of: &BTreeMap<String, Metric>, from: &BTreeMap<String, Metric>| {
        let differ = of
            .iter()
            .filter(|(name, metric)| from.get(*name) != Some(metric));
        let told = differ.map(|(name, metric)| format!("{name}: {metric:?}"));
        told.collect::<Vec<_>>().join("\n")
    };
    eventually("the metrics are those of the page", PATIENCE, async || {
        let exported = exported(&controller.metrics().await);
        if exported == documented {
            return Ok(());
        }
        Err(format!(
            "exported:\n{}\ndocumented:\n{}",
            differing(&exported, &documented),
            differing(&documented, &exported)
        ))
    })
    .await;
}

#[tokio::test]
async fn a_reconcile_is_counted_by_how_it_ended() {
    let (stage, controller) = busy().await;
    let ended = async |outcome: &str| {
        let outcome = format!("outcome=\"{outcome}\"");
        let parts = ["kind=\"Workload\"", &outcome];
        eventually(&outcome, PATIENCE, async || {
            let counted = controller.metric("carto_reconcile_total", &parts).await?;
            (counted > 0.5).then_some(())
        })
        .await;
    };
    ended("settled").await;
    // A path that is not there yet.
    let awaited = crate::chain::CHAIN.replace("revisionPath: .spec.", "revisionPath: .status.");
    assert_ne!(awaited, crate::chain::CHAIN, "the fixture reads otherwise");
    let (source, _) = awaited.split_once("---\n").unwrap();
    stage.apply(source).await;
    ended("waiting").await;
    stage
        .edit_workload("app", json!({"metadata": {"labels": {"type": "none"}}}))
        .await;
    ended("user_error").await;
    let owners = async |ready: &str, reason: &str| {
        let (ready, reason) = (format!("ready=\"{ready}\""), format!("reason=\"{reason}\""));
        controller.metric("carto_owners", &[&ready, &reason]).await
    };
    eventually("the owner is counted as it is", PATIENCE, async || {
        let failing = owners("False", "SupplyChainNotFound").await?;
        let ready = owners("True", "Ready").await?;
        (failing > 0.5 && ready < 0.5).then_some(())
    })
    .await;
    let owners = controller
        .metric(
            "carto_api_requests_total",
            &[
                "client=\"owner\"",
                "verb=\"APPLY\"",
                "resource=\"configmaps\"",
                "code=\"201\"",
            ],
        )
        .await;
    assert!(owners.is_some_and(|sent| sent > 0.5), "{owners:?}");
}

#[tokio::test]
async fn a_standby_says_nothing_of_owners_and_a_new_leader_nothing_of_what_it_did_not_do() {
    let mut stage = Stage::set().await;
    stage.apply(crate::chain::CHAIN).await;
    stage.apply(crate::chain::WORKLOAD).await;
    let flags = [
        "--leader-elect=true",
        "--lease-retry-seconds=1",
        &format!("--lease-namespace={}", stage.namespace),
    ];
    let replica = |stage: &mut Stage, name: &str| {
        let identity = format!("--lease-identity={name}");
        let flags: Vec<&str> = flags.iter().copied().chain([&*identity]).collect();
        stage.another_controller_with(&flags)
    };
    let mut leader = replica(&mut stage, "leader");
    stage.ready("app", "True", "Ready").await;
    let standby = replica(&mut stage, "standby");
    eventually("the standby has listed the owners", PATIENCE, async || {
        let watches = ["resource=\"workloads.carto.run\""];
        let open = standby.metric("carto_watches", &watches).await?;
        (open > 0.5).then_some(())
    })
    .await;
    let another = json!({"spec": {"source": {"git": {"url": "https://git.example/another"}}}});
    stage.edit_workload("app", another).await;
    stage
        .until("app", "the edit is reconciled", |app| {
            app["status"]["observedGeneration"] == app["metadata"]["generation"]
                && condition(&app["status"], "Ready")["status"] == "True"
        })
        .await;
    let shown = standby.metrics().await;
    assert!(!shown.contains("carto_owners{"), "{shown}");
    for gauge in [
        "carto_queue_depth",
        "carto_queue_oldest_seconds",
        "carto_queue_delayed",
    ] {
        assert_eq!(standby.metric(gauge, &[]).await, Some(0.0), "{gauge}");
    }
    leader.signal("TERM");
    leader.ended().await;
    eventually("the standby leads", PATIENCE, async || {
        let to = ["to=\"leading\""];
        let led = standby.metric("carto_lease_transitions_total", &to).await?;
        let settled = ["kind=\"Workload\"", "outcome=\"settled\""];
        let reconciled = standby.metric("carto_reconcile_total", &settled).await?;
        (led > 0.5 && reconciled > 0.5).then_some(())
    })
    .await;
    let shown = standby.metrics().await;
    assert!(
        !shown.contains("carto_time_to_ready_seconds_count"),
        "{shown}"
    );
    let ready = ["ready=\"True\"", "reason=\"Ready\""];
    assert_eq!(standby.metric("carto_owners", &ready).await, Some(1.0));
}
