//! Requests to the API server, with nothing around them: what tests use reads each answer as an object, which would take
//! CPU time from what is measured on the same machine.

use std::fmt::Display;

use anyhow::Context as _;
use http::{HeaderValue, Method, Request, header};
use serde::Serialize;
use serde_json::Value;
use test_support::ControlPlane;
use tokio::task::JoinSet;

use crate::layout::Key;
use crate::seen::Seen;

const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

/// A kind of object, and the paths of its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Kind {
    /// `apiVersion` of its objects.
    pub(crate) api: &'static str,
    plural: &'static str,
}

impl Kind {
    pub(crate) const fn new(api: &'static str, plural: &'static str) -> Self {
        Self { api, plural }
    }

    /// The path of all objects of the kind.
    pub(crate) fn everywhere(self) -> String {
        self.path("")
    }

    /// The path of a namespace's objects.
    pub(crate) fn within(self, namespace: &str) -> String {
        self.path(&format!("namespaces/{namespace}/"))
    }

    fn path(self, within: &str) -> String {
        let Self { api, plural } = self;
        let root = if api.contains('/') { "apis" } else { "api" };
        format!("/{root}/{api}/{within}{plural}")
    }

    /// The path of an object without a namespace.
    pub(crate) fn named(self, name: &str) -> String {
        format!("{}/{name}", self.everywhere())
    }

    /// The path of an object.
    pub(crate) fn at(self, key: &Key) -> String {
        format!("{}/{}", self.within(&key.namespace), key.name)
    }

    /// The path of an object's status.
    pub(crate) fn status_at(self, key: &Key) -> String {
        format!("{}/status", self.at(key))
    }
}

/// `apiVersion` of all of ours.
pub(crate) const CARTO: &str = "carto.run/v1alpha1";
pub(crate) const TEMPLATES: Kind = Kind::new(CARTO, "clustersourcetemplates");
/// The stamped kind.
pub(crate) const STEPS: Kind = Kind::new("bench.carto.run/v1", "steps");
pub(crate) const NAMESPACES: Kind = Kind::new("v1", "namespaces");
pub(crate) const CONFIG_MAPS: Kind = Kind::new("v1", "configmaps");
pub(crate) const ACCOUNTS: Kind = Kind::new("v1", "serviceaccounts");
pub(crate) const ROLE_BINDINGS: Kind = Kind::new("rbac.authorization.k8s.io/v1", "rolebindings");

/// A connection pool under one `User-Agent`.
#[derive(Clone)]
pub(crate) struct Api {
    /// What is underneath, for watches.
    pub(crate) client: kube::Client,
}

impl Api {
    /// Connects as administrator.
    pub(crate) fn connect(plane: &ControlPlane, user_agent: &'static str) -> anyhow::Result<Self> {
        let mut config = plane.config()?;
        let agent = HeaderValue::from_static(user_agent);
        config.headers.push((header::USER_AGENT, agent));
        let client = kube::Client::try_from(config)?;
        Ok(Self { client })
    }

    /// Works on all items, so many at a time, each in a task of its own. Ends at the first error.
    pub(crate) async fn each<T, W>(
        &self,
        concurrency: usize,
        items: impl IntoIterator<Item = T>,
        work: impl Fn(Self, T) -> W,
    ) -> anyhow::Result<()>
    where
        W: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let mut running = JoinSet::new();
        for item in items {
            if running.len() >= concurrency
                && let Some(ended) = running.join_next().await
            {
                ended??;
            }
            running.spawn(work(self.clone(), item));
        }
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        Ok(())
    }

    /// Creates an object in a collection, and returns its uid.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> anyhow::Result<String> {
        let text = self.send(Method::POST, path, "?fieldManager=bench", JSON, object);
        let created: Seen = serde_json::from_str(&text.await?).context("a created object")?;
        Ok(created.metadata.uid)
    }

    /// Applies an object, by force.
    pub(crate) async fn apply(&self, path: &str, object: &Value) -> anyhow::Result<()> {
        let query = "?fieldManager=bench&force=true";
        let sent = self.send(Method::PATCH, path, query, APPLY, object);
        sent.await.map(drop)
    }

    /// Merges a patch into an object.
    pub(crate) async fn merge(&self, path: &str, change: &Value) -> anyhow::Result<()> {
        let sent = self.send(Method::PATCH, path, "?fieldManager=bench", MERGE, change);
        sent.await.map(drop)
    }

    /// Deletes an object or all of a collection; what they own goes after them.
    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<()> {
        let query = "?propagationPolicy=Background";
        let sent = self.send(Method::DELETE, path, query, JSON, "");
        sent.await.map(drop)
    }

    /// Posts to somebody who answers with JSON.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let text = self.send(Method::POST, path, "", JSON, body).await?;
        serde_json::from_str(&text).with_context(|| path.to_owned())
    }

    /// Reads an object or a collection.
    pub(crate) async fn read(&self, path: &str) -> anyhow::Result<Value> {
        let text = self.send(Method::GET, path, "", JSON, "").await?;
        serde_json::from_str(&text).with_context(|| path.to_owned())
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        query: &str,
        content_type: &str,
        body: impl Display,
    ) -> anyhow::Result<String> {
        let what = format!("{method} {path}");
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}{query}"))
            .header(header::CONTENT_TYPE, content_type)
            .body(body.to_string().into_bytes())?;
        self.client.request_text(request).await.context(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api_server() {
        let key = Key::new("team-0", "app-1");
        let path = "/apis/bench.carto.run/v1/namespaces/team-0/steps/app-1";
        assert_eq!(STEPS.at(&key), path);
        assert_eq!(STEPS.status_at(&key), format!("{path}/status"));
        assert_eq!(NAMESPACES.named("x"), "/api/v1/namespaces/x");
    }
}
