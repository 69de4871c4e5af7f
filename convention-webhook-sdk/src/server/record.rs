//! Exchanges on disk, for tests that replay them.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde::Serialize;
use serde_json::value::RawValue;
use tracing::warn;

use super::error::ServeError;

/// More would fill a disk, and nobody replays so many.
const MOST: usize = 1000;
/// Bytes of all files, which are about as long as what they hold: requests may have 64 MiB.
const MOST_BYTES: u64 = 1 << 30;

/// Writes exchanges to a directory.
pub(super) struct Recorder {
    directory: PathBuf,
    next: AtomicUsize,
    /// What may still be written.
    room: AtomicU64,
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
        let (mut next, mut room) = (0, MOST_BYTES);
        for entry in fs::read_dir(directory).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let Some(number) = entry.file_name().to_str().and_then(number_of) else {
                continue;
            };
            next = next.max(number + 1);
            room = room.saturating_sub(entry.metadata().map_err(wrong)?.len());
        }
        warn!(directory = %directory.display(), "exchanges are recorded; the files hold what templates hold");
        Ok(Self {
            directory: directory.to_owned(),
            next: AtomicUsize::new(next),
            room: AtomicU64::new(room),
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
        let bytes = (request.len() + answer.len()) as u64;
        let take = |room: u64| room.checked_sub(bytes);
        let taken = self
            .room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        if taken.is_err() {
            return Ok(());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn files(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn no_more_is_written_than_a_disk_takes_also_by_a_server_that_was_started_again() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::open(folder.path()).unwrap();
        recorder.write("/", b"{}", 200, b"{}").unwrap();
        assert_eq!(files(folder.path()), 1);
        let large = folder.path().join("exchange-0007.json");
        fs::File::create(&large)
            .unwrap()
            .set_len(MOST_BYTES)
            .unwrap();
        let again = Recorder::open(folder.path()).unwrap();
        again.write("/", b"{}", 200, b"{}").unwrap();
        assert_eq!(files(folder.path()), 2);
        fs::remove_file(large).unwrap();
        let again = Recorder::open(folder.path()).unwrap();
        again.write("/", b"{}", 200, b"{}").unwrap();
        assert_eq!(files(folder.path()), 2);
    }
}
