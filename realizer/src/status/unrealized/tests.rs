#![expect(
    clippy::needless_pass_by_value,
    reason = "fixtures are written where they are used"
)]

use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::Family;

fn owner(family: Family, status: Value) -> Owner {
    let object = json!({
        "metadata": {"namespace": "ns", "name": "app", "uid": "u", "generation": 3, "labels": {"b": "2", "a": "1"}},
        "status": status,
    });
    Owner::parse(family, Arc::new(object)).unwrap()
}

fn blueprint(family: Family, ready: Option<(&str, &str)>) -> Blueprint {
    let conditions: Vec<Value> = ready
        .iter()
        .map(|(reason, message)| {
            json!({
                "type": "Ready", "status": "False", "reason": reason, "message": message,
                "lastTransitionTime": "2024-01-01T00:00:00Z",
            })
        })
        .collect();
    let object = json!({
        "metadata": {"name": "bp"}, "spec": {"resources": [], "serviceAccountRef": {"name": "sa", "namespace": "builds"}},
        "status": {"conditions": conditions},
    });
    Blueprint::compile(family, &object).unwrap()
}

fn builds_sa() -> (String, String) {
    ("builds".to_owned(), "sa".to_owned())
}

fn now() -> Timestamp {
    "2024-05-01T10:00:00Z".parse().unwrap()
}

fn conditions(outcome: &Outcome) -> Vec<String> {
    outcome.status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        // Those for tools that wait come last, and have a test of their own.
        .filter(|condition| condition["type"] != "Reconciling" && condition["type"] != "Stalled")
        .map(|condition| {
            let text = |field: &str| condition[field].as_str().unwrap();
            format!(
                "{} {} {} {}",
                text("type"),
                text("status"),
                text("reason"),
                text("message")
            )
            .trim()
            .to_owned()
        })
        .collect()
}

