//! Runs a real control plane with a real node until it is interrupted: for a look by hand, and for the test that kills its
//! owner. Needs root.
//!
//! Prints `KUBECONFIG=PATH` and `NODE=FOLDER` once Pods can run.

use std::io::Write;

use test_support::{ControlPlane, Node};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let control_plane = ControlPlane::builder()
        .controller_manager(true)
        .extra_apiserver_args(Node::apiserver_flags()?)
        .start()
        .await?;
    let node = Node::start(&control_plane).await?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "KUBECONFIG={}",
        control_plane.kubeconfig_path().display()
    )?;
    writeln!(out, "NODE={}", node.folder().display())?;
    out.flush()?;
    tokio::signal::ctrl_c().await?;
    node.stop()
}
