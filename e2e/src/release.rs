//! Our charts installed on a node, with our images, by the real helm.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::Value;
use test_support::{CONTROLLERS_NAMESPACE, ControlPlane, Node, Scratch};
use tokio::task::block_in_place;

use crate::Helm;
use crate::binaries::{CONVENTIONS_CONTROLLER, images, workspace};
use crate::helm::chart;
use crate::path_stack::CONTROLLERS;

/// The name of the release.
const NAME: &str = "carto";
/// How long helm waits until all Pods are ready, on a busy machine.
const WAIT: &str = "--timeout=6m";
/// The namespace as users make it.
const NAMESPACE: &str = "deploy/namespace.yaml";

/// A release of the chart `carto`. Its methods wait for helm, so the runtime must have more than one thread.
pub struct Release {
    helm: Helm,
    kubeconfig: PathBuf,
    home: Scratch,
    values: Value,
}

impl Release {
    /// What the README's two commands do, but with these values besides; waits until all Pods are ready.
    ///
    /// # Errors
    ///
    /// What helm says.
    pub async fn install(control_plane: &ControlPlane, values: Value) -> anyhow::Result<Self> {
        let namespace = std::fs::read_to_string(workspace().join(NAMESPACE))?;
        control_plane.apply_yaml(&namespace).await?;
        let release = Self {
            helm: Helm::new()?,
            kubeconfig: control_plane.kubeconfig_path().to_owned(),
            home: Scratch::new("carto-release-")?,
            values,
        };
        release.with_values("install", &release.values)?;
        Ok(release)
    }

    /// What it was installed with.
    pub fn values(&self) -> &Value {
        &self.values
    }

    /// Goes on with these values in place of the ones before.
    ///
    /// # Errors
    ///
    /// What helm says.
    pub fn upgrade(&self, values: &Value) -> anyhow::Result<()> {
        self.with_values("upgrade", values)
    }

    /// Goes back to the revision before the last.
    ///
    /// # Errors
    ///
    /// What helm says.
    pub fn rollback(&self) -> anyhow::Result<()> {
        self.helm(&["rollback", NAME, "--wait", WAIT])
    }

    /// Removes what was installed.
    ///
    /// # Errors
    ///
    /// What helm says.
    pub fn uninstall(&self) -> anyhow::Result<()> {
        self.helm(&["uninstall", NAME, "--wait", WAIT])
    }

    /// Installs another chart of ours beside it, in the same namespace.
    ///
    /// # Errors
    ///
    /// What helm says.
    pub fn install_beside(&self, name: &str, of: &str, values: &Value) -> anyhow::Result<()> {
        let chart = chart(of).display().to_string();
        let values = self.write(values)?;
        self.helm(&["install", name, &chart, "--values", &values, "--wait", WAIT])
    }

    fn with_values(&self, verb: &str, values: &Value) -> anyhow::Result<()> {
        let chart = chart(NAME).display().to_string();
        let values = self.write(values)?;
        self.helm(&[verb, NAME, &chart, "--values", &values, "--wait", WAIT])
    }

    fn write(&self, values: &Value) -> anyhow::Result<String> {
        let file = self.home.path().join("values.json");
        std::fs::write(&file, values.to_string())?;
        Ok(file.display().to_string())
    }

    fn helm(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let kubeconfig = self.kubeconfig.display().to_string();
        let mut all = vec![
            "--kubeconfig",
            &kubeconfig,
            "--namespace",
            CONTROLLERS_NAMESPACE,
        ];
        all.extend(arguments);
        block_in_place(|| self.helm.tell(all)).with_context(|| format!("helm {arguments:?}"))?;
        Ok(())
    }
}

/// Makes the images of hack/images known to a node; compiled in the dev profile, as the tests are.
///
/// # Errors
///
/// When they were not built, or the node refuses them.
pub fn import_images(node: &Node) -> anyhow::Result<()> {
    let folder = images()?;
    for name in CONTROLLERS.iter().chain([&CONVENTIONS_CONTROLLER]) {
        let archive = folder.join(name).with_extension("tar");
        ensure!(
            archive.exists(),
            "{} is missing: run 'hack/images/build.sh --profile dev', or 'make test-node'",
            archive.display()
        );
        node.import_image(&archive)?;
    }
    Ok(())
}
