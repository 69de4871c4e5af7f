//! examples/deliver-app on a [`Stack`] with a [`Delivery`](crate::Delivery): what a developer and a platform team do there.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::{Value, json};
use test_support::objects_in;

use crate::Stack;
use crate::example::{self, NAMESPACE, param};

const EXAMPLE: &str = "examples/deliver-app";

/// Name of the Deliverable.
pub const NAME: &str = "deliver-app";

/// The example with a repository of its own.
pub struct DeliverApp<'a> {
    stack: &'a Stack,
    repository: String,
}

impl<'a> DeliverApp<'a> {
    /// Creates an empty repository and applies what the platform team applies.
    ///
    /// # Errors
    ///
    /// When git or the API server refuse.
    pub async fn prepare(stack: &'a Stack) -> anyhow::Result<Self> {
        let repository = stack.git.create_repo(NAME)?;
        example::apply_platform(&stack.control_plane, EXAMPLE, |_| {}).await?;
        Ok(Self { stack, repository })
    }

    /// Applies what the developer applies, with this repository.
    ///
    /// The example's Deliverable is used as it is but for two things that this machine asks for: where the repository is,
    /// and that Flux looks every second.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub async fn hand_in(&self) -> anyhow::Result<()> {
        example::hand_in(&self.stack.control_plane, EXAMPLE, |deliverable| {
            deliverable["spec"]["source"]["git"]["url"] = json!(self.repository);
            deliverable["spec"]["params"] = json!([param("interval", "1s")]);
            Ok(())
        })
        .await
    }

    /// Commits files (path and content) and returns the revision that Flux gives the commit.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn commit(&self, files: &[(&str, &str)], message: &str) -> anyhow::Result<String> {
        let commit = self.stack.git.commit(NAME, files, message)?;
        Ok(format!("main@sha1:{commit}"))
    }

    /// The Deliverable.
    ///
    /// # Errors
    ///
    /// When the API server does not have it.
    pub async fn deliverable(&self) -> anyhow::Result<Value> {
        let client = self.stack.control_plane.client()?;
        let deliverables = objects_in(&client, NAMESPACE, "carto.run/v1alpha1", "Deliverable");
        Ok(serde_json::to_value(deliverables.get(NAME).await?)?)
    }

    /// A value of a ConfigMap in the developer's namespace, if it is there.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub async fn setting(&self, map: &str, key: &str) -> anyhow::Result<Option<String>> {
        let maps: Api<ConfigMap> = Api::namespaced(self.stack.control_plane.client()?, NAMESPACE);
        let found = maps.get_opt(map).await?;
        Ok(found
            .and_then(|map| map.data)
            .and_then(|mut data| data.remove(key)))
    }
}
