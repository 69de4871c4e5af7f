//! The requests that are sent with an owner's token.

use std::sync::Arc;

use http::StatusCode;
use kube::core::Status;
use serde_json::{Value, json};
use submission::openapi::{KindSchema, conform, has_nulls, is_typed_patch_failure};
use submission::{
    Obstacles, applicable, bound_anew, has_lost_a_map, obstacles, refused_fields, without_empty,
};

use super::failure::{OwnerRequestError, tried};
use crate::cluster::{Answer, Call, Cluster, Identity, RequestError, encode};
use crate::mapper::{Kind, Served};
use crate::openapi::{SchemaCache, SchemaError};
use crate::tokens::{Account, TokenCache};

/// So many times a server is asked for more of a list from which few are wanted.
const PAGES: usize = 100;

pub(super) struct Requests {
    cluster: Cluster,
    tokens: Arc<TokenCache>,
    schemas: SchemaCache,
    field_manager: &'static str,
}

/// What a deletion was answered.
pub(super) enum Deleted {
    /// The object is no more.
    Gone,
    /// It stays for a while, for its finalizers.
    Going(Value),
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
        let mut object = self.applicable(served, object).await?;
        let (outcome, conformed) = self.apply_conformed(account, served, &mut object).await;
        let answer = match outcome {
            Err(OwnerRequestError::Request(refusal))
                if refusal.is(StatusCode::UNPROCESSABLE_ENTITY) =>
            {
                self.apply_refused(account, served, &object, refusal)
                    .await?
            }
            outcome => outcome?,
        };
        // Where the kind says nothing of such a map, it is null now, and an object after the same apply once more.
        let answer = if has_lost_a_map(&object, &answer.body) {
            let object = bound_anew(&object, &answer.body);
            self.apply_once(account, served, &object).await?
        } else {
            answer
        };
        Ok(Applied { answer, conformed })
    }

    /// What a create takes, an apply onto an existing object may not: two of the reasons can be removed.
    async fn apply_refused(
        &self,
        account: &Account,
        served: &Served,
        object: &Value,
        refusal: RequestError,
    ) -> Result<Answer, OwnerRequestError> {
        let RequestError::Refused { status, .. } = &refusal else {
            return Err(refusal.into());
        };
        let answer = match without_empty(object, status) {
            Some(without) => self.apply_in_two(account, served, object, &without).await?,
            None => {
                self.apply_without_defaults(account, served, object, status)
                    .await?
            }
        };
        answer.ok_or_else(|| refusal.into())
    }

    /// A map that loses its last member in an apply becomes null, although the rendering has it as `{}`. It is left out
    /// first, and then made anew.
    async fn apply_in_two(
        &self,
        account: &Account,
        served: &Served,
        object: &Value,
        without: &Value,
    ) -> Result<Option<Answer>, OwnerRequestError> {
        let Some(first) = tried(self.apply_once(account, served, without).await)? else {
            return Ok(None);
        };
        let object = bound_anew(object, &first.body);
        tried(self.apply_once(account, served, &object).await)
    }

    /// What the API server would make of the rendering in a create, and does not in an apply.
    ///
    /// # Errors
    /// When the schema cannot be had for now: a null that means something would be left out, and the reply believed to be
    /// what was rendered.
    async fn applicable(&self, served: &Served, rendered: &Value) -> Result<Value, RequestError> {
        let schema = if has_nulls(rendered) {
            self.schema(served).await?
        } else {
            None
        };
        Ok(applicable(rendered, &served.kind, schema.as_deref()))
    }

    /// What the kind declares; `None` where that cannot be known.
    ///
    /// # Errors
    /// When it cannot be had for now: what is to be sent may be another once it is known.
    async fn schema(&self, served: &Served) -> Result<Option<Arc<KindSchema>>, RequestError> {
        let Kind { api_version, kind } = &served.kind;
        let client = self.cluster.controller();
        match self.schemas.schema(client, api_version, kind).await {
            Ok(schema) => Ok(Some(schema)),
            Err(error @ SchemaError::Unavailable { .. }) => {
                Err(RequestError::Transport(error.to_string()))
            }
            Err(_) => Ok(None),
        }
    }

    /// Existing manifests carry fields that the kind does not declare, and lists with a key twice; the
    /// merge patch of the Go controller took them, server-side apply does not. Such an object is made to fit; what it lost
    /// is told beside the outcome.
    async fn apply_conformed(
        &self,
        account: &Account,
        served: &Served,
        object: &mut Value,
    ) -> (Result<Answer, OwnerRequestError>, Vec<String>) {
        let outcome = self.apply_once(account, served, object).await;
        let misfit = matches!(
            &outcome,
            Err(OwnerRequestError::Request(RequestError::Refused { status, .. }))
                if is_typed_patch_failure(status)
        );
        if !misfit {
            return (outcome, Vec::new());
        }
        match self.schema(served).await {
            Ok(Some(schema)) => {
                let conformed = conform(object, &schema);
                if !conformed.is_empty() {
                    return (self.apply_once(account, served, object).await, conformed);
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
        &self,
        account: &Account,
        served: &Served,
        object: &Value,
        refusal: &Status,
    ) -> Result<Option<Answer>, OwnerRequestError> {
        let fields = refused_fields(refusal);
        if fields.is_empty() {
            return Ok(None);
        }
        let [namespace, name] = ["namespace", "name"]
            .map(|field| object["metadata"][field].as_str().unwrap_or_default());
        let live = tried(self.get(account, served, namespace, name).await)?.flatten();
        let bound = &object["metadata"]["resourceVersion"];
        let live =
            live.filter(|live| bound.is_null() || *bound == live["metadata"]["resourceVersion"]);
        let obstacles = live.and_then(|live| obstacles(object, &live, &fields, self.field_manager));
        let Some(Obstacles { trial, claim }) = obstacles else {
            return Ok(None);
        };
        let path = path_of(served, object);
        let call = Call::try_merge_patch(&path, self.field_manager, &trial);
        if tried(self.send(account, call).await)?.is_none() {
            return Ok(None);
        }
        let claimed = self
            .json_patch(account, served, namespace, name, &claim)
            .await;
        let Some(claimed) = tried(claimed)? else {
            return Ok(None);
        };
        let object = bound_anew(object, &claimed.body);
        tried(self.apply_once(account, served, &object).await)
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
        let answer = self.send(account, Call::get(listing(served, namespace, selector)));
        let (items, _) = page(answer.await?.body);
        Ok(items)
    }

    /// The first `most` of them. A server may answer with fewer than it was asked for, and say that there are more.
    pub(super) async fn list_some(
        &self,
        account: &Account,
        served: &Served,
        (namespace, selector): (&str, &str),
        most: usize,
    ) -> Result<Vec<Value>, OwnerRequestError> {
        let first = format!("{}&limit={most}", listing(served, namespace, selector));
        let mut found = Vec::new();
        let mut uri = first.clone();
        for _ in 0..PAGES {
            let answer = self.send(account, Call::get(uri)).await?;
            let (items, next) = page(answer.body);
            found.extend(items);
            match next {
                Some(next) if found.len() < most => {
                    uri = format!("{first}&continue={}", encode(&next));
                }
                _ => break,
            }
        }
        Ok(found)
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

    /// Deletes exactly the object with this uid, and what it owns in the background.
    pub(super) async fn delete(
        &self,
        account: &Account,
        served: &Served,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<Deleted, OwnerRequestError> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": uid}});
        let call = Call::delete(served.object(namespace, name), &options);
        match self.send(account, call).await {
            Ok(answer) if answer.body["kind"] == "Status" => Ok(Deleted::Gone),
            Ok(answer) => Ok(Deleted::Going(answer.body)),
            Err(OwnerRequestError::Request(error)) if error.is_missing_object() => {
                Ok(Deleted::Gone)
            }
            // Replaced by an object that is not ours, or refused for another reason: only a look tells.
            Err(OwnerRequestError::Request(error)) if error.is(StatusCode::CONFLICT) => {
                let live = self.get(account, served, namespace, name).await?;
                if live.is_some_and(|live| live["metadata"]["uid"] == uid) {
                    return Err(error.into());
                }
                Ok(Deleted::Gone)
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

fn listing(served: &Served, namespace: &str, selector: &str) -> String {
    let collection = served.collection(Some(namespace));
    format!("{collection}?labelSelector={}", encode(selector))
}

/// The items of a list, and by what the rest of it is asked for.
fn page(list: Value) -> (Vec<Value>, Option<String>) {
    let next = list["metadata"]["continue"].as_str();
    let next = next.filter(|next| !next.is_empty()).map(str::to_owned);
    let Value::Object(mut list) = list else {
        return (Vec::new(), None);
    };
    match list.remove("items") {
        Some(Value::Array(items)) => (items, next),
        _ => (Vec::new(), next),
    }
}

fn path_of(served: &Served, object: &Value) -> String {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    served.object(text("namespace"), text("name"))
}
