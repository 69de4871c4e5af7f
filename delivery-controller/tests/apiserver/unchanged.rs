//! What is as rendered causes no request (design, invariants 5 and 6), for Deliverables, too.

use serde_json::json;

use crate::deployment::{done, with_completion};
use crate::stage::{DELIVERABLE, NOTHING, open, sunk};

#[tokio::test]
async fn a_settled_deliverable_causes_no_request_and_a_restart_no_write() {
    let mut stage = open().await;
    stage.apply(&with_completion()).await;
    stage.apply(DELIVERABLE).await;
    stage
        .until("app", "the deployment is stamped", |owner| {
            crate::stage::step(owner, "deploy")["stampedRef"]["name"] == "app-deployment"
        })
        .await;
    stage.report("app-deployment", done(1, "True")).await;
    let settled = stage.ready("app", "True", "Ready").await;
    sunk(&stage, "app", "main").await;
    assert_eq!(stage.traffic_of_reconciles("app", 5).await, NOTHING);
    assert_eq!(stage.owner("app").await["status"], settled["status"]);

    let writes = stage.writes();
    stage.kill_controller();
    stage.start_controller();
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    assert_eq!(stage.writes(), writes, "a restart writes nothing");
    assert_eq!(stage.owner("app").await["status"], settled["status"]);

    // What a restart would have missed is seen by the watches that were started anew.
    let failed =
        json!({"observedGeneration": 1, "conditions": [{"type": "Failed", "status": "True"}]});
    stage.report("app-deployment", failed).await;
    stage.ready("app", "False", "FailedConditionMet").await;
}
