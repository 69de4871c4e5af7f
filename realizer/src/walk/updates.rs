//! The gate of updates that wait: while the object is neither good nor failed, what was applied last stays in it
//! (docs/behaviour/updates.md).
//!
//! ```text
//!  rendering ─▶ which update is applied? ─┬─▶ it is kept in status: pass that one
//!                                         ├─▶ it is this rendering: pass it
//!                                         └─▶ it is not kept ─▶ look ─┬─▶ done, failed or gone: pass this rendering
//!                                                                     ├─▶ changed by others: hold, and this one is next
//!                                                                     └─▶ neither: hold
//! ```
//!
//! When the step has ended, [`Walk::weigh_updates`] says which one is next.

use std::borrow::Cow;
use std::collections::BTreeMap;

use api_types::condition::whole_seconds;
use api_types::{Update, UpdateBasis, UpdateDeployment};
use serde_json::Value;

use crate::step::end::{StepEnd, StepResult, Submitted};
use crate::step::error::StepError;
use crate::template::goodness::NotDone;
use crate::template::outputs::{Output, OutputValues, ReadError};
use crate::template::provenance::Basis;
use crate::template::stamp;
use crate::template::updates::{Arrived, Came, Room};
use crate::values::canonical;
use crate::values::redaction::Taint;
use crate::walk::gate::{AfterLook, Gate, Reading, Ruling};
use crate::walk::{At, Walk};
use crate::{Observation, Observed, Submission, SubmitFailure, SubmitFailureKind, Template, Write};

/// Keeps an object as it is until it is good or has failed.
pub(super) struct UpdateGate;

/// What is applied is not kept; the object was asked for.
struct UnknownApplied {
    arrived: Arrived,
    rendering: Submission,
}

impl Gate for UpdateGate {
    fn approached(&self, walk: &mut Walk<'_>, at: &At, rendering: Submission) -> Ruling {
        let Some(arrived) = walk.arrive(at, &rendering) else {
            return Ruling::Pass(rendering, Reading::Outputs);
        };
        let stack = &arrived.stack;
        let is_present = stack.applied.digest == digest_of(&rendering);
        if is_present && rendering.basis.is_none() {
            return walk.pass_update(at, arrived, rendering);
        }
        match walk.kept(at, &stack.applied, &rendering) {
            Some((object, digest)) => {
                let applied = Submission {
                    digest,
                    object,
                    name_seed: None,
                    basis: None,
                    ..rendering
                };
                walk.pass_update(at, arrived, applied)
            }
            None if is_present => walk.pass_update(at, arrived, rendering),
            None => {
                // What its rules read beside the object is that of the update which is applied.
                walk.steps.take_up(at.step, arrived.clone());
                let mut place = rendering.clone();
                if arrived.is_told_by_object {
                    place.digest.clone_from(&arrived.stack.applied.digest);
                }
                Ruling::Look(place, Box::new(UnknownApplied { arrived, rendering }))
            }
        }
    }
}

impl AfterLook for UnknownApplied {
    fn found(
        self: Box<Self>,
        walk: &mut Walk<'_>,
        at: &At,
        place: Submission,
        found: Vec<Observed>,
    ) -> Ruling {
        let Self {
            mut arrived,
            rendering,
        } = *self;
        let newest = found.into_iter().rev().find(|member| !member.is_gone);
        if let Some(newest) = newest {
            let is_told = arrived.is_told_by_object && is_told_of(&place, &newest);
            let is_applied = newest.digest.as_ref() == Some(&place.digest) && newest.unchanged;
            if is_told && is_applied {
                return walk.hold_applied(at, &place, newest);
            }
            walk.steps.put_down(at.step);
            let why = if is_told {
                // What others have made of the object is no update of ours, and keeps none away. But the next one is
                // applied once status tells of it: a process that is killed in between would take it for theirs as well.
                arrived.is_lost = true;
                Some("somebody changed the object after it was good; the newest update is next")
            } else {
                let is_under_way = walk.is_under_way(at, &newest);
                is_under_way.then_some(
                    "an earlier update is under way; the newest waits until it has ended",
                )
            };
            if let Some(why) = why {
                let end = walk.observing(at).waiting(newest, why);
                walk.steps.take_up(at.step, arrived);
                return Ruling::Hold(at.ended(end, &place));
            }
        }
        walk.steps.put_down(at.step);
        // They were read by the texts of the update before. If this one is in the object already, nothing is written, and
        // they would judge it.
        walk.steps.forget_others(at.step);
        arrived.stack.waiting.pop();
        arrived.stack.applied = Update {
            since: whole_seconds(&walk.now),
            ..arrived.newest.clone()
        };
        walk.pass_update(at, arrived, rendering)
    }

    /// That nothing is seen says nothing of the update.
    fn not_seen(
        self: Box<Self>,
        walk: &mut Walk<'_>,
        at: &At,
        place: Submission,
        failure: SubmitFailure,
    ) -> Ruling {
        walk.steps.put_down(at.step);
        Ruling::Hold(walk.not_seen(at, &place, failure))
    }
}

