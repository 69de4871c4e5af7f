//! The owner of a node dies without a word.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, ensure};
use test_support::eventually;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::LIMIT;
use crate::traces::{Machine, NodeTraces};

#[tokio::test]
async fn killing_the_owner_with_sigkill_leaves_nothing_of_the_node() -> anyhow::Result<()> {
    let before = Machine::look()?;
    let mut owner = tokio::process::Command::new(env!("CARGO_BIN_EXE_cluster"))
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(owner.stdout.take().context("stdout")?).lines();
    let kubeconfig = lines.next_line().await?.context("no first line")?;
    ensure!(kubeconfig.starts_with("KUBECONFIG="), "{kubeconfig}");
    let node = lines.next_line().await?.context("no second line")?;
    let folder = PathBuf::from(node.strip_prefix("NODE=").context(node.clone())?);
    let traces = NodeTraces::of_the_running_one()?;
    assert_ne!(before, Machine::look()?);

    owner.kill().await?; // SIGKILL: no destructor, no signal handler.

    eventually("no process of the node is left", LIMIT, async || {
        let left = traces.left()?;
        ensure!(left.is_empty(), "{left:?}");
        anyhow::Ok(())
    })
    .await;
    eventually("the machine is as before", LIMIT, async || {
        let now = Machine::look()?;
        ensure!(now == before, "{}", before.difference(&now));
        anyhow::Ok(())
    })
    .await;
    eventually("the folder is gone", LIMIT, async || !folder.exists()).await;
    Ok(())
}
