//! Whose an object is that stands where a step wants its own: see [`Claim`].

use submission::{Claim, Held, Holder};

use crate::stamped::Stamped;
use crate::submit::attempt::Attempt;

impl<'a> Attempt<'a> {
    /// Judges an object that is there.
    pub(super) fn holder(self, held: &Stamped) -> Holder {
        self.claim().holder(Held {
            uid: &held.uid,
            belonging: held.belonging(),
            labels: &held.labels(),
            adopt: held.annotations.adopt,
        })
    }

    /// Whether the object refers to an owner of our kind that is no more.
    pub(super) fn is_stale(self, held: &Stamped) -> bool {
        self.claim().is_stale(held.belonging())
    }

    fn claim(self) -> Claim<'a> {
        Claim {
            owner: self.applicant.facts(),
            submission: self.submission,
            is_live_owner: self.applicant.is_live_owner,
            wanted_by_step: self.applicant.wanted_by_step,
        }
    }
}
