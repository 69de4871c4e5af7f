//! From an answer to a file: unpacked as it comes, within bounds, and believed only when both
//! digests are right.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use bytes::Bytes;
use conventions::image::Digest;
use flate2::read::MultiGzDecoder;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;
use tokio::sync::mpsc::{Receiver, channel};

use crate::answer::Answer;
use crate::arriving::Arriving;
use crate::error::Cause;
use crate::hash::digest_of_hash;
use crate::plan;
use crate::tries::Trouble;
use crate::zstd::{WINDOW, Zstd, is_zstd};

/// Files that are not whole begin with it.
pub(crate) const UNFINISHED: &str = "unfinished-";
/// Parts of the answer that wait to be unpacked.
const WAITING: usize = 4;
/// What is unpacked at once.
const BUFFER: usize = 64 << 10;
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// How many of the first bytes tell how something is packed.
const HEAD: u64 = 4;

/// What is wanted of an answer.
#[derive(Clone)]
pub(crate) struct Unpack {
    pub(crate) folder: PathBuf,
    /// Beside what else arrives there.
    pub(crate) arriving: Arriving,
    /// Of what is sent.
    pub(crate) packed: Digest,
    /// Of what is to be in the file; what is sent is taken as it is if there is none.
    pub(crate) unpacked: Option<Digest>,
    /// The most bytes, unpacked.
    pub(crate) limit: u64,
    pub(crate) flag: &'static str,
}

enum Message {
    Part(Bytes),
    End,
}

/// Why there is no file.
enum Fault {
    TooLarge,
    /// There is too much else on its way to the disk.
    NoRoom,
    /// What came is not what was asked for.
    Other(String),
    /// What came is what was asked for, and no good.
    Bad(String),
    Disk(io::Error),
    /// Nobody waits for it any more.
    GivenUp,
}

impl plan::Read for Unpack {
    type Output = NamedTempFile;

    async fn read(&self, mut answer: Answer) -> Result<NamedTempFile, Trouble> {
        let (sender, receiver) = channel(WAITING);
        let wanted = self.clone();
        let unpacking = tokio::task::spawn_blocking(move || wanted.unpack(receiver));
        let (mut sent, mut broken) = (0, None);
        loop {
            let message = match answer.chunk().await {
                Ok(Some(part)) => Message::Part(part),
                Ok(None) => Message::End,
                Err(trouble) => {
                    broken = Some(trouble);
                    break;
                }
            };
            let last = matches!(message, Message::End);
            if let Message::Part(part) = &message {
                sent += part.len() as u64;
            }
            // Packed it may be a little larger than unpacked.
            let too_large = sent > self.limit.saturating_add(1 << 20);
            if too_large || sender.send(message).await.is_err() || last {
                break;
            }
        }
        drop(sender);
        let unpacked = unpacking.await;
        if let Some(trouble) = broken {
            return Err(trouble);
        }
        let unpacked = unpacked.unwrap_or_else(|panic| Err(Fault::Disk(io::Error::other(panic))));
        unpacked.map_err(|fault| self.trouble(fault, &answer))
    }
}

impl Unpack {
    fn trouble(&self, fault: Fault, answer: &Answer) -> Trouble {
        let (host, what) = (answer.host.clone(), answer.what.clone());
        match fault {
            // The sender gives up only if it is too large.
            Fault::TooLarge | Fault::GivenUp => Trouble::Final(Cause::TooLarge {
                what,
                size: None,
                limit: self.limit,
                flag: self.flag,
            }),
            Fault::NoRoom => {
                let folder = self.folder.display();
                Trouble::Final(Cause::Installation(format!(
                    "the folder {folder} has no room for all that arrives at the same time"
                )))
            }
            Fault::Other(fault) => Trouble::Passing(Cause::Lie { host, what, fault }, None),
            Fault::Bad(fault) => Trouble::Final(Cause::Image { what, fault }),
            Fault::Disk(error) => {
                let folder = self.folder.display();
                Trouble::Final(Cause::Installation(format!(
                    "the folder {folder} cannot be used: {error}"
                )))
            }
        }
    }

    fn unpack(&self, receiver: Receiver<Message>) -> Result<NamedTempFile, Fault> {
        let mut packed = Parts {
            receiver,
            part: Bytes::new(),
            hash: Sha256::new(),
            ended: false,
        };
        let copied = self.copy(&mut packed);
        if matches!(
            copied,
            Err(Fault::TooLarge | Fault::NoRoom | Fault::Disk(_))
        ) {
            return copied;
        }
        // To the end, to see whose fault it is.
        io::copy(&mut packed, &mut io::sink()).map_err(|_| Fault::GivenUp)?;
        if digest_of_hash(packed.hash) != self.packed {
            return Err(Fault::Other("its digest is another one".to_owned()));
        }
        copied
    }

    fn copy(&self, packed: &mut Parts) -> Result<NamedTempFile, Fault> {
        let broken = |error: io::Error| {
            Fault::Bad(match error.kind() {
                io::ErrorKind::Unsupported => {
                    let most = WINDOW >> 20;
                    format!("is packed with a window of more than {most} MiB")
                }
                _ => "cannot be unpacked".to_owned(),
            })
        };
        let mut head = Vec::new();
        packed.take(HEAD).read_to_end(&mut head).map_err(broken)?;
        let (gzip, zstd) = (head.starts_with(&GZIP), is_zstd(&head));
        let all = io::Cursor::new(head).chain(packed);
        let mut unpacked: Box<dyn Read + '_> = match &self.unpacked {
            Some(_) if gzip => Box::new(MultiGzDecoder::new(all)),
            Some(_) if zstd => Box::new(Zstd::new(all)),
            _ => Box::new(all),
        };
        let file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&self.folder);
        let mut file = file.map_err(Fault::Disk)?;
        let (mut hash, mut length, mut buffer) = (Sha256::new(), 0, vec![0; BUFFER]);
        let mut room = self.arriving.room();
        loop {
            let read = unpacked.read(&mut buffer).map_err(broken)?;
            if read == 0 {
                break;
            }
            length += read as u64;
            if length > self.limit {
                return Err(Fault::TooLarge);
            }
            if !room.grow(read as u64) {
                return Err(Fault::NoRoom);
            }
            hash.update(&buffer[..read]);
            file.write_all(&buffer[..read]).map_err(Fault::Disk)?;
        }
        match &self.unpacked {
            Some(wanted) if digest_of_hash(hash) != *wanted => Err(Fault::Bad(
                "has another digest unpacked than the configuration says".to_owned(),
            )),
            _ => Ok(file),
        }
    }
}

/// What is sent, as something to read.
struct Parts {
    receiver: Receiver<Message>,
    part: Bytes,
    /// Of all that was read.
    hash: Sha256,
    ended: bool,
}

impl Read for Parts {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() && !self.ended {
            match self.receiver.blocking_recv() {
                Some(Message::Part(part)) => self.part = part,
                Some(Message::End) => self.ended = true,
                None => return Err(io::ErrorKind::ConnectionAborted.into()),
            }
        }
        let length = buffer.len().min(self.part.len());
        let read = self.part.split_to(length);
        buffer[..length].copy_from_slice(&read);
        self.hash.update(&read);
        Ok(length)
    }
}
