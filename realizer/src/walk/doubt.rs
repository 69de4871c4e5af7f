//! The gate before an object that somebody else has changed, where the rule does not ask about the whole spec
//! (docs/behaviour/attribution.md#doubtful).
//!
//! ```text
//!  rendering ─▶ look ─┬─▶ as we left it, or status doubts its inputs already: pass, if it is this version still
//!                     └─▶ changed: ask whether it holds this rendering all the same ─▶ look …
//!                                                                     └─▶ hold, and status says first with which inputs
//! ```
//!
//! If it were changed back at once, a process that is killed before it writes the status would forget that it was changed.

use crate::walk::gate::{AfterLook, Gate, Reading, Ruling};
use crate::walk::{At, Walk};
use crate::{Observed, Precondition, Submission};

/// Has status doubt what an object reports before the object is changed back.
pub(super) struct DoubtGate;

/// The object was asked for.
struct Inspection;

impl Gate for DoubtGate {
    fn approached(&self, _: &mut Walk<'_>, _: &At, rendering: Submission) -> Ruling {
        Ruling::Look(rendering, Box::new(Inspection))
    }
}

impl AfterLook for Inspection {
    fn found(
        self: Box<Self>,
        walk: &mut Walk<'_>,
        at: &At,
        mut place: Submission,
        found: Vec<Observed>,
    ) -> Ruling {
        // Somebody may have taken away the label by which it is watched.
        if found.is_empty() {
            place.precondition = Precondition::Absent;
        }
        let mut staying = found
            .into_iter()
            .filter(|it| !it.is_gone && !it.terminating);
        let Some(observed) = staying.next_back() else {
            return Ruling::Pass(place, Reading::Outputs);
        };
        let observing = walk.observing(at);
        if observing.is_to_be_doubted(&place, &observed) {
            // A reply may have been lost, or the process that wrote it killed. That costs a request.
            if !place.asks_whose_values {
                place.asks_whose_values = true;
                return Ruling::Look(place, self);
            }
            let end = observing.doubted(&place, observed);
            return Ruling::Hold(at.ended(end, &place));
        }
        // Whoever changes it from now on is noticed.
        place.precondition = Precondition::Version(observed.version);
        Ruling::Pass(place, Reading::Outputs)
    }

    fn judges(&self) -> bool {
        false
    }
}
