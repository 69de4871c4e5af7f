//! The body of a request. It knows its length, reads bills of materials when it is sent, and can be
//! sent any number of times.

mod document;
mod stream;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use convention_protocol::PodConventionContext;

pub(crate) use stream::{RequestStream, StoredError};

/// A bill of materials that lies in a file.
#[derive(Clone, Debug)]
pub struct StoredBom {
    /// Its name, as the webhook is told it.
    pub name: String,
    /// Where it lies. It may be removed from its folder meanwhile, and must not be written.
    pub file: Arc<File>,
    /// Its first byte in the file.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
}

/// What is sent: JSON, of which only what lies in no file is held.
#[derive(Clone, Debug)]
pub struct RequestBody {
    pieces: Arc<[Piece]>,
    length: u64,
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
    /// # Errors
    ///
    /// If it is no JSON or too long, which no context is that was made from what an API server has stored.
    pub fn new(
        context: &PodConventionContext,
        boms: &BTreeMap<String, Vec<StoredBom>>,
    ) -> Result<Self, RequestBodyError> {
        let pieces = document::pieces(context, boms)?;
        let lengths = pieces.iter().map(Piece::length);
        let length = lengths
            .into_iter()
            .try_fold(0_u64, |sum, length| sum.checked_add(length?))
            .ok_or(RequestBodyError::TooLong)?;
        Ok(Self {
            pieces: pieces.into(),
            length,
        })
    }

    /// How many bytes are sent.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn stream(&self) -> RequestStream {
        RequestStream::new(self)
    }
}

#[cfg(test)]
mod tests;
