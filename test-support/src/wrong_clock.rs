//! A machine whose clock is wrong, or is set while a process runs, as far as one process can tell.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/wrong_clock.rs");

/// The time of day of processes that are started with its [`environment`](Self::environment); their timers and those of all
/// others go on as they are.
#[derive(Debug)]
pub struct WrongClock {
    library: PathBuf,
    offset: PathBuf,
}

impl WrongClock {
    /// One that is right as yet, with its files in this folder; each has a name of its own there, and the library is that of all.
    ///
    /// # Errors
    ///
    /// When the library that answers instead of the C library cannot be compiled.
    pub fn new(folder: &Path, name: &str) -> anyhow::Result<Self> {
        let clock = Self {
            library: folder.join("wrong_clock.so"),
            offset: folder.join(format!("{name}.offset")),
        };
        clock.set(0)?;
        if clock.library.exists() {
            return Ok(clock);
        }
        let compiled = Command::new("rustc")
            .args(["--edition=2024", "--crate-type=cdylib", "-O"])
            .args(["-Cpanic=abort", "--crate-name=wrong_clock", "-o"])
            .arg(&clock.library)
            .arg(SOURCE)
            // Which compiler it is depends on the folder.
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .context("rustc")?;
        let said = String::from_utf8_lossy(&compiled.stderr);
        ensure!(compiled.status.success(), "rustc {SOURCE}: {said}");
        Ok(clock)
    }

    /// From now on it is off by so many seconds.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn set(&self, seconds: i64) -> anyhow::Result<()> {
        // Whole at any moment.
        let next = self.offset.with_extension("next");
        std::fs::write(&next, seconds.to_string())?;
        std::fs::rename(&next, &self.offset)?;
        Ok(())
    }

    /// What a process has to be started with.
    #[must_use]
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("LD_PRELOAD", self.library.clone()),
            ("WRONG_CLOCK", self.offset.clone()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours_off(clock: &WrongClock) -> i64 {
        let said = Command::new("date")
            .args(["-u", "+%s"])
            .envs(clock.environment())
            .output()
            .unwrap();
        let seconds: i64 = String::from_utf8(said.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let now = Command::new("date").args(["-u", "+%s"]).output().unwrap();
        let now: i64 = String::from_utf8(now.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        // To the next hour: looking takes time.
        (seconds - now + 1800).div_euclid(3600)
    }

    #[test]
    fn a_process_has_the_time_that_was_set_last() {
        let folder = tempfile::tempdir().unwrap();
        let clock = WrongClock::new(folder.path(), "clock").unwrap();
        assert_eq!(hours_off(&clock), 0);
        for hours in [2, -24] {
            clock.set(hours * 3600).unwrap();
            assert_eq!(hours_off(&clock), hours);
        }
    }
}
