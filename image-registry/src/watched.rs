//! Files of the installation that are read again when they change.
//!
//! What a file said last that was good counts until there is something better. The log is told once
//! of each fault.

use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::settings::SettingsError;

/// Tells whether a file is still the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Option<SystemTime>, u64);

/// A file, and what was made of it.
pub(crate) struct Watched<T> {
    file: PathBuf,
    /// The most bytes that are read.
    limit: u64,
    /// What could not be read has not been seen.
    seen: Seen,
    good: Option<T>,
    /// Why it is not good now.
    cause: Option<String>,
}

/// What the file looked like when it was last read.
#[derive(PartialEq, Eq)]
enum Seen {
    Never,
    Missing,
    There(Stamp),
}

/// What may be new.
enum News {
    Nothing,
    Missing,
    Content(Vec<u8>),
}

impl Stamp {
    /// Nothing if there is no such file.
    ///
    /// # Errors
    ///
    /// If that cannot be found out.
    pub(crate) fn of(file: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(file) {
            Ok(metadata) => Ok(Some(Self(metadata.modified().ok(), metadata.len()))),
            Err(error) => match error.kind() {
                // The name may be one that no file can have.
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => {
                    Ok(None)
                }
                _ => Err(error),
            },
        }
    }
}

impl<T> Watched<T> {
    /// Nothing is read yet.
    pub(crate) fn new(file: PathBuf, limit: u64) -> Self {
        Self {
            file,
            limit,
            seen: Seen::Never,
            good: None,
            cause: None,
        }
    }

    /// Reads the file if it may have changed; there may be no bytes because there is no file.
    /// Whether there is something else now.
    pub(crate) fn look(&mut self, read: impl FnOnce(Option<&[u8]>) -> Result<T, String>) -> bool {
        let made = match self.changed() {
            Ok(News::Nothing) => return false,
            Ok(News::Missing) => read(None),
            Ok(News::Content(bytes)) => read(Some(&bytes)),
            Err(error) => Err(error.to_string()),
        };
        match made {
            Ok(good) => {
                self.good = Some(good);
                self.cause = None;
                true
            }
            Err(cause) => {
                self.tell(cause);
                false
            }
        }
    }

    /// What counts.
    ///
    /// # Errors
    ///
    /// If the file has never been good: why it is not. The operator mends it.
    pub(crate) fn good(&self) -> Result<&T, SettingsError> {
        self.good.as_ref().ok_or_else(|| self.fault())
    }

    fn fault(&self) -> SettingsError {
        SettingsError::File {
            file: self.file.clone(),
            cause: self.cause.clone().unwrap_or_default(),
        }
    }

    /// What is in the file, if it may be something else than before.
    fn changed(&mut self) -> io::Result<News> {
        let seen = Stamp::of(&self.file)?.map_or(Seen::Missing, Seen::There);
        if self.seen == seen {
            return Ok(News::Nothing);
        }
        if seen == Seen::Missing {
            self.seen = seen;
            return Ok(News::Missing);
        }
        let read = read_bounded(&self.file, self.limit);
        let too_large = |error: &io::Error| error.kind() == ErrorKind::FileTooLarge;
        // What is too large is so when it is read again.
        if read.as_ref().err().is_none_or(too_large) {
            self.seen = seen;
        }
        read.map(News::Content)
    }

    fn tell(&mut self, cause: String) {
        if self.cause.as_ref() == Some(&cause) {
            return;
        }
        self.cause = Some(cause);
        let fault = self.fault();
        if self.good.is_some() {
            tracing::warn!("{fault}; what it said before counts");
        } else {
            tracing::warn!("{fault}");
        }
    }
}

