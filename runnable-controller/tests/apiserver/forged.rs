//! What a tenant can write on runs decides nothing, and runs that somebody else deletes are not run again.

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::{History, NOTHING, PATIENCE, forged_copy};

use crate::stage::{end, open, outputs, revision, runs};

const TESTS: &str = "test.run/v1alpha1";

#[tokio::test]
async fn a_run_that_a_tenant_makes_replaces_none_that_is_due() {
    let stage = open("").await;
    let tenant = stage.tenant().await;
    let first = runs(&stage, 1).await.remove(0);
    end(&stage, &first, "True", "one").await;
    outputs(&stage, json!({"result": "one"})).await;
    stage.settle("app").await;
    let run = stage.tests().await.remove(0);
    let mut forged = forged_copy(&run, "forged");
    forged["spec"]["value"]["revision"] = json!("forged");
    tenant.create(forged).await.unwrap();
    // He cannot write its status; whoever reports on runs in his place could.
    end(&stage, "forged", "True", "forged").await;
    stage.reconcile("app").await;
    stage.settle("app").await;
    outputs(&stage, json!({"result": "one"})).await;

    stage.edit_owner("app", revision("b")).await;
    let due = eventually("the run that is due is made", PATIENCE, async || {
        let runs = stage.tests().await;
        runs.into_iter()
            .find(|run| run["spec"]["value"]["revision"] == "b")
    })
    .await;
    let name = due["metadata"]["name"].as_str().unwrap();
    end(&stage, name, "True", "two").await;
    outputs(&stage, json!({"result": "two"})).await;
    stage.settle("app").await;
    let status = stage.owner("app").await["status"].to_string();
    assert!(!status.contains("forged"), "{status}");
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

#[tokio::test]
async fn a_run_that_ended_is_not_run_again_when_it_is_deleted_not_even_by_the_next_process() {
    let mut stage = open("").await;
    let history = History::of_tests(&stage).await;
    let first = runs(&stage, 1).await.remove(0);
    end(&stage, &first, "True", "one").await;
    outputs(&stage, json!({"result": "one"})).await;
    stage.settle("app").await;
    let before = stage.owner("app").await["status"].clone();
    stage.delete(TESTS, "Test", &first).await;
    stage.reconcile("app").await;
    stage.settle("app").await;
    stage.kill_controller();
    stage.start_controller();
    stage.reconcile("app").await;
    stage.settle("app").await;
    assert_eq!(stage.owner("app").await["status"], before);
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    assert_eq!(stage.tests().await, [] as [Value; 0]);

    // It ends and goes in the same moment.
    stage.edit_owner("app", revision("b")).await;
    let next = runs(&stage, 1).await.remove(0);
    end(&stage, &next, "True", "two").await;
    stage.delete(TESTS, "Test", &next).await;
    outputs(&stage, json!({"result": "two"})).await;
    stage.settle("app").await;
    let counts = history.created_and_deleted(&stage).await;
    assert_eq!(counts, (2, 2), "each input was run once");
}
