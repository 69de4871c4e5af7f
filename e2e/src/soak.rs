//! Our controllers, installed on a node, work for a long time: a commit a second in the repositories of many Workloads.
//! Afterwards each commit has arrived, no log has an error, and no controller needs more and more memory.

mod slope;
mod told;
mod watched;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use test_support::{as_yaml, eventually, objects_in};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::example::NAMESPACE;
use crate::manifests::documents;
use crate::path_stack::PathStack;

pub use slope::{Slope, slope};
use told::{complaints, sample, tokens};
use watched::Arrivals;

const SOURCE: &str = "examples/web-app/platform/source-template.yaml";
/// What is allowed, in MiB per hour.
const MOST: f64 = 1.0;
/// Memory is looked at so often.
const LOOK: Duration = Duration::from_secs(5);
/// How long the last commits may take.
const LIMIT: Duration = Duration::from_mins(3);

/// How long, and with how many Workloads.
#[derive(Debug, Clone, Copy)]
pub struct Soak {
    /// Commits arrive for so long.
    pub length: Duration,
    /// What comes first does not count for memory: caches fill.
    pub warm_up: Duration,
    /// Workloads, each with a repository.
    pub owners: usize,
}

/// What was seen.
#[derive(Debug)]
pub struct Report {
    /// Commits that were made.
    pub commits: usize,
    /// Those that never reached the cluster, by Workload and revision.
    pub lost: Vec<String>,
    /// Lines of controllers' logs that tell an error.
    pub errors: Vec<String>,
    /// How often containers of controllers were started again.
    pub restarts: i32,
    /// Requests for tokens of service accounts that were granted: an account has one for each 20 minutes and replica that
    /// works, and more where they were renewed.
    pub tokens_issued: f64,
    /// And those that were not.
    pub tokens_refused: f64,
    /// Memory of each controller's Pod, in MiB, and how it grows, in MiB per hour.
    pub memory: BTreeMap<String, Slope>,
}

impl Report {
    /// Whether everything is as it should be.
    ///
    /// # Errors
    ///
    /// What is not. Memory grows too fast when the slope is above what is allowed by more than its own uncertainty: a short
    /// soak proves less, and does not fail for that.
    pub fn judge(&self) -> anyhow::Result<()> {
        ensure!(self.lost.is_empty(), "lost: {:#?}", self.lost);
        ensure!(self.errors.is_empty(), "logged: {:#?}", self.errors);
        ensure!(self.restarts == 0, "{} restarts", self.restarts);
        let (issued, refused) = (self.tokens_issued, self.tokens_refused);
        ensure!(
            issued > 0.0,
            "no token was asked for, and objects were stamped"
        );
        ensure!(refused <= 0.0, "{refused} requests for tokens were refused");
        ensure!(!self.memory.is_empty(), "no memory was seen");
        for (pod, slope) in &self.memory {
            let least = slope.per_hour - 2.0 * slope.deviation;
            ensure!(
                least <= MOST,
                "{pod} grows by more than {MOST} MiB/h: {slope:?}"
            );
        }
        Ok(())
    }
}

impl Soak {
    /// Lets commits arrive, one a second, and looks meanwhile.
    ///
    /// # Errors
    ///
    /// When git or the API server refuse.
    pub async fn run(self, stack: &PathStack) -> anyhow::Result<Report> {
        self.hand_in(stack).await?;
        let arrivals = Arrivals::watch(&stack.control_plane.client()?);
        let mut made = Vec::new();
        let mut samples = BTreeMap::new();
        let begun = Instant::now();
        let mut looked = begun;
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while begun.elapsed() < self.length {
            ticks.tick().await;
            made.push(self.commit(stack, made.len()).await?);
            if begun.elapsed() > self.warm_up && looked.elapsed() > LOOK {
                looked = Instant::now();
                sample(stack, begun, &mut samples).await?;
            }
        }
        let last = made.get(made.len().saturating_sub(self.owners)..);
        let last = last.unwrap_or_default();
        eventually("the last commits arrive", LIMIT, async || {
            let missing = arrivals.missing(last);
            ensure!(missing.is_empty(), "{missing:?}");
            anyhow::Ok(())
        })
        .await;
        let (errors, restarts) = complaints(stack).await?;
        let (tokens_issued, tokens_refused) = tokens(stack).await?;
        Ok(Report {
            commits: made.len(),
            lost: arrivals.missing(&made),
            errors,
            restarts,
            tokens_issued,
            tokens_refused,
            memory: samples
                .into_iter()
                .filter_map(|(pod, samples)| Some((pod, slope(&samples)?)))
                .collect(),
        })
    }

