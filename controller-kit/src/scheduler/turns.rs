//! What waits, by namespace: namespaces are served in turn, and those that hold their share of slots are passed over.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::time::Instant;

/// Tickets grow with time, so the order by ticket is the order of arrival.
pub(super) struct Turns<T> {
    namespaces: HashMap<Arc<str>, Namespace<T>>,
    /// Which namespace comes next: those that were served last stand behind. Namespaces that hold a slot, and those that
    /// ask for little, stand apart, so that the next one of a sort is found without looking at the others.
    rows: [BTreeMap<u64, Arc<str>>; 4],
    ready_since: BTreeMap<u64, Instant>,
    next_turn: u64,
}

struct Namespace<T> {
    turn: u64,
    standing: Rank,
    waiting: BTreeMap<u64, T>,
}

/// What tells the namespaces of a lane apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rank {
    /// It holds a slot.
    pub(super) holds: bool,
    /// It asks for little.
    pub(super) is_guest: bool,
}

impl Rank {
    fn index(self) -> usize {
        usize::from(self.holds) + if self.is_guest { 0 } else { 2 }
    }
}

/// The rows of guests.
const GUESTS: std::ops::Range<usize> = 0..2;
/// The rows of everybody.
const ALL: std::ops::Range<usize> = 0..4;

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self {
            namespaces: HashMap::new(),
            rows: std::array::from_fn(|_| BTreeMap::new()),
            ready_since: BTreeMap::new(),
            next_turn: 0,
        }
    }
}

impl<T> Turns<T> {
    pub(super) fn len(&self) -> usize {
        self.ready_since.len()
    }

    /// Since when the longest-waiting one waits.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.ready_since.first_key_value().map(|(_, since)| *since)
    }

    /// `standing`: of the namespace now.
    pub(super) fn push(
        &mut self,
        ticket: u64,
        namespace: &Arc<str>,
        standing: Rank,
        item: T,
        now: Instant,
    ) {
        self.ready_since.insert(ticket, now);
        if let Some(namespace) = self.namespaces.get_mut(namespace) {
            namespace.waiting.insert(ticket, item);
            return;
        }
        let turn = self.queue_up(standing, namespace.clone());
        let waiting = BTreeMap::from([(ticket, item)]);
        self.namespaces.insert(
            namespace.clone(),
            Namespace {
                turn,
                standing,
                waiting,
            },
        );
    }

    /// The next one of a namespace that `may` hold another slot; where `guests_only`, of those that ask for little. Looks at
    /// those that may not: of holders there are no more than slots, and among newcomers only crowds may not.
    pub(super) fn pop(
        &mut self,
        guests_only: bool,
        may: impl Fn(&str) -> bool,
    ) -> Option<(Arc<str>, T)> {
        let rows = if guests_only { GUESTS } else { ALL };
        let first = |row: usize| {
            let admitted = self.rows[row].iter().find(|(_, name)| may(name));
            admitted.map(|(turn, _)| (*turn, row))
        };
        let (turn, row) = rows.filter_map(first).min()?;
        let name = self.rows[row].remove(&turn)?;
        let mut namespace = self.namespaces.remove(&name)?;
        let (ticket, item) = namespace.waiting.pop_first()?;
        self.ready_since.remove(&ticket);
        if !namespace.waiting.is_empty() {
            namespace.turn = self.queue_up(namespace.standing, name.clone());
            self.namespaces.insert(name.clone(), namespace);
        }
        Some((name, item))
    }

    /// Takes one out of the middle.
    pub(super) fn remove(&mut self, ticket: u64, name: &str) {
        let Some(namespace) = self.namespaces.get_mut(name) else {
            return;
        };
        if namespace.waiting.remove(&ticket).is_none() {
            return;
        }
        self.ready_since.remove(&ticket);
        if namespace.waiting.is_empty() {
            let (turn, standing) = (namespace.turn, namespace.standing);
            self.rows[standing.index()].remove(&turn);
            self.namespaces.remove(name);
        }
    }

    /// The namespace got its first slot, or gave back its last. It keeps its turn.
    pub(super) fn set_holds(&mut self, name: &str, holds: bool) {
        self.change(name, |standing| standing.holds = holds);
    }

    /// The namespace asks for much from now on. It keeps its turn.
    pub(super) fn no_guest(&mut self, name: &str) {
        self.change(name, |standing| standing.is_guest = false);
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Rank)) {
        let Some(namespace) = self.namespaces.get_mut(name) else {
            return;
        };
        let (before, turn) = (namespace.standing, namespace.turn);
        change(&mut namespace.standing);
        let now = namespace.standing;
        if let Some(name) = self.rows[before.index()].remove(&turn) {
            self.rows[now.index()].insert(turn, name);
        }
    }

    fn queue_up(&mut self, standing: Rank, name: Arc<str>) -> u64 {
        let turn = self.next_turn;
        self.next_turn += 1;
        self.rows[standing.index()].insert(turn, name);
        turn
    }
}
