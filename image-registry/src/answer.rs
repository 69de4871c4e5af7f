//! What a registry sends, read within bounds.

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use reqwest::header::HeaderMap;

use crate::error::Cause;
use crate::fault::text_of;
use crate::limits::Place;
use crate::tries::Trouble;
use crate::who::Fingerprint;

/// The most bytes of an answer that is an error.
const ERROR_BYTES: u64 = 16 << 10;

/// What is there, not yet read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response,
    pub(crate) host: String,
    pub(crate) what: String,
    /// Whether it is of the endpoint, and not of somebody whom that led to.
    pub(crate) own: bool,
    /// As whom it was asked for.
    pub(crate) asker: Fingerprint,
    /// Among the requests to the registry, until all is read.
    _place: Place,
}

impl Answer {
    pub(crate) fn new(
        response: Response,
        host: String,
        what: String,
        own: bool,
        asker: Fingerprint,
        place: Place,
    ) -> Self {
        Self {
            response,
            host,
            what,
            own,
            asker,
            _place: place,
        }
    }

    /// A part of the content; nothing at its end.
    ///
    /// # Errors
    ///
    /// If the answer breaks off.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Trouble> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| {
            let cause = Cause::Unreachable {
                host: self.host.clone(),
                what: self.what.clone(),
                fault: text_of(error),
            };
            Trouble::Passing(cause, None)
        })
    }

    /// All of the content, if it is not too much.
    ///
    /// # Errors
    ///
    /// If the answer breaks off, or is too long.
    pub(crate) async fn bytes(
        mut self,
        limit: u64,
        flag: &'static str,
    ) -> Result<(HeaderMap, Bytes), Trouble> {
        let too_large = |what: &str| {
            Trouble::Final(Cause::TooLarge {
                what: what.to_owned(),
                size: None,
                limit,
                flag,
            })
        };
        if self
            .response
            .content_length()
            .is_some_and(|length| length > limit)
        {
            return Err(too_large(&self.what));
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if body.len() as u64 + chunk.len() as u64 > limit {
                return Err(too_large(&self.what));
            }
            body.extend_from_slice(&chunk);
        }
        Ok((std::mem::take(self.response.headers_mut()), body.freeze()))
    }

    /// What the registry calls the error, in brackets. Its own words are not told: they may repeat
    /// what it was sent.
    pub(crate) async fn code(self) -> String {
        let Ok((_, body)) = self.bytes(ERROR_BYTES, "").await else {
            return String::new();
        };
        let body: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
        let code = body
            .as_ref()
            .and_then(|body| body.pointer("/errors/0/code")?.as_str());
        let plain = |code: &&str| {
            let fits = |c: u8| c.is_ascii_uppercase() || c == b'_';
            code.len() <= 40 && !code.is_empty() && code.bytes().all(fits)
        };
        code.filter(plain)
            .map(|code| format!(" ({code})"))
            .unwrap_or_default()
    }
}
