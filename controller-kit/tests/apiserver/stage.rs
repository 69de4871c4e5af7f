//! What the tests share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use controller_kit::share::MayShare;
use controller_kit::stamped::{STALE_AFTER, WatchSettings};
use jiff::Timestamp;

/// Long enough for a loaded machine; tests wait for states, so a fast machine never waits this long.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

#[expect(
    clippy::disallowed_methods,
    reason = "the API server's clock is the real one"
)]
pub(crate) fn clock() -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
    Arc::new(Timestamp::now)
}

/// Of watches for Workloads, which nobody is told of.
pub(crate) fn watch_settings() -> WatchSettings {
    WatchSettings {
        share: MayShare::default(),
        label: "carto.run/workload-name",
        field_manager: "test",
        owner_kind: "Workload",
        wake: Arc::new(|_, _| {}),
        moved: Arc::new(|_, _| {}),
        stale_after: STALE_AFTER,
        hears_others: Arc::new(|_| true),
        clock: clock(),
    }
}

pub(crate) fn crds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds")
}
