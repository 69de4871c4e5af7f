//! Controllers of others that templates stamp objects for, as processes on this machine. Only `make test-third-party`
//! builds them.

mod argo_cd;
mod knative;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use test_support::{ControlPlane, Scratch, as_yaml, documents};

use crate::binaries::workspace;
use crate::command::ran;
use crate::helm::{Helm, chart};

pub use argo_cd::ArgoCd;
pub use knative::KnativeServing;

/// Where hack/control-plane/build.sh puts them and their kinds.
fn folder() -> anyhow::Result<PathBuf> {
    let build = workspace().join("hack/control-plane/build.sh");
    let path = ran(Command::new(build).args(["--third-party", "--path"]))?;
    Ok(PathBuf::from(path.trim()))
}

/// One of them.
fn built(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = folder.join(name);
    let missing = || format!("{}: `make test-third-party` builds it", path.display());
    ensure!(path.exists(), missing());
    Ok(path)
}

/// Lets our controllers watch what is stamped of one family, as the value `watchedKinds` of the chart does.
async fn let_watch(control_plane: &ControlPlane, family: &str) -> anyhow::Result<()> {
    let home = Scratch::new("carto-values-")?;
    let values = home.path().join("values.yaml");
    std::fs::write(&values, json!({"watchedKinds": {family: true}}).to_string())?;
    let rendered = Helm::new()?.render(&chart("carto"), "carto-system", &values)?;
    let objects = documents(&rendered)?;
    let is_role = |it: &&Value| it["kind"] == "ClusterRole" && it["metadata"]["name"] == WATCHED;
    let role = objects.iter().find(is_role);
    let role = role.with_context(|| format!("the chart has no ClusterRole {WATCHED}"))?;
    control_plane.apply_yaml(&as_yaml([role])).await?;
    Ok(())
}

/// The role that the value is for.
const WATCHED: &str = "carto-watched-kinds";
