//! Running ytt: the real binary as a child process, bounded in time, memory, number and reach, its results cached.

mod cache;
mod confinement;
mod form;
mod memory;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use realizer::{RenderFailure, Rendered, YttCall};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::scheduler::Gate;

use cache::Renderings;
use confinement::Confinement;
use form::{Form, escape_controls};

pub use memory::{MemoryLimit, TooLittle};

/// Upstream's limit: a template that loops is killed after this.
const LIMIT: Duration = Duration::from_secs(4);
/// What renderings may take that are remembered, in bytes.
const REMEMBERED: usize = 64 << 20;
/// The most a rendering may write; the API server takes objects of 1.5 MiB. A loop in a template writes gigabytes before
/// its time is up, and all of it would be held in memory.
const LONGEST: u64 = 4 * 1024 * 1024;
/// Renderings that take more are not remembered.
const LARGEST: usize = 4 << 20;

/// What ytt dies of where a key of a map is no text: JSON has no other keys, YAML has.
const KEY_IS_NO_TEXT: &str = "panic: Expected key to be string";

/// Renders ytt templates.
pub struct Ytt {
    binary: PathBuf,
    gate: Gate,
    limit: Duration,
    memory: MemoryLimit,
    confinement: Confinement,
    cache: Renderings,
    metrics: Arc<Metrics>,
}

impl Ytt {
    /// Renders with this binary, at most `concurrency` at a time. Namespaces take turns, and none has all of
    /// these processes: templates that run into the limit of time hold up their own tenant, not the others. Each process
    /// may take `memory`.
    pub fn new(
        binary: PathBuf,
        concurrency: usize,
        memory: MemoryLimit,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            binary,
            gate: Gate::new(concurrency),
            limit: LIMIT,
            memory,
            confinement: Confinement::default(),
            cache: Renderings::new(REMEMBERED, LARGEST),
            metrics,
        }
    }

    /// The first document that the template renders to, for an owner in `namespace`. Cancel-safe: a process
    /// that nobody waits for is killed.
    ///
    /// # Errors
    /// Upstream's text `unable to apply ytt template: …`, with what ytt said about `stdin.yml`. What ytt refuses, or writes
    /// too much of, or needs too much memory for, is the template's; anything else passes by itself. A template that runs out
    /// of time may be one that
    /// never ends or one on a busy machine, which nobody can tell: it is tried again, ever less often.
    pub async fn render(&self, namespace: &str, call: &YttCall) -> Rendered {
        let key = (call.template_digest.clone(), call.values_digest.clone());
        if let Some(hit) = self.cache.get(&key) {
            self.metrics.ytt_run("cached");
            return Ok((*hit).clone());
        }
        let waits = self.metrics.ytt_waits();
        let _pass = self.gate.enter(namespace).await;
        drop(waits);
        let begun = Instant::now();
        let rendered = self.run(call).await.map_err(|failure| RenderFailure {
            message: format!("unable to apply ytt template: {}", failure.message),
            ..failure
        });
        self.metrics.ytt_ran(begun.elapsed().as_secs_f64());
        self.metrics.ytt_run(if rendered.is_ok() {
            "rendered"
        } else {
            "failed"
        });
        let value = rendered?;
        self.cache.put(key, &value);
        Ok(value)
    }

    async fn run(&self, call: &YttCall) -> Rendered {
        let values = serde_json::to_string(&call.values).map_err(|error| error.to_string())?;
        let values = escape_controls(&values);
        // A file readable by us alone: arguments are readable by others and end at 128 KiB.
        let file = tempfile::Builder::new()
            .prefix("values-")
            .suffix(".yml")
            .tempfile()
            .map_err(|error| no_file(&error))?;
        tokio::fs::write(file.path(), values)
            .await
            .map_err(|error| no_file(&error))?;
        match self.run_once(call, file.path(), Form::Json).await {
            Err(failure) if failure.message.starts_with(KEY_IS_NO_TEXT) => {
                self.run_once(call, file.path(), Form::Yaml).await
            }
            rendered => rendered,
        }
    }

    async fn run_once(&self, call: &YttCall, values: &Path, form: Form) -> Rendered {
        let mut child = self.spawn(values, form)?;
        let stdin = child.stdin.take();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let feed = async move {
            if let Some(mut stdin) = stdin {
                // A child that fails early closes its end; its exit status tells more than the broken pipe.
                let _ = stdin.write_all(call.template.as_bytes()).await;
            }
        };
        let finish = async {
            let (said, complained, ()) = tokio::join!(read(stdout), read(stderr), feed);
            Ok((said?, complained?, child.wait().await.map_err(passing)?))
        };
        // Dropping the child kills it, also when it has said too much.
        let (said, complained, status) = tokio::time::timeout(self.limit, finish)
            .await
            .unwrap_or_else(|_| Err(passing("signal: killed")))?;
        if status.success() {
            return form.first_document(&said).map_err(Into::into);
        }
        let complained = String::from_utf8_lossy(&complained);
        if let Some(verdict) = self.memory.verdict(status, &complained) {
            return Err(verdict.into());
        }
        Err(RenderFailure {
            message: if complained.trim().is_empty() {
                go_exit(status)
            } else {
                complained.into_owned()
            },
            // Without a code it was killed: for its memory, or with its container.
            passes_by_itself: status.code().is_none(),
        })
    }

    fn spawn(&self, values: &Path, form: Form) -> Result<Child, RenderFailure> {
        let mut command = Command::new(&self.binary);
        command
            .args(["-f", "-", "-o", form.name(), "--data-values-file"])
            .arg(values)
            // What the controller was started with is none of its business.
            .env_clear()
            .envs(search_path())
            .envs(self.memory.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let child = self.confinement.spawn(command, &self.binary, values);
        let child =
            child.map_err(|error| passing(format!("exec: {}: {error}", self.binary.display())))?;
        self.memory.impose(&child).map_err(|error| {
            passing(format!(
                "cannot limit its memory: {error}; --ytt-memory-limit=0 does without"
            ))
        })?;
        Ok(child)
    }
}

