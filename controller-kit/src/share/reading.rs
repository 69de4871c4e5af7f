//! The events of the owners in this replica's share.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::sync::watch as signal;

use super::OwnShare;
use crate::reflect::{Events, key_of};

impl OwnShare {
    /// The events of the owners that are accepted: read anew whenever there are more of them, and those of others are
    /// dropped on arrival. Before anything is known of the share nothing is asked, and nothing is asked for no share.
    pub(crate) fn owners(self: &Arc<Self>, open: impl Fn() -> Events + Send + 'static) -> Events {
        let reading = Reading {
            changes: self.changes(),
            share: self.clone(),
            open: Box::new(open),
            events: None,
            listing: 0,
            is_listed: false,
        };
        stream::unfold(reading, |mut reading| async move {
            let event = reading.next().await?;
            Some((event, reading))
        })
        .boxed()
    }
}

/// A watch of the owners that begins anew with the share.
struct Reading {
    share: Arc<OwnShare>,
    changes: signal::Receiver<u64>,
    open: Box<dyn Fn() -> Events + Send>,
    events: Option<Events>,
    listing: u64,
    /// Whoever asks for the next event has followed the end of the listing.
    is_listed: bool,
}

impl Reading {
    async fn next(&mut self) -> Option<watcher::Result<Event<Value>>> {
        loop {
            if std::mem::take(&mut self.is_listed) {
                self.share.has_listed_owners(self.listing);
            }
            let Some(events) = &mut self.events else {
                self.changes.changed().await.ok()?;
                self.begin();
                continue;
            };
            tokio::select! {
                biased;
                changed = self.changes.changed() => {
                    changed.ok()?;
                    if self.share.listings().0 != self.listing {
                        self.begin();
                    }
                }
                event = events.next() => {
                    let event = event?;
                    match &event {
                        Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object))
                            if !self.share.accepts(&key_of(object).namespace) => {}
                        _ => {
                            self.is_listed = matches!(event, Ok(Event::InitDone));
                            return Some(event);
                        }
                    }
                }
            }
        }
    }

    fn begin(&mut self) {
        let (listing, has_any) = self.share.listings();
        self.listing = listing;
        self.events = Some(if has_any {
            (self.open)()
        } else {
            let empty = stream::iter([Ok(Event::Init), Ok(Event::InitDone)]);
            empty.chain(stream::pending()).boxed()
        });
    }
}
