//! How fast PodIntents are decorated anew that have what they need.

use std::time::{Duration, Instant};

use serde_json::json;
use test_support::eventually;
use test_support::stage::PATIENCE;

use crate::stage::{applied, intent, open_with_env, start};

const MANY: usize = 6;

#[tokio::test]
async fn what_changed_while_no_controller_ran_reaches_a_fleet_at_the_pace_of_the_flag() {
    let (mut stage, webhook) = open_with_env().await;
    for index in 0..MANY {
        let name = format!("app{index}");
        stage.apply(&intent(&name, "web")).await;
        applied(&stage, &name).await;
    }
    stage.idle().await;
    stage.kill_controller();
    let revision = json!({"metadata": {"annotations": {"conventions.carto.run/revision": "2"}}});
    stage.edit_convention("add-env", revision).await;
    stage.apply(&intent("new", "web")).await;

    let began = Instant::now();
    start(&mut stage, &["--convention-rollout-per-second=1"]);
    applied(&stage, "new").await;
    eventually("all are decorated anew", PATIENCE, async || {
        let asked = webhook.asked();
        if asked.len() > 2 * MANY {
            Ok(())
        } else {
            Err(asked)
        }
    })
    .await;
    // The first one at once, and each other one a second later.
    let least = Duration::from_secs(u64::try_from(MANY - 1).unwrap());
    assert!(began.elapsed() >= least, "{:?}", began.elapsed());
    let asked = webhook.asked();
    let of_new = asked.iter().position(|it| it == "new-add-env");
    assert!(
        of_new < Some(2 * MANY),
        "who has nothing yet does not wait: {asked:?}"
    );
    stage.idle().await;
    assert_eq!(webhook.asked().len(), 2 * MANY + 1);
}
