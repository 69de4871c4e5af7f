//! What a replica works on between two looks at the record. Pure.
//!
//! ```text
//!             seen: there is more                     listed
//!   held ───────────────────────▶ held, more accepted ───────▶ all of it held
//!   held ───────────────────────▶ less held ──stopped──▶ the record is told
//!             seen: a newer view
//! ```

use super::part::Share;
use super::record::{Numbered, Record};
use super::view::Identity;

/// What a replica works on, and what it is about to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Standing {
    me: Identity,
    /// What arrives of it is kept: it is being listed, or was.
    accepted: Share,
    /// What is worked on.
    held: Share,
    /// Which listing of what is accepted is awaited, and which one that is.
    listing: Option<u64>,
    listings: u64,
    /// The view that less is held for, as long as something of the rest may be under way.
    stopping: Option<Numbered>,
    /// The same when nothing is, which the record is to be told.
    stopped: Option<Numbered>,
}

impl Standing {
    /// Of a replica that holds nothing yet.
    pub fn new(me: Identity) -> Self {
        Self {
            me,
            accepted: Share::Nothing,
            held: Share::Nothing,
            listing: None,
            listings: 0,
            stopping: None,
            stopped: None,
        }
    }

    /// Who it is.
    pub fn me(&self) -> &Identity {
        &self.me
    }

    /// What is kept of what arrives.
    pub fn accepted(&self) -> &Share {
        &self.accepted
    }

    /// What is worked on.
    pub fn held(&self) -> &Share {
        &self.held
    }

    /// The listing that is awaited.
    pub fn listing(&self) -> Option<u64> {
        self.listing
    }

    /// The view that the record is to be told of.
    pub fn stopped(&self) -> Option<&Numbered> {
        self.stopped.as_ref()
    }

    /// Whether something is to be stopped before the record is told.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Whether there is more in the record, as it was written, of which others are still to hand over some: to list it now
    /// is to list it again soon.
    pub(super) fn may_wait(&self, record: &Record) -> bool {
        let due = record.share(&self.me);
        due.awaits_others() && !due.is_within(&self.accepted)
    }

    /// The record as this replica has just written it; whether it waits for what others are to hand over yet.
    pub fn seen(&mut self, record: &Record, waits: bool) {
        let mut due = record.share(&self.me);
        if waits && due.awaits_others() {
            due = due.and(&self.accepted);
        }
        self.stopping = record.awaited_of(&self.me);
        self.stopped = None;
        if let Some(newest) = &self.stopping {
            due = due.and(&Share::of(&self.me, &newest.view, []));
        }
        self.held = self.held.and(&due);
        if due.is_within(&self.accepted) {
            if self.listing.is_none() {
                self.held = due.clone();
            }
        } else {
            self.listings += 1;
            self.listing = Some(self.listings);
        }
        self.accepted = due;
    }

    /// This listing has shown all that is accepted.
    pub fn listed(&mut self, listing: u64) {
        if self.listing == Some(listing) {
            self.listing = None;
            self.held = self.accepted.clone();
        }
    }

    /// Nothing is under way but what is held.
    pub fn has_stopped(&mut self) {
        if let Some(stopping) = self.stopping.take() {
            self.stopped = Some(stopping);
        }
    }

    /// The Lease was not renewed in time: others may work on all of it soon.
    pub fn lapsed(&mut self) {
        self.held = Share::Nothing;
    }

    /// The record does not know this process: others may have worked on all of it.
    pub fn forgotten(&mut self) {
        *self = Self {
            listings: self.listings,
            ..Self::new(self.me.clone())
        };
    }

    /// States that differ in nothing but how often something was listed are the same to whoever looks at all of them.
    #[cfg(test)]
    pub(super) fn forget_counts(&mut self) {
        self.listings = 0;
        self.listing = self.listing.map(|_| 1);
    }
}
