//! Mutable objects: server-side apply, and only when something is to change.

use std::sync::Arc;

use api_types::{EventReason, labels};
use http::StatusCode;
use realizer::{Observation, Precondition, Submission, Write};
use serde_json::{Value, json};

use super::contest::Rendering;
use super::failure::{self, Failure, OwnerRequestError, address, contested, during};
use super::{Applicant, Source, Submitted, Submitter, now, ownership, takeover};
use crate::mapper::Served;
use crate::stamped::{ObjectKey, Stamped};

/// A version that no object has. An apply that is bound to it creates the object, and is refused when there is one.
const NOTHING_THERE: u64 = 1;

/// So many answers in a row to another writer are a fight, of which an event tells; fewer may be edits by hand.
const FIGHT: u32 = 3;

impl Submitter {
    pub(super) async fn submit_mutable(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
    ) -> Result<Submitted, Failure> {
        let held = self.held(applicant, submission, source).await?;
        if let Some(held) = &held {
            if is_as_rendered(held, submission, source.served()) {
                self.requests.avoided();
                return Ok(Self::report(source, held, Write::Unchanged));
            }
            refuse_contested(applicant, submission, held)?;
        }
        if let Some(waiting) = self.waiting(applicant, submission, source, held.as_ref()) {
            return Ok(waiting);
        }
        self.apply(applicant, submission, source, held).await
    }

    /// What there is, while it is too early to write: somebody keeps undoing the rendering, or we keep changing it.
    fn waiting(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
        held: Option<&Arc<Stamped>>,
    ) -> Option<Submitted> {
        let rendering = rendering_of(applicant, submission, source.served());
        let (present, wait) = if let Some(back) = self.fights.held_back(rendering, now()) {
            (held.cloned().unwrap_or(back.applied), back.wait)
        } else {
            let wait = self.unsteady.held_back(applicant.uid, submission, now())?;
            let present = held
                .cloned()
                .or_else(|| renamed(applicant, submission, source));
            (present?, wait)
        };
        let mut submitted = Self::report(source, &present, Write::Unchanged);
        submitted.look_again(wait);
        Some(submitted)
    }

    /// The live object with the rendered name, from the watch or, where the kind cannot be watched, from the server.
    pub(super) async fn held(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
    ) -> Result<Option<Arc<Stamped>>, Failure> {
        let name = submission.object["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        if name.is_empty() {
            return Err(failure::rejected(format!(
                "failed to get unstructured [{}] from api server: resource name may not be empty",
                address(submission)
            )));
        }
        let key = key_of(applicant, submission, source.served());
        let (namespace, name) = (&key.namespace, &key.name);
        match source {
            Source::Watch(watch) => Ok(watch.get(&key)),
            Source::Live(watch, why) => {
                let live = self
                    .requests
                    .get(&applicant.account, watch.served(), namespace, name)
                    .await;
                let live = live.map_err(|error| {
                    during(&format!("failed to get unstructured [{}] from api server (the controller cannot watch the kind either: {why})", address(submission)), error)
                })?;
                Ok(live.map(|live| Arc::new(self.project(source, &live))))
            }
        }
    }

    async fn apply(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
        held: Option<Arc<Stamped>>,
    ) -> Result<Submitted, Failure> {
        if let Some(held) = held.as_ref().filter(|held| held.legacy) {
            self.take_over(applicant, source.served(), held).await?;
        }
        let tolerated = self.tolerated(submission, source.served(), held.as_deref());
        let first = self
            .send_apply(
                applicant,
                submission,
                source,
                tolerated.as_deref(),
                bound_to(submission.precondition),
                held.is_some(),
            )
            .await?;
        let mut stamped = self.learn(source, &first.answer.body);
        let write = if first.answer.code == StatusCode::CREATED {
            Write::Created
        } else {
            Write::Patched
        };
        let rendering = rendering_of(applicant, submission, source.served());
        let answers = self.fights.written(rendering, &stamped, now());
        let unsteady = self.unsteady.written(applicant, submission, now());
        // What the server did not take is written down once and tolerated from then on, so it cannot loop.
        let unowned = encode(&uncovered_by(&stamped, &submission.object, source.served()));
        if unowned.as_deref() != stamped.unowned.as_deref() {
            let second = self
                .send_apply(
                    applicant,
                    submission,
                    source,
                    unowned.as_deref(),
                    still_ours(submission.precondition, &stamped),
                    true,
                )
                .await?;
            stamped = self.learn(source, &second.answer.body);
        }
        let kind = &source.served().kind;
        self.shapes
            .learn(kind, submission, stamped.unowned.as_deref());
        let mut submitted = Self::report(source, &stamped, write);
        submitted.warnings.extend(unsteady);
        submitted
            .warnings
            .extend(left_out(submission, source, &first.conformed));
        submitted
            .warnings
            .extend(fought_over(submission, source, answers));
        Ok(submitted)
    }

