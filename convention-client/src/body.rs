//! The body of a request. It knows its length, reads bills of materials when it is sent, and can be
//! sent any number of times.

mod document;
mod room;
mod stream;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use convention_protocol::PodConventionContext;

pub(crate) use stream::{RequestStream, StoredError};

/// The most bytes of a request that carries bills of materials from files. Servers that are made with
/// the SDK take no more.
pub const MOST_REQUEST_BYTES: u64 = 64 << 20;

/// A bill of materials that lies in a file, which is read when it is sent.
pub type StoredBom = conventions::StoredBom<Arc<File>>;

/// What is sent: JSON, of which only what lies in no file is held.
#[derive(Clone, Debug)]
pub struct RequestBody {
    pieces: Arc<[Piece]>,
    length: u64,
    left_out: Arc<[String]>,
}

/// Why a body cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RequestBodyError {
    /// The context is no JSON.
    #[error("the request cannot be encoded: {0}")]
    Encode(#[from] serde_json::Error),
    /// More bytes than can be counted.
    #[error("the request is too long")]
    TooLong,
}

/// A part of a body.
#[derive(Clone, Debug)]
enum Piece {
    Held(Bytes),
    Stored(StoredBom),
}

impl Piece {
    /// How many bytes it has on the wire.
    fn length(&self) -> Option<u64> {
        match self {
            Self::Held(bytes) => u64::try_from(bytes.len()).ok(),
            Self::Stored(bom) => bom.length.div_ceil(3).checked_mul(4),
        }
    }
}

impl RequestBody {
    /// The request of this context. Of each of its images, by the text that it has there, the bills of
    /// materials follow those that the context holds itself.
    ///
    /// All the bills of an image are left out that would make it longer than [`MOST_REQUEST_BYTES`]:
    /// images come in the order of the context, and [`Self::left_out`] tells which.
    ///
    /// # Errors
    ///
    /// If it is no JSON or too long, which no context is that was made from what an API server has stored.
    pub fn new(
        context: &PodConventionContext,
        boms: &BTreeMap<String, Vec<StoredBom>>,
    ) -> Result<Self, RequestBodyError> {
        Self::within(MOST_REQUEST_BYTES, context, boms)
    }

    /// The same with another number of bytes in place of [`MOST_REQUEST_BYTES`].
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn within(
        most_bytes: u64,
        context: &PodConventionContext,
        boms: &BTreeMap<String, Vec<StoredBom>>,
    ) -> Result<Self, RequestBodyError> {
        let mut pieces = document::pieces(context, boms)?;
        let mut length = length_of(&pieces)?;
        let mut left_out = Vec::new();
        if length > most_bytes {
            let bare = length_of(&document::pieces(context, &BTreeMap::new())?)?;
            let room = most_bytes.saturating_sub(bare);
            let kept = room::shared(room, context, boms);
            pieces = document::pieces(context, &kept.boms)?;
            length = length_of(&pieces)?;
            left_out = kept.left_out;
        }
        Ok(Self {
            pieces: pieces.into(),
            length,
            left_out: left_out.into(),
        })
    }

    /// Images whose bills of materials are not sent, as there is no room for them.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// How many bytes are sent.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn stream(&self) -> RequestStream {
        RequestStream::new(self)
    }
}

fn length_of(pieces: &[Piece]) -> Result<u64, RequestBodyError> {
    let mut lengths = pieces.iter().map(Piece::length);
    lengths
        .try_fold(0_u64, |sum, length| sum.checked_add(length?))
        .ok_or(RequestBodyError::TooLong)
}

#[cfg(test)]
mod tests;