#[test]
fn every_early_exit_has_its_conditions() {
    use Family::{Delivery, SupplyChain};
    let (chain, delivery) = (blueprint(SupplyChain, None), blueprint(Delivery, None));
    let broken = blueprint(SupplyChain, Some(("TemplatesNotFound", "did not find")));
    let text = |text: &str| text.to_owned();
    let cases = [
        (
            SupplyChain,
            Unrealized::LabelsMissing,
            vec![
                "SupplyChainReady False WorkloadLabelsMissing workload has no labels to match to supply chain",
            ],
            Retry::AwaitChange,
        ),
        (
            Delivery,
            Unrealized::LabelsMissing,
            vec![
                "DeliveryReady False DeliverableLabelsMissing deliverable has no labels to match to delivery",
            ],
            Retry::AwaitChange,
        ),
        (
            SupplyChain,
            Unrealized::NotFound(None),
            vec![
                "SupplyChainReady False SupplyChainNotFound no supply chain found where full selector is satisfied by \
                 labels: map[a:1 b:2]",
            ],
            Retry::AwaitChange,
        ),
        (
            Delivery,
            Unrealized::NotFound(None),
            vec![
                "DeliveryReady False DeliveryNotFound no delivery found where full selector is satisfied by labels: map[a:1 b:2]",
            ],
            Retry::AwaitChange,
        ),
        (
            SupplyChain,
            Unrealized::Multiple(vec![text("x"), text("y")]),
            vec![
                "SupplyChainReady False MultipleSupplyChainMatches workload may only match a single supply chain's selector",
            ],
            Retry::AwaitChange,
        ),
        (
            Delivery,
            Unrealized::Multiple(vec![text("x"), text("y")]),
            vec![
                "DeliveryReady False MultipleDeliveryMatches deliverable may only match a single delivery's selector",
            ],
            Retry::AwaitChange,
        ),
        (
            SupplyChain,
            Unrealized::NamespaceNotAllowed(
                &chain,
                text("its label [team] must be there, but is not there"),
            ),
            vec![
                "SupplyChainReady False NamespaceNotAllowed supply chain [bp] takes no workload of namespace [ns]: its label \
                 [team] must be there, but is not there; have a cluster administrator label the namespace as \
                 spec.allowedNamespaces of the supply chain asks, or select another supply chain. What is there stays as it is",
            ],
            Retry::AwaitChange,
        ),
        (
            Delivery,
            Unrealized::LentAccountRefused(&delivery, builds_sa()),
            vec![
                "DeliveryReady True Ready",
                "ResourcesSubmitted False LentAccountRefused nothing is stamped, because delivery [bp] lends service account [sa] \
                 of namespace [builds], and this controller takes none of another namespace than the deliverable's \
                 (--no-lent-accounts); name a service account of namespace [ns] in spec.serviceAccountName",
            ],
            Retry::AwaitChange,
        ),
        (
            SupplyChain,
            Unrealized::BlueprintUnreadable(text("why")),
            vec![],
            Retry::Backoff,
        ),
        (
            SupplyChain,
            Unrealized::BlueprintNotReady(&broken),
            vec!["SupplyChainReady False TemplatesNotFound did not find"],
            Retry::AwaitChange,
        ),
        (
            SupplyChain,
            Unrealized::StampedTooDeep(&chain, 0),
            vec![
                "SupplyChainReady True Ready",
                "ResourcesSubmitted False StampedTooDeep nothing is stamped, because this is owner 1 in a row that was \
                 stamped for the one before it, and 0 may follow the first: Workload/app; a template stamps what it is \
                 stamped for itself: mend it, and delete the first of them",
            ],
            Retry::AwaitChange,
        ),
        (
            Delivery,
            Unrealized::TooLarge(&delivery, 300 * 1024 + 1, 256 * 1024),
            vec![
                "DeliveryReady True Ready",
                "ResourcesSubmitted False OwnerTooLarge nothing is stamped, because the deliverable has 301 KiB without its \
                 status, and 256 KiB are allowed; move data into an object that it refers to",
            ],
            Retry::AwaitChange,
        ),
        (
            Delivery,
            Unrealized::BlueprintNotReady(&delivery),
            vec!["DeliveryReady False Unknown"],
            Retry::AwaitChange,
        ),
        (
            SupplyChain,
            Unrealized::ServiceAccount(
                &chain,
                builds_sa(),
                text("ServiceAccount \"sa\" not found"),
            ),
            vec![
                "SupplyChainReady True Ready",
                "ResourcesSubmitted False ServiceAccountError failed to get service account object from api server \
                 [builds/sa]: failed to get object [builds/sa] from api server: ServiceAccount \"sa\" not found",
            ],
            Retry::Slow,
        ),
        (
            Delivery,
            Unrealized::ServiceAccountToken(&delivery, text("fetch token: forbidden")),
            vec![
                "DeliveryReady True Ready",
                "ResourcesSubmitted False ServiceAccountTokenError fetch token: forbidden",
            ],
            Retry::Slow,
        ),
        (
            SupplyChain,
            Unrealized::Unavailable(&chain, text("fetch token: no answer within 15 s")),
            vec![
                "SupplyChainReady True Ready",
                "ResourcesSubmitted False APIServerUnavailable fetch token: no answer within 15 s",
            ],
            Retry::Backoff,
        ),
    ];
    for (family, why, expected, retry) in cases {
        let label = format!("{why:?}");
        let outcome = report_unrealized(&owner(family, json!({})), why, now());
        let mut got = conditions(&outcome);
        let ready = got.pop().unwrap();
        assert_eq!(got, expected, "{label}");
        let deciding = expected
            .last()
            .map_or("Unknown Unknown", |last| last.split_once(' ').unwrap().1);
        assert_eq!(ready, format!("Ready {deciding}"), "{label}");
        assert_eq!(outcome.retry, retry, "{label}");
        assert_eq!(outcome.status["observedGeneration"], 3, "{label}");
        assert!(outcome.changed && outcome.removals.is_empty(), "{label}");
    }
}

#[test]
fn tools_that_wait_see_whether_somebody_has_to_do_something() {
    let chain = blueprint(Family::SupplyChain, None);
    let cases = [
        (Unrealized::LabelsMissing, "Stalled"),
        (Unrealized::NotFound(None), "Reconciling"),
        (Unrealized::Multiple(vec!["x".to_owned()]), "Stalled"),
        (Unrealized::BlueprintUnreadable("why".to_owned()), "Stalled"),
        (Unrealized::BlueprintNotReady(&chain), "Reconciling"),
        (
            Unrealized::ServiceAccount(&chain, builds_sa(), "x".to_owned()),
            "Stalled",
        ),
        (
            Unrealized::Unavailable(&chain, "x".to_owned()),
            "Reconciling",
        ),
    ];
    for (why, expected) in cases {
        let label = format!("{why:?}");
        let outcome = report_unrealized(&owner(Family::SupplyChain, json!({})), why, now());
        let conditions = outcome.status["conditions"].as_array().unwrap();
        let [.., ready, last] = &conditions[..] else {
            panic!("{label}");
        };
        assert_eq!(
            (&ready["type"], &last["type"]),
            (&json!("Ready"), &json!(expected)),
            "{label}"
        );
        assert_eq!(
            (&last["status"], &last["reason"]),
            (&json!("True"), &ready["reason"]),
            "{label}"
        );
        let summary = &outcome.status["summary"];
        let state = if expected == "Stalled" {
            "Failing"
        } else {
            "Waiting"
        };
        assert_eq!(
            (&summary["state"], &summary["reason"]),
            (&json!(state), &ready["reason"]),
            "{label}"
        );
        assert_eq!(summary["message"], last["message"], "{label}");
        assert_eq!(summary["step"], Value::Null, "{label}");
    }
}