impl Walk<'_> {
    /// The updates of a step with the present rendering among them; none where they do not wait.
    fn arrive(&self, at: &At, rendering: &Submission) -> Option<Arrived> {
        let (rule, attribution) = (
            at.template.updates.as_ref()?,
            at.template.attribution.as_ref()?,
        );
        let status = &self.owner.status;
        let entry = status.resource(&self.blueprint.steps[at.step].name);
        let entry = entry.filter(|_| status.is_of(&self.blueprint.name));
        let before = entry
            .and_then(|entry| entry.updates.as_ref())
            .filter(|before| before.read_from == attribution.watched);
        let made_from = self.made_from(at);
        let is_secret = rendering.name_seed.is_some();
        let room = Room::among(self.blueprint.steps.len());
        let arrival = Update {
            number: 0,
            since: whole_seconds(&self.now),
            digest: digest_of(rendering),
            rendering: (!is_secret)
                .then(|| room.kept(&self.to_be_kept(at, rendering)))
                .flatten(),
            made_from: if is_secret {
                UpdateBasis {
                    context: BTreeMap::new(),
                    deployment: None,
                    ..made_from
                }
            } else {
                made_from
            },
        };
        // Of the others, values alone do not tell which update it is, or not whether others have set any beside.
        let is_told_by_object = !is_secret
            && rendering.basis.is_none()
            && !rendering.lifecycle.is_immutable()
            && !rendering.refuses_foreign_fields;
        let mut arrived = rule.arrive(before, arrival, is_told_by_object, room);
        arrived.stack.read_from.clone_from(&attribution.watched);
        Some(arrived)
    }

    /// What status keeps of a rendering: what all updates of a step have alike is put on it again. Each byte of a status is
    /// read and written a dozen times in an API server.
    fn to_be_kept<'r>(&self, at: &At, rendering: &'r Submission) -> Cow<'r, Value> {
        if rendering.basis.is_some() {
            // Its digest is not that of the object: nothing would tell whether it is what it was.
            return Cow::Borrowed(&rendering.object);
        }
        Cow::Owned(stamp::undecorated(&rendering.object, &self.labels(at)))
    }

    /// The object of an update, and its digest; none unless it is what it was. That of an owner that was made anew, with the
    /// status of the former one, would be deleted with the former one.
    fn kept(&self, at: &At, update: &Update, rendering: &Submission) -> Option<(Value, String)> {
        let object: Value = serde_json::from_str(update.rendering.as_deref()?).ok()?;
        if rendering.basis.is_some() {
            let owners = |object: &Value| object["metadata"]["ownerReferences"].clone();
            let is_ours = owners(&object) == owners(&rendering.object);
            let digest = canonical::digest(&object);
            return is_ours.then_some((object, digest));
        }
        let object = stamp::decorate(object, self.owner.identity(), &self.labels(at)).ok()?;
        let digest = canonical::digest(&object);
        (digest == update.digest).then_some((object, digest))
    }

    fn labels(&self, at: &At) -> stamp::WantedLabels {
        let step = &self.blueprint.steps[at.step].name;
        stamp::step_labels(self.owner, self.blueprint, step, &at.template)
    }

    fn made_from(&self, at: &At) -> UpdateBasis {
        let basis = self.basis(at);
        let contexts = at.template.goodness.contexts();
        let context = contexts.zip(basis.wanted);
        let context = context.filter_map(|(input, value)| Some((input.path.clone(), value?)));
        let preparing = self.preparing_with(at.step, self.steps.inputs(at.step));
        let of_others = preparing.texts_of_others(&at.template);
        let inputs = self.steps.inputs(at.step);
        UpdateBasis {
            template: basis.template,
            params: basis.params,
            inputs: basis.inputs,
            context: context.chain(of_others).collect(),
            deployment: inputs.deployment().and_then(deployment_of),
        }
    }

    /// The applied one is in the object, as it was left, and is read as if it had been submitted again.
    fn hold_applied(&self, at: &At, place: &Submission, observed: Observed) -> Ruling {
        let observation = Observation::Object {
            observed,
            write: Write::Unchanged,
        };
        Ruling::Hold(at.ended(self.observing(at).observe(place, observation), place))
    }

    /// This one is in the object, or is to be.
    fn pass_update(&mut self, at: &At, arrived: Arrived, submission: Submission) -> Ruling {
        self.steps.take_up(at.step, arrived);
        Ruling::Pass(submission, Reading::Outputs)
    }

    /// Whether an object is neither good nor failed, whichever rendering is in it.
    fn is_under_way(&self, at: &At, observed: &Observed) -> bool {
        let object = Some(&observed.object);
        let is_run = at.template.lifecycle.is_immutable();
        let basis = self.basis(at);
        let taint = self.steps.taint(at.step);
        let goodness = &at.template.goodness;
        match goodness.check(object, &taint, basis.rule_inputs(), is_run) {
            Ok(()) | Err(ReadError::NotDone(NotDone::Failed(_))) => false,
            Err(_) => true,
        }
    }

    /// What the outputs of the step are made from, if another update than the present rendering may be in the object.
    pub(super) fn basis_of_update(&self, at: &At) -> Option<(Basis, Option<Output>)> {
        let made_from = &self.steps.taken_up(at.step)?.stack.applied.made_from;
        let contexts = at.template.goodness.contexts();
        let basis = Basis {
            template: made_from.template.clone(),
            params: made_from.params.clone(),
            inputs: made_from.inputs.clone(),
            wanted: contexts
                .map(|input| made_from.context.get(&input.path).cloned())
                .collect(),
            others: self.others_of(at),
        };
        let deployment = made_from.deployment.clone();
        let deployment = deployment.map(|it| {
            let (url, revision) = (it.url, it.revision);
            Output::of(OutputValues::Source { url, revision }, Taint::NONE)
        });
        Some((basis, deployment))
    }

    /// Says which update is next. What one that is not the newest came to is handed on, but is not what the step stands for.
    pub(super) fn weigh_updates(&mut self, step: usize, mut result: StepResult) -> StepResult {
        let rule = result
            .template
            .as_ref()
            .and_then(|template| Some((template.updates.clone()?, template)));
        let (Some((rule, template)), Some(arrived)) = (rule, self.steps.put_down(step)) else {
            return result;
        };
        let is_newest = arrived.stack.applied.number == arrived.stack.newest;
        let mut came = came(&result.end);
        // It may be the failure of the one before: no other is passed over for it.
        if is_newest && matches!(came, Came::Failed(_)) && is_untied(template, &result.end) {
            came = Came::Nothing;
        }
        let weighed = rule.weigh(arrived, came, &self.now);
        if let StepEnd::Submitted(submitted) = &mut result.end
            && submitted.good().is_some()
            && (!is_newest || weighed.is_next_due)
        {
            let failure = weighed.stack.failure.as_ref();
            let why = match failure.filter(|_| !weighed.is_next_due) {
                Some(failure) => NotDone::Failed(format!(
                    "{failure}; an update that came before it is applied again"
                )),
                None => NotDone::Condition(format!(
                    "resource [{}] condition not met: update {} is to be applied",
                    self.blueprint.steps[step].name, weighed.stack.applied.number
                )),
            };
            overtaken(submitted, why);
        }
        self.steps.weigh(step, weighed);
        result
    }
}

