//! Objects that an owner selects by labels, read with its own rights.

use std::collections::BTreeMap;

use realizer::SubmitFailure;
use serde_json::Value;

use super::Submitter;
use super::failure::{OwnerRequestError, SubmitError, Unavailable, kind_of};
use super::immutable::selector_of;
use crate::mapper::Served;
use crate::tokens::Account;

impl Submitter {
    /// The objects of a kind with these labels, `most` of them, in the namespace if the kind has them.
    ///
    /// # Errors
    /// The outer error ends the reconcile (no token); the inner one holds the API server's text as it is.
    pub async fn select(
        &self,
        account: &Account,
        served: &Served,
        namespace: &str,
        labels: &BTreeMap<String, String>,
        most: usize,
    ) -> Result<Result<Vec<Value>, SubmitFailure>, SubmitError> {
        let selector = selector_of(labels);
        let requests = &self.requests;
        let listed = requests.list_some(account, served, (namespace, &selector), most);
        match listed.await {
            Ok(mut objects) => {
                // The items of a list do not say what they are.
                for object in &mut objects {
                    object["apiVersion"] = Value::from(served.kind.api_version.as_str());
                    object["kind"] = Value::from(served.kind.kind.as_str());
                }
                Ok(Ok(objects))
            }
            Err(OwnerRequestError::Token(error)) => Err(SubmitError::Token(error)),
            Err(OwnerRequestError::Request(error)) if error.passes_by_itself() => {
                let message = format!("unable to list from api server: {error}");
                let why = Unavailable::of(&error, message);
                Err(SubmitError::Unavailable(why.into()))
            }
            Err(OwnerRequestError::Request(error)) => Ok(Err(SubmitFailure {
                kind: kind_of(&error),
                message: error.to_string(),
            })),
        }
    }
}
