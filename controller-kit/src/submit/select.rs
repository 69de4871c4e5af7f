//! Objects that an owner selects, read with its own rights.

use std::fmt::Display;

use realizer::{ObjectChoice, SubmitFailure};
use serde_json::Value;

use super::Submitter;
use super::error::SubmitError;
use super::failure::{refused, unlistable};
use crate::mapper::Served;
use crate::stamped::ObjectKey;
use crate::tokens::Account;

impl Submitter {
    /// The objects of a kind that are chosen, `most` of them, in the namespace if the kind has them.
    ///
    /// # Errors
    /// The outer error ends the reconcile (no token); the inner one holds the API server's text as it is.
    pub(crate) async fn select(
        &self,
        account: &Account,
        served: &Served,
        namespace: &str,
        choice: &ObjectChoice,
        most: usize,
    ) -> Result<Result<Vec<Value>, SubmitFailure>, SubmitError> {
        let client = self.requests.of(account, served);
        let labels = match choice {
            ObjectChoice::Name(name) => {
                let key = ObjectKey::new(namespace, name);
                return match client.get(&key).await {
                    Ok(object) => Ok(Ok(object.into_iter().collect())),
                    Err(error) => Ok(Err(refused(&error.refusal(ToString::to_string)?))),
                };
            }
            ObjectChoice::Labels(labels) => labels,
        };
        match client
            .list_some(namespace, &selector_of(labels), most)
            .await
        {
            Ok(mut objects) => {
                // The items of a list do not say what they are.
                for object in &mut objects {
                    object["apiVersion"] = Value::from(served.kind.api_version.as_str());
                    object["kind"] = Value::from(served.kind.kind.as_str());
                }
                Ok(Ok(objects))
            }
            Err(error) => Ok(Err(refused(&error.refusal(unlistable)?))),
        }
    }
}

/// A label selector in the words of a request.
pub(crate) fn selector_of(
    labels: impl IntoIterator<Item = (impl Display, impl Display)>,
) -> String {
    let pairs = labels.into_iter();
    let pairs: Vec<String> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}
