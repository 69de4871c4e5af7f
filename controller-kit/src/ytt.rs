//! Running ytt: the real binary as a child process, bounded in time and number, its results cached.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use realizer::{Rendered, YttCall};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::Semaphore;

use crate::metrics::Metrics;

/// Upstream's limit: a template that loops is killed after this.
const LIMIT: Duration = Duration::from_secs(4);
/// Renderings remembered; two generations of half this size.
const REMEMBERED: usize = 2048;
/// The most a rendering may write; the API server takes objects of 1.5 MiB. A loop in a template writes gigabytes before
/// its time is up, and all of it would be held in memory.
const LONGEST: u64 = 4 * 1024 * 1024;
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
        let values = serde_json::to_string(&call.values).map_err(|error| error.to_string())?;
        let values = escape_controls(&values);
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
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let feed = async move {
            if let Some(mut stdin) = stdin {
                // A child that fails early closes its end; its exit status tells more than the broken pipe.
                let _ = stdin.write_all(call.template.as_bytes()).await;
            }
        };
        let finish = async {
            let (said, complained, ()) = tokio::join!(read(stdout), read(stderr), feed);
            Ok((said?, complained?, child.wait().await.map_err(text)?))
        };
        // Dropping the child kills it, also when it has said too much.
        let (said, complained, status) = tokio::time::timeout(LIMIT, finish)
            .await
            .unwrap_or_else(|_| Err("signal: killed".to_owned()))?;
        if status.success() {
            return first_document(&said);
        }
        let complained = String::from_utf8_lossy(&complained);
        Err(if complained.trim().is_empty() {
            status.to_string()
        } else {
            complained.into_owned()
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

#[expect(clippy::needless_pass_by_value, reason = "maps an error")]
fn text(error: std::io::Error) -> String {
    error.to_string()
}

/// All that a child writes to one of its ends, unless it is too much.
async fn read(from: Option<impl tokio::io::AsyncRead + Unpin>) -> Result<Vec<u8>, String> {
    let mut said = Vec::new();
    if let Some(from) = from {
        let mut bounded = from.take(LONGEST + 1);
        bounded.read_to_end(&mut said).await.map_err(text)?;
    }
    if said.len() as u64 > LONGEST {
        return Err(format!("the output is longer than {} MiB", LONGEST >> 20));
    }
    Ok(said)
}

/// JSON takes control characters that YAML refuses, or takes for line breaks and folds; they can only stand in strings, where both know the escape.
fn escape_controls(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                // Writing to a String cannot fail.
                let _ = write!(escaped, "\\u{:04x}", u32::from(character));
            }
            other => escaped.push(other),
        }
    }
    escaped
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use serde_json::json;

    use super::*;

    fn ytt() -> Ytt {
        let binary = test_support::assets().unwrap().binary("ytt").unwrap();
        Ytt::new(binary, 2, Arc::new(Metrics::new()))
    }

    fn call(template: &str, values: &Value) -> YttCall {
        let values: BTreeMap<String, Value> = serde_json::from_value(values.clone()).unwrap();
        YttCall {
            resource: "step".into(),
            template: template.into(),
            template_digest: format!("digest of {template}"),
            values_digest: format!("digest of {values:?}"),
            values,
        }
    }

    const ECHO: &str =
        "#@ load(\"@ytt:data\", \"data\")\n---\nvalue: #@ data.values.v\n---\nsecond: document\n";

    #[tokio::test]
    async fn only_the_first_document_counts_and_integers_stay_integers() {
        let rendered = ytt()
            .render(&call(ECHO, &json!({"v": 12_345_678_901_i64})))
            .await;
        assert_eq!(rendered, Ok(json!({"value": 12_345_678_901_i64})));
    }

    #[tokio::test]
    async fn a_wrong_template_is_explained_by_ytt() {
        let template = ECHO.replace("data.values.v", "data.values.nope");
        let error = ytt()
            .render(&call(&template, &json!({"v": 1})))
            .await
            .unwrap_err();
        assert!(
            error.starts_with("unable to apply ytt template: ytt: Error: \n"),
            "{error}"
        );
        assert!(
            error.contains("struct has no .nope field or method"),
            "{error}"
        );
        assert!(error.contains("in <toplevel>"), "{error}");
        assert!(
            error.contains("stdin.yml:3 | value: #@ data.values.nope"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_template_that_does_not_end_is_killed() {
        let template = "#@ def loop():\n#@   x = 0\n#@   for a in range(100000):\n#@     for b in range(100000):\n#@       x = x + 1\n#@     end\n#@   end\n#@   return x\n#@ end\n---\nv: #@ loop()\n";
        let started = tokio::time::Instant::now();
        let error = ytt().render(&call(template, &json!({}))).await.unwrap_err();
        assert_eq!(error, "unable to apply ytt template: signal: killed");
        assert!(started.elapsed() >= LIMIT && started.elapsed() < LIMIT * 4);
    }

    #[tokio::test]
    async fn a_missing_binary_is_named() {
        let missing = Ytt::new("/nowhere/ytt".into(), 1, Arc::new(Metrics::new()));
        let error = missing
            .render(&call(ECHO, &json!({"v": 1})))
            .await
            .unwrap_err();
        assert!(error.contains("/nowhere/ytt"), "{error}");
    }

    /// Upstream passes each value as an argument; arguments are readable by others and end at 128 KiB.
    #[tokio::test]
    async fn values_by_file_equal_values_by_argument() {
        let values = [
            json!("text"),
            json!(""),
            json!("yes"),
            json!("0x1F"),
            json!("a: b\n- c\n"),
            json!("é \u{1f600}"),
            json!("#@ data"),
            json!("(@ x @)"),
            json!(5),
            json!(-1),
            json!(1.5),
            json!(1e300),
            json!([
                0,
                -0.0,
                0.1,
                1e6,
                9_007_199_254_740_993_i64,
                i64::MAX,
                i64::MIN,
                u64::MAX
            ]),
            json!(true),
            json!([
                "no", "on", "null", "~", "1e3", "0o7", "1_000", ".inf", "!!str x", "&a *a", "%a",
                "@a", "`a`", "- x", "# x", " x ", "\tx"
            ]),
            json!([
                "\"quoted\"",
                "'single'",
                "back\\slash",
                "{{x}}",
                "#! x",
                "a\r\nb\n\n",
                "<&>"
            ]),
            json!(null),
            json!([]),
            json!({}),
            json!([1, "two", {"three": [null, {}]}]),
            json!({"a-b": 1, "a.b/c": {"x": "2001-01-01"}, "null": "~"}),
            json!({"": 1, "1": 2, "true": null, "<<": {"x": 1}, "é": 7, "gone": null, "empty": {"a": []}}),
        ];
        let ytt = ytt();
        for value in values {
            let by_file = ytt.render(&call(ECHO, &json!({"v": value}))).await.unwrap();
            let by_argument = by_argument(&ytt.binary, &value).await;
            assert_eq!(by_file, by_argument, "{value}");
        }
    }

    async fn by_argument(binary: &Path, value: &Value) -> Value {
        let mut child = Command::new(binary)
            .args(["-f", "-", "-o", "json", "--data-value-yaml"])
            .arg(format!("v={value}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(ECHO.as_bytes())
            .await
            .unwrap();
        first_document(&child.wait_with_output().await.unwrap().stdout).unwrap()
    }

    /// Upstream fails on these: its argument is read as YAML, which refuses them.
    #[tokio::test]
    async fn control_characters_arrive() {
        let text = "a\u{7f}b\u{85}c\u{feff}d\u{2028}e\u{2029} f";
        let rendered = ytt().render(&call(ECHO, &json!({"v": text}))).await;
        assert_eq!(rendered, Ok(json!({"value": text})));
    }

    #[tokio::test]
    async fn a_large_value_needs_no_argument() {
        let large = "x".repeat(300 * 1024);
        let rendered = ytt()
            .render(&call(ECHO, &json!({"v": large})))
            .await
            .unwrap();
        assert_eq!(rendered["value"].as_str().map(str::len), Some(300 * 1024));
    }

    #[tokio::test]
    async fn the_same_call_runs_once() {
        let ytt = ytt();
        let call = call(ECHO, &json!({"v": 1}));
        let first = ytt.render(&call).await;
        let cached = Ytt {
            binary: "/nowhere/ytt".into(),
            ..ytt
        };
        assert_eq!(cached.render(&call).await, first);
    }

    #[tokio::test]
    async fn a_rendering_that_never_ends_is_cut_before_it_fills_the_memory() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let endless = folder.path().join("ytt");
        std::fs::write(&endless, "#!/bin/sh\nexec yes\n").unwrap();
        std::fs::set_permissions(&endless, std::fs::Permissions::from_mode(0o700)).unwrap();
        let ytt = Ytt::new(endless, 1, Arc::new(Metrics::new()));
        let error = ytt.render(&call(ECHO, &json!({}))).await.unwrap_err();
        assert_eq!(
            error,
            "unable to apply ytt template: the output is longer than 4 MiB"
        );
    }
}
