//! Logs: JSON lines on stderr, or lines for humans with `--dev`; the level may be changed while running. And traces for a
//! collector, if there is one.
//!
//! Bodies of objects are never logged, at no level: rendered objects contain Secrets
//! (docs/behaviour/process.md#logs). Third-party crates log warnings only, at every level.

mod lines;
mod traces;

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::panic::PanicHookInfo;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use thiserror::Error;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::{Layer, Registry};

use lines::{Line, Lines};
pub(crate) use traces::{Exporter, TRACED, Traces, exporting};

/// Crates that are not ours and speak below warning level about every request.
const THIRD_PARTY: [&str; 10] = [
    "h2",
    "hyper",
    "hyper_util",
    "kube",
    "kube_client",
    "kube_runtime",
    "rustls",
    "tokio_util",
    "tower",
    "tower_http",
];

/// What is on its way to stderr.
static STDERR: Lines = Lines::new();

/// What is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogLevel {
    /// What somebody must look at.
    Error,
    /// And what happens in the large.
    Info,
    /// And what happens in the small.
    Debug,
}

impl LogLevel {
    /// The names, as in `--log-level`.
    pub const NAMES: [&'static str; 3] = ["error", "info", "debug"];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    fn filter(self) -> Targets {
        let ours = match self {
            Self::Error => LevelFilter::ERROR,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
        };
        let theirs = ours.min(LevelFilter::WARN);
        Targets::new()
            .with_default(ours)
            .with_targets(THIRD_PARTY.map(|target| (target, theirs)))
            .with_target(TRACED, LevelFilter::OFF)
            // Its warnings quote answers that it cannot read, whole: tokens and Secrets among them.
            .with_target("kube_client::client", LevelFilter::ERROR)
            // Each refused listing, each time it is tried; the watch tells of it, once.
            .with_target("kube_runtime::watcher", LevelFilter::OFF)
            // Each failed connection, without address or cause; whoever made the request gets the error and tells both.
            .with_target("kube_client::client::builder", LevelFilter::OFF)
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How long the end of the process waits for whoever takes its last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// A level that does not exist.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("log level must be one of error, info, debug")]
pub struct UnknownLevel;

impl FromStr for LogLevel {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        match text {
            "error" => Ok(Self::Error),
            "info" => Ok(Self::Info),
            "debug" => Ok(Self::Debug),
            _ => Err(UnknownLevel),
        }
    }
}

/// Changes the level while the process runs. Clones are the same switch.
#[derive(Clone)]
pub struct LogControl {
    handle: Handle<Targets, Registry>,
    level: Arc<Mutex<LogLevel>>,
}

impl LogControl {
    /// A switch that no subscriber is connected to.
    #[cfg(test)]
    pub(crate) fn detached(level: LogLevel) -> Self {
        let (_, handle) = reload::Layer::new(level.filter());
        Self {
            handle,
            level: Arc::new(Mutex::new(level)),
        }
    }

    /// What is logged now.
    pub fn level(&self) -> LogLevel {
        *self.level.lock()
    }

    /// Logs at this level from now on.
    pub fn set(&self, level: LogLevel) {
        // Fails only when the subscriber is gone, and then nothing is logged anyway.
        let _ = self.handle.reload(level.filter());
        *self.level.lock() = level;
    }
}

/// Sets up logging for the process, panics included, and traces if there are any. Call it once, first thing.
///
/// # Errors
/// When something else has set up logging before.
pub(crate) fn init(
    level: LogLevel,
    dev: bool,
    traces: Option<Traces>,
) -> Result<LogControl, tracing::subscriber::SetGlobalDefaultError> {
    let (subscriber, control) = subscriber(level, dev, || Line(&STDERR), traces);
    tracing::subscriber::set_global_default(subscriber)?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(control)
}

/// Says something to the user, in plain words, when logging may not be set up.
pub(crate) fn say(text: &str) {
    STDERR.push(format!("{text}\n").into_bytes());
}

/// When dropped, what was logged is written before the process ends, if anybody takes it within a second.
#[derive(Debug)]
pub(crate) struct WrittenAtEnd;

impl Drop for WrittenAtEnd {
    fn drop(&mut self) {
        STDERR.wait(LAST_LINES);
    }
}

/// Where it happened; who catches it tells what it happened to.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = crate::scheduler::panic_text(panic.payload());
    let location = panic
        .location()
        .map(ToString::to_string)
        .unwrap_or_default();
    tracing::error!(panic = message, location, "panic");
}

