//! The controller under test, as a child process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use test_support::{CONTROLLERS_NAMESPACE, Process, free_port, http_get, sum_of};

use crate::args::Args;
use crate::family::Family;
use crate::world::World;

/// Its queue of owners, in metrics.
const QUEUE: &str = "queue=\"owners\"";
/// How long it may take until it serves metrics.
const START_LIMIT: Duration = Duration::from_mins(1);

/// The running controller.
#[derive(Debug)]
pub(crate) struct Controller {
    pub(crate) process: Process,
    kind: &'static str,
    port: u16,
}

impl Controller {
    /// Starts the controller of a world, with the identity in this kubeconfig, and waits until it serves metrics. What it
    /// prints is appended to the file of the one before.
    pub(crate) async fn start(world: &World, kubeconfig: &Path) -> anyhow::Result<Self> {
        let port = match world.args.metrics_port {
            0 => free_port()?,
            port => port,
        };
        let mut process = Process::builder(&world.binary)
            .arg(format!("--metrics-port={port}"))
            // Probes are not asked here, and a second controller on this machine may hold their port.
            .arg("--health-port=0")
            .arg(format!("--own-namespace={CONTROLLERS_NAMESPACE}"))
            .args(&world.args.more)
            .env("KUBECONFIG", kubeconfig)
            .start(world.log_file("controller")?)?;
        let look = || http_get(port, "/metrics");
        process.ready(START_LIMIT, look).await?;
        Ok(Self {
            process,
            kind: world.family.kind,
            port,
        })
    }

    /// Owners reconciled since it started.
    pub(crate) async fn reconciles(&self) -> anyhow::Result<u64> {
        reconciles(self.kind, self.port).await
    }

    /// Waits until it has reconciled so many owners since it started.
    pub(crate) async fn reconciled(&mut self, count: u64, limit: Duration) -> anyhow::Result<()> {
        let (kind, port) = (self.kind, self.port);
        let enough = async || {
            let seen = reconciles(kind, port).await?;
            ensure!(seen >= count, "{seen} of {count} reconciles");
            Ok(())
        };
        self.process.ready(limit, enough).await
    }

    /// The smallest of these bounds below which such a share of what a histogram has seen is.
    pub(crate) async fn quantile(
        &self,
        histogram: &str,
        bounds: &[f64],
        share: f64,
    ) -> anyhow::Result<f64> {
        let text = http_get(self.port, "/metrics").await?;
        let count = sum_of(&text, &format!("{histogram}_count"), &[]);
        let count = count.with_context(|| format!("no {histogram}"))?;
        let bucket = format!("{histogram}_bucket");
        let is_enough = |bound: &&f64| {
            let below = sum_of(&text, &bucket, &[&format!("le=\"{bound}\"")]);
            below.is_some_and(|below| below >= count * share)
        };
        Ok(bounds
            .iter()
            .find(is_enough)
            .copied()
            .unwrap_or(f64::INFINITY))
    }

    /// What its queue of owners holds, by metric and lane.
    pub(crate) async fn queue(&self) -> anyhow::Result<BTreeMap<String, f64>> {
        let lane = |lane: &str| format!("lane=\"{lane}\"");
        let lanes = ["progress", "fresh", "retry"].map(|of| (of, lane(of)));
        let text = http_get(self.port, "/metrics").await?;
        let of = |metric, labels: &[&str]| sum_of(&text, metric, labels).unwrap_or(f64::NAN);
        let mut queue = BTreeMap::new();
        for metric in ["carto_queue_depth", "carto_queue_oldest_seconds"] {
            for (lane, label) in &lanes {
                queue.insert(format!("{metric} {lane}"), of(metric, &[QUEUE, label]));
            }
        }
        for metric in ["carto_queue_delayed", "carto_queue_running"] {
            queue.insert(metric.to_owned(), of(metric, &[QUEUE]));
        }
        Ok(queue)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a counter of whole reconciles"
)]
async fn reconciles(kind: &str, port: u16) -> anyhow::Result<u64> {
    let metrics = http_get(port, "/metrics").await?;
    let kind = format!("kind=\"{kind}\"");
    // Before the first one there is no such metric.
    Ok(sum_of(&metrics, "carto_reconcile_total", &[&kind]).unwrap_or(0.0) as u64)
}

/// The binary to measure: the given one, else the one beside this program, of the same profile, which cargo brings up to
/// date. A stale binary measured in place of today's code would be worse than none.
pub(crate) fn binary(args: &Args, family: &Family) -> anyhow::Result<PathBuf> {
    let path = match &args.controller {
        Some(path) => path.clone(),
        None => built(&family.binary())?,
    };
    ensure!(path.is_file(), "{} is not there", path.display());
    Ok(path)
}

fn built(name: &str) -> anyhow::Result<PathBuf> {
    // As it is shipped: with the features of no other crate. Without optimisation nothing is judged but requests, and the
    // tests have built it.
    let what: &[&str] = if cfg!(debug_assertions) {
        // Examples take what tests take of dependencies; without them much would be compiled once more.
        &["--workspace", "--bins", "--examples"]
    } else {
        &["--release", "--package", name]
    };
    let own = std::env::current_exe().context("the path of this program")?;
    let target = own.parent().and_then(Path::parent);
    let status = Command::new("cargo")
        .arg("build")
        .args(what)
        .arg("--target-dir")
        .arg(target.context("this program lies in no folder")?)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .status()
        .context("cargo")?;
    ensure!(status.success(), "{name} cannot be built");
    Ok(own.with_file_name(name))
}
