//! What a replica lists when there is more of its share: the namespaces that it has gained, one by one. To list everything
//! anew takes as long as for one that starts, and the share of a dead replica rests meanwhile.
//!
//! ```text
//! more is accepted ─▶ what may be out of date is dropped ─▶ namespaces are listed ─▶ each watch lists those that are gained
//! ```
//!
//! In this order nothing is missed. An object that was dropped on arrival was there before more was accepted, and so was its
//! namespace: the listing of namespaces shows it, or both are gone. What comes later is accepted on arrival.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::sync::Arc;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use kube::runtime::watcher::{self, Event};
use serde_json::Value;

use super::Share;
use crate::object_key::ObjectKey;
use crate::reflect::{Events, PAGE, key_of, version_of};

/// How many are asked for at a time,
const AT_ONCE: usize = 4;

/// and how many objects for each page of them: together they are held in memory whole, as is one page of everything.
pub(crate) const PAGE_BESIDE: u32 = 25;

/// So many namespaces are always asked for one by one. More of them only if everything has as many pages: else whoever made
/// many empty namespaces would make the share of a dead replica rest for longer.
const FEW: usize = 16;

/// With more deletions while namespaces are listed, everything is listed.
pub(super) const MOST_DELETED: usize = 4096;

/// Opens a watch of one namespace, or of all.
pub(crate) type Open = Arc<dyn Fn(Option<&str>) -> Events + Send + Sync>;

/// What is to be listed when there is more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gained {
    /// All that there is.
    Everything,
    /// Only what is in these namespaces.
    Namespaces(Arc<[Box<str>]>),
}

/// The newest listing that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DueListing {
    /// Which one it is.
    pub(crate) number: u64,
    /// Who has followed this one lists what is gained,
    after: u64,
    gained: Gained,
    /// How many replicas there are.
    replicas: usize,
}

impl Default for DueListing {
    fn default() -> Self {
        Self::everything(0)
    }
}

impl DueListing {
    /// Of all that there is.
    pub(crate) fn everything(number: u64) -> Self {
        Self {
            number,
            after: number,
            gained: Gained::Everything,
            replicas: 1,
        }
    }

    /// Whether this namespace is listed by itself.
    pub(super) fn gains(&self, namespace: &str) -> bool {
        match &self.gained {
            Gained::Namespaces(gained) => gained.iter().any(|it| **it == *namespace),
            Gained::Everything => false,
        }
    }

    /// What whoever has followed that listing, and holds so many objects, has to list now; none if it is this one.
    pub(crate) fn since(&self, listing: u64, held: usize) -> Option<Gained> {
        if listing == self.number {
            return None;
        }
        let pages_of_everything = held.saturating_mul(self.replicas) / PAGE as usize;
        Some(match &self.gained {
            Gained::Namespaces(gained)
                if listing == self.after && gained.len() <= FEW + pages_of_everything =>
            {
                Gained::Namespaces(gained.clone())
            }
            Gained::Namespaces(_) | Gained::Everything => Gained::Everything,
        })
    }
}

/// There is more to list than there was.
#[derive(Debug)]
pub(crate) struct Growth {
    /// The listing that this makes due,
    pub(super) number: u64,
    /// and the one that was due before.
    pub(super) after: u64,
    /// What is kept of what arrives.
    pub(super) accepted: Share,
    /// What has been ever since the listing before became due.
    pub(super) kept: Share,
    /// Namespaces that are not, and in which a reconcile is under way.
    pub(super) busy: HashSet<Box<str>>,
}

impl Growth {
    /// Which listing this makes due.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether what is held of a namespace stays: it was told of all changes, or a reconcile would miss it. Everything else may
    /// be out of date, as some of it was not accepted for a while.
    pub(crate) fn stays(&self, namespace: &str) -> bool {
        self.kept.takes(namespace) || self.busy.contains(namespace)
    }

    /// Whether all that was accepted before has been lost since, as with a replica that has only just come.
    pub(crate) fn is_of_everything(&self) -> bool {
        self.kept == Share::Nothing || self.has_gained_busy()
    }

    /// What a reconcile is reading is replaced while it is listed, and not dropped before.
    fn has_gained_busy(&self) -> bool {
        self.busy.iter().any(|it| self.accepted.takes(it))
    }

    /// What is due, where there are these namespaces and no others.
    pub(crate) fn among(&self, namespaces: &[Box<str>]) -> DueListing {
        let is_gained = |it: &str| self.accepted.takes(it) && !self.kept.takes(it);
        let gained = namespaces.iter().filter(|it| is_gained(it));
        let gained: Arc<[Box<str>]> = gained.cloned().collect();
        let is_most = gained.len() * 2 > namespaces.len();
        if is_most || self.is_of_everything() {
            return DueListing::everything(self.number);
        }
        DueListing {
            number: self.number,
            after: self.after,
            gained: Gained::Namespaces(gained),
            replicas: self.accepted.replicas(),
        }
    }
}

/// Namespaces that are listed while a watch goes on.
pub(crate) struct Beside {
    objects: BoxStream<'static, watcher::Result<Value>>,
    namespaces: HashSet<Box<str>>,
    /// What was deleted meanwhile, with the version of the deletion: a page may have been read before.
    deleted: HashMap<ObjectKey, u64>,
}

impl Beside {
    /// Lists these namespaces.
    pub(crate) fn new(open: &Open, namespaces: &[Box<str>]) -> Self {
        let open = open.clone();
        let objects = move |namespace: Box<str>| listed(open(Some(&namespace))).boxed();
        Self {
            namespaces: namespaces.iter().cloned().collect(),
            objects: stream::iter(namespaces.to_vec())
                .flat_map_unordered(AT_ONCE, objects)
                .boxed(),
            deleted: HashMap::new(),
        }
    }

    /// The next object, if anything is being listed. After an error it is better to list everything.
    pub(crate) async fn next(beside: Option<&mut Self>) -> Option<watcher::Result<Value>> {
        match beside {
            Some(beside) => beside.objects.next().await,
            None => std::future::pending().await,
        }
    }

    /// The watch tells of a deletion, and be it in a namespace that falls to another replica for a while: what is listed here
    /// would show the object when that is over.
    pub(crate) fn note_deleted(&mut self, object: &Value) {
        let key = key_of(object);
        if !self.namespaces.contains(&*key.namespace) {
            return;
        }
        // An API that tells no versions does not tell either whether a page is older.
        let version = match version_of(object) {
            0 => u64::MAX,
            version => version,
        };
        self.deleted.insert(key, version);
    }

    /// Whether there were so many deletions that it is better to list everything.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.deleted.len() > MOST_DELETED
    }

    /// Whether this object was deleted after the page was read that shows it.
    pub(crate) fn is_gone(&self, object: &Value) -> bool {
        let deleted = self.deleted.get(&key_of(object));
        deleted.is_some_and(|deleted| *deleted >= version_of(object))
    }
}

/// What a watch shows before it begins to watch; nothing is asked of it after that.
fn listed(events: Events) -> impl Stream<Item = watcher::Result<Value>> {
    let before_the_end = |event: &watcher::Result<Event<Value>>| {
        let is_end = matches!(event, Ok(Event::InitDone));
        ready(!is_end)
    };
    let shown = |event: watcher::Result<Event<Value>>| {
        ready(match event {
            Ok(Event::InitApply(object) | Event::Apply(object)) => Some(Ok(object)),
            Ok(Event::Init | Event::InitDone | Event::Delete(_)) => None,
            Err(error) => Some(Err(error)),
        })
    };
    events.take_while(before_the_end).filter_map(shown)
}