    /// What the server will probably not take of this rendering.
    fn tolerated(
        &self,
        submission: &Submission,
        served: &Served,
        held: Option<&Stamped>,
    ) -> Option<Box<str>> {
        match held {
            Some(held) if held.digest.as_deref() == Some(&submission.digest) => {
                held.unowned.clone()
            }
            _ => self
                .shapes
                .expected(&served.kind, submission)
                .unwrap_or_else(|| held.and_then(|held| held.unowned.clone())),
        }
    }

    async fn send_apply(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
        unowned: Option<&str>,
        precondition: Option<u64>,
        exists: bool,
    ) -> Result<super::requests::Applied, Failure> {
        let mut object = annotated(&submission.object, &submission.digest, unowned);
        if let Some(version) = precondition {
            object["metadata"]["resourceVersion"] = Value::from(version.to_string());
        }
        match self
            .requests
            .apply(&applicant.account, source.served(), &object)
            .await
        {
            Ok(applied) => Ok(applied),
            Err(OwnerRequestError::Request(error))
                if precondition.is_some() && error.is(StatusCode::CONFLICT) =>
            {
                self.learn_anew(applicant, submission, source).await?;
                Err(failure::stale(&error))
            }
            Err(error) => Err(self
                .explain(applicant, submission, source, exists, error)
                .await),
        }
    }

