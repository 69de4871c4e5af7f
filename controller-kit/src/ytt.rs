//! Running ytt: the real binary as a child process, bounded in time and number, its results cached.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use realizer::{Rendered, YttCall};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::Semaphore;

use crate::metrics::Metrics;

/// Upstream's limit: a template that loops is killed after this.
const LIMIT: Duration = Duration::from_secs(4);
/// Renderings remembered; two generations of half this size.
const REMEMBERED: usize = 2048;
/// Larger renderings are not remembered.
const LARGEST: usize = 256 * 1024;

type Key = (String, String);

#[derive(Default)]
struct Cache {
    young: HashMap<Key, Arc<Value>>,
    old: HashMap<Key, Arc<Value>>,
}

/// Renders ytt templates.
pub struct Ytt {
    binary: PathBuf,
    slots: Semaphore,
    cache: Mutex<Cache>,
    metrics: Arc<Metrics>,
}

impl Ytt {
    /// Renders with this binary, at most `concurrency` at a time.
    pub fn new(binary: PathBuf, concurrency: usize, metrics: Arc<Metrics>) -> Self {
        Self {
            binary,
            slots: Semaphore::new(concurrency.max(1)),
            cache: Mutex::default(),
            metrics,
        }
    }

    /// The first document that the template renders to.
    ///
    /// # Errors
    /// Upstream's text `unable to apply ytt template: …`, with what ytt said about `stdin.yml`.
    pub async fn render(&self, call: &YttCall) -> Rendered {
        let key = (call.template_digest.clone(), call.values_digest.clone());
        if let Some(hit) = self.remembered(&key) {
            self.metrics.ytt_run("cached");
            return Ok((*hit).clone());
        }
        // Closed only when the process ends.
        let Ok(_slot) = self.slots.acquire().await else {
            return Err("unable to apply ytt template: shutting down".into());
        };
        let rendered = self
            .run(call)
            .await
            .map_err(|error| format!("unable to apply ytt template: {error}"));
        self.metrics.ytt_run(if rendered.is_ok() {
            "rendered"
        } else {
            "failed"
        });
        let value = rendered?;
        self.remember(key, &value);
        Ok(value)
    }

    async fn run(&self, call: &YttCall) -> Result<Value, String> {
        let values = serde_json::to_vec(&call.values).map_err(|error| error.to_string())?;
        // A file readable by us alone: arguments are readable by others and end at 128 KiB.
        let file = tempfile::Builder::new()
            .prefix("values-")
            .suffix(".yml")
            .tempfile()
            .map_err(|error| error.to_string())?;
        tokio::fs::write(file.path(), values)
            .await
            .map_err(|error| error.to_string())?;
        let mut child = Command::new(&self.binary)
            .args(["-f", "-", "-o", "json", "--data-values-file"])
            .arg(file.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("exec: {}: {error}", self.binary.display()))?;
        let stdin = child.stdin.take();
        let feed = async move {
            if let Some(mut stdin) = stdin {
                // A child that fails early closes its end; its exit status tells more than the broken pipe.
                let _ = stdin.write_all(call.template.as_bytes()).await;
            }
        };
        let finish = async { tokio::join!(feed, child.wait_with_output()).1 };
        let output = tokio::time::timeout(LIMIT, finish)
            .await
            .map_err(|_| "signal: killed".to_owned())?
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return first_document(&output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(if said.trim().is_empty() {
            output.status.to_string()
        } else {
            said.into_owned()
        })
    }

    fn remembered(&self, key: &Key) -> Option<Arc<Value>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hit) = cache.young.get(key) {
            return Some(hit.clone());
        }
        let hit = cache.old.remove(key)?;
        cache.young.insert(key.clone(), hit.clone());
        Some(hit)
    }

    fn remember(&self, key: Key, value: &Value) {
        if value.to_string().len() > LARGEST {
            return;
        }
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.young.len() >= REMEMBERED / 2 {
            cache.old = std::mem::take(&mut cache.young);
        }
        cache.young.insert(key, Arc::new(value.clone()));
    }
}

/// Only the first document counts (spec 3.4).
fn first_document(output: &[u8]) -> Result<Value, String> {
    let mut documents = serde_json::Deserializer::from_slice(output).into_iter::<Value>();
    match documents.next() {
        Some(Ok(document)) => Ok(document),
        Some(Err(error)) => Err(format!("the output cannot be read: {error}")),
        None => Ok(Value::Null),
    }
}

/// The binary: `$KO_DATA_PATH/ytt-<os>-<arch>` when that variable is set, else `ytt` on the path (spec 3.4).
pub fn binary(ko_data_path: Option<&std::path::Path>) -> PathBuf {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    ko_data_path.map_or_else(
        || PathBuf::from("ytt"),
        |folder| folder.join(format!("ytt-{}-{arch}", std::env::consts::OS)),
    )
}
