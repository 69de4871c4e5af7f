//! Owners whose statuses tell all that was handed on for them.
//!
//! Objects are written before the status that tells of them. As long as that is not written, a walk must not go by the
//! status alone (docs/behaviour/attribution.md#behind). This process knows of the statuses that it wrote itself; of all
//! others, after a start or a change of leader, it does not know what another process did beside.

use parking_lot::Mutex;

use super::settling::OfTerm;
use crate::object_key::ObjectKey;

/// Owners whose statuses tell everything, by their uids. Only those with a template that says when its outputs are good.
#[derive(Debug, Default)]
pub struct ToldOwners(Mutex<OfTerm<String>>);

impl ToldOwners {
    /// This replica works for that many times. What was written before, another one may have followed up.
    pub(super) fn begin_term(&self, term: u64) {
        self.0.lock().begin(term);
    }

    /// A walk begins, and may hand on more than the status tells. Says whether all that was handed on before is told.
    pub fn begin_walk(&self, key: &ObjectKey, uid: &str) -> bool {
        let told = self.0.lock().by_owner.remove(key);
        told.is_some_and(|told| told == uid)
    }

    /// The status is stored, and tells everything.
    pub fn told(&self, key: &ObjectKey, uid: &str) {
        self.0.lock().by_owner.insert(key.clone(), uid.to_owned());
    }

    /// The owner is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.0.lock().by_owner.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_everything_only_between_its_write_and_the_next_walk_in_one_term() {
        let (owners, key) = (ToldOwners::default(), ObjectKey::new("dev", "app"));
        owners.begin_term(1);
        assert!(!owners.begin_walk(&key, "u"));
        owners.told(&key, "u");
        assert!(owners.begin_walk(&key, "u"));
        // That walk has not written its status.
        assert!(!owners.begin_walk(&key, "u"));
        owners.told(&key, "u");
        // Another owner of the same name.
        assert!(!owners.begin_walk(&key, "v"));
        owners.told(&key, "u");
        owners.begin_term(2);
        assert!(!owners.begin_walk(&key, "u"));
        owners.told(&key, "u");
        owners.forget(&key);
        assert!(!owners.begin_walk(&key, "u"));
    }
}
