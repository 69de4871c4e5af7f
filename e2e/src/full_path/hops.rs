//! How far a commit has come: the revision of the application at each place it passes.

use std::time::Duration;

use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::Value;
use test_support::{eventually, objects_in};

use super::{CONFIG_REPOSITORY, FullPath, NAME, TEST, WRITE};
use crate::example::NAMESPACE;

/// API version and kind.
pub type Kind = (&'static str, &'static str);

const WORKLOAD: Kind = ("carto.run/v1alpha1", "Workload");
const DELIVERABLE: Kind = ("carto.run/v1alpha1", "Deliverable");
const RUNNABLE: Kind = ("carto.run/v1alpha1", "Runnable");
const GIT_REPOSITORY: Kind = ("source.toolkit.fluxcd.io/v1", "GitRepository");
const KUSTOMIZATION: Kind = ("kustomize.toolkit.fluxcd.io/v1", "Kustomization");
const CONFIG_MAP: Kind = ("v1", "ConfigMap");
const DEPLOYMENT: Kind = ("apps/v1", "Deployment");

/// A place where a revision of the application can be seen, and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// The place.
    pub place: &'static str,
    /// The revision of the application, or what is there instead.
    pub revision: String,
}

impl FullPath<'_> {
    /// The revision of the application at each place, in the order in which a commit passes them.
    ///
    /// # Errors
    ///
    /// When the API server or git do not answer.
    pub async fn hops(&self) -> anyhow::Result<Vec<Hop>> {
        let manifests = self
            .text(CONFIG_MAP, "full-path-manifests", "/data/manifests")
            .await?;
        let written = self.stack.git.log(CONFIG_REPOSITORY)?;
        let newest = written.first().map_or("", |(_, subject)| subject);
        // What the delivery works with are revisions of the config repository; each commit there names the application's.
        let origin = |found: &str| {
            let commit = found.rsplit(':').next().unwrap_or_default();
            let mut commits = written.iter();
            let subject = commits
                .find(|(sha, _)| sha == commit)
                .map(|(_, subject)| subject);
            subject.map_or_else(|| found.to_owned(), |subject| revision_in(subject))
        };
        let hops = [
            (
                "GitRepository full-path",
                self.text(GIT_REPOSITORY, NAME, "/status/artifact/revision")
                    .await?,
            ),
            (
                "Runnable full-path-test",
                self.text(RUNNABLE, TEST, "/status/outputs/revision")
                    .await?,
            ),
            ("ConfigMap full-path-manifests", revision_in(&manifests)),
            ("the config repository", revision_in(newest)),
            (
                "GitRepository full-path-delivery",
                origin(
                    &self
                        .text(
                            GIT_REPOSITORY,
                            "full-path-delivery",
                            "/status/artifact/revision",
                        )
                        .await?,
                ),
            ),
            (
                "Kustomization full-path",
                origin(
                    &self
                        .text(KUSTOMIZATION, NAME, "/status/lastAppliedRevision")
                        .await?,
                ),
            ),
            (
                "ConfigMap full-path",
                self.text(CONFIG_MAP, NAME, "/data/revision").await?,
            ),
            ("Deployment full-path", self.deployed().await?),
            ("Pod of full-path", self.running().await?),
            (
                "ConfigMap full-path-delivered",
                origin(
                    &self
                        .text(CONFIG_MAP, "full-path-delivered", "/data/revision")
                        .await?,
                ),
            ),
        ];
        Ok(hops
            .into_iter()
            .map(|(place, revision)| Hop { place, revision })
            .collect())
    }

    /// Waits until the revision is at every hop, and everything says that it is ready.
    ///
    /// # Panics
    ///
    /// When that takes longer than `limit`; the message says what is behind.
    pub async fn arrives(&self, revision: &str, limit: Duration) {
        eventually(&format!("{revision} arrives"), limit, async || {
            let hops = self.hops().await?;
            let behind = hops.iter().find(|hop| hop.revision != revision);
            let conditions = self.conditions("Ready").await?;
            ensure!(behind.is_none(), "{behind:?}; {conditions:#?}");
            let mut all = conditions.iter();
            let unready = all.find(|(_, condition)| condition["status"] != "True");
            ensure!(unready.is_none(), "{unready:?}");
            anyhow::Ok(())
        })
        .await;
    }

    /// The conditions of this type of the objects that report on the path, by kind and name. Null where there is none, or none
    /// of the present generation.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub async fn conditions(&self, kind: &str) -> anyhow::Result<Vec<(String, Value)>> {
        let reporting = [
            (WORKLOAD, NAME),
            (RUNNABLE, TEST),
            (RUNNABLE, WRITE),
            (DELIVERABLE, NAME),
        ];
        let mut found = Vec::new();
        for (of, name) in reporting {
            let object = self.object(of, name).await?;
            let status = &object["status"];
            let current = object["metadata"]["generation"] == status["observedGeneration"];
            let all = status["conditions"].as_array().filter(|_| current);
            let condition = all
                .into_iter()
                .flatten()
                .find(|condition| condition["type"] == kind);
            let condition = condition.cloned().unwrap_or_default();
            found.push((format!("{} {name}", of.1), condition));
        }
        Ok(found)
    }

    /// The revisions of the application whose manifests were written, oldest first.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn written(&self) -> anyhow::Result<Vec<String>> {
        let log = self.stack.git.log(CONFIG_REPOSITORY)?;
        let ours = log.iter().filter(|(_, subject)| subject.starts_with(NAME));
        Ok(ours
            .rev()
            .map(|(_, subject)| revision_in(subject))
            .collect())
    }

    /// The manifests in the config repository, commit by commit, and the revision that each commit names.
    pub(super) fn written_manifests(&self) -> anyhow::Result<Vec<(String, String)>> {
        let git = &self.stack.git;
        let log = git.log(CONFIG_REPOSITORY)?;
        let ours = log.iter().filter(|(_, subject)| subject.starts_with(NAME));
        ours.map(|(sha, subject)| {
            let manifests = git.file(CONFIG_REPOSITORY, sha, "manifests.yaml")?;
            Ok((manifests, revision_in(subject)))
        })
        .collect()
    }

    /// The manifests as they are; empty before the first were written.
    pub(super) fn newest_manifests(&self) -> anyhow::Result<String> {
        let newest = self.written_manifests()?.into_iter().next();
        Ok(newest.map(|(manifests, _)| manifests).unwrap_or_default())
    }

    /// The runs of the developer's namespace.
    pub(super) fn runs_api(&self) -> Api<DynamicObject> {
        self.objects(self.runs)
    }

    /// Every object that the path makes is there once, and nothing else of these kinds but the runs that are kept.
    pub(super) async fn nothing_is_left(&self) -> anyhow::Result<()> {
        let expected: [(Kind, &[&str]); 7] = [
            (GIT_REPOSITORY, &["full-path", "full-path-delivery"]),
            (RUNNABLE, &[TEST, WRITE]),
            (KUSTOMIZATION, &[NAME]),
            (DEPLOYMENT, &[NAME]),
            (WORKLOAD, &[NAME]),
            (DELIVERABLE, &[NAME]),
            (
                CONFIG_MAP,
                &["full-path", "full-path-delivered", "full-path-manifests"],
            ),
        ];
        for (kind, names) in expected {
            let mut found = self.names(kind).await?;
            found.retain(|name| name.starts_with(NAME));
            ensure!(found == names, "{}: {found:?}", kind.1);
        }
        // Of each Runnable three that succeeded and three that failed: Flux removes old artifacts, and a test that comes
        // too late for its own fails.
        let kept = self.names(self.runs).await?;
        for runnable in [TEST, WRITE] {
            let own = kept.iter().filter(|name| name.starts_with(runnable));
            ensure!(own.count() <= 6, "runs that are kept: {kept:?}");
        }
        Ok(())
    }

    async fn names(&self, kind: Kind) -> anyhow::Result<Vec<String>> {
        let objects = self.objects(kind).list(&ListParams::default()).await?;
        let mut names: Vec<String> = objects
            .items
            .into_iter()
            .filter_map(|object| object.metadata.name)
            .collect();
        names.sort();
        Ok(names)
    }

    fn objects(&self, kind: Kind) -> Api<DynamicObject> {
        objects_in(&self.client, NAMESPACE, kind.0, kind.1)
    }

    /// An object in the developer's namespace; null when it is not there.
    pub(crate) async fn object(&self, kind: Kind, name: &str) -> anyhow::Result<Value> {
        Ok(serde_json::to_value(
            self.objects(kind).get_opt(name).await?,
        )?)
    }

    /// A text in an object; empty when the object or the text is not there.
    async fn text(&self, kind: Kind, name: &str, pointer: &str) -> anyhow::Result<String> {
        let object = self.object(kind, name).await?;
        let text = object.pointer(pointer).and_then(Value::as_str);
        Ok(text.unwrap_or_default().to_owned())
    }

    /// The revision that the Deployment runs with all its Pods.
    async fn deployed(&self) -> anyhow::Result<String> {
        let deployment = self.object(DEPLOYMENT, NAME).await?;
        let revision = deployment
            .pointer("/spec/template/metadata/annotations/example.com~1revision")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let (wanted, status) = (&deployment["spec"]["replicas"], &deployment["status"]);
        let all = |field: &str| {
            status[field].as_u64().unwrap_or_default() == wanted.as_u64().unwrap_or_default()
        };
        let rolled_out = status["observedGeneration"] == deployment["metadata"]["generation"]
            && ["replicas", "updatedReplicas", "availableReplicas"]
                .into_iter()
                .all(all);
        Ok(if rolled_out {
            revision.to_owned()
        } else {
            format!("{revision}, rolling out: {status}")
        })
    }

    /// The revision that all Pods of the application have in their environment; when there are none, that of the Deployment.
    async fn running(&self) -> anyhow::Result<String> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let ours = ListParams::default().labels("app.kubernetes.io/name=full-path");
        let mut found: Vec<String> = Vec::new();
        for pod in pods.list(&ours).await?.items {
            let pod = serde_json::to_value(pod)?;
            let value = pod
                .pointer("/spec/containers/0/env/0/value")
                .and_then(Value::as_str);
            let phase = pod
                .pointer("/status/phase")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let going = pod["metadata"]["deletionTimestamp"].is_string();
            if !going && phase != "Running" {
                found.push(format!("a Pod is {phase}"));
            } else if !going {
                found.push(value.unwrap_or_default().to_owned());
            }
        }
        found.dedup();
        if found.is_empty() {
            return self.deployed().await;
        }
        Ok(found.join(", "))
    }
}

/// The revision of the application that a text names: `main@sha1:` and 40 digits; the text itself when it names none.
fn revision_in(text: &str) -> String {
    const BRANCH: &str = "main@sha1:";
    let named = text
        .find(BRANCH)
        .and_then(|start| text.get(start..start + BRANCH.len() + 40));
    named.unwrap_or(text).to_owned()
}
