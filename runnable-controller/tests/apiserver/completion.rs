//! Kinds that end in their own way.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use test_support::Stage;
use test_support::eventually;
use test_support::stage::PATIENCE;

use crate::stage::{CAST, runnable};

const JOBS: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterRunTemplate
metadata: {name: tests}
spec:
  healthRule:
    multiMatch:
      healthy: {matchConditions: [{type: Complete, status: 'True'}]}
      unhealthy: {matchConditions: [{type: Failed, status: 'True'}]}
  outputs: {succeeded: .status.succeeded}
  template:
    apiVersion: batch/v1
    kind: Job
    metadata: {generateName: $(runnable.metadata.name)$-}
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: busybox}]
";

#[tokio::test]
async fn a_job_succeeds_by_the_rule_of_the_template() {
    let stage = Stage::open(CAST).await;
    stage
        .grant(
            "jobs",
            "[{apiGroups: [batch], resources: [jobs], verbs: [get, list, create, patch, delete]}]",
        )
        .await;
    stage.apply(JOBS).await;
    stage.apply(&runnable("app", "")).await;
    let job = eventually("the job", PATIENCE, async || {
        stage.all("batch/v1", "Job").await.pop()
    })
    .await;
    stage.ready("app", "Unknown", "NoMatchesFulfilled").await;
    let name = job["metadata"]["name"].as_str().unwrap();
    let condition = |type_: &str| json!({"type": type_, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z",
        "succeeded": 1, "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]}});
    stage
        .api("batch/v1", "Job")
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    let ready = stage.ready("app", "True", "Ready").await;
    assert_eq!(ready["status"]["outputs"], json!({"succeeded": 1}));
    assert_eq!(
        ready["status"]["runs"][0]["finished"],
        "2026-01-01T00:00:00Z"
    );
}
