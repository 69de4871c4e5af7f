//! Logs.

use tracing_subscriber::EnvFilter;

/// Logs as JSON lines on standard error, from level `info` or as `RUST_LOG` says. Called a second
/// time, or where somebody else has set up logs, it does nothing.
///
/// No template and no bill of materials is ever logged by this crate.
pub fn init_logs() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error says that there are logs.
    let _ = lines.try_init();
}
