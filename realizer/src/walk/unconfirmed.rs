//! The gate behind outputs that are known from status alone: what was handed on is not taken back
//! (docs/behaviour/attribution.md#behind).
//!
//! Objects are written before the status that tells of it. A process that dies in between leaves objects that are made from
//! a newer output than the one that status knows. While the step that made it is good, that output is read again. While it
//! is not, status has an older one: a Runnable that was changed back to it would run again what has run before.
//!
//! ```text
//!  rendering ─▶ look ─┬─▶ nothing, or this rendering: pass, and nothing newer was handed on
//!                     └─▶ something else: withhold, until the step before is good
//! ```
//!
//! Whoever changes such an object in this time finds that it is not changed back before then. Nothing of it goes on: outputs
//! are read of what is rendered only.

use crate::step::error::StepError;
use crate::template::stamp;
use crate::walk::gate::{AfterLook, Gate, Reading, Ruling};
use crate::walk::prepare::HeldStep;
use crate::walk::{At, Walk};
use crate::{Observed, Submission};

/// Keeps an object that may have been made from a newer output than the one that goes in.
pub(super) struct UnconfirmedGate;

/// The object was asked for.
struct Comparison;

impl Gate for UnconfirmedGate {
    fn approached(&self, _: &mut Walk<'_>, _: &At, rendering: Submission) -> Ruling {
        Ruling::Look(rendering, Box::new(Comparison))
    }
}

impl AfterLook for Comparison {
    fn found(
        self: Box<Self>,
        walk: &mut Walk<'_>,
        at: &At,
        place: Submission,
        found: Vec<Observed>,
    ) -> Ruling {
        if is_nothing_newer(&place, &found) {
            walk.steps.confirm(at.step);
            return Ruling::Pass(place, Reading::Outputs);
        }
        let steps = &walk.blueprint.steps;
        let providers = walk.steps.unconfirmed_providers(at.step).into_iter();
        let taint = walk.steps.taint(at.step);
        Ruling::Withhold(Box::new(HeldStep {
            error: StepError::MayBeNewer {
                object: taint.scrub(stamp::display_name(&place.object)),
                resource: steps[at.step].name.clone(),
                providers: providers.map(|it| steps[it].name.clone()).collect(),
            },
            target: stamp::reference(&place.object),
        }))
    }

    fn judges(&self) -> bool {
        false
    }
}

/// Whether what is there is the rendering, and nothing of which we do not know whether it came later. What is on its way out
/// is made anew anyway.
fn is_nothing_newer(rendering: &Submission, found: &[Observed]) -> bool {
    let mut staying = found.iter().filter(|it| !it.is_gone && !it.terminating);
    let newest = staying.clone().next_back();
    let is_rendered = newest
        .is_none_or(|newest| newest.digest.as_ref() == Some(&rendering.digest) && newest.unchanged);
    is_rendered && staying.all(|it| it.is_known)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Lifecycle, Position, Precondition, Recorded};

    fn rendering() -> Submission {
        Submission {
            resource: "deploy".into(),
            object: json!({}),
            digest: "a".to_owned(),
            name_seed: None,
            basis: None,
            lifecycle: Lifecycle::Mutable,
            family: crate::Labels::default(),
            reads: [].into(),
            precondition: Precondition::None,
            recorded: Recorded {
                applied: None,
                runs: [].into(),
                position: Position::default(),
            },
            adopt: false,
            refuses_foreign_fields: false,
            asks_whose_values: false,
        }
    }

    fn held(digest: Option<&str>) -> Observed {
        Observed {
            digest: digest.map(str::to_owned),
            is_known: true,
            unchanged: true,
            ..Observed::of(json!({}))
        }
    }

    #[test]
    fn only_this_rendering_and_what_is_going_are_known_not_to_be_newer() {
        let unknown = Observed {
            is_known: false,
            ..held(None)
        };
        let going = Observed {
            terminating: true,
            ..held(Some("b"))
        };
        let changed = Observed {
            unchanged: false,
            ..held(Some("a"))
        };
        let (ours, newer) = (held(Some("a")), held(Some("b")));
        for (found, expected) in [
            (vec![], true),
            (vec![ours.clone()], true),
            (vec![going.clone()], true),
            (vec![ours.clone(), going], true),
            (vec![newer.clone(), ours.clone()], true),
            (vec![newer.clone()], false),
            (vec![changed], false),
            (vec![held(None)], false),
            (vec![ours.clone(), newer], false),
            (vec![unknown, ours], false),
        ] {
            assert_eq!(
                is_nothing_newer(&rendering(), &found),
                expected,
                "{found:?}"
            );
        }
    }
}
