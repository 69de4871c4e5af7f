//! The real helm, and our charts.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, bail};
use test_support::{Scratch, assets};

/// Helm with a home of its own: what a user has configured decides nothing.
#[derive(Debug)]
pub struct Helm {
    binary: PathBuf,
    home: Scratch,
}

impl Helm {
    /// The one that `make control-plane` builds.
    ///
    /// # Errors
    ///
    /// It is missing.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            binary: assets()?.binary("helm")?,
            home: Scratch::new("carto-helm-")?,
        })
    }

    /// Runs it to its end, whatever that is.
    ///
    /// # Errors
    ///
    /// It cannot be run.
    pub fn run(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> anyhow::Result<Output> {
        let mut command = Command::new(&self.binary);
        command.args(arguments).env_clear();
        for folder in [
            "HOME",
            "HELM_CACHE_HOME",
            "HELM_CONFIG_HOME",
            "HELM_DATA_HOME",
        ] {
            command.env(folder, self.home.path());
        }
        command.output().context("run helm")
    }

    /// What it prints.
    ///
    /// # Errors
    ///
    /// It fails; the error is what it says.
    pub fn tell(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> anyhow::Result<String> {
        let output = self.run(arguments)?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The manifests of a chart for the values in a file, as `helm install` would apply them.
    ///
    /// # Errors
    ///
    /// The values are refused; the error is what helm says.
    pub fn render(&self, chart: &Path, namespace: &str, values: &Path) -> anyhow::Result<String> {
        self.render_as("web", chart, namespace, values)
    }

    /// The same for a release of this name.
    ///
    /// # Errors
    ///
    /// The values are refused; the error is what helm says.
    pub fn render_as(
        &self,
        release: &str,
        chart: &Path,
        namespace: &str,
        values: &Path,
    ) -> anyhow::Result<String> {
        let kubernetes = ["--kube-version", "1.36.3"].map(OsStr::new);
        let release = ["template", release, "--namespace", namespace].map(OsStr::new);
        let chart = [
            chart.as_os_str(),
            OsStr::new("--values"),
            values.as_os_str(),
        ];
        self.tell([release.as_slice(), &chart, &kubernetes].concat())
    }
}

/// The folder of one of our charts.
pub fn chart(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy/charts")
        .join(name)
}

/// The charts that can be installed, by their folders.
///
/// # Errors
///
/// They cannot be read.
pub fn charts() -> anyhow::Result<Vec<PathBuf>> {
    let mut charts = Vec::new();
    for entry in fs::read_dir(chart(""))? {
        let folder = entry?.path();
        let about = fs::read_to_string(folder.join("Chart.yaml"))?;
        if !about.contains("\ntype: library\n") {
            charts.push(folder);
        }
    }
    charts.sort();
    Ok(charts)
}

/// The values that a chart is tried with, by their files.
///
/// # Errors
///
/// They cannot be read.
pub fn cases(chart: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let name = chart.file_name().context("a chart has a name")?;
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/charts/cases");
    test_support::yaml_files(&cases.join(name))
}
