//! The requests that are sent with an owner's token.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::failure::OwnerRequestError;
use crate::cluster::{Answer, Call, Cluster, Identity, RequestError, encode};
use crate::mapper::Served;
use crate::openapi::SchemaCache;
use crate::tokens::{Account, TokenCache};

pub(super) struct Requests {
    cluster: Cluster,
    tokens: Arc<TokenCache>,
    schemas: SchemaCache,
    field_manager: &'static str,
}

/// An applied object, and the fields that had to be left out to apply it.
pub(super) struct Applied {
    pub(super) answer: Answer,
    pub(super) conformed: Vec<String>,
}

impl Requests {
    pub(super) fn new(
        cluster: Cluster,
        tokens: Arc<TokenCache>,
        schemas: SchemaCache,
        field_manager: &'static str,
    ) -> Self {
        Self {
            cluster,
            tokens,
            schemas,
            field_manager,
        }
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(super) fn avoided(&self) {
        self.cluster.metrics().request_avoided();
    }

    /// Server-side apply, forced: the owner's rendering wins over other managers, field by field.
    pub(super) async fn apply(
        &self,
        account: &Account,
        served: &Served,
        object: &Value,
    ) -> Result<Applied, OwnerRequestError> {
        match self.apply_once(account, served, object).await {
            Err(OwnerRequestError::Request(RequestError::Refused { status, .. }))
                if crate::openapi::is_typed_patch_failure(&status) =>
            {
                self.apply_conformed(
                    account,
                    served,
                    object,
                    RequestError::Refused {
                        code: StatusCode::INTERNAL_SERVER_ERROR,
                        status,
                    },
                )
                .await
            }
            Ok(answer) => Ok(Applied {
                answer,
                conformed: Vec::new(),
            }),
            Err(error) => Err(error),
        }
    }

    /// Existing manifests carry fields that the kind does not declare, and lists with a key twice; the
    /// merge patch of the Go controller took them, server-side apply does not.
    async fn apply_conformed(
        &self,
        account: &Account,
        served: &Served,
        object: &Value,
        refusal: RequestError,
    ) -> Result<Applied, OwnerRequestError> {
        let mut conforming = object.clone();
        let Ok(conformed) = self
            .schemas
            .conform(
                self.cluster.controller(),
                &served.kind.api_version,
                &served.kind.kind,
                &mut conforming,
            )
            .await
        else {
            return Err(refusal.into());
        };
        if conformed.is_empty() {
            return Err(refusal.into());
        }
        let answer = self.apply_once(account, served, &conforming).await?;
        Ok(Applied { answer, conformed })
    }

    async fn apply_once(
        &self,
        account: &Account,
        served: &Served,
        object: &Value,
    ) -> Result<Answer, OwnerRequestError> {
        let path = path_of(served, object);
        let call = Call::apply(&path, self.field_manager, object);
        self.send(account, call).await
    }

    pub(super) async fn create(
        &self,
        account: &Account,
        served: &Served,
        object: &Value,
    ) -> Result<Answer, OwnerRequestError> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let collection = served.collection(Some(namespace));
        let call = Call::create(&collection, self.field_manager, object);
        self.send(account, call).await
    }

    /// The object, or `None` when there is none. A kind that is not served (any more) is an error.
    pub(super) async fn get(
        &self,
        account: &Account,
        served: &Served,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, OwnerRequestError> {
        let call = Call::get(served.object(namespace, name));
        match self.send(account, call).await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(OwnerRequestError::Request(error)) if error.is_missing_object() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn list(
        &self,
        account: &Account,
        served: &Served,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<Value>, OwnerRequestError> {
        let uri = format!(
            "{}?labelSelector={}",
            served.collection(Some(namespace)),
            encode(selector)
        );
        let answer = self.send(account, Call::get(uri)).await?;
        Ok(match answer.body {
            Value::Object(mut list) => match list.remove("items") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        })
    }

    pub(super) async fn json_patch(
        &self,
        account: &Account,
        served: &Served,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Answer, OwnerRequestError> {
        let path = served.object(namespace, name);
        let call = Call::json_patch(&path, self.field_manager, patch);
        self.send(account, call).await
    }

    /// Deletes exactly the object with this uid, and what it owns in the background. False when finalizers hold it back.
    pub(super) async fn delete(
        &self,
        account: &Account,
        served: &Served,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<bool, OwnerRequestError> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": uid}});
        let call = Call::delete(served.object(namespace, name), &options);
        match self.send(account, call).await {
            Ok(answer) => Ok(answer.body["kind"] == "Status"),
            Err(OwnerRequestError::Request(error)) if error.is_missing_object() => Ok(true),
            // Replaced by an object that is not ours, or refused for another reason: only a look tells.
            Err(OwnerRequestError::Request(error)) if error.is(StatusCode::CONFLICT) => {
                let live = self.get(account, served, namespace, name).await?;
                if live.is_some_and(|live| live["metadata"]["uid"] == uid) {
                    return Err(error.into());
                }
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// A token is asked for only here, when a request is due. One that the server no longer takes is
    /// dropped and the request repeated once.
    async fn send(&self, account: &Account, call: Call<'_>) -> Result<Answer, OwnerRequestError> {
        let token = self.tokens.token(account).await?;
        match self
            .cluster
            .send(Identity::Bearer(token.expose()), call.clone())
            .await
        {
            Err(error) if error.is(StatusCode::UNAUTHORIZED) => {
                self.tokens.refused(account, &token);
                let token = self.tokens.token(account).await?;
                Ok(self
                    .cluster
                    .send(Identity::Bearer(token.expose()), call)
                    .await?)
            }
            outcome => Ok(outcome?),
        }
    }
}

fn path_of(served: &Served, object: &Value) -> String {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    served.object(text("namespace"), text("name"))
}
