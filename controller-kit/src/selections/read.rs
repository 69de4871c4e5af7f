//! What matches a selection, and what was read of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::reflect::version_of;
use crate::stamped::Projection;

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
    /// When it was asked for: see [`Selections::ask`].
    pub(crate) asked: u64,
    pub(crate) matches: Matches,
    /// Which part of the object, if not all of it.
    pub(crate) part: Option<Projection>,
    pub(crate) object: Result<Arc<Value>, NotOne>,
    /// What was read, for the account: it may have changed since the watch said so.
    pub(crate) version: String,
}

impl Read {
    /// Whether another read would come to the same.
    pub(super) fn holds(&self, matches: &Matches, part: Option<&Projection>) -> bool {
        self.matches == *matches && self.part.as_ref() == part
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
