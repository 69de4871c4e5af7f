//! The gate of immutable objects: one that has ended is not made again because somebody deleted it.

use crate::template::runs::Due;
use crate::walk::gate::{AfterLook, Gate, Reading, Ruling};
use crate::walk::{At, Walk};
use crate::{Observed, Submission};

/// Looks which objects of the family there are.
pub(super) struct FamilyGate;

/// The objects of the family were asked for.
struct FamilyLook;

impl Gate for FamilyGate {
    fn approached(&self, _: &mut Walk<'_>, _: &At, rendering: Submission) -> Ruling {
        Ruling::Look(rendering, Box::new(FamilyLook))
    }
}

impl AfterLook for FamilyLook {
    fn found(
        self: Box<Self>,
        walk: &mut Walk<'_>,
        at: &At,
        mut place: Submission,
        found: Vec<Observed>,
    ) -> Ruling {
        match walk.observing(at).runs(&found).decide(&place.digest) {
            Due::Submit(position) => {
                place.recorded.position = position;
                Ruling::Pass(place, Reading::Outputs)
            }
            Due::Ended(run) => {
                let end = walk.observing(at).ended(&place, &run, &found);
                Ruling::Hold(at.ended(end, &place))
            }
        }
    }
}
