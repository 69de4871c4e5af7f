//! Manifests written for the Go controller apply unchanged.

use std::collections::BTreeMap;

use api_types::validation::validate;
use api_types::{ProvenanceInput, Update, UpdateBasis, UpdateDeployment};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use test_support::worked_example::{CHAIN, WORKLOAD};

use crate::schemas::server;
use crate::server::{collection, crd};

/// A spec with the defaults that the API server fills in.
fn with_defaults(kind: &str, spec: &Value) -> Value {
    let mut spec = spec.clone();
    let mut default = |field: &str, value: Value| {
        spec.as_object_mut().unwrap().entry(field).or_insert(value);
    };
    match kind {
        "Runnable" => default(
            "retentionPolicy",
            json!({"maxFailedRuns": 10, "maxSuccessfulRuns": 10}),
        ),
        "ClusterRunTemplate" => {}
        template if template.ends_with("Template") => default("lifecycle", json!("mutable")),
        _ => {}
    }
    spec
}

/// Every document is taken as it stands: by the API server, which warns about nothing and keeps each field, and by the
/// rules of admission, which the webhook serves.
async fn apply_unchanged(text: &str, count: usize) {
    let server = server().await;
    let documents = test_support::documents(text).unwrap();
    assert_eq!(documents.len(), count);
    for document in documents {
        let kind = document["kind"].as_str().unwrap();
        let collection = collection(&crd(kind));
        let reply = server
            .create(&format!("{collection}?fieldValidation=Strict"), &document)
            .await;
        assert!(reply.is_success(), "{kind}: {reply:?}");
        assert_eq!(reply.warnings, Vec::<String>::new());
        let name = document["metadata"]["name"].as_str().unwrap();
        let stored = server.get(&format!("{collection}/{name}")).await.body;
        let expected = with_defaults(kind, &document["spec"]);
        assert_eq!(stored["spec"], expected, "{kind} {name}");
        let verdict = validate(kind, &stored);
        assert_eq!(verdict.error, None, "{kind} {name}");
        // An account that is lent to every namespace is allowed, as it always was, and worth a word.
        let others = verdict.warnings.iter();
        let mut others = others.filter(|warning| !warning.contains("is lent to every namespace"));
        assert_eq!(others.next(), None, "{kind} {name}");
    }
}

#[tokio::test]
async fn the_smallest_chain_applies_unchanged() {
    apply_unchanged(&[CHAIN, "---\n", WORKLOAD].concat(), 4).await;
}

#[tokio::test]
async fn runs_and_their_retention_apply_unchanged() {
    apply_unchanged(include_str!("examples/runs.yaml"), 3).await;
}

#[tokio::test]
async fn selectors_by_fields_and_options_apply_unchanged() {
    apply_unchanged(include_str!("examples/selectors.yaml"), 5).await;
}

#[tokio::test]
async fn templates_of_other_projects_kinds_apply_unchanged() {
    apply_unchanged(include_str!("examples/other-projects.yaml"), 12).await;
}

