//! examples/staging-delivery with real Flux. There is no node: the test plays the Job controller's part.

use anyhow::ensure;
use e2e::path_stack::{CONTROLLERS, PathStack};
use e2e::stack::forbidden_requests;
use e2e::staging::StagingDelivery;
use serde_json::Value;
use test_support::eventually;

use crate::LIMIT;

const INTEGRATION: &str = "staging-delivery-integration-test";
const PERFORMANCE: &str = "staging-delivery-performance-test";
const PROMOTION: &str = "staging-delivery-promotion";

#[tokio::test]
async fn each_commit_is_tested_alone_in_the_environment_and_only_good_ones_are_promoted() {
    let stack = PathStack::start(|_| {}).await.unwrap();
    let staging = StagingDelivery::prepare(&stack).await.unwrap();
    let first = staging.commit("Hello").unwrap();
    staging.hand_in().await.unwrap();
    passes(&staging, INTEGRATION, &first).await;
    let performance = job(&staging, PERFORMANCE, &first).await;
    assert_eq!(deployed(&staging).await, expected("Hello", &first));

    // While the performance test runs.
    let second = staging.commit("Moin").unwrap();
    let waits = |revision: &str| format!("<{revision}: Succeeded Running");
    until_told(&staging, &first, &waits(&second)).await;
    let third = staging.commit("Servus").unwrap();
    until_told(&staging, &first, &waits(&third)).await;
    assert_eq!(deployed(&staging).await, expected("Hello", &first));
    assert_eq!(staging.jobs(PROMOTION).await.unwrap(), []);

    staging.end_job(&performance, true).await.unwrap();
    passes(&staging, PROMOTION, &first).await;

    // The newest is next, the one between never was deployed; it fails.
    let integration = job(&staging, INTEGRATION, &third).await;
    assert_eq!(deployed(&staging).await, expected("Servus", &third));
    staging.end_job(&integration, false).await.unwrap();
    until_told(&staging, &third, "<-: Failed Skipped").await;
    let deliverable = staging.deliverable().await.unwrap();
    let submitted = condition(&deliverable, "ResourcesSubmitted");
    let message = submitted["message"].as_str().unwrap_or_default();
    assert_eq!(submitted["reason"], "ValidationFailed");
    assert!(
        message.contains(&third) && message.contains("[deploy]"),
        "{message}"
    );
    let revisions = revisions(&staging, PROMOTION).await;
    assert_eq!(revisions, [first.as_str()], "production stays");

    let fourth = staging.commit("Hej").unwrap();
    passes(&staging, INTEGRATION, &fourth).await;
    passes(&staging, PERFORMANCE, &fourth).await;
    passes(&staging, PROMOTION, &fourth).await;
    assert_eq!(deployed(&staging).await, expected("Hej", &fourth));
    eventually("the Deliverable is ready", LIMIT, async || {
        let deliverable = staging.deliverable().await?;
        let status = &deliverable["status"];
        ensure!(
            condition(&deliverable, "Ready")["status"] == "True",
            "{status:#}"
        );
        anyhow::Ok(())
    })
    .await;
    let tested = self::revisions(&staging, INTEGRATION).await;
    assert_eq!(tested, [first.as_str(), &third, &fourth]);
    let measured = self::revisions(&staging, PERFORMANCE).await;
    assert_eq!(measured, [first.as_str(), &fourth]);
    for controller in CONTROLLERS {
        let refused = forbidden_requests(&stack.control_plane, controller).unwrap();
        assert!(refused.is_empty(), "{controller} may not: {refused:#?}");
    }
}

/// Waits until the last Job of a Runnable is for this revision; its name.
async fn job(staging: &StagingDelivery<'_>, runnable: &str, revision: &str) -> String {
    eventually(
        &format!("{runnable} runs for {revision}"),
        LIMIT,
        async || {
            let jobs = staging.jobs(runnable).await?;
            let last = jobs.last().filter(|(_, of)| of == revision).cloned();
            let deliverable = staging.deliverable().await?;
            let status = &deliverable["status"];
            ensure!(last.is_some(), "{jobs:?}; {status:#}");
            Ok(last.map(|(name, _)| name))
        },
    )
    .await
}

async fn passes(staging: &StagingDelivery<'_>, runnable: &str, revision: &str) {
    let name = job(staging, runnable, revision).await;
    staging.end_job(&name, true).await.unwrap();
}

async fn revisions(staging: &StagingDelivery<'_>, runnable: &str) -> Vec<String> {
    let jobs = staging.jobs(runnable).await.unwrap();
    jobs.into_iter().map(|(_, revision)| revision).collect()
}

/// What the environment holds: the greeting, the commit that is pinned, the revision that Flux says is applied.
async fn deployed(staging: &StagingDelivery<'_>) -> [Option<String>; 3] {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let pinned = staging
        .object(
            "source.toolkit.fluxcd.io/v1",
            "GitRepository",
            "staging-delivery-staging",
        )
        .await
        .unwrap();
    let applied = staging
        .object(
            "kustomize.toolkit.fluxcd.io/v1",
            "Kustomization",
            "staging-delivery",
        )
        .await
        .unwrap();
    [
        staging.greeting().await.unwrap(),
        text(&pinned["spec"]["ref"]["commit"]),
        text(&applied["status"]["lastAppliedRevision"]),
    ]
}

fn expected(greeting: &str, revision: &str) -> [Option<String>; 3] {
    let commit = revision.rsplit(':').next().map(str::to_owned);
    [Some(greeting.to_owned()), commit, Some(revision.to_owned())]
}

/// Waits until status says of the environment that this is deployed and that waits, and of both environments the same
/// verdicts.
async fn until_told(staging: &StagingDelivery<'_>, deployed: &str, rest: &str) {
    eventually(&format!("{deployed} {rest}"), LIMIT, async || {
        let deliverable = staging.deliverable().await?;
        let environments = deliverable["status"]["environments"].clone();
        let (pinned, applied) = (&environments[0], &environments[1]);
        ensure!(
            pinned["deployed"]["revision"] == deployed
                && applied["deployed"]["revision"] == deployed
                && verdicts(pinned) == verdicts(applied)
                && rest
                    == format!(
                        "<{}: {}",
                        pinned["waiting"]["revision"].as_str().unwrap_or("-"),
                        verdicts(pinned)
                    ),
            "{environments:#}"
        );
        Ok(())
    })
    .await;
}

fn verdicts(environment: &Value) -> String {
    let told = environment["validations"].as_array().into_iter().flatten();
    let verdicts: Vec<&str> = told.filter_map(|told| told["verdict"].as_str()).collect();
    verdicts.join(" ")
}

fn condition(object: &Value, kind: &str) -> Value {
    test_support::stage::condition(&object["status"], kind)
}
