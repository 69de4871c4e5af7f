//! What the tests share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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

pub(crate) fn crds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds")
}