    /// The server knows a later version than the watch has shown: reads it, so that the next look does not find the same.
    async fn learn_anew(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
    ) -> Result<(), Failure> {
        let key = key_of(applicant, submission, source.served());
        let live = self
            .requests
            .get(
                &applicant.account,
                source.served(),
                &key.namespace,
                &key.name,
            )
            .await
            .map_err(|error| during("patch", error))?;
        match (live, source.watch().get(&key)) {
            (Some(live), _) => {
                self.learn(source, &live);
            }
            (None, Some(held)) => {
                let kind = &source.served().kind;
                self.watches.deleted(kind, &key, &held.uid);
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// An unknown object in the way: the server refuses a second controller. Say whose it is.
    async fn explain(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
        exists: bool,
        error: OwnerRequestError,
    ) -> Failure {
        if let OwnerRequestError::Request(request) = &error
            && request.is(StatusCode::UNPROCESSABLE_ENTITY)
        {
            let name = submission.object["metadata"]["name"]
                .as_str()
                .unwrap_or_default();
            if let Ok(Some(live)) = self
                .requests
                .get(
                    &applicant.account,
                    source.served(),
                    applicant.namespace.as_str(),
                    name,
                )
                .await
            {
                let live = self.project(source, &live);
                if let Some(controller) = live
                    .controller
                    .as_ref()
                    .filter(|controller| *controller.uid != *applicant.uid)
                {
                    return contested(format!(
                        "object [{}] belongs to {} [{}]; rename it in the template or remove the other owner",
                        address(submission),
                        controller.kind,
                        controller.name
                    ));
                }
            }
        }
        during(if exists { "patch" } else { "create" }, error)
    }

    async fn take_over(
        &self,
        applicant: &Applicant<'_>,
        served: &Served,
        held: &Stamped,
    ) -> Result<(), Failure> {
        let (namespace, name) = (&held.key.namespace, &held.key.name);
        let live = self
            .requests
            .get(&applicant.account, served, namespace, name)
            .await
            .map_err(|error| during("patch", error))?;
        let Some(patch) =
            live.and_then(|live| takeover::migration(&live, self.watches.field_manager()))
        else {
            return Ok(());
        };
        let migrated = self
            .requests
            .json_patch(&applicant.account, served, namespace, name, &patch)
            .await;
        migrated.map(|_| ()).map_err(|error| during("patch", error))
    }

    fn report(source: &Source, stamped: &Stamped, write: Write) -> Submitted {
        let observed = stamped.observed(source.served());
        let mut submitted = Submitted::plain(Observation::Object { observed, write });
        Self::note_unwatched(source, &mut submitted);
        submitted
    }
}

/// The version that the first write is bound to.
fn bound_to(precondition: Precondition) -> Option<u64> {
    match precondition {
        Precondition::None => None,
        Precondition::Absent => Some(NOTHING_THERE),
        Precondition::Version(version) => Some(version),
    }
}

/// The version that a write upon our own is bound to: another process may have come in between.
fn still_ours(precondition: Precondition, written: &Stamped) -> Option<u64> {
    (precondition != Precondition::None).then_some(written.resource_version)
}

/// What the step stamped before; a rendering that changes may change its name, too.
fn renamed(
    applicant: &Applicant<'_>,
    submission: &Submission,
    source: &Source,
) -> Option<Arc<Stamped>> {
    let Source::Watch(watch) = source else {
        return None;
    };
    let mut owned = watch.owned_by(applicant.uid);
    owned.retain(|held| {
        let step = held.labels().remove(labels::RESOURCE_NAME);
        !held.terminating && step.as_deref() == Some(submission.resource.as_str())
    });
    owned.pop()
}

/// Tells which fields had to be left out to apply the rendering.
fn left_out(
    submission: &Submission,
    source: &Source,
    fields: &[String],
) -> Option<(EventReason, String)> {
    let told = || {
        let message = format!(
            "[{}] left out of {} [{}] because its kind does not declare them or lists them twice: {}; correct the template",
            submission.resource,
            source.served().qualified(),
            address(submission),
            fields.join(", "),
        );
        (EventReason::FieldsDropped, message)
    };
    (!fields.is_empty()).then(told)
}

/// Tells of another writer that is answered again and again.
fn fought_over(
    submission: &Submission,
    source: &Source,
    answers: u32,
) -> Option<(EventReason, String)> {
    let told = || {
        let message = format!(
            "[{}] another writer keeps changing fields of {} [{}] that the template renders; stop it, or take the fields out of the template",
            submission.resource,
            source.served().qualified(),
            address(submission),
        );
        (EventReason::ObjectContested, message)
    };
    (answers >= FIGHT).then(told)
}

fn key_of(applicant: &Applicant<'_>, submission: &Submission, served: &Served) -> ObjectKey {
    let namespace = if served.namespaced {
        applicant.namespace.as_str()
    } else {
        ""
    };
    let name = &submission.object["metadata"]["name"];
    ObjectKey::new(namespace, name.as_str().unwrap_or_default())
}

fn rendering_of(applicant: &Applicant<'_>, submission: &Submission, served: &Served) -> Rendering {
    let key = key_of(applicant, submission, served);
    Rendering::of(&served.kind, &key, &submission.digest)
}

/// Decided from the object alone: the last thing we applied was this rendering, and we still own it all.
fn is_as_rendered(held: &Stamped, submission: &Submission, served: &Served) -> bool {
    // An object on its way out is written no more: it is made again once it is gone.
    if held.digest.as_deref() != Some(&submission.digest) || held.legacy {
        return false;
    }
    encode(&uncovered_by(held, &submission.object, served)).as_deref() == held.unowned.as_deref()
}

fn uncovered_by(held: &Stamped, rendered: &Value, served: &Served) -> Vec<String> {
    let entry = held
        .managed
        .as_ref()
        .filter(|(version, _)| **version == *served.kind.api_version);
    let entry: Option<Value> = entry.and_then(|(_, fields)| serde_json::from_str(fields).ok());
    ownership::uncovered(rendered, entry.as_ref(), served.status_subresource)
}

/// The pointers as one annotation value; nothing when there is none.
fn encode(pointers: &[String]) -> Option<String> {
    if pointers.is_empty() {
        None
    } else {
        serde_json::to_string(pointers).ok()
    }
}

fn annotated(object: &Value, digest: &str, unowned: Option<&str>) -> Value {
    let mut object = object.clone();
    let metadata = &mut object["metadata"];
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    metadata["annotations"][labels::RENDERED_DIGEST] = Value::from(digest);
    if let Some(unowned) = unowned {
        metadata["annotations"][labels::UNOWNED] = Value::from(unowned);
    }
    object
}

fn refuse_contested(
    applicant: &Applicant<'_>,
    submission: &Submission,
    held: &Stamped,
) -> Result<(), Failure> {
    let Some(controller) = &held.controller else {
        return Ok(());
    };
    if *controller.uid != *applicant.uid {
        if controller.is_ours(applicant.kind)
            && !(applicant.is_live_owner)(
                &held.owner_namespace(),
                &controller.name,
                &controller.uid,
            )
        {
            return Ok(());
        }
        return Err(contested(format!(
            "object [{}] belongs to {} [{}]; rename it in the template or remove the other owner",
            address(submission),
            controller.kind,
            controller.name
        )));
    }
    let step = held
        .labels()
        .remove(labels::RESOURCE_NAME)
        .unwrap_or_default();
    if !step.is_empty()
        && submission.resource != *step
        && (applicant.wanted_by_step)(&step, &submission.object)
    {
        return Err(contested(format!(
            "object [{}] belongs to resource [{step}] of the same {}; give the two templates different names",
            address(submission),
            applicant.kind.to_lowercase()
        )));
    }
    Ok(())
}
