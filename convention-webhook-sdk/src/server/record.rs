//! Exchanges on disk, for tests that replay them.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use serde_json::value::RawValue;
use tracing::warn;

use super::error::ServeError;

/// More would fill a disk, and nobody replays so many.
const MOST: usize = 1000;

/// Writes exchanges to a directory.
pub(super) struct Recorder {
    directory: PathBuf,
    next: AtomicUsize,
}

/// The number in the name of a file.
fn number_of(name: &str) -> Option<usize> {
    let number = name.strip_prefix("exchange-")?.strip_suffix(".json")?;
    number.parse().ok().filter(|number| *number < MOST)
}

/// What a file has. `testing::replay` reads it.
#[derive(Serialize)]
struct Exchange<'e> {
    path: &'e str,
    status: u16,
    request: &'e RawValue,
    answer: &'e RawValue,
}

impl Recorder {
    /// Makes the directory, if it is not there.
    pub(super) fn open(directory: &Path) -> Result<Self, ServeError> {
        let wrong = |source| ServeError::Record {
            directory: directory.to_owned(),
            source,
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(directory).map_err(wrong)?;
        let mut next = 0;
        for entry in fs::read_dir(directory).map_err(wrong)? {
            let name = entry.map_err(wrong)?.file_name();
            let number = name.to_str().and_then(number_of);
            next = next.max(number.map_or(0, |number| number + 1));
        }
        warn!(directory = %directory.display(), "exchanges are recorded; the files hold what templates hold");
        Ok(Self {
            directory: directory.to_owned(),
            next: AtomicUsize::new(next),
        })
    }

    /// Writes an exchange, if there is room for one more. Only its owner may read the file.
    pub(super) fn write(
        &self,
        path: &str,
        request: &[u8],
        status: u16,
        answer: &[u8],
    ) -> io::Result<()> {
        let step = |number| (number < MOST).then_some(number + 1);
        let next = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        let Ok(number) = next else {
            return Ok(());
        };
        let exchange = Exchange {
            path,
            status,
            request: serde_json::from_slice(request)?,
            answer: serde_json::from_slice(answer)?,
        };
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        serde_json::to_writer_pretty(io::BufWriter::new(&mut file), &exchange)?;
        file.flush()?;
        let name = format!("exchange-{number:04}.json");
        file.persist_noclobber(self.directory.join(name))?;
        Ok(())
    }
}