#[test]
fn what_was_realized_before_stays_in_status() {
    let resources = json!([{"name": "one", "stampedRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}}]);
    let pending = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "y", "resource": "configmaps", "uid": "u"}]);
    let status = json!({
        "supplyChainRef": {"kind": "ClusterSupplyChain", "name": "old"}, "resources": resources, "pendingRemovals": pending,
        "conditions": [{"type": "DeletionPending", "status": "True", "reason": "DeletionPending", "message": "m",
            "lastTransitionTime": "2024-01-01T00:00:00Z"}],
    });
    let owner = owner(Family::SupplyChain, status);
    let outcome = report_unrealized(&owner, Unrealized::NotFound(None), now());
    assert_eq!(outcome.status["supplyChainRef"]["name"], "old");
    assert_eq!(outcome.status["resources"], resources);
    assert_eq!(outcome.status["pendingRemovals"], pending);
    assert_eq!(
        conditions(&outcome).last().unwrap(),
        "DeletionPending True DeletionPending m"
    );
    let chain = blueprint(Family::SupplyChain, None);
    let outcome = report_unrealized(&owner, Unrealized::BlueprintNotReady(&chain), now());
    assert_eq!(
        outcome.status["supplyChainRef"],
        json!({"kind": "ClusterSupplyChain", "name": "bp"})
    );
    assert_eq!(outcome.status["resources"], resources);
}

#[test]
fn saying_the_same_again_changes_nothing() {
    let chain = blueprint(Family::SupplyChain, None);
    for why in [
        Unrealized::LabelsMissing,
        Unrealized::Multiple(vec!["x".to_owned()]),
        Unrealized::BlueprintUnreadable("why".to_owned()),
        Unrealized::BlueprintNotReady(&chain),
        Unrealized::ServiceAccount(&chain, builds_sa(), "x".to_owned()),
    ] {
        let first = report_unrealized(&owner(Family::SupplyChain, json!({})), why.clone(), now());
        let later = now().checked_add(jiff::Span::new().hours(1)).unwrap();
        let second = report_unrealized(
            &owner(Family::SupplyChain, first.status.clone()),
            why.clone(),
            later,
        );
        assert!(!second.changed, "{why:?}");
        assert_eq!(second.status, first.status, "{why:?}");
        assert!(second.events.is_empty(), "{why:?}");
    }
}

#[test]
fn warnings_are_for_what_somebody_has_to_fix() {
    let chain = blueprint(Family::SupplyChain, None);
    let cases = [
        (Unrealized::LabelsMissing, None),
        (Unrealized::NotFound(None), None),
        (Unrealized::NotFound(Some("why".to_owned())), Some("why")),
        (Unrealized::BlueprintNotReady(&chain), None),
        (
            Unrealized::Multiple(vec!["x".to_owned(), "y".to_owned()]),
            Some("workload may only match a single supply chain's selector: x, y"),
        ),
        (
            Unrealized::BlueprintUnreadable("why".to_owned()),
            Some("why"),
        ),
        (
            Unrealized::ServiceAccountToken(&chain, "fetch token: x".to_owned()),
            Some("fetch token: x"),
        ),
    ];
    for (why, expected) in cases {
        let outcome = report_unrealized(&owner(Family::SupplyChain, json!({})), why, now());
        let told: Vec<_> = outcome
            .events
            .iter()
            .map(|event| event.message.as_str())
            .collect();
        assert_eq!(told, expected.into_iter().collect::<Vec<_>>());
        assert!(
            outcome
                .events
                .iter()
                .all(|event| event.warning && !event.immediate)
        );
    }
}
