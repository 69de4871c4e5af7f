//! A real OCI registry without TLS on loopback: `crane registry serve`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::assets::assets;
use crate::git_server::write_files;
use crate::process::Process;
use crate::scratch::Scratch;

const START_LIMIT: Duration = Duration::from_mins(2);

/// A registry that forgets everything when it is dropped.
#[derive(Debug)]
pub struct OciRegistry {
    _process: Process,
    port: u16,
    crane: PathBuf,
    home: Scratch,
}

impl OciRegistry {
    /// Starts an empty registry on a port of its own choice.
    ///
    /// # Errors
    ///
    /// When `crane` is missing (run `make control-plane`) or says no port in time.
    pub async fn start() -> anyhow::Result<Self> {
        let crane = assets()?.binary("crane")?;
        let home = Scratch::new("carto-registry-")?;
        let log = home.path().join("registry.log");
        let mut process = Process::builder(&crane)
            .args(["registry", "serve", "--address", "127.0.0.1:0"])
            .start(&log)?;
        let look = || async { named_port(&std::fs::read_to_string(&log)?) };
        let port = process.ready(START_LIMIT, look).await?;
        Ok(Self {
            _process: process,
            port,
            crane,
            home,
        })
    }

    /// Host and port, the first part of a reference: `127.0.0.1:34567`.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Pushes an image with one layer that holds the files (path and content), and returns its digest, `sha256:...`.
    /// Flux reads it as an artifact. Equal files give an equal layer.
    ///
    /// # Errors
    ///
    /// When `tar` or `crane` fail.
    pub fn push_image(
        &self,
        name: &str,
        tag: &str,
        files: &[(&str, &str)],
    ) -> anyhow::Result<String> {
        let folder = tempfile::tempdir_in(self.home.path())?;
        let (content, layer) = (
            folder.path().join("content"),
            folder.path().join("layer.tar"),
        );
        std::fs::create_dir(&content)?;
        write_files(&content, files)?;
        pack(&content, &layer)?;
        let reference = format!("{}/{name}:{tag}", self.host());
        let pushed = output(
            Command::new(&self.crane)
                .args([
                    "append",
                    "--insecure",
                    "--oci-empty-base",
                    "--new_tag",
                    &reference,
                    "--new_layer",
                ])
                .arg(&layer),
        )?;
        // It prints the reference by digest.
        let digest = pushed
            .trim()
            .split_once('@')
            .with_context(|| format!("crane printed {pushed:?}, no digest"))?
            .1;
        Ok(digest.to_owned())
    }
}

/// The port that the registry names in its log.
fn named_port(log: &str) -> anyhow::Result<u16> {
    let named = log.split_once("serving on port ");
    // Whole lines only: the number may be half written.
    let port = named.and_then(|(_, rest)| rest.split_once('\n'));
    let (port, _) = port.context("the registry named no port")?;
    port.trim()
        .parse()
        .with_context(|| format!("port {port:?}"))
}

/// The same files give the same bytes: names sorted, no times, no owners.
fn pack(folder: &Path, archive: &Path) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--sort=name",
        "--mtime=@0",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ]);
    output(
        tar.arg("--file")
            .arg(archive)
            .arg("--directory")
            .arg(folder)
            .arg("."),
    )?;
    Ok(())
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .output()
        .with_context(|| command.get_program().display().to_string())?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pushed_image_has_the_digest_that_the_registry_serves() {
        let registry = OciRegistry::start().await.unwrap();
        let digest = registry
            .push_image("team/app", "v1", &[("a.yaml", "a: 1")])
            .unwrap();
        let reference = format!("{}/team/app:v1", registry.host());
        let served = output(Command::new(&registry.crane).args(["digest", &reference])).unwrap();
        assert_eq!(served.trim(), digest);
        let other = registry
            .push_image("team/app", "v1", &[("a.yaml", "a: 2")])
            .unwrap();
        assert_ne!(digest, other);
    }
}
