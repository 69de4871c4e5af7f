//! What a pass comes to when everybody has been asked.

use conventions::chain::Chain;
use conventions::considered::{are_told, has_moved};
use conventions::outcome::{Failure, Pass};
use conventions::{ConsideredConvention, PodIntentStatus, ResolvedImage};

use crate::plan::Plan;

/// What has become of the conventions so far.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) considered: Vec<ConsideredConvention>,
    /// Why there will be no template.
    pub(crate) failure: Option<Failure>,
    /// Whether a convention was left out.
    pub(crate) went_without: bool,
    /// Whether the template that was there before stays because of that. Nobody else is asked then.
    pub(crate) stays: bool,
}

impl Outcome {
    /// Whether there is anything left to ask for.
    pub(crate) fn is_open(&self) -> bool {
        self.failure.is_none() && !self.stays
    }

    /// Whether everybody has answered.
    pub(crate) fn is_whole(&self) -> bool {
        !self.went_without && self.failure.is_none()
    }
}

/// What a pass came to, after it was `before`.
pub(crate) fn concluded(
    before: &PodIntentStatus,
    plan: &Plan,
    chain: Chain,
    images: Vec<ResolvedImage>,
    outcome: Outcome,
) -> Pass {
    let same_inputs =
        plan.inputs_digest == before.inputs_digest && are_told(&images, &before.images);
    let mut considered = outcome.considered;
    count_changes(&mut considered, before, same_inputs);
    let mut pass = Pass {
        outcome: match outcome.failure {
            Some(failure) => Err(failure),
            None => chain.finish().map_err(Failure::TooLarge),
        },
        inputs_digest: plan.inputs_digest.clone(),
        template_inputs_digest: plan.contents_digest.clone(),
        conventions: considered,
        images,
    };
    if outcome.went_without {
        // What is not whole is made again: it must not count as done.
        pass.inputs_digest = String::new();
        pass = if outcome.stays {
            standing(before, pass)
        } else {
            pass.template_inputs_digest = String::new();
            pass
        };
    }
    pass.conventions.extend(plan.others.iter().cloned());
    pass
}

/// Whether the template in status was made whole from what it would be made from now, as far as the
/// images are known.
pub(crate) fn is_made_from(
    before: &PodIntentStatus,
    plan: &Plan,
    images: &[ResolvedImage],
) -> bool {
    before.template.is_some()
        && before.template_inputs_digest == plan.contents_digest
        && !images.iter().any(|it| has_moved(it, &before.images))
}

/// The template that was there before stays, and what was told of it.
fn standing(before: &PodIntentStatus, pass: Pass) -> Pass {
    let earlier = |name: &str| before.conventions.iter().find(|it| it.name == name);
    let told = pass.conventions.into_iter().map(|it| {
        let earlier = earlier(&it.name);
        it.of_standing(earlier)
    });
    Pass {
        outcome: pass
            .outcome
            .map(|made| before.template.clone().unwrap_or(made)),
        conventions: told.collect(),
        images: before.images.clone(),
        ..pass
    }
}

/// Counts who made another template of what it was given before. Only the first one in the chain
/// can be told: those behind it were given something else.
fn count_changes(
    considered: &mut [ConsideredConvention],
    before: &PodIntentStatus,
    same_inputs: bool,
) {
    let mut same_inputs = same_inputs;
    for told in considered {
        let earlier = before.conventions.iter().find(|it| it.name == told.name);
        told.count_changes(earlier, same_inputs);
        same_inputs = same_inputs && told.changes == 0;
    }
}
