//! Bills of materials on disk: by repository and digest, bounded, and whole or not there.
//!
//! A file is written under another name and renamed when its digest is right. It is looked through
//! when it is first opened by this process, and when it has changed since.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conventions::image::Digest;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::arriving::Arriving;
use crate::contents::ContentKey;
use crate::hash::{digest_of_hash, hex};
use crate::unpack::UNFINISHED;

/// A small file takes more of a disk than its bytes.
const LEAST: u64 = 16 << 10;
/// Files that are known to be whole.
const WHOLE: usize = 4096;

/// Files by the digest of what is in them.
pub(crate) struct Layers {
    folder: PathBuf,
    most: u64,
    arriving: Arriving,
    known: Mutex<Known>,
    /// By name, what the file looked like when its digest was right.
    whole: Cache<String, Look>,
}

#[derive(Default)]
struct Known {
    files: HashMap<String, Entry>,
    total: u64,
    /// Counts uses.
    now: u64,
}

struct Entry {
    bytes: u64,
    used: u64,
}

/// Tells whether a file is still the same.
#[derive(Clone, PartialEq, Eq)]
struct Look(u64, u64, i64, i64);

impl Look {
    fn of(file: &File) -> io::Result<Self> {
        let it = file.metadata()?;
        Ok(Self(it.ino(), it.len(), it.mtime(), it.mtime_nsec()))
    }
}

impl Layers {
    /// Takes what is in the folder; what is not whole is removed.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made or read.
    pub(crate) fn open(folder: &Path, most: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let metadata = entry.metadata()?;
            if name.starts_with(UNFINISHED) {
                fs::remove_file(entry.path())?;
            } else if is_name(&name) && metadata.is_file() {
                found.push((metadata.modified()?, name, metadata.len()));
            }
        }
        found.sort();
        let layers = Self {
            folder: folder.to_owned(),
            most,
            arriving: Arriving::new(most),
            known: Mutex::default(),
            whole: Cache::new(WHOLE),
        };
        for (_, name, bytes) in found {
            layers.count(name, bytes);
        }
        Ok(layers)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is on its way to the folder.
    pub(crate) fn arriving(&self) -> Arriving {
        self.arriving.clone()
    }

    /// The file with this content, if it is there and whole. Reads all of it the first time;
    /// blocks.
    pub(crate) fn get(&self, key: &ContentKey) -> Option<Arc<File>> {
        let name = name_of(key);
        {
            let mut known = self.known.lock();
            known.now += 1;
            let now = known.now;
            known.files.get_mut(&name)?.used = now;
        }
        let file = File::open(self.folder.join(&name)).ok();
        let file = file.filter(|file| self.is_whole(&name, file, &key.digest));
        if file.is_none() {
            self.forget(&name);
        }
        file.map(Arc::new)
    }

    fn is_whole(&self, name: &str, file: &File, digest: &Digest) -> bool {
        let Ok(look) = Look::of(file) else {
            return false;
        };
        if self.whole.get(name) == Some(look.clone()) {
            return true;
        }
        let mut hash = Sha256::new();
        let read = io::copy(&mut &*file, &mut Hashing(&mut hash));
        let whole = read.is_ok() && digest_of_hash(hash) == *digest;
        if whole {
            self.whole.insert(name.to_owned(), look);
        }
        whole
    }

    /// Keeps a file whose digest is right. Others that nobody has used for longest go. Blocks.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written.
    pub(crate) fn keep(&self, key: &ContentKey, file: NamedTempFile) -> io::Result<Arc<File>> {
        let name = name_of(key);
        let file = file.persist(self.folder.join(&name))?;
        let look = Look::of(&file)?;
        let bytes = look.1;
        self.whole.insert(name.clone(), look);
        self.count(name, bytes);
        Ok(Arc::new(file))
    }

    fn count(&self, name: String, bytes: u64) {
        let bytes = bytes.max(LEAST);
        let mut known = self.known.lock();
        known.now += 1;
        let used = known.now;
        known.total += bytes;
        if let Some(before) = known.files.insert(name, Entry { bytes, used }) {
            known.total -= before.bytes;
        }
        while known.total > self.most && known.files.len() > 1 {
            let oldest = known.files.iter().min_by_key(|(_, entry)| entry.used);
            let Some(name) = oldest.map(|(name, _)| name.clone()) else {
                return;
            };
            if let Some(entry) = known.files.remove(&name) {
                known.total -= entry.bytes;
            }
            // Who has it open can still read it. A file that cannot be removed is found at the next
            // start.
            let _ = fs::remove_file(self.folder.join(&name));
        }
    }

