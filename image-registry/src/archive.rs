//! What is in an unpacked layer, without reading more of it than the names.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;

use conventions::told::in_a_line;
use tar::{Archive, Entry, EntryType, PaxExtensions};

/// The most bytes of a name, and of what else stands before a file.
const NAME_BYTES: u64 = 64 << 10;
/// The most files of a layer.
const FILES: usize = 4096;
/// The most bytes of all names of a layer.
const NAMES_BYTES: usize = 1 << 20;

/// A file in a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) name: String,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Why there is no list. It completes "the layer …".
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListFault {
    /// It is no archive, or one that nobody makes.
    Broken(String),
    /// A file is larger than it may be.
    File(Slice),
}

/// The regular files of an archive, in their order.
///
/// # Errors
///
/// If it is broken, or has a file of more than `largest` bytes.
pub(crate) fn list(file: &File, largest: u64) -> Result<Vec<Slice>, ListFault> {
    let broken = |error: std::io::Error| ListFault::Broken(clip(&error.to_string()));
    let fault = |text: &str| ListFault::Broken(text.to_owned());
    let end = file.metadata().map_err(broken)?.len();
    let mut archive = Archive::new(At { file, position: 0 });
    // Raw: the library reads long names without a bound.
    let entries = archive.entries_with_seek().map_err(broken)?.raw(true);
    let (mut files, mut names, mut before) = (Vec::new(), 0, Before::default());
    for entry in entries {
        let mut entry = entry.map_err(broken)?;
        let (offset, length) = (entry.raw_file_position(), entry.header().entry_size());
        let length = length.map_err(broken)?;
        if offset.checked_add(length).is_none_or(|after| after > end) {
            return Err(fault("ends before its last file does"));
        }
        match entry.header().entry_type() {
            EntryType::GNULongName => before.name = Some(before_name(&mut entry, length)?),
            EntryType::XHeader => before.read_extensions(&mut entry, length)?,
            EntryType::XGlobalHeader | EntryType::GNULongLink => {}
            EntryType::Regular => {
                let name = std::mem::take(&mut before).or_name_of(&entry);
                let slice = Slice {
                    name,
                    offset,
                    length,
                };
                // Before there were folders in archives, they were files with such names.
                if slice.name.ends_with('/') {
                    continue;
                }
                if length > largest {
                    return Err(ListFault::File(slice));
                }
                names += slice.name.len();
                files.push(slice);
            }
            _ => before = Before::default(),
        }
        if files.len() > FILES || names > NAMES_BYTES {
            return Err(fault("has more files than anybody can read"));
        }
    }
    Ok(files)
}

/// A place in a file. The file has one of its own, which others may move.
struct At<'f> {
    file: &'f File,
    position: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for At<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
            SeekFrom::End(_) => None,
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// What stands before a file and is about it.
#[derive(Default)]
struct Before {
    name: Option<String>,
    extended: Option<String>,
}

impl Before {
    fn read_extensions<R: Read>(
        &mut self,
        entry: &mut Entry<'_, R>,
        length: u64,
    ) -> Result<(), ListFault> {
        let bytes = read(entry, length)?;
        for extension in PaxExtensions::new(&bytes) {
            let extension =
                extension.map_err(|error| ListFault::Broken(clip(&error.to_string())))?;
            match extension.key_bytes() {
                b"path" => self.extended = Some(text(extension.value_bytes())),
                // The place of what follows depends on it; only files of many GiB need it.
                b"size" => return Err(ListFault::Broken("has a file of many GiB".to_owned())),
                _ => {}
            }
        }
        Ok(())
    }

    fn or_name_of<R: Read>(self, entry: &Entry<'_, R>) -> String {
        let own = || text(&entry.header().path_bytes());
        self.extended.or(self.name).unwrap_or_else(own)
    }
}

fn before_name<R: Read>(entry: &mut Entry<'_, R>, length: u64) -> Result<String, ListFault> {
    let bytes = read(entry, length)?;
    let end = bytes.iter().position(|byte| *byte == 0);
    Ok(text(&bytes[..end.unwrap_or(bytes.len())]))
}

