//! The events of the owners in this replica's share.

use std::collections::HashMap;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::sync::watch as signal;
use tracing::debug;

use super::OwnShare;
use super::gained::{Gained, Listed, Open, listed_in, next_listed};
use crate::cluster::chain;
use crate::reflect::{Events, key_of, version_of};
use crate::stamped::ObjectKey;

/// With more deletions while namespaces are listed, everything is listed.
const MOST_DELETED: usize = 4096;

impl OwnShare {
    /// The events of the owners that are accepted: what is gained is read whenever there is more of them, and those of others are
    /// dropped on arrival. Before anything is known of the share nothing is asked, and nothing is asked for no share.
    pub(crate) fn owners(self: &Arc<Self>, open: Open) -> Events {
        let reading = Reading {
            changes: self.changes(),
            share: self.clone(),
            open,
            events: None,
            beside: None,
            listing: 0,
            is_open: false,
            is_listed: false,
            is_whole: false,
            passed: None,
        };
        stream::unfold(reading, |mut reading| async move {
            let event = reading.next().await?;
            Some((event, reading))
        })
        .boxed()
    }
}

/// A watch of the owners, and what is listed beside it when there is more of them.
struct Reading {
    share: Arc<OwnShare>,
    changes: signal::Receiver<u64>,
    open: Open,
    events: Option<Events>,
    beside: Option<Beside>,
    listing: u64,
    /// Whether anything is asked.
    is_open: bool,
    /// Whoever asks for the next event has followed the end of the listing.
    is_listed: bool,
    /// Whether the watch has shown all that was accepted when it began, and all changes since.
    is_whole: bool,
    /// The namespace of the event before, which has been followed when the next one is asked for.
    passed: Option<Arc<str>>,
}

/// Namespaces that are listed while the watch goes on.
struct Beside {
    listed: Listed,
    /// What was deleted meanwhile, with the version of the deletion: a page may have been read before.
    deleted: HashMap<ObjectKey, u64>,
}

/// What comes next.
enum Next {
    Changed,
    Event(watcher::Result<Event<Value>>),
    Listed(Option<watcher::Result<Value>>),
}

impl Reading {
    async fn next(&mut self) -> Option<watcher::Result<Event<Value>>> {
        loop {
            if std::mem::take(&mut self.is_listed) {
                self.is_whole = self.is_open;
                self.share.has_listed_owners(self.listing);
            }
            if let Some(namespace) = self.passed.take() {
                self.share.has_taken_in(&namespace);
            }
            let Some(events) = &mut self.events else {
                self.changes.changed().await.ok()?;
                self.begin();
                continue;
            };
            let listed = self.beside.as_mut().map(|beside| &mut beside.listed);
            let next = tokio::select! {
                changed = self.changes.changed() => {
                    changed.ok()?;
                    Next::Changed
                }
                event = events.next() => Next::Event(event?),
                object = next_listed(listed) => Next::Listed(object),
            };
            if let Some(event) = self.after(next) {
                return Some(event);
            }
        }
    }

    fn after(&mut self, next: Next) -> Option<watcher::Result<Event<Value>>> {
        match next {
            Next::Changed => self.follow_share(),
            Next::Event(event) => return self.shown(event),
            Next::Listed(Some(Ok(object))) => return self.listed(object).map(Ok),
            Next::Listed(Some(Err(error))) => {
                debug!(error = %chain(&error), "namespaces could not be listed; everything is");
                self.begin();
            }
            Next::Listed(None) => {
                self.beside = None;
                self.share.has_listed_owners(self.listing);
            }
        }
        None
    }

    /// There may be more to list.
    fn follow_share(&mut self) {
        let (listing, gained) = self.share.gained_since(self.listing);
        if listing == self.listing {
            return;
        }
        match gained {
            Gained::Namespaces(namespaces) if self.is_whole && self.beside.is_none() => {
                self.listing = listing;
                self.beside = Some(Beside {
                    listed: listed_in(self.open.clone(), namespaces),
                    deleted: HashMap::new(),
                });
            }
            Gained::Namespaces(_) | Gained::Everything => self.begin(),
        }
    }

    /// The watch shows this.
    fn shown(
        &mut self,
        event: watcher::Result<Event<Value>>,
    ) -> Option<watcher::Result<Event<Value>>> {
        match &event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                if !self.takes_in(&key_of(object)) {
                    return None;
                }
            }
            Ok(Event::Delete(object)) => {
                let key = key_of(object);
                if !self.takes_in(&key) {
                    return None;
                }
                self.note_deleted(key, version_of(object));
            }
            // It lists everything by itself.
            Ok(Event::Init) => {
                self.is_whole = false;
                self.beside = None;
            }
            Ok(Event::InitDone) => self.is_listed = true,
            Err(_) => {}
        }
        Some(event)
    }

    fn takes_in(&mut self, key: &ObjectKey) -> bool {
        let is_accepted = self.share.accepts(&key.namespace);
        self.passed = is_accepted.then(|| key.namespace.clone());
        is_accepted
    }

    fn note_deleted(&mut self, key: ObjectKey, version: u64) {
        let Some(beside) = &mut self.beside else {
            return;
        };
        beside.deleted.insert(key, version);
        if beside.deleted.len() > MOST_DELETED {
            self.begin();
        }
    }

    /// A namespace that was gained holds this.
    fn listed(&mut self, object: Value) -> Option<Event<Value>> {
        let key = key_of(&object);
        let deleted = self.beside.as_ref()?.deleted.get(&key);
        let is_gone = deleted.is_some_and(|deleted| *deleted >= version_of(&object));
        (!is_gone && self.takes_in(&key)).then_some(Event::Apply(object))
    }

    fn begin(&mut self) {
        let (listing, has_any) = self.share.listings();
        self.listing = listing;
        self.beside = None;
        self.is_whole = false;
        self.is_open = has_any;
        self.events = Some(if has_any {
            (self.open)(None)
        } else {
            let empty = stream::iter([Ok(Event::Init), Ok(Event::InitDone)]);
            empty.chain(stream::pending()).boxed()
        });
    }
}
