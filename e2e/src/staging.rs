//! examples/staging-delivery on a [`PathStack`] without a node: what a developer and a platform team do there, and the end of
//! Jobs that nobody runs.

use anyhow::Context;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use test_support::objects_in;

use crate::example::{self, NAMESPACE, param};
use crate::path_stack::PathStack;

const EXAMPLE: &str = "examples/staging-delivery";
/// When Jobs began and ended; nothing looks at it.
const THEN: &str = "2026-01-01T00:00:00Z";

/// Name of the Deliverable, and of the repository.
pub const NAME: &str = "staging-delivery";

/// The example with a repository of its own.
pub struct StagingDelivery<'a> {
    stack: &'a PathStack,
}

impl<'a> StagingDelivery<'a> {
    /// Creates an empty repository and applies what the platform team applies.
    ///
    /// # Errors
    ///
    /// When git or the API server refuse.
    pub async fn prepare(stack: &'a PathStack) -> anyhow::Result<Self> {
        stack.git.create_repo(NAME)?;
        example::apply_platform(&stack.control_plane, EXAMPLE, |_| {}).await?;
        Ok(Self { stack })
    }

    /// Applies what the developer applies, with this repository, its only branch, and a Flux that looks every second.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub async fn hand_in(&self) -> anyhow::Result<()> {
        example::hand_in(&self.stack.control_plane, EXAMPLE, |deliverable| {
            let git = &mut deliverable["spec"]["source"]["git"];
            git["url"] = json!(self.stack.git_url(NAME));
            git["ref"]["branch"] = json!("main");
            deliverable["spec"]["params"] = json!([param("interval", "1s")]);
            Ok(())
        })
        .await
    }

    /// Commits a greeting, which is all there is to deploy, and returns the revision that Flux gives the commit.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn commit(&self, greeting: &str) -> anyhow::Result<String> {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "greeting"}, "data": {"text": greeting}});
        let files = [
            ("kustomization.yaml", "resources: [greeting.yaml]\n"),
            ("greeting.yaml", &map.to_string()),
        ];
        let message = format!("Say {greeting}");
        let commit = self.stack.git.commit(NAME, &files, &message)?;
        Ok(format!("main@sha1:{commit}"))
    }

    /// An object in the developer's namespace.
    ///
    /// # Errors
    ///
    /// When the API server does not have it.
    pub async fn object(&self, api_version: &str, kind: &str, name: &str) -> anyhow::Result<Value> {
        let client = self.stack.control_plane.client()?;
        let objects = objects_in(&client, NAMESPACE, api_version, kind);
        Ok(serde_json::to_value(objects.get(name).await?)?)
    }

    /// The Deliverable.
    ///
    /// # Errors
    ///
    /// When the API server does not have it.
    pub async fn deliverable(&self) -> anyhow::Result<Value> {
        self.object("carto.run/v1alpha1", "Deliverable", NAME).await
    }

    /// The greeting that is deployed, if there is one.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub async fn greeting(&self) -> anyhow::Result<Option<String>> {
        let maps: Api<ConfigMap> = Api::namespaced(self.stack.control_plane.client()?, NAMESPACE);
        let found = maps.get_opt("greeting").await?;
        Ok(found
            .and_then(|map| map.data)
            .and_then(|mut data| data.remove("text")))
    }

    /// The Jobs of a Runnable by the revisions they were given, oldest first: name and revision.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub async fn jobs(&self, runnable: &str) -> anyhow::Result<Vec<(String, String)>> {
        let of_runnable =
            kube::api::ListParams::default().labels(&format!("carto.run/runnable-name={runnable}"));
        let mut found = self.job_api()?.list(&of_runnable).await?.items;
        found.sort_by_key(|job| {
            let number = job
                .metadata
                .annotations
                .as_ref()
                .and_then(|all| all.get("carto.run/submission"));
            number.and_then(|number| number.parse::<u64>().ok())
        });
        found.iter().map(name_and_revision).collect()
    }

    /// Says of a Job what the Job controller says once its Pod has ended.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub async fn end_job(&self, name: &str, succeeds: bool) -> anyhow::Result<()> {
        let condition =
            |type_: &str| json!({"type": type_, "status": "True", "lastTransitionTime": THEN});
        let status = if succeeds {
            json!({"startTime": THEN, "completionTime": THEN, "succeeded": 1,
                "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]})
        } else {
            json!({"startTime": THEN, "failed": 1,
                "conditions": [condition("FailureTarget"), condition("Failed")]})
        };
        let patch = Patch::Merge(json!({"status": status}));
        self.job_api()?
            .patch_status(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    fn job_api(&self) -> anyhow::Result<Api<Job>> {
        Ok(Api::namespaced(
            self.stack.control_plane.client()?,
            NAMESPACE,
        ))
    }
}

fn name_and_revision(job: &Job) -> anyhow::Result<(String, String)> {
    let job = serde_json::to_value(job)?;
    let variables = job["spec"]["template"]["spec"]["containers"][0]["env"].as_array();
    let revision = variables
        .into_iter()
        .flatten()
        .find(|variable| variable["name"] == "SOURCE_REVISION" || variable["name"] == "REVISION");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Ok((
        text(&job["metadata"]["name"]).context("no name")?,
        revision
            .and_then(|variable| text(&variable["value"]))
            .context("no revision")?,
    ))
}
