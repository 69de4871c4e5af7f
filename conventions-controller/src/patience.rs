//! Webhooks that do not answer: they must not hold up whom they are not for.
//!
//! A call that hangs takes a place among those that are reconciled at once, for as long as its
//! budget is. So from the first one that was not answered in time only a few calls of the
//! convention are under way at a time; whoever else it is for is told the same cause without
//! asking, and is woken when one is answered again.

use std::collections::{BTreeSet, HashMap};

use controller_kit::stamped::ObjectKey;
use parking_lot::Mutex;

/// Calls under way of a convention whose last one was not answered in time.
const TRIES: usize = 2;

/// The conventions that do not answer.
#[derive(Default)]
pub(crate) struct Patience(Mutex<HashMap<Box<str>, Hanging>>);

struct Hanging {
    /// What was told last.
    cause: String,
    under_way: usize,
    put_off: BTreeSet<ObjectKey>,
}

/// The right to call a convention, until it is dropped.
pub(crate) struct Turn<'p> {
    patience: &'p Patience,
    convention: &'p str,
    /// Whether it is one of the few.
    is_try: bool,
}

impl Patience {
    /// A call for this PodIntent, or why there is none.
    pub(crate) fn enter<'p>(
        &'p self,
        convention: &'p str,
        intent: &ObjectKey,
    ) -> Result<Turn<'p>, String> {
        let mut hanging = self.0.lock();
        let mut is_try = false;
        if let Some(hanging) = hanging.get_mut(convention) {
            if hanging.under_way >= TRIES {
                hanging.put_off.insert(intent.clone());
                return Err(hanging.cause.clone());
            }
            hanging.under_way += 1;
            is_try = true;
        }
        Ok(Turn {
            patience: self,
            convention,
            is_try,
        })
    }

    /// The convention is another one now: its first calls are like any. Those who were put off are
    /// to be woken.
    pub(crate) fn forget(&self, convention: &str) -> BTreeSet<ObjectKey> {
        let hanging = self.0.lock().remove(convention);
        hanging.map(|hanging| hanging.put_off).unwrap_or_default()
    }

    /// The PodIntent is gone.
    pub(crate) fn forget_intent(&self, intent: &ObjectKey) {
        for hanging in self.0.lock().values_mut() {
            hanging.put_off.remove(intent);
        }
    }
}

impl Turn<'_> {
    /// It was answered, be it with a refusal. Those who were put off are to be woken.
    pub(crate) fn answered(self) -> BTreeSet<ObjectKey> {
        self.patience.forget(self.convention)
    }

    /// It was not answered in time.
    pub(crate) fn timed_out(self, cause: &str) {
        let mut hanging = self.patience.0.lock();
        let hanging = hanging
            .entry(self.convention.into())
            .or_insert_with(|| Hanging {
                cause: String::new(),
                under_way: 0,
                put_off: BTreeSet::new(),
            });
        cause.clone_into(&mut hanging.cause);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut hanging = self.patience.0.lock();
        if let Some(hanging) = hanging.get_mut(self.convention).filter(|_| self.is_try) {
            hanging.under_way = hanging.under_way.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("dev", name)
    }

    #[test]
    fn while_a_webhook_does_not_answer_only_a_few_ask_it_and_the_others_are_woken_afterwards() {
        let patience = Patience::default();
        let many: Vec<_> = (0..5)
            .map(|_| patience.enter("a", &key("x")).unwrap())
            .collect();
        for turn in many {
            turn.timed_out("late");
        }
        let first = patience.enter("a", &key("1")).unwrap();
        let second = patience.enter("a", &key("2")).unwrap();
        assert_eq!(patience.enter("a", &key("3")).err().unwrap(), "late");
        assert!(patience.enter("b", &key("3")).is_ok());
        second.timed_out("later");
        let third = patience.enter("a", &key("2")).unwrap();
        assert_eq!(patience.enter("a", &key("4")).err().unwrap(), "later");
        patience.forget_intent(&key("4"));
        assert_eq!(first.answered(), BTreeSet::from([key("3")]));
        let many: Vec<_> = (0..5)
            .map(|_| patience.enter("a", &key("x")).unwrap())
            .collect();
        assert_eq!(many.len(), 5);
        // One from before ends late.
        drop(third);
        assert!(patience.enter("a", &key("5")).is_ok());
    }

    #[test]
    fn a_call_that_is_broken_off_gives_its_turn_back() {
        let patience = Patience::default();
        patience.enter("a", &key("1")).unwrap().timed_out("late");
        for _ in 0..3 {
            drop(patience.enter("a", &key("1")).unwrap());
        }
        let _first = patience.enter("a", &key("1")).unwrap();
        let _second = patience.enter("a", &key("1")).unwrap();
        assert!(patience.enter("a", &key("1")).is_err());
    }
}
