//! A body that is being sent.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Semaphore;

use super::{Piece, RequestBody, StoredBom};

/// How many bytes of a file are read at a time: some of three, so that padding is at the end only.
const CHUNK: u64 = 48 * 1024;

/// How many chunks are read at the same time, of all requests of the process. Each takes a thread, and
/// a thread keeps a megabyte once it has run: fifty requests that read as they liked made a hundred
/// threads, and 170 MiB of what are 30 otherwise. The files were just written, so more threads read
/// no faster.
static READERS: Semaphore = Semaphore::const_new(4);

/// A bill of materials that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the bill of materials {name:?}: {source}")]
pub(crate) struct StoredError {
    name: String,
    source: io::Error,
}

/// A body on its way. One chunk of a file is held at a time.
pub(crate) struct RequestStream {
    pieces: Arc<[Piece]>,
    /// The piece that is next, and where in it if it is a file.
    next: usize,
    offset: u64,
    /// What was not sent yet, in bytes on the wire.
    left: u64,
    reading: Option<Reading>,
}

type Reading = BoxFuture<'static, Result<Bytes, StoredError>>;

/// What comes next.
enum Turn {
    Bytes(Bytes),
    Read(Reading),
    End,
}

impl RequestStream {
    pub(super) fn new(body: &RequestBody) -> Self {
        Self {
            pieces: Arc::clone(&body.pieces),
            next: 0,
            offset: 0,
            left: body.length,
            reading: None,
        }
    }

    /// Begins to read what is next of a file, off the threads that serve connections.
    fn read(&mut self, bom: &StoredBom) -> Reading {
        let length = CHUNK.min(bom.length - self.offset);
        let (bom, offset) = (bom.clone(), bom.offset.saturating_add(self.offset));
        self.offset += length;
        async move {
            // Nobody closes it. It is given back by the thread: who asks may be gone before.
            let place = READERS.acquire().await;
            let read = move || {
                let _place = place;
                chunk(&bom, offset, length)
            };
            let read = tokio::task::spawn_blocking(read).await;
            read.unwrap_or_else(|error| Err(abandoned(error)))
        }
        .boxed()
    }

    fn turn(&mut self) -> Turn {
        let pieces = Arc::clone(&self.pieces);
        loop {
            match pieces.get(self.next) {
                None => return Turn::End,
                Some(Piece::Held(bytes)) => {
                    self.next += 1;
                    if !bytes.is_empty() {
                        return Turn::Bytes(bytes.clone());
                    }
                }
                Some(Piece::Stored(bom)) if self.offset < bom.length => {
                    return Turn::Read(self.read(bom));
                }
                Some(Piece::Stored(_)) => {
                    self.next += 1;
                    self.offset = 0;
                }
            }
        }
    }
}

impl Body for RequestStream {
    type Data = Bytes;
    type Error = StoredError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoredError>>> {
        loop {
            let bytes = if let Some(reading) = &mut self.reading {
                let read = ready!(reading.poll_unpin(context));
                self.reading = None;
                read
            } else {
                match self.turn() {
                    Turn::Bytes(bytes) => Ok(bytes),
                    Turn::Read(reading) => {
                        self.reading = Some(reading);
                        continue;
                    }
                    Turn::End => return Poll::Ready(None),
                }
            };
            let sent = bytes.inspect(|bytes| {
                let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                self.left = self.left.saturating_sub(length);
            });
            return Poll::Ready(Some(sent.map(Frame::data)));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// The thread did not come to its end.
fn abandoned(error: tokio::task::JoinError) -> StoredError {
    StoredError {
        name: String::new(),
        source: io::Error::other(error),
    }
}

fn chunk(bom: &StoredBom, offset: u64, length: u64) -> Result<Bytes, StoredError> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let read = bom.file.read_exact_at(&mut bytes, offset);
    read.map_err(|source| StoredError {
        name: bom.name.clone(),
        source,
    })?;
    Ok(STANDARD.encode(bytes).into())
}
