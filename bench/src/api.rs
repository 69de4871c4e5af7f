//! Requests to the API server, with nothing around them.

use anyhow::Context as _;
use http::{HeaderValue, Method, Request, header};
use serde::Deserialize;
use serde_json::Value;
use test_support::ControlPlane;

use crate::layout::Key;
use crate::objects::STEP_GROUP;

/// Our field manager.
const MANAGER: &str = "bench";
const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

/// A kind of object, as part of a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    root: &'static str,
    plural: &'static str,
}

impl Kind {
    const fn new(root: &'static str, plural: &'static str) -> Self {
        Self { root, plural }
    }

    /// The path of all objects of the kind.
    pub(crate) fn everywhere(self) -> String {
        format!("{}/{}", self.root, self.plural)
    }

    /// The path of a namespace's objects.
    pub(crate) fn within(self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.root, self.plural)
    }

    /// The path of an object without a namespace.
    pub(crate) fn named(self, name: &str) -> String {
        format!("{}/{}/{name}", self.root, self.plural)
    }

    /// The path of an object.
    pub(crate) fn at(self, key: &Key) -> String {
        format!("{}/{}", self.within(&key.namespace), key.name)
    }
}

const CARTO: &str = "/apis/carto.run/v1alpha1";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// Workloads.
pub(crate) const WORKLOADS: Kind = Kind::new(CARTO, "workloads");
/// Deliverables.
pub(crate) const DELIVERABLES: Kind = Kind::new(CARTO, "deliverables");
/// Runnables.
pub(crate) const RUNNABLES: Kind = Kind::new(CARTO, "runnables");
/// Runnables that no controller serves.
pub(crate) const TWINS: Kind = Kind::new("/apis/twin.carto.run/v1alpha1", "runnables");
/// ClusterSupplyChains.
pub(crate) const SUPPLY_CHAINS: Kind = Kind::new(CARTO, "clustersupplychains");
/// ClusterDeliveries.
pub(crate) const DELIVERIES: Kind = Kind::new(CARTO, "clusterdeliveries");
/// ClusterRunTemplates.
pub(crate) const RUN_TEMPLATES: Kind = Kind::new(CARTO, "clusterruntemplates");
/// ClusterSourceTemplates.
pub(crate) const TEMPLATES: Kind = Kind::new(CARTO, "clustersourcetemplates");
/// The stamped kind.
pub(crate) const STEPS: Kind = Kind::new("/apis/bench.carto.run/v1", "steps");
/// Namespaces.
pub(crate) const NAMESPACES: Kind = Kind::new("/api/v1", "namespaces");
/// ConfigMaps.
pub(crate) const CONFIG_MAPS: Kind = Kind::new("/api/v1", "configmaps");
/// ServiceAccounts.
pub(crate) const ACCOUNTS: Kind = Kind::new("/api/v1", "serviceaccounts");
/// ClusterRoles.
pub(crate) const CLUSTER_ROLES: Kind = Kind::new(RBAC, "clusterroles");
/// RoleBindings.
pub(crate) const ROLE_BINDINGS: Kind = Kind::new(RBAC, "rolebindings");
/// CustomResourceDefinitions.
pub(crate) const DEFINITIONS: Kind =
    Kind::new("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions");

/// A connection pool under one `User-Agent`.
#[derive(Clone)]
pub(crate) struct Api {
    client: kube::Client,
}

impl Api {
    /// Connects as administrator.
    ///
    /// # Errors
    ///
    /// When the control plane's certificates cannot be read.
    pub(crate) fn connect(plane: &ControlPlane, user_agent: &'static str) -> anyhow::Result<Self> {
        let mut config = plane.config()?;
        config
            .headers
            .push((header::USER_AGENT, HeaderValue::from_static(user_agent)));
        Ok(Self {
            client: kube::Client::try_from(config)?,
        })
    }

    /// The client underneath, for watches.
    pub(crate) fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Creates an object and returns its uid.
    ///
    /// # Errors
    ///
    /// When the API server refuses or cannot be reached; so for all of these.
    pub(crate) async fn create(&self, collection: &str, object: &Value) -> anyhow::Result<String> {
        #[derive(Deserialize)]
        struct Created {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            uid: String,
        }
        let path = format!("{collection}?fieldManager={MANAGER}");
        let text = self
            .send(Method::POST, &path, JSON, object.to_string())
            .await?;
        let created: Created = serde_json::from_str(&text).context("a created object")?;
        Ok(created.metadata.uid)
    }

    /// Applies an object, by force.
    ///
    /// # Errors
    ///
    /// As [`Api::create`].
    pub(crate) async fn apply(&self, path: &str, object: &Value) -> anyhow::Result<()> {
        let path = format!("{path}?fieldManager={MANAGER}&force=true");
        self.send(Method::PATCH, &path, APPLY, object.to_string())
            .await?;
        Ok(())
    }

    /// Merges a patch into an object.
    ///
    /// # Errors
    ///
    /// As [`Api::create`].
    pub(crate) async fn merge(&self, path: &str, change: &Value) -> anyhow::Result<()> {
        let path = format!("{path}?fieldManager={MANAGER}");
        self.send(Method::PATCH, &path, MERGE, change.to_string())
            .await?;
        Ok(())
    }

    /// Deletes all objects of a collection; what they own goes after them.
    ///
    /// # Errors
    ///
    /// As [`Api::create`].
    pub(crate) async fn delete_all(&self, collection: &str) -> anyhow::Result<()> {
        let path = format!("{collection}?propagationPolicy=Background");
        self.send(Method::DELETE, &path, JSON, String::new())
            .await?;
        Ok(())
    }

    /// Deletes an object.
    ///
    /// # Errors
    ///
    /// As [`Api::create`].
    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<()> {
        // A single object is deleted as a collection is, and what it owns too.
        self.delete_all(path).await
    }

    /// Reads an object or a collection.
    ///
    /// # Errors
    ///
    /// As [`Api::create`].
    pub(crate) async fn read(&self, path: &str) -> anyhow::Result<Value> {
        let text = self.send(Method::GET, path, JSON, String::new()).await?;
        serde_json::from_str(&text).with_context(|| path.to_owned())
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: String,
    ) -> anyhow::Result<String> {
        let what = format!("{method} {path}");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content_type)
            .body(body.into_bytes())?;
        self.client.request_text(request).await.context(what)
    }
}

/// The path of a `status` subresource.
pub(crate) fn status_of(path: &str) -> String {
    format!("{path}/status")
}

/// Name of the definition of the stamped kind.
pub(crate) fn step_definition() -> String {
    format!("steps.{STEP_GROUP}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api_server() {
        let key = Key {
            namespace: "team-0".into(),
            name: "app-1".into(),
        };
        assert_eq!(
            WORKLOADS.at(&key),
            "/apis/carto.run/v1alpha1/namespaces/team-0/workloads/app-1"
        );
        assert_eq!(STEPS.everywhere(), "/apis/bench.carto.run/v1/steps");
        assert_eq!(NAMESPACES.named("x"), "/api/v1/namespaces/x");
        assert_eq!(status_of("/a/b"), "/a/b/status");
    }
}