fn read<R: Read>(entry: &mut Entry<'_, R>, length: u64) -> Result<Vec<u8>, ListFault> {
    if length > NAME_BYTES {
        return Err(ListFault::Broken("has a name without end".to_owned()));
    }
    let mut bytes = Vec::new();
    let read = entry.take(NAME_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| ListFault::Broken(clip(&error.to_string())))?;
    Ok(bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn clip(text: &str) -> String {
    format!("is no archive: {}", in_a_line(text, 200))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;
    use tar::{Builder, Header};

    use super::*;

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn archive(files: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (name, kind, content) in files {
            let mut header = Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_entry_type(*kind);
            header.as_mut_bytes()[..name.len().min(100)]
                .copy_from_slice(&name.as_bytes()[..name.len().min(100)]);
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn names(bytes: &[u8]) -> Vec<String> {
        let files = list(&file_of(bytes), u64::MAX).unwrap();
        files.into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn regular_files_are_listed_in_their_order_with_the_names_they_have() {
        let bytes = archive(&[
            ("/layers/sbom/b.json", EntryType::Regular, b"bb"),
            ("folder/", EntryType::Directory, b""),
            ("old-folder/", EntryType::Regular, b""),
            ("link", EntryType::Symlink, b""),
            ("device", EntryType::Char, b""),
            ("../../a.json", EntryType::Regular, b"a"),
            ("line\nbreak", EntryType::Regular, b""),
        ]);
        let file = file_of(&bytes);
        let files = list(&file, 2).unwrap();
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(
            names,
            ["/layers/sbom/b.json", "../../a.json", "line\nbreak"]
        );
        let [first, second, third] = &files[..] else {
            panic!("{files:?}");
        };
        let content = |slice: &Slice| {
            let start = usize::try_from(slice.offset).unwrap();
            &bytes[start..start + usize::try_from(slice.length).unwrap()]
        };
        assert_eq!(
            (content(first), content(second), content(third)),
            (&b"bb"[..], &b"a"[..], &b""[..])
        );
        let Err(ListFault::File(large)) = list(&file, 1) else {
            panic!("too large a file is taken");
        };
        assert_eq!(large.name, "/layers/sbom/b.json");
    }

    #[test]
    fn long_names_are_read_in_both_ways_of_writing_them() {
        let long = format!("/layers/{}/sbom.json", "x".repeat(300));
        let mut builder = Builder::new(Vec::new());
        let mut header = Header::new_gnu();
        header.set_size(1);
        builder
            .append_data(&mut header, &long[1..], &b"1"[..])
            .unwrap();
        assert_eq!(names(&builder.into_inner().unwrap()), [&long[1..]]);

        let record = |key: &str, value: &str| {
            let rest = format!(" {key}={value}\n");
            let length = (1..1000)
                .find(|n: &usize| n.to_string().len() + rest.len() == *n)
                .unwrap();
            format!("{length}{rest}")
        };
        let extended = record("path", &long);
        let bytes = archive(&[
            ("pax", EntryType::XHeader, extended.as_bytes()),
            ("short", EntryType::Regular, b"1"),
            ("second", EntryType::Regular, b"2"),
        ]);
        assert_eq!(names(&bytes), [long.as_str(), "second"]);
        let size = record("size", "99999999999");
        let bytes = archive(&[
            ("pax", EntryType::XHeader, size.as_bytes()),
            ("short", EntryType::Regular, b"1"),
        ]);
        assert!(list(&file_of(&bytes), u64::MAX).is_err());
    }

    #[test]
    fn sizes_that_are_not_true_are_found() {
        let mut bytes = archive(&[("a", EntryType::Regular, &[0; 512])]);
        bytes.truncate(700);
        assert_eq!(
            list(&file_of(&bytes), u64::MAX),
            Err(ListFault::Broken(
                "ends before its last file does".to_owned()
            ))
        );
        for size in [1 << 20, 1 << 40, u64::MAX - 600, u64::MAX] {
            for kind in [
                EntryType::Regular,
                EntryType::GNULongName,
                EntryType::XHeader,
                EntryType::Symlink,
            ] {
                let mut header = Header::new_gnu();
                header.set_entry_type(kind);
                header.set_size(size);
                header.set_cksum();
                let bytes = [header.as_bytes().as_slice(), &[b'x'; 1024]].concat();
                assert!(list(&file_of(&bytes), u64::MAX).is_err(), "{size} {kind:?}");
            }
        }
        let name = vec![b'x'; 100_000];
        let bytes = archive(&[("n", EntryType::GNULongName, &name)]);
        assert!(list(&file_of(&bytes), u64::MAX).is_err());
    }

    #[test]
    fn a_flood_of_files_is_not_listed() {
        let files = vec![("a", EntryType::Regular, &b""[..]); FILES + 1];
        assert!(list(&file_of(&archive(&files)), u64::MAX).is_err());
        assert_eq!(names(&archive(&files[1..])).len(), FILES);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_name_what_is_not_there(
            mut bytes in prop::collection::vec(any::<u8>(), 0..3000),
            name in "[ -~]{0,120}",
            size in any::<u64>(),
            kind in any::<u8>(),
        ) {
            let mut header = Header::new_ustar();
            header.as_mut_bytes()[..name.len().min(100)].copy_from_slice(&name.as_bytes()[..name.len().min(100)]);
            header.set_size(size % 5000);
            header.set_entry_type(EntryType::new(kind));
            header.set_cksum();
            if bytes.len() > 600 {
                bytes[..512].copy_from_slice(header.as_bytes());
            }
            if let Ok(files) = list(&file_of(&bytes), u64::MAX) {
                for file in files {
                    prop_assert!(file.offset + file.length <= bytes.len() as u64);
                }
            }
        }
    }
}