fn subscriber<W>(
    level: LogLevel,
    dev: bool,
    writer: W,
    traces: Option<Traces>,
) -> (impl Subscriber + Send + Sync, LogControl)
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(level.filter());
    let base = tracing_subscriber::fmt::layer().with_writer(writer);
    let lines = if dev {
        base.with_ansi(io::stderr().is_terminal()).boxed()
    } else {
        base.json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .boxed()
    };
    let control = LogControl {
        handle,
        level: Arc::new(Mutex::new(level)),
    };
    // Each has a filter of its own: what is traced is no matter of what is logged.
    let lines = lines.with_filter(filter).boxed();
    let layers: Vec<_> = [lines].into_iter().chain(traces).collect();
    (Registry::default().with(layers), control)
}

#[cfg(test)]
pub(crate) use tests::logged;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tracing::{debug, debug_span, error, info, info_span};
    use tracing_subscriber::filter::filter_fn;

    use super::*;

    /// In the place of what sends spans.
    struct Silent;

    impl Layer<Registry> for Silent {}

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Lines {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().clone()).unwrap()
        }
    }

    pub(crate) fn logged(level: LogLevel, dev: bool, act: impl FnOnce(&LogControl)) -> String {
        let lines = Lines::default();
        let made = lines.clone();
        let traces = Silent.with_filter(filter_fn(traces::is_traced)).boxed();
        let (subscriber, control) = subscriber(level, dev, move || made.clone(), Some(traces));
        tracing::subscriber::with_default(subscriber, || act(&control));
        lines.text()
    }

    #[test]
    fn a_line_is_one_json_object_with_the_owner() {
        let text = logged(LogLevel::Info, false, |_| {
            let _span = info_span!("reconcile", workload = "dev/app").entered();
            info!(reason = "Ready", "reconciled");
        });
        let line: Value = serde_json::from_str(text.trim()).unwrap();
        assert_eq!(
            (&line["level"], &line["message"], &line["reason"]),
            (&"INFO".into(), &"reconciled".into(), &"Ready".into())
        );
        assert_eq!(
            line["span"],
            json!({"name": "reconcile", "workload": "dev/app"})
        );
    }

    #[test]
    fn what_only_traces_show_does_not_stand_between_a_line_and_its_owner() {
        let text = logged(LogLevel::Debug, false, |_| {
            let _owner = info_span!("reconcile", workload = "dev/app").entered();
            let step = debug_span!(target: TRACED, "submit", step = "image").entered();
            assert!(!step.is_disabled(), "nothing is traced");
            info!("reconciled");
        });
        let line: Value = serde_json::from_str(text.trim()).unwrap();
        let owner = json!({"name": "reconcile", "workload": "dev/app"});
        assert_eq!(line["span"], owner);
    }

    #[test]
    fn lines_for_humans_are_no_json() {
        let text = logged(LogLevel::Info, true, |_| info!("reconciled"));
        assert!(
            text.contains("INFO") && text.contains("reconciled") && !text.starts_with('{'),
            "{text}"
        );
    }

    #[test]
    fn the_level_counts_and_may_be_changed_while_running() {
        let text = logged(LogLevel::Error, false, |control| {
            info!("one");
            error!("two");
            control.set(LogLevel::Debug);
            debug!("three");
            control.set(LogLevel::Info);
            debug!("four");
            info!("five");
            assert_eq!(control.level(), LogLevel::Info);
        });
        let messages: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["message"].clone())
            .collect();
        assert_eq!(messages, ["two", "three", "five"]);
    }

    #[test]
    fn other_peoples_crates_never_speak_below_a_warning() {
        let text = logged(LogLevel::Debug, false, |_| {
            debug!(target: "kube_client::client", "a request with everything in it");
            info!(target: "hyper::proto", "a header");
            tracing::warn!(target: "rustls", "a warning");
            debug!(target: "controller_kit::tokens", "ours");
        });
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn names_are_read_back() {
        for name in LogLevel::NAMES {
            assert_eq!(name.parse::<LogLevel>().unwrap().as_str(), name);
        }
        assert_eq!("warn".parse::<LogLevel>(), Err(UnknownLevel));
    }
}