/// Where the binary is looked for when only its name is known.
#[expect(
    clippy::disallowed_methods,
    reason = "the one variable that the child inherits"
)]
fn search_path() -> Option<(&'static str, OsString)> {
    std::env::var_os("PATH").map(|path| ("PATH", path))
}

/// The machine was in the way: the next try may succeed.
#[expect(clippy::needless_pass_by_value, reason = "maps an error")]
fn passing(cause: impl ToString) -> RenderFailure {
    RenderFailure {
        message: cause.to_string(),
        passes_by_itself: true,
    }
}

/// The temporary folder is full, or not to be written to. The name of the file is another one at each try, and would make
/// news of each.
fn no_file(error: &io::Error) -> RenderFailure {
    passing(format!(
        "the controller could not write the values to its temporary folder ({}); nothing is wrong with the template, and it \
         is tried again",
        error.kind()
    ))
}

/// All that a child writes to one of its ends, unless it is too much.
async fn read(from: Option<impl tokio::io::AsyncRead + Unpin>) -> Result<Vec<u8>, RenderFailure> {
    let mut said = Vec::new();
    if let Some(from) = from {
        let mut bounded = from.take(LONGEST + 1);
        bounded.read_to_end(&mut said).await.map_err(passing)?;
    }
    if said.len() as u64 > LONGEST {
        return Err(format!("the output is longer than {} MiB", LONGEST >> 20).into());
    }
    Ok(said)
}

/// How Go tells what became of a process.
fn go_exit(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit status {code}"),
        // All that is known to kill it is SIGKILL.
        None => "signal: killed".to_owned(),
    }
}

#[cfg(test)]
mod tests;
