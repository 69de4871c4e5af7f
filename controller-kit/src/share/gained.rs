//! What a replica lists when there is more of its share: the namespaces that it has gained, one by one. To list everything
//! anew takes as long as for one that starts, and the share of a dead replica rests meanwhile.

use std::collections::{HashSet, VecDeque};
use std::future::ready;
use std::sync::Arc;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use kube::runtime::watcher::{self, Event};
use serde_json::Value;

use super::Share;
use crate::reflect::Events;

/// Namespaces beyond this are not remembered, and then everything is listed.
const MOST_NAMESPACES: usize = 65_536;

/// To ask for more namespaces one by one takes longer than to ask for everything.
const MOST_GAINED: usize = 256;

/// How many are asked for at a time: as much is held in memory as there are pages.
const AT_ONCE: usize = 4;

/// Shares of listings that are remembered. A watch that comes later than so many changes lists everything.
const LISTINGS: usize = 8;

/// Opens a watch of one namespace, or of all.
pub(crate) type Open = Arc<dyn Fn(Option<&str>) -> Events + Send + Sync>;

/// Objects that a listing shows.
pub(crate) type Listed = BoxStream<'static, watcher::Result<Value>>;

/// What is to be listed when there is more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Gained {
    /// All that there is.
    Everything,
    /// Only what is in these namespaces.
    Namespaces(Vec<Box<str>>),
}

/// What tells which namespaces are gained.
#[derive(Debug, Default)]
pub(super) struct Gains {
    /// All namespaces of which anything has arrived, whosever it is.
    namespaces: HashSet<Box<str>>,
    /// Those of which something may be kept though it fell to another replica meanwhile.
    strays: HashSet<Box<str>>,
    /// What has been accepted without a break since each of the latest listings began.
    kept: VecDeque<(u64, Share)>,
    /// How often less was accepted than before,
    losses: u64,
    /// and how many of these times what had been lost was dropped.
    dropped: u64,
}

impl Gains {
    /// Something of this namespace has arrived; a stray if it is kept though it is not accepted.
    pub(super) fn arrives(&mut self, namespace: &str, is_stray: bool) {
        if !self.namespaces.contains(namespace) && self.namespaces.len() < MOST_NAMESPACES {
            self.namespaces.insert(namespace.into());
        }
        if is_stray {
            self.strays.insert(namespace.into());
        }
    }

    /// Another share is accepted than before; with a number if all that it has is to be listed.
    pub(super) fn changes(&mut self, before: &Share, accepted: &Share, listing: Option<u64>) {
        for (_, kept) in &mut self.kept {
            *kept = kept.and(accepted);
        }
        self.losses += u64::from(!before.is_within(accepted));
        let Some(listing) = listing else {
            return;
        };
        // What was lost may be among what is gained, and in memory still, as it was then.
        if self.losses > self.dropped {
            self.kept.clear();
        }
        self.kept.push_back((listing, accepted.clone()));
        if self.kept.len() > LISTINGS {
            self.kept.pop_front();
        }
    }

    /// How often less was accepted than before.
    pub(super) fn losses(&self) -> u64 {
        self.losses
    }

    /// What was lost until then is not kept any more.
    pub(super) fn has_dropped(&mut self, losses: u64) {
        self.dropped = self.dropped.max(losses);
    }

    /// What this share has beside what was accepted ever since a listing.
    pub(super) fn since(&self, listing: u64, accepted: &Share) -> Gained {
        let kept = self.kept.iter().find(|(number, _)| *number == listing);
        let Some((_, kept)) = kept.filter(|_| self.namespaces.len() < MOST_NAMESPACES) else {
            return Gained::Everything;
        };
        let is_gained = |it: &str| !it.is_empty() && accepted.takes(it) && !kept.takes(it);
        let gained = self.namespaces.iter().filter(|it| is_gained(it));
        let gained: Vec<Box<str>> = gained.cloned().collect();
        let is_most = gained.len() * 2 > self.namespaces.len();
        let has_stray = gained.iter().any(|it| self.strays.contains(it));
        if is_most || has_stray || gained.len() > MOST_GAINED {
            return Gained::Everything;
        }
        Gained::Namespaces(gained)
    }
}

/// What there is in these namespaces. An error ends nothing, but then it is better to list everything.
pub(crate) fn listed_in(open: Open, namespaces: Vec<Box<str>>) -> Listed {
    let objects = move |namespace: Box<str>| listed(open(Some(&namespace))).boxed();
    stream::iter(namespaces)
        .flat_map_unordered(AT_ONCE, objects)
        .boxed()
}

/// The next object of a listing beside the watch, if there is one under way.
pub(crate) async fn next_listed(listing: Option<&mut Listed>) -> Option<watcher::Result<Value>> {
    match listing {
        Some(listing) => listing.next().await,
        None => std::future::pending().await,
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
