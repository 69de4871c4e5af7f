//! Our controllers are killed while commits arrive, without Pods: the minute that every run of the tests has for it. With
//! Pods and for longer: `tests/node/killing.rs`.

use std::time::Duration;

use e2e::full_path::FullPath;
use e2e::full_path::killing::{Killing, commits_arrive};
use e2e::full_path::stand_in::{self, WITHOUT_PODS};
use e2e::path_stack::PathStack;

/// For the first commit, on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);

#[tokio::test]
async fn killing_controllers_while_commits_arrive_delays_and_never_corrupts() -> anyhow::Result<()>
{
    let stack = PathStack::start(|_| {}).await?;
    stand_in::install(&stack).await?;
    let (path, first) = FullPath::hand_in(&stack, WITHOUT_PODS).await?;
    let killing = Killing {
        seed: 20,
        length: Duration::from_secs(30),
    };
    let scenario = async {
        path.arrives(&first, LIMIT).await;
        commits_arrive(&path, killing).await
    };
    tokio::select! {
        report = scenario => println!("{:?}", report?),
        ended = stand_in::work(&path) => anyhow::bail!("what stands in for Jobs has ended: {ended:?}"),
    }
    Ok(())
}
