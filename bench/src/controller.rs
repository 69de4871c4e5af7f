//! The controller under test, as a child process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use test_support::{Process, free_port, http_get, sum_of};

use crate::args::Args;
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
    /// The kubeconfig of its service account.
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
            .arg("--own-namespace=carto-system")
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
        let kind = format!("kind=\"{}\"", self.family.kind);
        // Before the first one there is no such metric.
        let sum = sum_of(&text, "carto_reconcile_total", &[&kind]).unwrap_or(0.0);
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
        let of_queue = format!("queue=\"{QUEUE}\"");
        let mut queue = BTreeMap::new();
        for metric in ["carto_queue_depth", "carto_queue_oldest_seconds"] {
            for lane in ["progress", "fresh", "retry"] {
                let lane_label = format!("lane=\"{lane}\"");
                let value = sum_of(&text, metric, &[&of_queue, &lane_label]);
                queue.insert(format!("{metric} {lane}"), value.unwrap_or(f64::NAN));
            }
        }
        for metric in ["carto_queue_delayed", "carto_queue_running"] {
            let value = sum_of(&text, metric, &[&of_queue]);
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

/// The binary to measure: the given one, else the one that cargo says it has built of this workspace, in this program's own
/// profile. A stale binary measured in place of today's code would be worse than none.
///
/// # Errors
///
/// When it cannot be built.
pub(crate) fn binary(args: &Args, family: &Family) -> anyhow::Result<PathBuf> {
    if let Some(path) = &args.controller {
        ensure!(path.is_file(), "{} is not there", path.display());
        return Ok(path.clone());
    }
    let name = family.binary;
    // As it is shipped: with the features of no other crate. Without optimisation nothing is judged but requests, and the
    // tests have built it.
    let what: &[&str] = if cfg!(debug_assertions) {
        &["--workspace", "--bins"]
    } else {
        &["--release", "--package", name]
    };
    let built = Command::new("cargo")
        .arg("build")
        .args(what)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .stderr(Stdio::inherit())
        .output()
        .context("cargo")?;
    ensure!(built.status.success(), "{name} cannot be built");
    let messages = String::from_utf8(built.stdout)?;
    built_binary(&messages, name).with_context(|| format!("cargo does not say where {name} is"))
}

/// Where cargo, by its messages, has put a binary.
fn built_binary(messages: &str, name: &str) -> Option<PathBuf> {
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let executable = |message: Value| {
        let is_it = message["target"]["name"] == name && message["target"]["kind"][0] == "bin";
        let path = message["executable"].as_str().filter(|_| is_it);
        path.map(PathBuf::from)
    };
    messages.filter_map(executable).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_where_cargo_says() {
        let message = |kind: &str, name: &str, path: Value| {
            let target = serde_json::json!({"kind": [kind], "name": name});
            serde_json::json!({"reason": "compiler-artifact", "target": target, "executable": path})
                .to_string()
        };
        let messages = [
            message("lib", "x-controller", Value::Null),
            message("bin", "x-controller", "/elsewhere/x-controller".into()),
            message("bin", "y-controller", "/elsewhere/y-controller".into()),
            "no JSON".to_owned(),
        ]
        .join("\n");
        let expected = Some(PathBuf::from("/elsewhere/x-controller"));
        assert_eq!(built_binary(&messages, "x-controller"), expected);
        assert_eq!(built_binary(&messages, "z-controller"), None);
    }
}
