//! How long owners take to become Ready, for a metric.

use std::collections::HashMap;

use api_types::ConditionStatus;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;

use super::log;
use crate::object_key::ObjectKey;

/// Owners that are on their way to Ready: which generation, and since when.
#[derive(Debug, Default)]
pub struct Settling(Mutex<OfTerm<(i64, Timestamp)>>);

/// What is known of owners while this replica works, and no longer.
#[derive(Debug, Default)]
pub(super) struct OfTerm<T> {
    /// Which of the times this is that it works.
    term: u64,
    pub(super) by_owner: HashMap<ObjectKey, T>,
}

impl<T> OfTerm<T> {
    pub(super) fn begin(&mut self, term: u64) {
        if self.term != term {
            self.term = term;
            self.by_owner.clear();
        }
    }
}

impl Settling {
    /// This replica works for that many times. What began before, another one has brought to its end, and nobody told.
    pub(crate) fn begin_term(&self, term: u64) {
        self.0.lock().begin(term);
    }

    /// A generation of an owner appeared that is to become Ready. While an older one was not Ready yet, both have taken
    /// the time since that one.
    pub fn begin(&self, key: &ObjectKey, generation: i64, now: Timestamp) {
        let settling = &mut self.0.lock().by_owner;
        let (_, since) = settling.get(key).copied().unwrap_or((generation, now));
        settling.insert(key.clone(), (generation, since));
    }

    /// What a reconcile of this object came to. Returns the seconds it took, once, when the owner has become Ready.
    pub fn reconciled(
        &self,
        key: &ObjectKey,
        object: &Value,
        ready: ConditionStatus,
        now: Timestamp,
    ) -> Option<f64> {
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
        let settling = &mut self.0.lock().by_owner;
        if ready != ConditionStatus::True {
            settling
                .entry(key.clone())
                .or_insert_with(|| (generation, not_ready_since(object).unwrap_or(now)));
            return None;
        }
        let since = match settling.get(key) {
            // A newer one appeared meanwhile: that is not Ready yet.
            Some((begun, _)) if *begun > generation => return None,
            Some((_, since)) => *since,
            None => not_ready_since(object)?,
        };
        settling.remove(key);
        Some(now.duration_since(since).as_secs_f64().max(0.0))
    }

    /// The owner is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.0.lock().by_owner.remove(key);
    }
}

/// What the object itself says, for a process that has just started. `None`: it is Ready.
fn not_ready_since(object: &Value) -> Option<Timestamp> {
    let since = match log::ready(&object["status"]) {
        Some(ready) if ready["status"] == "True" => return None,
        Some(ready) => &ready["lastTransitionTime"],
        None => &object["metadata"]["creationTimestamp"],
    };
    since.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key() -> ObjectKey {
        ObjectKey::new("ns", "app")
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    /// Created at second 0; its `Ready` has changed to this status at this second.
    fn object(generation: i64, ready: Option<(&str, i64)>) -> Value {
        let ready = ready.map(|(status, since)| {
            json!({"type": "Ready", "status": status, "lastTransitionTime": at(since).to_string()})
        });
        json!({"metadata": {"generation": generation, "creationTimestamp": at(0).to_string()},
            "status": {"conditions": ready.into_iter().collect::<Vec<_>>()}})
    }

    const YES: ConditionStatus = ConditionStatus::True;
    const NOT_YET: ConditionStatus = ConditionStatus::Unknown;

    #[test]
    fn a_new_owner_takes_from_its_creation_and_an_edited_one_from_the_edit() {
        let settling = Settling::default();
        let new = object(1, None);
        assert_eq!(settling.reconciled(&key(), &new, NOT_YET, at(1)), None);
        let seen = object(1, Some(("Unknown", 1)));
        assert_eq!(settling.reconciled(&key(), &seen, YES, at(4)), Some(4.0));
        let ready = object(1, Some(("True", 4)));
        assert_eq!(
            settling.reconciled(&key(), &ready, YES, at(9)),
            None,
            "once"
        );

        // Edited a day later. That it leaves Ready and fails in between does not start it anew.
        let day = 86_400;
        settling.begin(&key(), 2, at(day));
        let edited = object(2, Some(("True", 4)));
        assert_eq!(
            settling.reconciled(&key(), &edited, NOT_YET, at(day + 1)),
            None
        );
        let failing = object(2, Some(("False", day + 5)));
        assert_eq!(
            settling.reconciled(&key(), &failing, YES, at(day + 7)),
            Some(7.0)
        );
    }

    #[test]
    fn what_leaves_ready_without_an_edit_takes_from_then_on() {
        let settling = Settling::default();
        let ready = object(1, Some(("True", 0)));
        assert_eq!(settling.reconciled(&key(), &ready, NOT_YET, at(100)), None);
        let waiting = object(1, Some(("Unknown", 100)));
        assert_eq!(
            settling.reconciled(&key(), &waiting, YES, at(102)),
            Some(2.0)
        );
    }

    #[test]
    fn after_a_restart_the_condition_says_since_when() {
        let settling = Settling::default();
        let waiting = object(3, Some(("Unknown", 100)));
        assert_eq!(
            settling.reconciled(&key(), &waiting, YES, at(103)),
            Some(3.0)
        );
    }

    #[test]
    fn an_older_generation_that_is_ready_is_not_the_newer_one() {
        let settling = Settling::default();
        settling.begin(&key(), 2, at(10));
        let older = object(1, Some(("Unknown", 5)));
        assert_eq!(settling.reconciled(&key(), &older, YES, at(11)), None);
        let newer = object(2, Some(("True", 11)));
        assert_eq!(settling.reconciled(&key(), &newer, YES, at(12)), Some(2.0));
        settling.begin(&key(), 3, at(20));
        settling.forget(&key());
        assert!(settling.0.lock().by_owner.is_empty());
    }
    #[test]
    fn what_began_in_an_earlier_term_is_not_measured() {
        let settling = Settling::default();
        settling.begin_term(1);
        settling.begin(&key(), 2, at(10));
        settling.begin_term(1);
        // Another replica leads for a day, and brings it to Ready.
        settling.begin_term(2);
        let ready = object(2, Some(("True", 11)));
        assert_eq!(settling.reconciled(&key(), &ready, YES, at(86_400)), None);
        settling.begin(&key(), 3, at(86_410));
        let ready = object(3, Some(("True", 11)));
        assert_eq!(
            settling.reconciled(&key(), &ready, YES, at(86_413)),
            Some(3.0)
        );
    }
}
