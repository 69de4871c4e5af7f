//! Runs a real control plane until it is interrupted: for a look by hand, and for the test that kills its owner.
//!
//! Prints `KUBECONFIG=PATH` once the API server is ready.

use std::io::Write;

use test_support::ControlPlane;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let control_plane = ControlPlane::builder()
        .controller_manager(true)
        .start()
        .await?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "KUBECONFIG={}",
        control_plane.kubeconfig_path().display()
    )?;
    out.flush()?;
    tokio::signal::ctrl_c().await?;
    Ok(())
}
