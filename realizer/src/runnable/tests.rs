use std::collections::BTreeSet;

use serde_json::json;

use super::attempt::{Attempts, backoff};
use super::*;

fn runnable(spec: &Value) -> Result<Runnable, OwnerError> {
    Runnable::parse(Arc::new(json!({
        "metadata": {"namespace": "ns", "name": "n", "uid": "u", "generation": 4}, "spec": spec})))
}

#[test]
fn what_is_not_given_has_its_default() {
    let runnable = runnable(&json!({"runTemplateRef": {"name": "t"}})).unwrap();
    assert_eq!(runnable.generation, 4);
    assert_eq!(runnable.attempts, 1);
    assert_eq!(runnable.backoff, Duration::from_secs(10));
    assert_eq!(runnable.concurrency, Concurrency::Allow);
    assert_eq!(runnable.retention, RetentionPolicy::default());
    assert_eq!(runnable.rerun, None);
    assert_eq!(runnable.service_account("usual"), ("ns", "usual"));
    assert!(runnable.previous_refs().is_empty());
}

#[test]
fn attempts_stay_within_what_the_schema_allows() {
    for (given, attempts) in [(0, 1), (1, 1), (20, 20), (21, 20)] {
        let runnable = runnable(&json!({"retry": {"maxAttempts": given}})).unwrap();
        assert_eq!(runnable.attempts, attempts, "{given}");
    }
}

#[test]
fn an_object_that_no_server_holds_is_not_read() {
    assert!(Runnable::parse(Arc::new(json!({"metadata": {"name": "n", "uid": "u"}}))).is_err());
    assert!(runnable(&json!({"runTemplateRef": 1})).is_err());
    assert!(runnable(&json!({"concurrency": "Never"})).is_err());
}

#[test]
fn a_status_that_cannot_be_read_counts_as_empty() {
    let object = json!({"metadata": {"namespace": "ns", "name": "n", "uid": "u"},
        "status": {"conditions": 1, "outputs": {"a": null}, "runs": "x"}});
    let runnable = Runnable::parse(Arc::new(object)).unwrap();
    assert!(runnable.status.conditions.is_empty() && runnable.status.runs.is_empty());
    assert_eq!(runnable.status.outputs["a"], Value::Null);
}

#[test]
fn every_attempt_and_every_rerun_has_a_digest_of_its_own() {
    let rendering = "sha256:0";
    let reruns = [
        None,
        Some(""),
        Some("1"),
        Some("1/retry/2"),
        Some("1\"/retry/2"),
    ];
    let mut digests = BTreeSet::new();
    for rerun in reruns {
        let attempts = Attempts::of(rendering, rerun);
        for number in 1..=MOST_ATTEMPTS {
            let digest = attempts.digest(number);
            assert_eq!(attempts.number(digest), Some(number));
            digests.insert(digest.to_owned());
        }
    }
    assert_eq!(digests.len(), reruns.len() * MOST_ATTEMPTS as usize);
    // What the rendering of any other immutable object has: a takeover finds it.
    assert_eq!(Attempts::of(rendering, None).digest(1), rendering);
}

#[test]
fn waiting_doubles_up_to_an_hour_and_never_overflows() {
    let seconds = |first, number| backoff(Duration::from_secs(first), number).as_secs();
    assert_eq!([1, 2, 3].map(|number| seconds(10, number)), [10, 20, 40]);
    assert_eq!(seconds(10, 20), 3600);
    assert_eq!(seconds(u64::MAX, 20), 3600);
    assert_eq!(seconds(0, 5), 0);
}
