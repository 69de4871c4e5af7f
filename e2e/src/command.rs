//! Programs that run to their end.

use std::process::Command;

use anyhow::{Context, ensure};

/// What a command prints; it is to succeed.
pub(crate) fn ran(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}
