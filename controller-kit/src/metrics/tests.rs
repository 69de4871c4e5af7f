//! Every fact shows under its name, and no label is without bound.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::scheduler::QueueDepth;

fn text(metrics: &Metrics) -> String {
    String::from_utf8(metrics.render()).unwrap()
}

#[test]
fn every_fact_shows_under_its_name() {
    let metrics = Arc::new(Metrics::new());
    metrics.reconciled("Workload", "ready", 0.002);
    metrics.reconcile_panicked();
    metrics.request_avoided();
    metrics.stamped_objects(5);
    metrics.time_to_ready("Workload", 1.5);
    metrics.token_request(TokenOutcome::Issued);
    metrics.ytt_run("cached");
    metrics.event(EventOutcome::QueueFull);
    metrics.webhook("ClusterSupplyChain", WebhookOutcome::Denied, 0.001);
    metrics.certificate_expiry(1_800_000_000);
    metrics.leader(true);
    metrics.lease_transition(true);
    metrics.program("a-controller", "1.2.3");
    metrics.token_lookup(TokenLookup::Miss);
    metrics.tokens(3);
    metrics.ytt_ran(0.02);
    drop(metrics.ytt_waits());
    metrics.refused(&[("jobs.batch".to_owned(), true)]);
    metrics.stale(&[("jobs.batch".to_owned(), false)]);
    metrics.owners(
        "Workload",
        &BTreeMap::from([(("False", "TemplateStampFailure"), 2)]),
    );
    let text = text(&metrics);
    for line in [
        "carto_reconcile_total{kind=\"Workload\",outcome=\"ready\"} 1",
        "carto_reconcile_duration_seconds_count{kind=\"Workload\"} 1",
        "carto_reconcile_panics_total 1",
        "carto_api_requests_avoided_total 1",
        "carto_stamped_objects 5",
        "carto_time_to_ready_seconds_bucket{kind=\"Workload\",le=\"2.5\"} 1",
        "carto_token_requests_total{outcome=\"issued\"} 1",
        "carto_ytt_runs_total{outcome=\"cached\"} 1",
        "carto_events_total{outcome=\"queue_full\"} 1",
        "carto_webhook_requests_total{kind=\"ClusterSupplyChain\",outcome=\"denied\"} 1",
        "carto_webhook_certificate_expiry_timestamp_seconds 1800000000",
        "carto_leader 1",
        "carto_lease_transitions_total{to=\"leading\"} 1",
        "carto_lease_transitions_total{to=\"waiting\"} 0",
        "carto_build_info{program=\"a-controller\",version=\"1.2.3\"} 1",
        "carto_token_lookups_total{outcome=\"miss\"} 1",
        "carto_token_lookups_total{outcome=\"hit\"} 0",
        "carto_tokens 3",
        "carto_ytt_duration_seconds_bucket{le=\"0.025\"} 1",
        "carto_ytt_queue_seconds_count 1",
        "carto_ytt_waiting 0",
        "carto_watch_refused{resource=\"jobs.batch\"} 1",
        "carto_watch_stale{resource=\"jobs.batch\"} 0",
        "carto_owners{kind=\"Workload\",ready=\"False\",reason=\"TemplateStampFailure\"} 2",
        "carto_owners{kind=\"Workload\",ready=\"True\",reason=\"Ready\"} 0",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "missing {line} in\n{text}"
        );
    }
}

#[test]
fn gauges_are_set_when_somebody_looks() {
    let metrics = Metrics::new();
    metrics.before_gather(|metrics| {
        let oldest = [Duration::from_secs(2), Duration::ZERO, Duration::ZERO];
        metrics.queue(
            "owners",
            &QueueDepth {
                ready: [3, 1, 0],
                oldest,
                delayed: 4,
                running: 2,
                slots: 16,
            },
        );
    });
    let text = text(&metrics);
    assert!(text.contains("carto_queue_depth{lane=\"progress\",queue=\"owners\"} 3"));
    assert!(text.contains("carto_queue_oldest_seconds{lane=\"progress\",queue=\"owners\"} 2"));
    assert!(text.contains("carto_queue_delayed{queue=\"owners\"} 4"));
    assert!(text.contains("carto_queue_slots{queue=\"owners\"} 16"));
    assert!(text.contains("process_resident_memory_bytes"));
}

