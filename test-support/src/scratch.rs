//! Folders that are removed even when the test is killed, unless somebody wants to look into them.

use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

/// Waits for the end of stdin, which comes when the owner drops the folder or dies. Processes that use the folder are
/// killed at the same moment, but each by a supervisor that may have to wait for a processor first; until then one may write
/// while `rm` walks. So it gets a minute of tries. With a second argument, the folder goes only if the owner says so.
const JANITOR: &str = r#"
said=$(cat)
[[ -z $2 || $said == remove ]] || exit 0
for _ in {1..300}; do
  rm -rf -- "$1" 2>/dev/null && exit
  sleep 0.2
done
"#;

/// Which folders are left for somebody to look into: logs of the API server, of etcd and of controllers, the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Nothing,
    /// Those of tests that panic, or are killed.
    Failed,
    /// All: a test that returns an error has not panicked.
    All,
}

impl Keep {
    /// What `CARTO_KEEP` asks for.
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no command line of their own: cargo hands them nothing but the environment"
    )]
    fn asked_for() -> Self {
        match std::env::var("CARTO_KEEP").as_deref() {
            Ok("1") => Self::Failed,
            Ok("all") => Self::All,
            _ => Self::Nothing,
        }
    }

    fn keeps(self, failed: bool) -> bool {
        self == Self::All || failed && self == Self::Failed
    }
}

/// A temporary folder that goes when this value is dropped, or when the process dies of whatever cause.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    janitor: Child,
    keep: Keep,
}

impl Scratch {
    /// A new empty folder in the system's temporary folder; its name starts with `prefix`.
    ///
    /// # Errors
    ///
    /// When the folder cannot be created or bash not started.
    pub fn new(prefix: &str) -> anyhow::Result<Self> {
        Self::keeping(prefix, Keep::asked_for())
    }

    fn keeping(prefix: &str, keep: Keep) -> anyhow::Result<Self> {
        let path = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir()
            .context("temporary folder")?
            .keep();
        let janitor = Command::new("bash")
            .args(["-c", JANITOR, "janitor"])
            .arg(&path)
            .arg(if keep == Keep::Nothing { "" } else { "keep" })
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("bash, which removes temporary folders")?;
        Ok(Self {
            path,
            janitor,
            keep,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    #[expect(clippy::print_stderr, reason = "it is read with the test's output")]
    fn drop(&mut self) {
        let mut orders = self.janitor.stdin.take();
        if self.keep.keeps(std::thread::panicking()) {
            eprintln!("kept: {}", self.path.display());
        } else if let Some(orders) = &mut orders {
            // A janitor that is gone has nothing to be told.
            let _ = orders.write_all(b"remove");
        }
        // The janitor waits for the end of them.
        drop(orders);
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

    /// A folder of a thread that panics, or does not.
    fn left(keep: Keep, panics: bool) -> PathBuf {
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let scratch = Scratch::keeping("carto-scratch-", keep).unwrap();
            tell.send(scratch.path().to_path_buf()).unwrap();
            assert!(!panics, "as the test of this test wants");
        });
        assert_eq!(thread.join().is_err(), panics);
        told.recv().unwrap()
    }

    #[test]
    fn folders_of_tests_that_fail_are_kept_if_that_is_asked_for() {
        for (keep, panics, stays) in [
            (Keep::Nothing, true, false),
            (Keep::Failed, false, false),
            (Keep::Failed, true, true),
            (Keep::All, false, true),
        ] {
            let path = left(keep, panics);
            assert_eq!(path.exists(), stays, "{keep:?}, {panics}");
            let _ = std::fs::remove_dir_all(path);
        }
    }
}
