//! Our controllers are killed for five minutes while commits arrive and Jobs run.

use std::time::Duration;

use e2e::full_path::killing::{Killing, commits_arrive};
use e2e::full_path::{FullPath, WITH_PODS};
use e2e::path_stack::PathStack;

const LIMIT: Duration = Duration::from_mins(2);
/// Seconds, in place of five minutes.
const LENGTH: &str = "CARTO_KILLING_SECONDS";

#[tokio::test]
async fn killing_controllers_while_jobs_run_delays_and_never_corrupts() -> anyhow::Result<()> {
    let stack = PathStack::start_with_node(|_| {}).await?;
    let (path, first) = FullPath::hand_in(&stack, WITH_PODS).await?;
    path.arrives(&first, LIMIT).await;
    let killing = Killing {
        seed: 5,
        length: length()?,
    };
    println!("{:?}", commits_arrive(&path, killing).await?);
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the person at the machine may have less time"
)]
fn length() -> anyhow::Result<Duration> {
    match std::env::var(LENGTH) {
        Ok(seconds) => Ok(Duration::from_secs(seconds.parse()?)),
        Err(_) => Ok(Duration::from_mins(5)),
    }
}
