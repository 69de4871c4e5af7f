//! The controller under test, as a child process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use test_support::{Process, free_port, http_get};

use crate::args::Args;
use crate::exposition;
use crate::family::Family;
use crate::proc_stat::{Usage, usage};

/// Its queue of owners, in metrics.
const QUEUE: &str = "owners";
/// How long it may take until it serves metrics.
const START_LIMIT: Duration = Duration::from_mins(1);
const LOOK: Duration = Duration::from_millis(10);

/// How to start it, again and again.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// Which controller it is.
    pub(crate) family: &'static Family,
    /// The binary.
    pub(crate) path: PathBuf,
    /// Further arguments.
    pub(crate) args: Vec<String>,
    /// Port of its metrics; 0 takes a free one.
    pub(crate) metrics_port: u16,
    /// The kubeconfig of an administrator.
    pub(crate) kubeconfig: PathBuf,
    /// What it prints is appended here.
    pub(crate) log: PathBuf,
}

/// The running controller.
#[derive(Debug)]
pub(crate) struct Controller {
    family: &'static Family,
    process: Process,
    port: u16,
}

impl Program {
    /// Starts it and waits until it serves metrics.
    ///
    /// # Errors
    ///
    /// When it ends early; the message has the end of its log.
    pub(crate) async fn start(&self) -> anyhow::Result<Controller> {
        let port = if self.metrics_port == 0 {
            free_port()?
        } else {
            self.metrics_port
        };
        let process = Process::builder(&self.path)
            .arg(format!("--metrics-port={port}"))
            // Probes are not asked here, and a second controller on this machine may hold their port.
            .arg("--health-port=0")
            .args(&self.args)
            .env("KUBECONFIG", &self.kubeconfig)
            .start(&self.log)?;
        let mut controller = Controller {
            family: self.family,
            process,
            port,
        };
        controller.serves().await?;
        Ok(controller)
    }
}

impl Controller {
    /// What it used since it started.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        usage(self.process.pid())
            .with_context(|| format!("the controller has ended:\n{}", self.process.log_tail()))
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Owners reconciled since it started.
    ///
    /// # Errors
    ///
    /// When its metrics cannot be read.
    pub(crate) async fn reconciles(&self) -> anyhow::Result<u64> {
        let text = self.metrics().await?;
        let labels = [("kind", self.family.kind)];
        let sum = exposition::sum(&text, "carto_reconcile_total", &labels).unwrap_or(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a counter of whole reconciles"
        )]
        Ok(sum as u64)
    }

    /// Waits until it has reconciled so many owners since it started.
    ///
    /// # Errors
    ///
    /// When `limit` passes first; the text says how many it has.
    pub(crate) async fn reconciled(&self, count: u64, limit: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + limit;
        loop {
            let seen = self.reconciles().await?;
            if seen >= count {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "{seen} of {count} reconciles within {limit:?}"
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What its queue of owners holds, by metric and lane.
    ///
    /// # Errors
    ///
    /// When its metrics cannot be read.
    pub(crate) async fn queue(&self) -> anyhow::Result<BTreeMap<String, f64>> {
        let text = self.metrics().await?;
        let mut queue = BTreeMap::new();
        for metric in ["carto_queue_depth", "carto_queue_oldest_seconds"] {
            for lane in ["progress", "fresh", "retry"] {
                let labels = [("queue", QUEUE), ("lane", lane)];
                let value = exposition::sum(&text, metric, &labels);
                queue.insert(format!("{metric} {lane}"), value.unwrap_or(f64::NAN));
            }
        }
        for metric in ["carto_queue_delayed", "carto_queue_running"] {
            let value = exposition::sum(&text, metric, &[("queue", QUEUE)]);
            queue.insert(metric.to_owned(), value.unwrap_or(f64::NAN));
        }
        Ok(queue)
    }

    /// The end of its log.
    pub(crate) fn log_tail(&self) -> String {
        self.process.log_tail()
    }

    /// Kills it (SIGKILL) and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.stop();
    }

    /// As [`Self::kill`], for one that is to be replaced.
    pub(crate) fn stop(&mut self) {
        self.process.kill();
    }

    async fn serves(&mut self) -> anyhow::Result<()> {
        let port = self.port;
        let look = || metrics(port);
        self.process.ready(START_LIMIT, look).await?;
        Ok(())
    }

    async fn metrics(&self) -> anyhow::Result<String> {
        metrics(self.port).await
    }
}

/// The text of `/metrics`.
async fn metrics(port: u16) -> anyhow::Result<String> {
    let text = http_get(port, "/metrics").await;
    text.context("the controller's metrics")
}

/// The binary to measure: the given one, else the one of this workspace, brought up to date. A stale binary measured in
/// place of today's code would be worse than none.
///
/// # Errors
///
/// When it cannot be built.
pub(crate) fn binary(args: &Args, family: &Family) -> anyhow::Result<PathBuf> {
    let name = family.binary;
    if let Some(path) = &args.controller {
        ensure!(path.is_file(), "{} is not there", path.display());
        return Ok(path.clone());
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if workspace.join("Cargo.toml").is_file() {
        let built = Command::new("cargo")
            .args(["build", "--release", "-p", name])
            .current_dir(&workspace)
            .status()
            .context("cargo")?;
        ensure!(built.success(), "{name} cannot be built");
    }
    let own = std::env::current_exe()?;
    let beside = own.with_file_name(name);
    let of_workspace = workspace.join("target/release").join(name);
    let found = [of_workspace, beside]
        .into_iter()
        .find(|path| path.is_file());
    found.with_context(|| {
        format!(
            "no {name} beside {}; name one with --controller",
            own.display()
        )
    })
}
