//! Which namespaces a watch leaves out, as it learns from what it drops. Pure.

use std::collections::HashSet;
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use crate::share::{DueListing, Share};

/// Bytes of a selector as in a URL. Proxies take lines of 8 KiB, of which path and other parameters are a few hundred bytes.
pub(super) const LONGEST: usize = 6 * 1024;

/// A watch begins anew when so many objects were dropped that the next one would leave out. To begin costs a connection, about as
/// much as ten of them,
pub(super) const WORTH: usize = 32;

/// and is not done more often than this.
pub(super) const SHORTEST: Duration = Duration::from_secs(5);

/// With so many failures in a row that nothing but the selector explains, nothing is left out any more.
const MOST_FAILURES: u8 = 3;

/// What a watch has to show.
#[derive(Debug, Default)]
pub(in crate::share) struct Wanted {
    /// What is kept of it.
    pub(in crate::share) accepted: Share,
    /// What is listed beside it; of what is deleted there it has to tell even while others have it (`gained.rs`).
    pub(in crate::share) due: DueListing,
    /// Where something is under way, though it falls to others.
    pub(in crate::share) busy: HashSet<Box<str>>,
}

impl Wanted {
    pub(super) fn takes(&self, namespace: &str) -> bool {
        self.accepted.takes(namespace) || self.due.gains(namespace) || self.busy.contains(namespace)
    }
}

/// What is known of others' namespaces.
#[derive(Default)]
pub(super) struct Learned {
    /// From which something was dropped. Not more than fit into a selector.
    namespaces: HashSet<Box<str>>,
    /// As many bytes as that is.
    bytes: usize,
    /// Whether others would have been learned as well.
    is_full: bool,
    /// What was dropped of these since the watch began,
    dropped: usize,
    /// and whether some of them were not known then.
    is_fresh: bool,
    /// What the watch leaves out that goes on, sorted; nothing while everything is listed.
    left_out: Arc<[Box<str>]>,
    since: Option<Instant>,
    /// How often in a row a watch did not begin with a selector, and did without.
    failures: u8,
    trial: Trial,
}

/// Whether it is tried if a watch begins without a selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Trial {
    #[default]
    No,
    /// This one is.
    This,
    /// The next one is.
    Next,
}

impl Learned {
    /// Whether a namespace is new among those from which something was dropped.
    pub(super) fn drops(&mut self, namespace: &str) -> bool {
        let is_left_out = self.left_out.binary_search_by(|it| (**it).cmp(namespace));
        if is_left_out.is_ok() && !self.is_refused() {
            debug!(%namespace, "a watch shows what it should leave out; what is of others is dropped");
            self.failures = MOST_FAILURES;
        }
        if self.is_refused() {
            return false;
        }
        let is_new = !self.namespaces.contains(namespace);
        if is_new {
            let bytes = self.bytes + term(namespace).len();
            if bytes > LONGEST {
                self.is_full = true;
                return false;
            }
            self.bytes = bytes;
            self.namespaces.insert(namespace.into());
            self.is_fresh = true;
        }
        self.dropped += 1;
        is_new
    }

    /// Whether the API server does not take such a selector for this kind, or passes over it, as aggregated ones may.
    fn is_refused(&self) -> bool {
        self.failures >= MOST_FAILURES
    }

    /// What the watch leaves out that begins now, where there are these namespaces besides.
    pub(super) fn begin(&mut self, wanted: &Wanted, besides: &[Box<str>]) -> Arc<[Box<str>]> {
        self.since = Some(Instant::now());
        let (is_full, is_fresh) = (take(&mut self.is_full), take(&mut self.is_fresh));
        self.dropped = 0;
        // Where there is no room for all, it learns anew which ones change most often, once it has used what it learned.
        if is_full && !is_fresh {
            self.namespaces.clear();
        }
        self.trial = match self.trial {
            Trial::Next => Trial::This,
            Trial::No | Trial::This => Trial::No,
        };
        let left_out = if self.trial == Trial::This || self.is_refused() {
            Vec::new()
        } else {
            self.choose(wanted, besides)
        };
        self.leaves_out(left_out)
    }

    /// Everything is listed, or shown.
    pub(super) fn leaves_out_nothing(&mut self) {
        self.leaves_out(Vec::new());
    }

    fn leaves_out(&mut self, namespaces: Vec<Box<str>>) -> Arc<[Box<str>]> {
        self.left_out = namespaces.into();
        self.left_out.clone()
    }

    fn choose(&mut self, wanted: &Wanted, besides: &[Box<str>]) -> Vec<Box<str>> {
        self.namespaces.retain(|it| !wanted.takes(it));
        self.bytes = self.namespaces.iter().map(|it| term(it).len()).sum();
        let mut bytes = self.bytes;
        let others = besides.iter().filter(|it| !self.namespaces.contains(*it));
        let others = others.filter(|it| !wanted.takes(it)).take_while(|it| {
            bytes += term(it).len();
            bytes <= LONGEST
        });
        let mut left_out: Vec<_> = others.chain(&self.namespaces).cloned().collect();
        left_out.sort_unstable();
        left_out
    }

    /// Whether the next watch would leave out enough, and this one has gone on for long enough.
    pub(super) fn is_outdone(&self) -> bool {
        let has_lasted = || self.since.is_none_or(|since| since.elapsed() >= SHORTEST);
        self.dropped >= WORTH && has_lasted()
    }

    /// A watch began, with a selector or without.
    pub(super) fn began(&mut self) {
        if !self.left_out.is_empty() {
            self.failures = 0;
        } else if take(&mut self.trial) == Trial::This {
            self.failures = self.failures.saturating_add(1);
            debug!(
                failures = self.failures,
                "a watch could not leave out namespaces"
            );
        }
    }

    /// A watch did not begin with a selector, and is tried without at once.
    pub(super) fn tries_without(&mut self) {
        self.leaves_out_nothing();
        self.trial = Trial::This;
    }

    /// It may be tried without next time: nobody answered, or nothing was shown.
    pub(super) fn skips(&mut self) {
        self.trial = Trial::Next;
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

pub(super) const COMMA: &str = "%2C";

/// Names of namespaces have no sign that has to be escaped.
pub(super) fn term(namespace: &str) -> String {
    format!("metadata.namespace%21%3D{namespace}{COMMA}")
}