/// What is in a file, if it is not too much.
///
/// # Errors
///
/// If it cannot be read, or is larger.
pub(crate) fn read_bounded(file: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(file)?
        .take(limit + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it is larger than {limit} bytes"),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its content, if it is there; `bad` is no good.
    fn text(bytes: Option<&[u8]>) -> Result<String, String> {
        let text = String::from_utf8_lossy(bytes.unwrap_or(b"none")).into_owned();
        if text == "bad" {
            return Err("it is bad".to_owned());
        }
        Ok(text.trim().to_owned())
    }

    struct Stand {
        _folder: tempfile::TempDir,
        file: PathBuf,
        watched: Watched<String>,
    }

    impl Stand {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("file");
            Self {
                watched: Watched::new(file.clone(), 10_000),
                file,
                _folder: folder,
            }
        }

        fn look(&mut self) -> (bool, Result<String, String>) {
            let changed = self.watched.look(text);
            let good = self.watched.good().cloned();
            (changed, good.map_err(|fault| fault.to_string()))
        }
    }

    #[test]
    fn a_file_is_read_when_it_changes_and_what_was_good_stays() {
        let mut stand = Stand::new();
        assert_eq!(stand.look(), (true, Ok("none".to_owned())));
        assert_eq!(stand.look(), (false, Ok("none".to_owned())));
        for (content, changed, good) in [
            ("first", true, "first"),
            ("first", false, "first"),
            ("bad", false, "first"),
            ("the second", true, "the second"),
        ] {
            // A file that is not written has the same time.
            if fs::read_to_string(&stand.file).ok().as_deref() != Some(content) {
                fs::write(&stand.file, content).unwrap();
            }
            assert_eq!(stand.look(), (changed, Ok(good.to_owned())), "{content}");
        }
        fs::write(&stand.file, "x".repeat(10_001)).unwrap();
        assert_eq!(stand.look(), (false, Ok("the second".to_owned())));
        fs::remove_file(&stand.file).unwrap();
        assert_eq!(stand.look(), (true, Ok("none".to_owned())));
    }

    #[test]
    fn a_file_that_was_never_good_is_told_until_it_is() {
        let mut stand = Stand::new();
        fs::write(&stand.file, "bad").unwrap();
        for _ in 0..2 {
            let (changed, told) = stand.look();
            let told = told.unwrap_err();
            assert!(
                !changed && told.ends_with("file cannot be used: it is bad"),
                "{told}"
            );
        }
        fs::write(&stand.file, "good").unwrap();
        assert_eq!(stand.look(), (true, Ok("good".to_owned())));
    }

    #[test]
    fn what_could_not_be_read_is_read_the_next_time_though_it_looks_the_same() {
        let mut stand = Stand::new();
        fs::write(&stand.file, "first").unwrap();
        assert!(stand.look().0);
        // A folder cannot be read. It has the size and the time of the file that follows.
        fs::remove_file(&stand.file).unwrap();
        fs::create_dir(&stand.file).unwrap();
        for number in 0..200 {
            fs::write(stand.file.join(number.to_string()), "").unwrap();
        }
        let of_folder = fs::metadata(&stand.file).unwrap();
        assert_eq!(stand.look(), (false, Ok("first".to_owned())));
        fs::remove_dir_all(&stand.file).unwrap();
        let length = usize::try_from(of_folder.len()).unwrap();
        fs::write(&stand.file, format!("{:length$}", "second")).unwrap();
        let file = fs::File::options().write(true).open(&stand.file).unwrap();
        file.set_modified(of_folder.modified().unwrap()).unwrap();
        assert_eq!(fs::metadata(&stand.file).unwrap().len(), of_folder.len());
        assert_eq!(stand.look(), (true, Ok("second".to_owned())));
    }

    #[test]
    fn a_name_that_no_file_can_have_is_that_of_no_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for name in [
            "x".repeat(300),
            "file/below".to_owned(),
            "missing".to_owned(),
        ] {
            assert_eq!(
                Stamp::of(&folder.path().join(&name)).unwrap(),
                None,
                "{name}"
            );
        }
        assert!(Stamp::of(Path::new("a\0b")).is_err());
    }
}