#[test]
fn users_cannot_make_labels_without_bound() {
    let metrics = Metrics::new();
    for index in 0..1000 {
        metrics.outcome("Workload", &format!("Reason{index}"));
        metrics.outcome("Workload", &format!("Type{index}Condition"));
        metrics.refused(&[(format!("kind{index}.example.com"), true)]);
    }
    metrics.outcome("Workload", "TemplateStampFailure");
    let text = text(&metrics);
    let reasons = text
        .lines()
        .filter(|it| it.starts_with("carto_ready_reason_total{"));
    assert_eq!(reasons.count(), 2, "{text}");
    assert!(text.contains("carto_ready_reason_total{kind=\"Workload\",reason=\"other\"} 2000"));
    assert!(
        text.contains("carto_watch_refused{resource=\"other\"} 1"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_stands_by_shows_no_owners_and_empty_queues() {
    let metrics = Metrics::new();
    let depth = QueueDepth {
        ready: [3, 1, 0],
        oldest: [
            Duration::from_hours(5),
            Duration::from_secs(2),
            Duration::ZERO,
        ],
        delayed: 4,
        running: 0,
        slots: 16,
    };
    let owners = BTreeMap::from([(("True", "Ready"), 7)]);
    let look = |metrics: &Metrics| {
        metrics.queue("owners", &depth);
        metrics.owners("Workload", &owners);
        text(metrics)
    };
    metrics.leader(false);
    assert_eq!(metrics.term(), None);
    let shown = look(&metrics);
    assert!(!shown.contains("carto_owners{"), "{shown}");
    for gauge in [
        "carto_queue_depth{",
        "carto_queue_oldest_seconds{",
        "carto_queue_delayed{",
    ] {
        let mut lines = shown.lines().filter(|line| line.starts_with(gauge));
        assert!(lines.all(|line| line.ends_with(" 0")), "{gauge} in {shown}");
    }
    metrics.leader(true);
    assert_eq!(metrics.term(), Some(1));
    tokio::time::advance(Duration::from_secs(10)).await;
    let shown = look(&metrics);
    for line in [
        "carto_owners{kind=\"Workload\",ready=\"True\",reason=\"Ready\"} 7",
        "carto_queue_depth{lane=\"progress\",queue=\"owners\"} 3",
        // Nobody waited for it before it led.
        "carto_queue_oldest_seconds{lane=\"progress\",queue=\"owners\"} 10",
        "carto_queue_oldest_seconds{lane=\"fresh\",queue=\"owners\"} 2",
    ] {
        assert!(
            shown.lines().any(|it| it == line),
            "missing {line} in\n{shown}"
        );
    }
    metrics.leader(false);
    metrics.leader(true);
    assert_eq!(metrics.term(), Some(2));
}

#[test]
fn a_timer_counts_even_when_the_reconcile_panics() {
    let metrics = Arc::new(Metrics::new());
    let counted = metrics.clone();
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _timer = counted.reconcile_timer("Workload");
        panic!("poisoned");
    }));
    metrics.reconcile_timer("Workload").outcome("settled");
    drop(metrics.reconcile_timer("Workload"));
    let text = text(&metrics);
    for outcome in ["panicked", "settled", "interrupted"] {
        let line = format!("carto_reconcile_total{{kind=\"Workload\",outcome=\"{outcome}\"}} 1");
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn a_controller_adds_metrics_of_its_own() {
    let metrics = Metrics::new();
    let calls = metrics.build().counters(
        "carto_convention_calls_total",
        "Calls of conventions by how they ended.",
        &["outcome"],
    );
    let cached = metrics
        .build()
        .gauge("carto_images_cached", "Images that are known.");
    metrics.before_gather(move |_| cached.set(7));
    calls.with_label_values(&["failed"]).inc();
    let text = text(&metrics);
    for line in [
        "carto_convention_calls_total{outcome=\"failed\"} 1",
        "carto_images_cached 7",
        "carto_reconcile_panics_total 0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}