/// The steady state of docs/behaviour/examples.md#smallest-chain, as our types write it.
#[tokio::test]
async fn the_status_of_the_smallest_chain_is_stored_as_written() {
    use api_types::runnable::RunResult;
    use api_types::{
        AppliedObject, ArtifactReference, BlueprintRef, Condition, ConditionStatus, ConditionType,
        InputStatus, OutputStatus, OwnerSummary, Provenance, ProvenanceObject, Reason,
        ResourceStatus, StampedRef, StampedRun, SummaryState, TemplateRef, UnderWay, UpdateStack,
        WorkloadStatus,
    };
    use k8s_openapi::jiff::Timestamp;

    let server = server().await;
    let path = "/apis/carto.run/v1alpha1/namespaces/default/workloads";
    let workload = json!({"apiVersion": "carto.run/v1alpha1", "kind": "Workload", "metadata": {"name": "stored"}, "spec": {}});
    assert!(server.create(path, &workload).await.is_success());
    let now = Time(Timestamp::from_second(1_700_000_000).unwrap());
    let condition =
        |type_, reason: Reason| Condition::new(type_, ConditionStatus::True, &reason, "", &now);
    let status = WorkloadStatus {
        observed_generation: Some(1),
        supply_chain_ref: BlueprintRef::new("ClusterSupplyChain", "chain"),
        conditions: vec![
            condition(ConditionType::SupplyChainReady, Reason::Ready),
            condition(
                ConditionType::ResourcesSubmitted,
                Reason::ResourceSubmissionComplete,
            ),
            condition(
                ConditionType::ResourcesHealthy,
                Reason::HealthyConditionRule,
            ),
            condition(ConditionType::Ready, Reason::Ready),
        ],
        resources: vec![ResourceStatus {
            name: "publish".into(),
            stamped_ref: Some(StampedRef {
                api_version: Some("v1".into()),
                kind: Some("ConfigMap".into()),
                name: Some("app-sink".into()),
                namespace: Some("ns".into()),
                resource: Some("configmaps".into()),
                ..StampedRef::default()
            }),
            template_ref: Some(TemplateRef::new("ClusterTemplate", "sink")),
            inputs: vec![InputStatus {
                name: "fetch".into(),
            }],
            outputs: vec![OutputStatus {
                name: "url".into(),
                preview: "x\n".into(),
                digest: "sha256:0".into(),
                last_transition_time: now.clone(),
                current: Some(true),
                value: Some("x".into()),
                provenance: Some(Provenance {
                    identity: "0123456789abcdef0123456789abcdef".into(),
                    accepted: now.clone(),
                    object: ProvenanceObject {
                        uid: "u".into(),
                        generation: Some(1),
                    },
                    template: "t".into(),
                    read_from: "r".into(),
                    params: "p".into(),
                    inputs: vec![ProvenanceInput {
                        name: "fetch".into(),
                        identity: "i".into(),
                    }],
                    foreign_fields: vec!["spec.replicas".into()],
                }),
            }],
            under_way: Some(UnderWay {
                since: now.clone(),
                inputs: vec![ProvenanceInput {
                    name: "fetch".into(),
                    identity: "i".into(),
                }],
            }),
            updates: Some(UpdateStack {
                newest: 2,
                newest_digest: Some("sha256:1".into()),
                failure: Some("it did not build".into()),
                read_from: "r".into(),
                applied: update(1, now.clone()),
                waiting: vec![update(2, now.clone())],
            }),
            artifacts: vec![ArtifactReference {
                name: "workload-stored-publish-0".into(),
                identity: "0123456789abcdef0123456789abcdef".into(),
                accepted: now.clone(),
                bytes: 20_000,
                digest: "0123456789abcdef0123456789abcdef".into(),
            }],
            conditions: vec![condition(
                ConditionType::Healthy,
                Reason::condition("example.com/Ready"),
            )],
            applied: Some(AppliedObject {
                uid: "u".into(),
                state: Some("0123456789abcdef0123456789abcdef".into()),
                beside: Some(vec!["0123456789abcdef".into()]),
                values: Some("0123456789abcdef0123456789abcdef".into()),
                doubtful: vec!["0123456789abcdef0123456789abcdef".into()],
                good_by: Some("0123456789abcdef0123456789abcdef".into()),
            }),
            runs: vec![StampedRun {
                name: "app-1".into(),
                uid: "u".into(),
                digest: Some("sha256:0".into()),
                sequence: 9_223_372_036_854_775_807,
                state: Some("0123456789abcdef0123456789abcdef".into()),
                beside: Some(vec!["0123456789abcdef".into()]),
                result: RunResult::Succeeded,
                outputs: [("image".to_owned(), serde_json::json!({"any": [1, {}]}))].into(),
            }],
        }],
        pending_removals: vec![StampedRef {
            uid: Some("u".into()),
            ..StampedRef::default()
        }],
        stamped_for: vec!["Workload/first".into()],
        summary: Some(OwnerSummary {
            state: SummaryState::Failing,
            step: Some("publish".into()),
            object: Some("configmaps/app-sink".into()),
            reason: "TemplateRejectedByAPIServer".into(),
            message: "m".into(),
            next: Some("n".into()),
            since: now.clone(),
        }),
    };
    let status = serde_json::to_value(status).unwrap();
    let reply = server
        .patch(&format!("{path}/stored/status"), &json!({"status": status}))
        .await;
    assert!(reply.is_success(), "{reply:?}");
    assert_eq!(reply.body["status"], status);
}

fn update(number: u64, since: Time) -> Update {
    Update {
        number,
        since,
        digest: "sha256:0".into(),
        rendering: Some("{}".into()),
        made_from: UpdateBasis {
            template: "t".into(),
            params: "p".into(),
            inputs: vec![ProvenanceInput {
                name: "fetch".into(),
                identity: "i".into(),
            }],
            context: BTreeMap::from([("source.revision".to_owned(), "1".into())]),
            deployment: Some(UpdateDeployment {
                url: "u".into(),
                revision: "1".into(),
            }),
        },
    }
}
