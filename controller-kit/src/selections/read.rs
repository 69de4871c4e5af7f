//! What matches a selection, and what was read of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch as signal;

use crate::reflect::version_of;
use crate::stamped::Projection;

/// Parts of one object that are kept as they were read with the rights of one account.
pub(super) const MOST_PARTS: usize = 64;

/// Which objects match, in which versions: equal as long as nothing changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matches(pub(super) BTreeSet<(Box<str>, u64)>);

impl Matches {
    /// These objects match.
    pub(crate) fn of(objects: &[Value]) -> Self {
        let each = objects.iter().map(|object| {
            let uid = object["metadata"]["uid"].as_str();
            (uid.unwrap_or_default().into(), version_of(object))
        });
        Self(each.collect())
    }

    /// The same for an account, whose rights may be others than those of another one.
    pub(crate) fn seen_by(&self, account: &str) -> String {
        let each = self
            .0
            .iter()
            .map(|(uid, version)| format!(" {uid}@{version}"));
        std::iter::once(account.to_owned()).chain(each).collect()
    }
}

/// What was read, and what the watch said just before.
#[derive(Clone)]
pub(crate) struct Read {
    /// When it was asked for: see `Selections::ask`.
    pub(crate) asked: u64,
    pub(crate) matches: Matches,
    /// Which part of the object, if not all of it.
    pub(crate) part: Option<Projection>,
    pub(crate) object: Result<Arc<Value>, NotOne>,
    /// What was read, for the account: it may have changed since the watch said so.
    pub(crate) version: String,
}

/// What is known of an object that somebody needs.
pub(crate) enum Reading {
    /// It was read.
    Done(Read),
    /// Somebody reads it.
    UnderWay(UnderWay),
}

/// A read that somebody has begun. It ends when this is dropped, whether it has come to anything or not.
pub(crate) struct Begun {
    /// When it was asked for: see `Selections::ask`.
    pub(crate) asked: u64,
    _ends: signal::Sender<()>,
}

/// A read that somebody else has begun.
#[derive(Clone)]
pub(crate) struct UnderWay {
    asked: u64,
    matches: Matches,
    part: Option<Projection>,
    ended: signal::Receiver<()>,
}

impl UnderWay {
    /// Returns once it has come to something, or never will.
    pub(crate) async fn ended(mut self) {
        // Nothing is ever sent.
        let _ = self.ended.changed().await;
    }

    fn is_over(&self) -> bool {
        self.ended.has_changed().is_err()
    }
}

/// What is read of a selection with the rights of one account.
#[derive(Default)]
pub(super) struct Reads {
    kept: Vec<Read>,
    under_way: Vec<UnderWay>,
}

impl Reads {
    /// What was read when the same objects matched, and was asked for since `outdated`; or will be once it is answered.
    pub(super) fn find(
        &self,
        outdated: u64,
        matches: &Matches,
        part: Option<&Projection>,
    ) -> Option<Reading> {
        let does = |asked: u64, matched: &Matches, of: Option<&Projection>| {
            asked > outdated && matched == matches && of == part
        };
        let mut kept = self.kept.iter();
        if let Some(read) = kept.find(|it| does(it.asked, &it.matches, it.part.as_ref())) {
            return Some(Reading::Done(read.clone()));
        }
        let mut begun = self.under_way.iter().filter(|it| !it.is_over());
        let begun = begun.find(|it| does(it.asked, &it.matches, it.part.as_ref()))?;
        Some(Reading::UnderWay(begun.clone()))
    }

    /// Whether anything was asked for since `outdated`, and answered.
    pub(super) fn has_any_since(&self, outdated: u64) -> bool {
        self.kept.iter().any(|read| read.asked > outdated)
    }

    /// Somebody reads it.
    pub(super) fn begin(
        &mut self,
        asked: u64,
        matches: &Matches,
        part: Option<&Projection>,
    ) -> Begun {
        let (ends, ended) = signal::channel(());
        self.under_way.retain(|it| !it.is_over());
        self.under_way.push(UnderWay {
            asked,
            matches: matches.clone(),
            part: part.cloned(),
            ended,
        });
        Begun { asked, _ends: ends }
    }

    /// Keeps what was read, if nothing that was asked for later is known.
    pub(super) fn keep(&mut self, read: Read) {
        let mut of_the_part = self.kept.iter().filter(|kept| kept.part == read.part);
        if of_the_part.any(|kept| kept.asked > read.asked) {
            return;
        }
        // Several steps may read different parts of one object.
        self.kept.retain(|kept| kept.part != read.part);
        self.kept.truncate(MOST_PARTS - 1);
        self.kept.insert(0, read);
    }
}

/// Why there is not one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotOne {
    /// There is none.
    None,
    /// There are several: the names of the first.
    Several(Vec<String>),
}
