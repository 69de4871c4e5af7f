//! The events of the owners in this replica's share.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::sync::watch as signal;
use tracing::debug;

use super::gained::{Beside, DueListing, Gained, Open};
use super::{OwnShare, Share};
use crate::cluster::chain;
use crate::reflect::{Events, key_of};

/// How many there are.
pub(crate) type Held = Arc<dyn Fn() -> usize + Send + Sync>;

impl OwnShare {
    /// The events of the owners that are accepted: what is gained is read whenever a listing is due, and those of others are
    /// dropped on arrival. Before anything is known of the share nothing is asked, and nothing is asked for no share.
    ///
    /// `held` counts the owners that are followed.
    pub(crate) fn owners(self: &Arc<Self>, open: Open, held: Held) -> Events {
        let reading = Reading {
            due: self.due_listings(),
            share: self.clone(),
            open,
            held,
            events: None,
            beside: None,
            listing: 0,
            is_open: false,
            is_listed: false,
            is_whole: false,
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
    due: signal::Receiver<DueListing>,
    open: Open,
    held: Held,
    events: Option<Events>,
    beside: Option<Beside>,
    listing: u64,
    /// Whether anything is asked.
    is_open: bool,
    /// Whoever asks for the next event has followed the end of the listing.
    is_listed: bool,
    /// Whether the watch has shown all that was accepted when it began, and all changes since.
    is_whole: bool,
}

/// What comes next.
enum Next {
    Due,
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
            let Some(events) = &mut self.events else {
                self.due.changed().await.ok()?;
                self.begin();
                continue;
            };
            let next = tokio::select! {
                due = self.due.changed() => {
                    due.ok()?;
                    Next::Due
                }
                event = events.next() => Next::Event(event?),
                object = Beside::next(self.beside.as_mut()) => Next::Listed(object),
            };
            if let Some(event) = self.after(next) {
                return Some(event);
            }
        }
    }

    fn after(&mut self, next: Next) -> Option<watcher::Result<Event<Value>>> {
        match next {
            Next::Due => self.list_due(),
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

    /// Only what is gained is listed if the rest is known.
    fn list_due(&mut self) {
        let due = self.due.borrow_and_update().clone();
        match due.since(self.listing, (self.held)()) {
            None => {}
            Some(Gained::Namespaces(namespaces)) if self.is_whole && self.beside.is_none() => {
                self.listing = due.number;
                self.beside = Some(Beside::new(&self.open, &namespaces));
            }
            Some(Gained::Namespaces(_) | Gained::Everything) => self.begin(),
        }
    }

    /// The watch shows this.
    fn shown(
        &mut self,
        event: watcher::Result<Event<Value>>,
    ) -> Option<watcher::Result<Event<Value>>> {
        self.note_deleted(&event);
        match &event {
            Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object))
                if !self.accepts(object) =>
            {
                return None;
            }
            // It lists everything by itself.
            Ok(Event::Init) => {
                self.is_whole = false;
                self.beside = None;
            }
            Ok(Event::InitDone) => self.is_listed = true,
            Ok(Event::InitApply(_) | Event::Apply(_) | Event::Delete(_)) | Err(_) => {}
        }
        Some(event)
    }

    /// What is deleted must not come back by a page that was read before.
    fn note_deleted(&mut self, event: &watcher::Result<Event<Value>>) {
        let (Ok(Event::Delete(object)), Some(beside)) = (event, &mut self.beside) else {
            return;
        };
        beside.note_deleted(object);
        if beside.is_overtaken() {
            self.begin();
        }
    }

    fn accepts(&self, object: &Value) -> bool {
        // What is null is not even read.
        !object.is_null() && self.share.accepts(&key_of(object).namespace)
    }

    /// A namespace that was gained holds this.
    fn listed(&self, object: Value) -> Option<Event<Value>> {
        let is_gone = self.beside.as_ref()?.is_gone(&object);
        let is_shown = !is_gone && self.accepts(&object);
        is_shown.then_some(Event::Apply(object))
    }

    /// Lists everything, and watches.
    fn begin(&mut self) {
        self.listing = self.due.borrow_and_update().number;
        self.beside = None;
        self.is_whole = false;
        self.is_open = self.share.accepted() != Share::Nothing;
        self.events = Some(if self.is_open {
            (self.open)(None)
        } else {
            let empty = stream::iter([Ok(Event::Init), Ok(Event::InitDone)]);
            empty.chain(stream::pending()).boxed()
        });
    }
}
