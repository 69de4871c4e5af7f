//! Processes that are started otherwise than the stage's own.

use std::path::{Path, PathBuf};

use super::port::Port;
use super::{Another, Stage};
use crate::{Process, assets};

/// What is particular about a process of the controller.
#[derive(Debug, Clone, Default)]
pub struct Particulars<'p> {
    /// The way to the API server, and who goes it; the administrator if none is named.
    pub kubeconfig: Option<&'p Path>,
    /// More flags.
    pub flags: &'p [&'p str],
    /// More of its environment.
    pub environment: Vec<(&'static str, PathBuf)>,
    /// Bash that becomes the process; `"$@"` is the command line.
    pub script: Option<&'p str>,
}

impl Stage {
    /// Starts the controller with these particulars.
    pub fn start_controller_with(&mut self, particulars: &Particulars<'_>) {
        self.metrics = Port::reserve();
        self.controller = Some(self.spawn(particulars, self.metrics.number()));
    }

    /// One more process, which the caller ends by dropping it.
    pub fn another_controller_as(&mut self, particulars: &Particulars<'_>) -> Another {
        let metrics = Port::reserve();
        Another {
            process: self.spawn(particulars, metrics.number()),
            metrics,
        }
    }

    fn spawn(&mut self, particulars: &Particulars<'_>, metrics_port: u16) -> Process {
        self.starts += 1;
        let kubeconfig = particulars.kubeconfig;
        let kubeconfig = kubeconfig.unwrap_or_else(|| self.plane.kubeconfig_path());
        let mut starting = match particulars.script {
            None => Process::builder(self.cast.binary),
            Some(script) => Process::builder("bash")
                .args(["-c", script, "bash"])
                .arg(self.cast.binary),
        };
        for (name, value) in &particulars.environment {
            starting = starting.env(name, value);
        }
        if self.cast.stamps() {
            let ytt = assets().unwrap().binary("ytt").unwrap();
            starting = starting.arg(format!("--ytt={}", ytt.display()));
        }
        starting
            .env("KUBECONFIG", kubeconfig)
            .arg("--health-port=0")
            .arg(format!("--metrics-port={metrics_port}"))
            .arg("--log-level=debug")
            .args(particulars.flags)
            .start(self.log_file(self.starts))
            .unwrap()
    }

    /// No file that the controller writes may become longer than this from now on, as if the disk was full then.
    pub fn limit_files(&self, bytes: Option<u64>) {
        self.controller
            .as_ref()
            .unwrap()
            .limit_files(bytes)
            .unwrap();
    }
}