    async fn hand_in(self, stack: &PathStack) -> anyhow::Result<()> {
        let control_plane = &stack.control_plane;
        let platform = format!("{}\n---{CHAIN}", as_yaml(&documents(SOURCE)?));
        control_plane.apply_yaml(&platform).await?;
        control_plane.apply_yaml(&rights()).await?;
        for number in 0..self.owners {
            let name = name(number);
            stack.git.create_repo(&name)?;
            stack.git.commit(&name, &[("number", "first")], "Begin")?;
            let workload = json!({
                "apiVersion": "carto.run/v1alpha1", "kind": "Workload",
                "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"type": "soaked"}},
                "spec": {
                    "serviceAccountName": "soaked",
                    // Flux is told of each commit.
                    "params": [{"name": "interval", "value": "10h"}],
                    "source": {"git": {"url": stack.git_url(&name), "ref": {"branch": "main"}}},
                },
            });
            control_plane.apply_yaml(&workload.to_string()).await?;
        }
        Ok(())
    }

    /// A commit for one of the Workloads, of which Flux is told as a receiver of webhooks would tell it.
    async fn commit(self, stack: &PathStack, number: usize) -> anyhow::Result<(String, String)> {
        let name = name(number % self.owners);
        let content = number.to_string();
        let commit = stack.git.commit(&name, &[("number", &content)], &content)?;
        let client = stack.control_plane.client()?;
        let sources = objects_in(
            &client,
            NAMESPACE,
            "source.toolkit.fluxcd.io/v1",
            "GitRepository",
        );
        let told =
            json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": content}}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&told));
        match sources.patch(&name, &params, &patch).await {
            // Stamped in a moment: then it is new, and is looked at anyway.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other?),
        }
        Ok((name, format!("main@sha1:{commit}")))
    }
}

fn name(number: usize) -> String {
    format!("soaked-{number}")
}

const CHAIN: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: soaked}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$, labels: {soaked: 'true'}}
    data: {revision: $(source.revision)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: soaked}
spec:
  selector: {type: soaked}
  resources:
  - name: source
    templateRef: {kind: ClusterSourceTemplate, name: git-source}
  - name: record
    templateRef: {kind: ClusterTemplate, name: soaked}
    sources: [{name: source, resource: source}]
";

fn rights() -> String {
    format!(
        r#"
apiVersion: v1
kind: Namespace
metadata: {{name: {NAMESPACE}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: soaked, namespace: {NAMESPACE}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: soaked, namespace: {NAMESPACE}}}
rules:
- apiGroups: [source.toolkit.fluxcd.io]
  resources: [gitrepositories]
  verbs: [get, list, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, create, patch, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: soaked, namespace: {NAMESPACE}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: soaked}}
subjects: [{{kind: ServiceAccount, name: soaked, namespace: {NAMESPACE}}}]
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_that_is_certain_is_refused_and_noise_is_not() {
        let report = |per_hour, deviation| Report {
            commits: 1,
            lost: Vec::new(),
            errors: Vec::new(),
            restarts: 0,
            tokens_issued: 1.0,
            tokens_refused: 0.0,
            memory: BTreeMap::from([(
                "a".to_owned(),
                Slope {
                    per_hour,
                    deviation,
                    mean: 30.0,
                    samples: 100,
                },
            )]),
        };
        assert!(report(3.0, 0.5).judge().is_err());
        assert!(report(3.0, 1.5).judge().is_ok());
        assert!(report(0.9, 0.01).judge().is_ok());
    }
}
