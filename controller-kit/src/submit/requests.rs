//! The requests that are sent with an owner's token.

mod apply;

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

pub(super) use apply::Applied;

use super::failure::OwnerRequestError;
use crate::cluster::{Answer, Call, Cluster, Identity, encode};
use crate::mapper::Served;
use crate::openapi::SchemaCache;
use crate::stamped::ObjectKey;
use crate::tokens::{Account, TokenCache};

/// So many times a server is asked for more of a list from which few are wanted.
const PAGES: usize = 100;

pub(super) struct Requests {
    pub(super) cluster: Cluster,
    pub(super) tokens: Arc<TokenCache>,
    pub(super) schemas: SchemaCache,
    pub(super) field_manager: &'static str,
}

/// What a deletion was answered.
pub(super) enum Deleted {
    /// The object is no more.
    Gone,
    /// It stays for a while, for its finalizers.
    Going(Value),
}

impl Requests {
    pub(super) fn avoided(&self) {
        self.cluster.metrics().request_avoided();
    }

    /// Requests with the rights of this account, about objects of this kind.
    pub(super) fn of<'r>(&'r self, account: &'r Account, served: &'r Served) -> OwnerClient<'r> {
        OwnerClient {
            requests: self,
            account,
            served,
            is_trial: false,
        }
    }
}

/// One kind, with the rights of one account.
#[derive(Clone, Copy)]
pub(super) struct OwnerClient<'r> {
    requests: &'r Requests,
    account: &'r Account,
    served: &'r Served,
    /// Whether applies are dry runs.
    is_trial: bool,
}

impl OwnerClient<'_> {
    pub(super) async fn create(self, object: &Value) -> Result<Answer, OwnerRequestError> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let collection = self.served.collection(Some(namespace));
        let call = Call::create(&collection, self.requests.field_manager, object);
        self.send(call).await
    }

    /// The object, or `None` when there is none. A kind that is not served (any more) is an error.
    pub(super) async fn get(self, key: &ObjectKey) -> Result<Option<Value>, OwnerRequestError> {
        match self.send(Call::get(self.path(key))).await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(OwnerRequestError::Request(error)) if error.is_missing_object() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn list(
        self,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<Value>, OwnerRequestError> {
        let answer = self.send(Call::get(self.listing(namespace, selector)));
        let (items, _) = page(answer.await?.body);
        Ok(items)
    }

    /// The first `most` of them. A server may answer with fewer than it was asked for, and say that there are more.
    pub(super) async fn list_some(
        self,
        namespace: &str,
        selector: &str,
        most: usize,
    ) -> Result<Vec<Value>, OwnerRequestError> {
        let first = format!("{}&limit={most}", self.listing(namespace, selector));
        let mut found = Vec::new();
        let mut uri = first.clone();
        for _ in 0..PAGES {
            let answer = self.send(Call::get(uri)).await?;
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
        self,
        key: &ObjectKey,
        patch: &Value,
    ) -> Result<Answer, OwnerRequestError> {
        let path = self.path(key);
        let call = Call::json_patch(&path, self.requests.field_manager, patch);
        self.send(call).await
    }

    /// Deletes exactly the object with this uid, and what it owns in the background.
    pub(super) async fn delete(
        self,
        key: &ObjectKey,
        uid: &str,
    ) -> Result<Deleted, OwnerRequestError> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": uid}});
        match self.send(Call::delete(self.path(key), &options)).await {
            Ok(answer) if answer.body["kind"] == "Status" => Ok(Deleted::Gone),
            Ok(answer) => Ok(Deleted::Going(answer.body)),
            Err(OwnerRequestError::Request(error)) if error.is_missing_object() => {
                Ok(Deleted::Gone)
            }
            // Replaced by an object that is not ours, or refused for another reason: only a look tells.
            Err(OwnerRequestError::Request(error)) if error.is(StatusCode::CONFLICT) => {
                let live = self.get(key).await?;
                if live.is_some_and(|live| live["metadata"]["uid"] == uid) {
                    return Err(error.into());
                }
                Ok(Deleted::Gone)
            }
            Err(error) => Err(error),
        }
    }

    fn path(self, key: &ObjectKey) -> String {
        self.served.object(&key.namespace, &key.name)
    }

    fn listing(self, namespace: &str, selector: &str) -> String {
        let collection = self.served.collection(Some(namespace));
        format!("{collection}?labelSelector={}", encode(selector))
    }

    /// A token is asked for only here, when a request is due. One that the server no longer takes is
    /// dropped and the request repeated once.
    async fn send(self, call: Call<'_>) -> Result<Answer, OwnerRequestError> {
        let Requests {
            cluster, tokens, ..
        } = self.requests;
        let token = tokens.token(self.account).await?;
        let sent = cluster.send(Identity::Bearer(token.expose()), call.clone());
        match sent.await {
            Err(error) if error.is(StatusCode::UNAUTHORIZED) => {
                tokens.refused(self.account, &token);
                let token = tokens.token(self.account).await?;
                let sent = cluster.send(Identity::Bearer(token.expose()), call);
                Ok(sent.await?)
            }
            outcome => Ok(outcome?),
        }
    }
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
