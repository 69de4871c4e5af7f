//! The answer to a watch that leaves out namespaces: passed on until it lacks something.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use tokio::sync::watch as signal;

use super::Excluded;
use crate::share::DueListing;

/// What the API server answers.
pub(super) type PassedOn = UnsyncBoxBody<Bytes, kube::Error>;

type Passed = Option<kube::Result<Frame<Bytes>>>;

/// A watch that leaves out these namespaces.
pub(super) struct LeavesOut {
    excluded: Arc<Excluded>,
    pub(super) namespaces: Arc<[Box<str>]>,
    /// Which changes of what is wanted were looked at last,
    seen: (u64, u64),
    /// and what tells of the next.
    changes: signal::Receiver<u64>,
    due: signal::Receiver<DueListing>,
    lines: Lines,
    has_passed: bool,
    is_over: bool,
}

impl LeavesOut {
    pub(super) fn begin(excluded: &Arc<Excluded>) -> Self {
        let share = &excluded.share;
        // In this order: what changes in between is told once more.
        let (changes, due) = (share.changes(), share.due_listings());
        let (seen, wanted) = share.wanted();
        let besides = share.namespaces();
        Self {
            excluded: excluded.clone(),
            namespaces: excluded.learned.lock().begin(&wanted, &besides),
            seen,
            changes,
            due,
            lines: Lines::default(),
            has_passed: false,
            is_over: false,
        }
    }

    /// It leaves out nothing after all.
    pub(super) fn shows_all(&mut self) {
        self.excluded.learned.lock().tries_without();
        self.namespaces = Arc::default();
    }

    /// Whether something is wanted by now that is left out.
    fn lacks_something(&mut self) -> bool {
        let share = &self.excluded.share;
        if self.seen == share.wanted_changes() {
            return false;
        }
        let (seen, wanted) = share.wanted();
        self.seen = seen;
        self.namespaces.iter().any(|it| wanted.takes(it))
    }

    fn is_outdone(&self) -> bool {
        self.excluded.learned.lock().is_outdone()
    }

    pub(super) fn passing_on(self, body: Body) -> PassedOn {
        let frames = stream::unfold((self, body), |(mut watch, mut body)| async move {
            let frame = watch.next(&mut body).await?;
            Some((frame, (watch, body)))
        });
        StreamBody::new(frames).boxed_unsync()
    }

    /// What is to be passed on next; none at the end of this watch, with which the connection is given up.
    async fn next(&mut self, body: &mut Body) -> Passed {
        while !self.is_over && !self.is_outdone() && !self.lacks_something() {
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                due = self.due.changed() => due.ok()?,
                // By now more may be wanted than when it was asked for.
                frame = body.frame() => if self.lacks_something() {
                    return None;
                } else if let Some(passed) = self.whole(frame) {
                    return passed;
                },
            }
        }
        None
    }

    /// What there is to pass on of this; none before a line is complete.
    fn whole(&mut self, frame: Passed) -> Option<Passed> {
        let Some(frame) = frame else {
            return Some(self.end());
        };
        let data = match frame.map(Frame::into_data) {
            Ok(Ok(data)) => data,
            Ok(Err(other)) => return Some(Some(Ok(other))),
            Err(error) => return Some(Some(Err(error))),
        };
        let lines = self.lines.whole(data)?;
        self.has_passed = true;
        Some(Some(Ok(Frame::data(lines))))
    }

    /// The API server ends it. Where it sends no bookmarks, the next one may be shown what others have, so that the version at
    /// which watches go on does not grow too old.
    fn end(&mut self) -> Passed {
        self.is_over = true;
        if !self.has_passed && !self.namespaces.is_empty() {
            self.excluded.learned.lock().skips();
        }
        let rest = self.lines.rest();
        rest.map(|rest| Ok(Frame::data(rest)))
    }
}

/// Whole lines only: the end of a watch in the middle of a character would be an error, and be followed by a pause.
#[derive(Default)]
struct Lines {
    begun: BytesMut,
}

impl Lines {
    /// The lines that are complete.
    fn whole(&mut self, mut data: Bytes) -> Option<Bytes> {
        let Some(end) = data.iter().rposition(|byte| *byte == b'\n') else {
            self.begun.extend_from_slice(&data);
            return None;
        };
        let begun = data.split_off(end + 1);
        let whole = match self.rest() {
            None => data,
            Some(before) => [before, data].concat().into(),
        };
        self.begun.extend_from_slice(&begun);
        Some(whole)
    }

    /// What is left of the last line.
    fn rest(&mut self) -> Option<Bytes> {
        let rest = self.begun.split().freeze();
        (!rest.is_empty()).then_some(rest)
    }
}
