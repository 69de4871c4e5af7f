//! Webhooks that do not answer: they must not hold up whom they are not for.
//!
//! A call that hangs takes a place among those that are reconciled at once, for as long as its
//! budget is. So a convention that several PodIntents were not answered by, one after the other, has
//! few calls under way at a time. Whoever else it is for is put off: nothing is said of him, and he
//! is woken when it answers.
//!
//! One tenant must not have that done to others, be it by a template that takes the webhook too
//! long. So several PodIntents of a namespace count for that namespace alone, which has one call at a
//! time then; for all it hangs only when several namespaces had no answer, and nobody had one in
//! between.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use controller_kit::stamped::ObjectKey;
use parking_lot::Mutex;

/// Calls under way of a convention that hangs for all, each of another namespace.
const TRIES: usize = 2;

/// PodIntents of a namespace, and namespaces, that were not answered in time, from which on it hangs.
pub(crate) const SEVERAL: usize = 3;

/// The conventions that do not answer.
#[derive(Default)]
pub(crate) struct Patience(Mutex<HashMap<Box<str>, Late>>);

/// What is known of a convention that did not answer somebody.
struct Late {
    version: String,
    namespaces: HashMap<Arc<str>, Unanswered>,
    /// Namespaces that were not answered since it answered anybody.
    silent: BTreeSet<Arc<str>>,
    /// Whether it hangs for all.
    hangs: bool,
    /// Calls under way, of those for whom it hangs.
    tries: Vec<ObjectKey>,
    put_off: BTreeSet<ObjectKey>,
}

/// Those of a namespace that were not answered since somebody there was.
#[derive(Default)]
struct Unanswered(BTreeSet<ObjectKey>);

/// The right to call a convention, until it is dropped.
pub(crate) struct Turn<'p> {
    patience: &'p Patience,
    convention: &'p str,
    /// What the convention says; of another one nothing can be told.
    version: String,
    intent: ObjectKey,
    /// Whether it is one of the few.
    is_try: bool,
}

impl Patience {
    /// A call for this PodIntent; nothing if it is put off.
    pub(crate) fn enter<'p>(
        &'p self,
        convention: &'p str,
        version: String,
        intent: &ObjectKey,
    ) -> Option<Turn<'p>> {
        let mut all = self.0.lock();
        let late = all.get_mut(convention);
        let late = late.filter(|late| late.version == version && late.hangs_for(intent));
        let is_try = late.is_some();
        if let Some(late) = late {
            if !late.has_room_for(intent) {
                late.put_off.insert(intent.clone());
                return None;
            }
            late.put_off.remove(intent);
            late.tries.push(intent.clone());
        }
        Some(Turn {
            patience: self,
            convention,
            version,
            intent: intent.clone(),
            is_try,
        })
    }

    /// The convention is another one now: its first calls are like any. Those who waited for its
    /// answer are to be woken.
    pub(crate) fn forget(&self, convention: &str) -> BTreeSet<ObjectKey> {
        let late = self.0.lock().remove(convention);
        late.map(Late::waiting).unwrap_or_default()
    }

    /// The PodIntent is gone.
    pub(crate) fn forget_intent(&self, intent: &ObjectKey) {
        for late in self.0.lock().values_mut() {
            late.put_off.remove(intent);
            if let Some(unanswered) = late.namespaces.get_mut(&intent.namespace) {
                unanswered.0.remove(intent);
                if unanswered.0.is_empty() {
                    late.namespaces.remove(&intent.namespace);
                }
            }
        }
    }

    /// Another replica has worked meanwhile.
    pub(crate) fn begin_term(&self) {
        self.0.lock().clear();
    }
}

impl Late {
    fn of(version: String) -> Self {
        Self {
            version,
            namespaces: HashMap::new(),
            silent: BTreeSet::new(),
            hangs: false,
            tries: Vec::new(),
            put_off: BTreeSet::new(),
        }
    }

    fn hangs_for(&self, intent: &ObjectKey) -> bool {
        self.hangs || self.hangs_in(&intent.namespace)
    }

    fn hangs_in(&self, namespace: &str) -> bool {
        let unanswered = self.namespaces.get(namespace);
        unanswered.is_some_and(|unanswered| unanswered.0.len() >= SEVERAL)
    }

    fn has_room_for(&self, intent: &ObjectKey) -> bool {
        let is_of_same = |other: &ObjectKey| other.namespace == intent.namespace;
        let is_full = self.hangs && self.tries.len() >= TRIES;
        !is_full && !self.tries.iter().any(is_of_same)
    }

    /// All that wait for an answer.
    fn waiting(mut self) -> BTreeSet<ObjectKey> {
        for mut unanswered in self.namespaces.into_values() {
            self.put_off.append(&mut unanswered.0);
        }
        self.put_off
    }

    /// It answered this namespace, which it did not hang for. An answer there tells nothing of one
    /// whose own templates take the webhook too long.
    fn answered_in(&mut self, namespace: &str) {
        self.silent.clear();
        self.namespaces.remove(namespace);
    }

    /// Who is to try next after this one did in vain, by turns: so each is told in the end. Where it
    /// hangs for all, somebody of another namespace goes first.
    fn take_next(&mut self, after: &ObjectKey) -> Option<ObjectKey> {
        let goes_first = |it: &&ObjectKey| (it.namespace != after.namespace) == self.hangs;
        let behind = self.put_off.range(after.clone()..);
        let next = behind
            .chain(&self.put_off)
            .find(goes_first)
            .or_else(|| self.put_off.first().filter(|_| self.hangs))
            .cloned()?;
        self.put_off.take(&next)
    }
}

impl Turn<'_> {
    /// It was answered, be it with a refusal. Those who waited for that are to be woken.
    pub(crate) fn answered(self) -> BTreeSet<ObjectKey> {
        let mut all = self.patience.0.lock();
        let Some(late) = all.get_mut(self.convention) else {
            return BTreeSet::new();
        };
        if late.version != self.version {
            return BTreeSet::new();
        }
        let mut waiting = BTreeSet::new();
        if late.hangs_for(&self.intent) {
            let late = all.remove(self.convention);
            waiting = late.map(Late::waiting).unwrap_or_default();
            waiting.remove(&self.intent);
        } else {
            late.answered_in(&self.intent.namespace);
            if late.namespaces.is_empty() && late.tries.is_empty() {
                all.remove(self.convention);
            }
        }
        drop(all);
        waiting
    }

    /// It was not answered in time, and is still what was asked. Whoever is to try next is to be
    /// woken.
    pub(crate) fn timed_out(self) -> Option<ObjectKey> {
        let mut all = self.patience.0.lock();
        let late = all
            .entry(self.convention.into())
            .or_insert_with(|| Late::of(self.version.clone()));
        if late.version != self.version {
            *late = Late::of(self.version.clone());
        }
        let namespace = &self.intent.namespace;
        let unanswered = late.namespaces.entry(namespace.clone()).or_default();
        unanswered.0.insert(self.intent.clone());
        late.silent.insert(namespace.clone());
        late.hangs |= late.silent.len() >= SEVERAL;
        let next = self.is_try.then(|| late.take_next(&self.intent)).flatten();
        drop(all);
        next
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_try {
            return;
        }
        let mut all = self.patience.0.lock();
        if let Some(late) = all.get_mut(self.convention)
            && late.version == self.version
            && let Some(at) = late.tries.iter().position(|it| *it == self.intent)
        {
            late.tries.remove(at);
        }
    }
}

#[cfg(test)]
mod tests;
