//! What waits, by namespace: namespaces are served in turn, and those that hold their share of slots are passed over.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::time::Instant;

/// Tickets grow with time, so the order by ticket is the order of arrival.
pub(super) struct Turns<T> {
    namespaces: HashMap<Arc<str>, Namespace<T>>,
    /// Which namespace comes next: those that were served last stand behind. Namespaces that hold a slot
    /// stand apart, so that the next newcomer is found without looking at them.
    newcomers: BTreeMap<u64, Arc<str>>,
    holders: BTreeMap<u64, Arc<str>>,
    ready_since: BTreeMap<u64, Instant>,
    next_turn: u64,
}

struct Namespace<T> {
    turn: u64,
    holds: bool,
    waiting: BTreeMap<u64, T>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self {
            namespaces: HashMap::new(),
            newcomers: BTreeMap::new(),
            holders: BTreeMap::new(),
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

    /// `holds`: whether the namespace holds a slot now.
    pub(super) fn push(
        &mut self,
        ticket: u64,
        namespace: &Arc<str>,
        holds: bool,
        item: T,
        now: Instant,
    ) {
        self.ready_since.insert(ticket, now);
        if let Some(namespace) = self.namespaces.get_mut(namespace) {
            namespace.waiting.insert(ticket, item);
            return;
        }
        let turn = self.queue_up(holds, namespace.clone());
        let waiting = BTreeMap::from([(ticket, item)]);
        self.namespaces.insert(
            namespace.clone(),
            Namespace {
                turn,
                holds,
                waiting,
            },
        );
    }

    /// The next one of a namespace that `may` hold another slot. Looks at those that may not: of holders there are no more than
    /// slots, and among newcomers only crowds may not.
    pub(super) fn pop(&mut self, may: impl Fn(&str) -> bool) -> Option<(Arc<str>, T)> {
        let first = |turns: &BTreeMap<u64, Arc<str>>| {
            let admitted = turns.iter().find(|(_, name)| may(name));
            admitted.map(|(turn, _)| *turn)
        };
        let (newcomer, holder) = (first(&self.newcomers), first(&self.holders));
        let takes_holder = holder.is_some_and(|turn| newcomer.is_none_or(|other| turn < other));
        let turn = if takes_holder { holder } else { newcomer }?;
        let name = self.turns(takes_holder).remove(&turn)?;
        let namespace = self.namespaces.get_mut(&name)?;
        let (ticket, item) = namespace.waiting.pop_first()?;
        self.ready_since.remove(&ticket);
        if namespace.waiting.is_empty() {
            self.namespaces.remove(&name);
        } else {
            let holds = namespace.holds;
            let turn = self.queue_up(holds, name.clone());
            if let Some(namespace) = self.namespaces.get_mut(&name) {
                namespace.turn = turn;
            }
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
            let (turn, holds) = (namespace.turn, namespace.holds);
            self.turns(holds).remove(&turn);
            self.namespaces.remove(name);
        }
    }

    /// The namespace got its first slot, or gave back its last. It keeps its turn.
    pub(super) fn set_holds(&mut self, name: &str, holds: bool) {
        let Some(namespace) = self.namespaces.get_mut(name) else {
            return;
        };
        let before = std::mem::replace(&mut namespace.holds, holds);
        let turn = namespace.turn;
        if let Some(name) = self.turns(before).remove(&turn) {
            self.turns(holds).insert(turn, name);
        }
    }

    fn queue_up(&mut self, holds: bool, name: Arc<str>) -> u64 {
        let turn = self.next_turn;
        self.next_turn += 1;
        self.turns(holds).insert(turn, name);
        turn
    }

    fn turns(&mut self, holds: bool) -> &mut BTreeMap<u64, Arc<str>> {
        if holds {
            &mut self.holders
        } else {
            &mut self.newcomers
        }
    }
}
