//! examples/full-path, from a commit to a running Pod.

use std::time::Duration;

use anyhow::ensure;
use e2e::full_path::{FullPath, PASSING_TEST, WITH_PODS};
use e2e::path_stack::{CONTROLLERS, PathStack};
use e2e::stack::forbidden_requests;
use test_support::eventually;

/// From a commit to a running Pod: two Jobs, and Flux looks every second. It takes ten seconds; this is for a busy machine.
const LIMIT: Duration = Duration::from_mins(2);
/// What a Job says of itself when its container failed and is not to be tried again.
const JOB_FAILED: &str = "Job has reached the specified backoff limit";

#[tokio::test]
async fn a_commit_ends_as_a_running_pod_unless_it_fails_its_test() -> anyhow::Result<()> {
    let stack = PathStack::start_with_node(|_| {}).await?;
    let (path, first) = FullPath::hand_in(&stack, WITH_PODS).await?;
    path.arrives(&first, LIMIT).await;

    let second = path.commit("Moin", PASSING_TEST)?;
    path.arrives(&second, LIMIT).await;

    let rude = path.commit("Oops", "echo how rude >&2; exit 1\n")?;
    is_held_up(&path, &rude, &second).await?;

    let third = path.commit("Servus", PASSING_TEST)?;
    path.arrives(&third, LIMIT).await;
    let written = path.written()?;
    ensure!(
        written == [first, second, third],
        "written to the config repository: {written:#?}"
    );
    for controller in CONTROLLERS {
        let refused = forbidden_requests(&stack.control_plane, controller)?;
        ensure!(refused.is_empty(), "{controller} may not: {refused:#?}");
    }
    Ok(())
}

/// Waits until the Runnable and the Workload say why a revision goes no further, and sees that all else stays as it is.
async fn is_held_up(path: &FullPath<'_>, revision: &str, last_good: &str) -> anyhow::Result<()> {
    eventually("the failed test is reported", LIMIT, async || {
        let conditions = path.conditions("Ready").await?;
        let reported = |who: &str| {
            conditions.iter().any(|(name, condition)| {
                let message = condition["message"].as_str().unwrap_or_default();
                name == who && condition["status"] == "False" && message.contains(JOB_FAILED)
            })
        };
        ensure!(
            reported("Workload full-path") && reported("Runnable full-path-test"),
            "{conditions:#?}"
        );
        anyhow::Ok(())
    })
    .await;
    let hops = path.hops().await?;
    ensure!(hops[0].revision == revision, "{:?}", hops[0]);
    for hop in &hops[1..] {
        ensure!(hop.revision == last_good, "{hop:?}");
    }
    Ok(())
}
