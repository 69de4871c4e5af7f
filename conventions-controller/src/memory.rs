//! What is remembered between passes, and for how long. Nothing of it is needed: without it more is
//! asked than has to be.

use std::sync::atomic::Ordering;

use controller_kit::stamped::ObjectKey;

use crate::controller::IntentController;

impl IntentController {
    /// When this replica works again another one may have worked meanwhile: what was due, hung or
    /// was in the way before says nothing of now.
    pub(crate) fn begin_term(&self) {
        let Some(term) = self.replica.term() else {
            return;
        };
        if self.term.swap(term, Ordering::AcqRel) != term {
            self.resync.begin_term();
            self.rollout.begin_term();
            self.patience.begin_term();
            self.remembered.begin_term();
            self.troubles.begin_term();
        }
    }

    /// Drops what is remembered of a PodIntent that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.dependencies.set(key, &[]);
        self.resync.forget(key);
        self.rollout.forget(key);
        self.patience.forget_intent(key);
        self.written.lock().remove(key);
        self.kept.forget(key);
        self.remembered.forget(key);
        self.troubles.ended(key);
    }
}
