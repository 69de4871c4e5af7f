//! What is needed to serve pod presets.

use std::path::Path;

use anyhow::Context as _;
use test_support::documents;

use super::{LIMIT, World};

/// The configurations of webhooks that are shipped.
pub(crate) const PRESET_WEBHOOKS: &str = "carto-pod-presets";
const MANIFEST: &str = "../deploy/conventions/pod-presets.yaml";
/// As shipped.
const TIMEOUT_SECONDS: u8 = 2;

impl World {
    /// The rights that are shipped.
    pub(crate) async fn install_presets(&self) -> anyhow::Result<()> {
        self.plane.install_presets().await
    }

    /// Has the API server ask whoever serves at this port about pods.
    pub(crate) async fn register_presets(&self, port: u16) -> anyhow::Result<()> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(MANIFEST);
        let text = std::fs::read_to_string(&manifest);
        let text = text.with_context(|| manifest.display().to_string())?;
        for configuration in documents(&text)? {
            let kind = configuration["kind"].as_str().unwrap_or_default();
            if kind.ends_with("WebhookConfiguration") {
                let plane = &self.plane;
                let registered =
                    plane.register_webhooks(configuration, port, TIMEOUT_SECONDS, LIMIT);
                registered.await?;
            }
        }
        Ok(())
    }
}