    fn forget(&self, name: &str) {
        let mut known = self.known.lock();
        if let Some(entry) = known.files.remove(name) {
            known.total -= entry.bytes;
        }
        let _ = fs::remove_file(self.folder.join(name));
    }
}

/// The name says nothing about the repository, and fits into any file system.
fn name_of(key: &ContentKey) -> String {
    let scope = Sha256::digest(key.repository.as_bytes());
    let digest = key.digest.as_str().trim_start_matches("sha256:");
    format!("{digest}-{}", hex(&scope[..16]))
}

fn is_name(name: &str) -> bool {
    let fits =
        |text: &str, length| text.len() == length && text.bytes().all(|c| c.is_ascii_hexdigit());
    name.split_once('-')
        .is_some_and(|(digest, scope)| fits(digest, 64) && fits(scope, 32))
}

struct Hashing<'h>(&'h mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;
    use crate::hash::digest_of;

    fn key(content: &[u8], repository: &str) -> ContentKey {
        ContentKey {
            repository: repository.into(),
            digest: digest_of(content),
        }
    }

    fn put(layers: &Layers, content: &[u8], repository: &str) -> Arc<File> {
        let mut file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(layers.folder())
            .unwrap();
        file.write_all(content).unwrap();
        layers.keep(&key(content, repository), file).unwrap()
    }

    fn has(layers: &Layers, content: &[u8], repository: &str) -> bool {
        let Some(file) = layers.get(&key(content, repository)) else {
            return false;
        };
        let mut read = Vec::new();
        File::open(format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&*file)
        ))
        .unwrap()
        .read_to_end(&mut read)
        .unwrap();
        read == content
    }

    #[test]
    fn what_is_kept_is_there_after_a_restart_and_for_its_repository_only() {
        let folder = tempfile::tempdir().unwrap();
        let layers = Layers::open(folder.path(), 1 << 30).unwrap();
        put(&layers, b"content", "a.example/app");
        fs::write(folder.path().join(format!("{UNFINISHED}x")), "half").unwrap();
        fs::write(folder.path().join("notes"), "of somebody else").unwrap();
        for layers in [layers, Layers::open(folder.path(), 1 << 30).unwrap()] {
            assert!(has(&layers, b"content", "a.example/app"));
            assert!(!has(&layers, b"content", "a.example/other"));
        }
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [name_of(&key(b"content", "a.example/app")).as_str(), "notes"]
        );
    }

    #[test]
    fn a_file_that_is_not_what_it_was_is_not_given() {
        let folder = tempfile::tempdir().unwrap();
        let layers = Layers::open(folder.path(), 1 << 30).unwrap();
        put(&layers, b"content", "r");
        let path = folder.path().join(name_of(&key(b"content", "r")));
        for broken in [&b"conten"[..], b"c0ntent", b""] {
            put(&layers, b"content", "r");
            assert!(has(&layers, b"content", "r"));
            fs::write(&path, broken).unwrap();
            // A clock that is coarse does not hide it.
            let later = fs::metadata(&path).unwrap().modified().unwrap()
                + std::time::Duration::from_secs(1);
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(later)
                .unwrap();
            assert!(!has(&layers, b"content", "r"));
            assert!(!path.exists());
        }
        put(&layers, b"content", "r");
        fs::write(&path, b"c0ntent").unwrap();
        let layers = Layers::open(folder.path(), 1 << 30).unwrap();
        assert!(!has(&layers, b"content", "r"), "a restart believes nothing");
    }

    #[test]
    fn what_nobody_uses_goes_first_and_who_has_it_open_can_read_on() {
        let folder = tempfile::tempdir().unwrap();
        let layers = Layers::open(folder.path(), 3 * LEAST).unwrap();
        let first = put(&layers, b"first", "r");
        put(&layers, b"second", "r");
        put(&layers, b"third", "r");
        assert!(has(&layers, b"first", "r"));
        put(&layers, b"fourth", "r");
        assert!(has(&layers, b"first", "r") && !has(&layers, b"second", "r"));
        for number in 0..10_u8 {
            put(&layers, &[number], "r");
        }
        assert!(!has(&layers, b"first", "r"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        assert_eq!(first.metadata().unwrap().len(), 5);
        let layers = Layers::open(folder.path(), LEAST).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        put(&layers, &vec![1; 1 << 20], "r");
        assert!(has(&layers, &vec![1; 1 << 20], "r"), "one is always kept");
    }
}