/// The output is good and is one of an earlier update.
fn overtaken(submitted: &mut Submitted, why: NotDone) {
    let message = why.to_string();
    let error = ReadError::NotDone(why);
    let newer = Err(StepError::Retrieve { error, message });
    submitted.earlier = std::mem::replace(&mut submitted.output, newer).ok();
}

fn came(end: &StepEnd) -> Came {
    match end {
        StepEnd::Submitted(submitted) if submitted.good().is_some() => Came::Good,
        StepEnd::Submitted(submitted) if submitted.unsettled.is_none() && end.has_failed() => {
            let why = submitted.output.as_ref().err();
            Came::Failed(why.map(ToString::to_string).unwrap_or_default())
        }
        // It has ended, and hands nothing on. If it kept its place, whoever sets a field could keep updates away.
        StepEnd::Submitted(submitted) if submitted.unsettled.is_none() && end.is_of_others() => {
            Came::Good
        }
        // That a right is missing says nothing of the update.
        StepEnd::Failed(
            error @ StepError::Apply {
                kind: SubmitFailureKind::Rejected | SubmitFailureKind::TooLarge,
                ..
            },
        ) => Came::Failed(error.to_string()),
        StepEnd::Submitted(_) | StepEnd::PassedThrough(_) | StepEnd::Failed(_) => Came::Nothing,
    }
}

/// Whether the object does not say of which spec it speaks where it says that it has failed. A run has but one.
fn is_untied(template: &Template, end: &StepEnd) -> bool {
    match end {
        StepEnd::Submitted(submitted) => {
            let object = &submitted.observed.object;
            !template.lifecycle.is_immutable() && template.goodness.is_failure_untied(object)
        }
        StepEnd::PassedThrough(_) | StepEnd::Failed(_) => false,
    }
}

/// Whether status tells what was in this object, as we left it.
fn is_told_of(place: &Submission, observed: &Observed) -> bool {
    let applied = place.recorded.applied.as_ref();
    applied.is_some_and(|it| it.state.is_some() && observed.object["metadata"]["uid"] == it.uid)
}

/// What two updates are told apart by. A template that reads our own status renders something else after each write, which is
/// no update.
fn digest_of(rendering: &Submission) -> String {
    let secret = rendering.name_seed.as_ref();
    let basis = secret.or(rendering.basis.as_ref());
    basis.unwrap_or(&rendering.digest).clone()
}

fn deployment_of(output: &Output) -> Option<UpdateDeployment> {
    match &output.values {
        OutputValues::Source { url, revision } if output.taint.is_none() => {
            Some(UpdateDeployment {
                url: url.clone(),
                revision: revision.clone(),
            })
        }
        OutputValues::Source { .. }
        | OutputValues::Image(_)
        | OutputValues::Config(_)
        | OutputValues::Nothing => None,
    }
}
