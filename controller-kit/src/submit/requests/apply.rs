//! Server-side apply, and what is done where the API server refuses in an apply what it takes in a create.

use std::sync::Arc;

use http::StatusCode;
use kube::core::Status;
use serde_json::Value;
use submission::openapi::{KindSchema, conform, has_nulls, is_typed_patch_failure};
use submission::{
    Obstacles, applicable, bound_anew, has_lost_a_map, obstacles, refused_fields, without_empty,
};

use super::OwnerClient;
use crate::cluster::{Answer, Call, RequestError};
use crate::mapper::Kind;
use crate::openapi::SchemaError;
use crate::reflect::key_of;
use crate::submit::failure::{OwnerRequestError, tried};

/// An applied object, and the fields that had to be left out to apply it.
pub(in crate::submit) struct Applied {
    pub(in crate::submit) answer: Answer,
    pub(in crate::submit) conformed: Vec<String>,
}

impl OwnerClient<'_> {
    /// Server-side apply, forced: the owner's rendering wins over other managers, field by field.
    pub(in crate::submit) async fn apply(
        self,
        object: &Value,
    ) -> Result<Applied, OwnerRequestError> {
        let mut object = self.applicable(object).await?;
        let (outcome, conformed) = self.apply_conformed(&mut object).await;
        let answer = match outcome {
            Err(OwnerRequestError::Request(refusal))
                if refusal.is(StatusCode::UNPROCESSABLE_ENTITY) =>
            {
                self.apply_refused(&object, refusal).await?
            }
            outcome => outcome?,
        };
        // Where the kind says nothing of such a map, it is null now, and an object after the same apply once more.
        let answer = if has_lost_a_map(&object, &answer.body) {
            self.apply_once(&bound_anew(&object, &answer.body)).await?
        } else {
            answer
        };
        Ok(Applied { answer, conformed })
    }

    /// What an apply of an object that is not there yet would come to; nothing is stored.
    pub(in crate::submit) async fn try_apply(
        self,
        object: &Value,
    ) -> Result<Answer, OwnerRequestError> {
        let trial = OwnerClient {
            is_trial: true,
            ..self
        };
        let mut object = trial.applicable(object).await?;
        trial.apply_conformed(&mut object).await.0
    }

    /// What a create takes, an apply onto an existing object may not: two of the reasons can be removed.
    async fn apply_refused(
        self,
        object: &Value,
        refusal: RequestError,
    ) -> Result<Answer, OwnerRequestError> {
        let RequestError::Refused { status, .. } = &refusal else {
            return Err(refusal.into());
        };
        let answer = match without_empty(object, status) {
            Some(without) => self.apply_in_two(object, &without).await?,
            None => self.apply_without_defaults(object, status).await?,
        };
        answer.ok_or_else(|| refusal.into())
    }

    /// A map that loses its last member in an apply becomes null, although the rendering has it as `{}`. It is left out
    /// first, and then made anew.
    async fn apply_in_two(
        self,
        object: &Value,
        without: &Value,
    ) -> Result<Option<Answer>, OwnerRequestError> {
        let Some(first) = tried(self.apply_once(without).await)? else {
            return Ok(None);
        };
        tried(self.apply_once(&bound_anew(object, &first.body)).await)
    }

    /// What the API server would make of the rendering in a create, and does not in an apply.
    ///
    /// # Errors
    /// When the schema cannot be had for now: a null that means something would be left out, and the reply believed to be
    /// what was rendered.
    async fn applicable(self, rendered: &Value) -> Result<Value, RequestError> {
        let schema = if has_nulls(rendered) {
            self.schema().await?
        } else {
            None
        };
        Ok(applicable(rendered, &self.served.kind, schema.as_deref()))
    }

    /// What the kind declares; `None` where that cannot be known.
    ///
    /// # Errors
    /// When it cannot be had for now: what is to be sent may be another once it is known.
    async fn schema(self) -> Result<Option<Arc<KindSchema>>, RequestError> {
        let Kind { api_version, kind } = &self.served.kind;
        let client = self.requests.cluster.controller();
        let schemas = &self.requests.schemas;
        match schemas.schema(client, api_version, kind).await {
            Ok(schema) => Ok(Some(schema)),
            Err(error @ SchemaError::Unavailable(_)) => {
                Err(RequestError::Transport(error.to_string()))
            }
            Err(_) => Ok(None),
        }
    }

    /// Existing manifests carry fields that the kind does not declare, and lists with a key twice; the
    /// merge patch of the Go controller took them, server-side apply does not. Such an object is made to fit; what it lost
    /// is told beside the outcome.
    async fn apply_conformed(
        self,
        object: &mut Value,
    ) -> (Result<Answer, OwnerRequestError>, Vec<String>) {
        let outcome = self.apply_once(object).await;
        let misfit = matches!(
            &outcome,
            Err(OwnerRequestError::Request(RequestError::Refused { status, .. }))
                if is_typed_patch_failure(status)
        );
        if !misfit {
            return (outcome, Vec::new());
        }
        match self.schema().await {
            Ok(Some(schema)) => {
                let conformed = conform(object, &schema);
                if !conformed.is_empty() {
                    return (self.apply_once(object).await, conformed);
                }
            }
            Ok(None) => {}
            Err(error) => return (Err(error.into()), Vec::new()),
        }
        (outcome, Vec::new())
    }

    /// Once more without the defaults that the rendering cannot stand beside, if that is what is wrong; otherwise the refusal
    /// stands, and nothing has changed.
    async fn apply_without_defaults(
        self,
        object: &Value,
        refusal: &Status,
    ) -> Result<Option<Answer>, OwnerRequestError> {
        let fields = refused_fields(refusal);
        if fields.is_empty() {
            return Ok(None);
        }
        let (key, manager) = (key_of(object), self.requests.field_manager);
        let live = tried(self.get(&key).await)?.flatten();
        let bound = &object["metadata"]["resourceVersion"];
        let live =
            live.filter(|live| bound.is_null() || *bound == live["metadata"]["resourceVersion"]);
        let obstacles = live.and_then(|live| obstacles(object, &live, &fields, manager));
        let Some(Obstacles { trial, claim }) = obstacles else {
            return Ok(None);
        };
        let path = self.path(&key);
        let call = Call::try_merge_patch(&path, manager, &trial);
        if tried(self.send(call).await)?.is_none() {
            return Ok(None);
        }
        let Some(claimed) = tried(self.json_patch(&key, &claim).await)? else {
            return Ok(None);
        };
        tried(self.apply_once(&bound_anew(object, &claimed.body)).await)
    }

    async fn apply_once(self, object: &Value) -> Result<Answer, OwnerRequestError> {
        let (path, manager) = (self.path(&key_of(object)), self.requests.field_manager);
        let call = if self.is_trial {
            Call::try_apply(&path, manager, object)
        } else {
            Call::apply(&path, manager, object)
        };
        self.send(call).await
    }
}
