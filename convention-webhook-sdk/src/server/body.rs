//! Bodies of answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// What is handed to the connection at once. It takes the next part when the client has taken most
/// of what came before.
const PART: usize = 64 * 1024;

/// Bytes in parts, so that a body is there until it is sent.
pub(super) struct Parts(Bytes);

impl Parts {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.0.len().min(PART);
        let part = (length > 0).then(|| self.0.split_to(length));
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

/// A body, and what lasts until it is sent.
pub(super) struct Held<B, G> {
    body: B,
    _guards: G,
}

impl<B, G> Held<B, G> {
    pub(super) fn new(body: B, guards: G) -> Self {
        Self {
            body,
            _guards: guards,
        }
    }
}

impl<B: Body + Unpin, G: Unpin> Body for Held<B, G> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
