//! A registry that the node pulls from and Pods ask: with TLS, and an authority of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use test_support::node::Reachable;
use test_support::{DockerRegistry, Node, assets};

/// A running registry. Dropping it stops it.
pub struct NodeRegistry {
    registry: DockerRegistry,
    reachable: Reachable,
    authority: String,
}

impl NodeRegistry {
    /// Starts it, and tells the node's container runtime whom to trust.
    ///
    /// # Errors
    ///
    /// When it does not start, or the node's folder cannot be written.
    pub async fn start(node: &Node) -> anyhow::Result<Self> {
        let registry = DockerRegistry::builder().with_tls().start().await?;
        let port = registry.host().rsplit(':').next().map(str::parse);
        let reachable = node
            .reach(port.context("a registry without a port")??)
            .await?;
        let authority = registry.authority()?.context("TLS has an authority")?;
        let address = reachable.address();
        let folder = node.folder().join("registries").join(address.to_string());
        fs::create_dir_all(&folder)?;
        let file = folder.join("ca.crt");
        fs::write(&file, &authority)?;
        let hosts = format!(
            "server = \"https://{address}\"\n[host.\"https://{address}\"]\nca = \"{}\"\n",
            file.display()
        );
        fs::write(folder.join("hosts.toml"), hosts)?;
        Ok(Self {
            registry,
            reachable,
            authority,
        })
    }

    /// The certificate of the authority that clients must trust, as PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Pushes an image that is in an archive, and returns the reference by which the node pulls it.
    ///
    /// # Errors
    ///
    /// What crane says.
    pub fn push(&self, archive: &Path, name: &str) -> anyhow::Result<String> {
        let trusted = archive.with_extension("ca.crt");
        fs::write(&trusted, &self.authority)?;
        let pushed = Command::new(assets()?.binary("crane")?)
            .arg("push")
            .arg(archive)
            .arg(format!("{}/{name}", self.registry.host()))
            .env("SSL_CERT_FILE", &trusted)
            .output()
            .context("crane")?;
        let said = String::from_utf8_lossy(&pushed.stderr);
        ensure!(pushed.status.success(), "crane push: {said}");
        Ok(format!("{}/{name}", self.reachable.address()))
    }
}
