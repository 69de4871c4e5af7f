//! Mutable objects: what an apply would make of them.

use std::sync::Arc;

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use realizer::{Observation, Submission, SubmitFailure, SubmitFailureKind, Write};
use serde_json::Value;
use submission::openapi::{conform, has_nulls, is_typed_patch_failure};
use submission::{
    Annotations, Apply, Belonging, Claim, Held, Holder, Kind, address, applicable, owner_of,
    without_dropped,
};

use super::{Rehearsal, failed, labels_of, refused, seen, text};
use crate::migrate::difference::difference;
use crate::migrate::findings::Change;
use crate::migrate::world::Served;

impl<'r> Rehearsal<'r> {
    fn place<'s>(&self, submission: &'s Submission, served: &Served) -> (&'s str, &'s str)
    where
        'r: 's,
    {
        let namespace = if served.namespaced {
            self.owner.namespace
        } else {
            ""
        };
        (namespace, text(&submission.object, "name"))
    }

    /// The live object: among those that have the owner's label, else as the API server has it.
    pub(super) async fn held(
        &mut self,
        submission: &Submission,
        kind: &Kind,
        served: &Served,
    ) -> Result<Option<Value>, SubmitFailure> {
        let listed = self.world.stamped(kind, served, self.label).await;
        let (namespace, name) = self.place(submission, served);
        if name.is_empty() {
            return Err(failed(
                SubmitFailureKind::Rejected,
                format!(
                    "failed to get unstructured [{}] from api server: resource name may not be empty",
                    address(submission)
                ),
            ));
        }
        if let Ok(objects) = &*listed {
            let is_it = |object: &&Value| {
                text(object, "namespace") == namespace && text(object, "name") == name
            };
            if let Some(found) = objects.iter().find(is_it) {
                return Ok(Some(found.clone()));
            }
        }
        let api = served.api(&self.world.client, namespace);
        let found = api
            .get_opt(name)
            .await
            .map_err(|error| refused("get", &error))?;
        Ok(found.and_then(|object| serde_json::to_value(object).ok()))
    }

    pub(super) fn holder(&self, submission: &Submission, held: &Value) -> Holder {
        let metadata = &held["metadata"];
        let namespace = Arc::from(text(held, "namespace"));
        let (controller, owner_namespace) = owner_of(metadata, &namespace);
        let wanted =
            |step: &str, object: &Value| (self.has_step)(step) && self.steps.wants(step, object);
        let claim = Claim {
            owner: self.owner,
            submission,
            is_live_owner: self.is_live_owner,
            wanted_by_step: &wanted,
        };
        claim.holder(Held {
            uid: text(held, "uid"),
            belonging: Belonging {
                namespace: &namespace,
                owner_namespace: &owner_namespace,
                controller: controller.as_ref(),
            },
            labels: &labels_of(held),
            adopt: Annotations::of(metadata).adopt,
        })
    }

    pub(super) async fn submit_mutable(
        &mut self,
        submission: &Submission,
        kind: &Kind,
        served: &Served,
    ) -> Result<Observation, SubmitFailure> {
        let held = self.held(submission, kind, served).await?;
        if let Some(held) = &held
            && let Holder::Contested(message) = self.holder(submission, held)
        {
            return Err(failed(SubmitFailureKind::Contested, message));
        }
        let would_be = self
            .dry_run(submission, kind, served, held.as_ref())
            .await?;
        let object = format!("{} {}", kind.kind, address(submission));
        let fields = match &held {
            Some(held) => difference(held, &would_be),
            None => Vec::new(),
        };
        if held.is_none() || !fields.is_empty() {
            self.findings.changes.push(Change {
                told: self.told(submission.resource.as_str(), object),
                created: held.is_none(),
                fields,
            });
        }
        let write = match &held {
            Some(_) => Write::Unchanged,
            None => Write::Created,
        };
        let mut observed = seen(held.unwrap_or(would_be), served);
        observed.digest = Some(submission.digest.clone());
        Ok(Observation::Object { observed, write })
    }

    /// What the object would be.
    async fn dry_run(
        &mut self,
        submission: &Submission,
        kind: &Kind,
        served: &Served,
        held: Option<&Value>,
    ) -> Result<Value, SubmitFailure> {
        let manifest = self.manifest(submission, served);
        let during = if held.is_some() { "patch" } else { "create" };
        let Apply { object, .. } = manifest.applied(held.is_some());
        let schema = if has_nulls(&object) {
            self.world.schema(kind).await
        } else {
            None
        };
        let mut object = applicable(&object, kind, schema.as_deref());
        let (namespace, name) = self.place(submission, served);
        let api = served.api(&self.rights.client, namespace);
        let params = PatchParams::apply(self.field_manager).force().dry_run();
        let mut answer = api.patch(name, &params, &Patch::Apply(&object)).await;
        if let Err(kube::Error::Api(status)) = &answer
            && is_typed_patch_failure(status)
            && let Some(schema) = self.world.schema(kind).await
            && !conform(&mut object, &schema).is_empty()
        {
            answer = api.patch(name, &params, &Patch::Apply(&object)).await;
        }
        let answer = answer.map_err(|error| refused(during, &error))?;
        let answer = serde_json::to_value(answer)
            .map_err(|error| failed(SubmitFailureKind::Rejected, error.to_string()))?;
        let Some(left) = without_dropped(&answer, self.field_manager) else {
            return Ok(answer);
        };
        // What is left of it, with what the API server puts there itself.
        let object: DynamicObject = serde_json::from_value(left.clone())
            .map_err(|error| failed(SubmitFailureKind::Rejected, error.to_string()))?;
        let params = PostParams {
            dry_run: true,
            field_manager: Some(self.field_manager.to_owned()),
        };
        // With the user's rights: an owner need not be able to update what it may patch.
        let api = served.api(&self.world.client, namespace);
        match api.replace(name, &params, &object).await {
            Ok(stored) => Ok(serde_json::to_value(stored).unwrap_or(left)),
            Err(_) => Ok(left),
        }
    }
}
