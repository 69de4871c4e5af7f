//! Folders that are removed even when the test is killed.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

/// Waits for the end of stdin, which comes when the owner drops the folder or dies. Processes that use the folder are
/// killed at the same moment, but each by a supervisor that may have to wait for a processor first; until then one may write
/// while `rm` walks. So it gets a minute of tries.
const JANITOR: &str = r#"
cat >/dev/null
for _ in {1..300}; do
  rm -rf -- "$1" 2>/dev/null && exit
  sleep 0.2
done
"#;

/// A temporary folder that goes when this value is dropped, or when the process dies of whatever cause.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    janitor: Child,
}

impl Scratch {
    /// A new empty folder in the system's temporary folder; its name starts with `prefix`.
    ///
    /// # Errors
    ///
    /// When the folder cannot be created or bash not started.
    pub fn new(prefix: &str) -> anyhow::Result<Self> {
        let path = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir()
            .context("temporary folder")?
            .keep();
        let janitor = Command::new("bash")
            .args(["-c", JANITOR, "janitor"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("bash, which removes temporary folders")?;
        Ok(Self { path, janitor })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        // The only error is "waited for before": nothing is left to do then.
        let _ = self.janitor.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_folder_is_gone_with_what_was_in_it() {
        let scratch = Scratch::new("carto-scratch-").unwrap();
        let path = scratch.path().to_path_buf();
        std::fs::create_dir(path.join("inner")).unwrap();
        std::fs::write(path.join("inner/file"), "text").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }
}
