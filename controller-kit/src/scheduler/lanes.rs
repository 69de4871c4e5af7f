//! Owners that could run now: three lanes, each with one queue per namespace, served in turn.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::time::Instant;

use super::{Lane, OwnerKey};

/// One Fresh owner is taken after this many of Progress while both wait.
const PROGRESS_BURST: u32 = 4;

#[derive(Default)]
pub(super) struct Lanes {
    lanes: [Queue; 3],
    progress_in_a_row: u32,
}

impl Lanes {
    pub(super) fn push(&mut self, lane: Lane, ticket: u64, key: OwnerKey, now: Instant) {
        self.lanes[lane as usize].push(ticket, key, now);
    }

    /// Takes an owner out of the middle.
    pub(super) fn remove(&mut self, lane: Lane, ticket: u64, namespace: &str) {
        self.lanes[lane as usize].remove(ticket, namespace);
    }

    /// The next owner for an event slot.
    pub(super) fn pop_event(&mut self) -> Option<(OwnerKey, Lane)> {
        let [progress, fresh, _] = &mut self.lanes;
        if fresh.len() == 0 {
            self.progress_in_a_row = 0;
        }
        if self.progress_in_a_row < PROGRESS_BURST
            && let Some(key) = progress.pop()
        {
            self.progress_in_a_row += 1;
            return Some((key, Lane::Progress));
        }
        self.progress_in_a_row = 0;
        match fresh.pop() {
            Some(key) => Some((key, Lane::Fresh)),
            None => progress.pop().map(|key| (key, Lane::Progress)),
        }
    }

    /// The next owner for a retry slot.
    pub(super) fn pop_retry(&mut self) -> Option<(OwnerKey, Lane)> {
        self.lanes[Lane::Retry as usize]
            .pop()
            .map(|key| (key, Lane::Retry))
    }

    pub(super) fn len(&self, lane: Lane) -> usize {
        self.lanes[lane as usize].len()
    }

    /// When the longest-waiting owner of a lane became ready.
    pub(super) fn oldest(&self, lane: Lane) -> Option<Instant> {
        self.lanes[lane as usize]
            .ready_since
            .first_key_value()
            .map(|(_, since)| *since)
    }
}

/// Tickets grow with time, so the order by ticket is the order of arrival.
#[derive(Default)]
struct Queue {
    namespaces: HashMap<Arc<str>, Namespace>,
    /// Which namespace comes next: those that were served last stand behind.
    turns: BTreeMap<u64, Arc<str>>,
    ready_since: BTreeMap<u64, Instant>,
    next_turn: u64,
}

struct Namespace {
    turn: u64,
    owners: BTreeMap<u64, OwnerKey>,
}

impl Queue {
    fn len(&self) -> usize {
        self.ready_since.len()
    }

    fn push(&mut self, ticket: u64, key: OwnerKey, now: Instant) {
        self.ready_since.insert(ticket, now);
        if let Some(namespace) = self.namespaces.get_mut(&key.namespace) {
            namespace.owners.insert(ticket, key);
            return;
        }
        let turn = self.next_turn;
        self.next_turn += 1;
        self.turns.insert(turn, key.namespace.clone());
        let name = key.namespace.clone();
        self.namespaces.insert(
            name,
            Namespace {
                turn,
                owners: BTreeMap::from([(ticket, key)]),
            },
        );
    }

    fn pop(&mut self) -> Option<OwnerKey> {
        let (_, name) = self.turns.pop_first()?;
        let namespace = self.namespaces.get_mut(&name)?;
        let (ticket, key) = namespace.owners.pop_first()?;
        self.ready_since.remove(&ticket);
        if namespace.owners.is_empty() {
            self.namespaces.remove(&name);
        } else {
            namespace.turn = self.next_turn;
            self.turns.insert(self.next_turn, name);
            self.next_turn += 1;
        }
        Some(key)
    }

    fn remove(&mut self, ticket: u64, name: &str) {
        let Some(namespace) = self.namespaces.get_mut(name) else {
            return;
        };
        if namespace.owners.remove(&ticket).is_none() {
            return;
        }
        self.ready_since.remove(&ticket);
        if namespace.owners.is_empty() {
            self.turns.remove(&namespace.turn);
            self.namespaces.remove(name);
        }
    }
}
