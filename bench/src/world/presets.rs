//! What is needed to serve pod presets.

use super::{LIMIT, World};

/// As shipped.
const TIMEOUT_SECONDS: u8 = 2;

impl World {
    /// The rights that are shipped.
    pub(crate) async fn install_presets(&self) -> anyhow::Result<()> {
        self.plane.install_presets().await
    }

    /// Has the API server ask whoever serves at this port about pods.
    pub(crate) async fn register_presets(&self, port: u16) -> anyhow::Result<()> {
        let plane = &self.plane;
        plane
            .register_preset_webhooks(port, TIMEOUT_SECONDS, LIMIT)
            .await
    }
}
