//! The two ways: from the Go controller to carto, and back. Each step looks first, says what it does, and can be done again.

mod steps;

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::install::{Choice, is_of_group, is_old, is_ours};
use super::state::{Record, Scaled, remember};

/// Where the charts write down how many replicas there are to be.
const WANTED: &str = "carto.run/wanted-replicas";
/// More were written by mistake.
const MOST: i32 = 100;

/// How often it is looked again.
const LOOK: Duration = Duration::from_millis(500);

/// One way, and how long each of its steps may take.
pub(super) struct Way<'w> {
    pub(super) client: &'w Client,
    pub(super) choice: &'w Choice,
    pub(super) limit: Duration,
    pub(super) record: Record,
}

/// Which controllers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    Ours,
}

impl Side {
    fn word(self) -> &'static str {
        match self {
            Self::Old => "the Go controller",
            Self::Ours => "carto",
        }
    }

    /// How many replicas its own manifests have.
    fn usual(self) -> i32 {
        match self {
            Self::Old => 1,
            Self::Ours => 2,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Old => Self::Ours,
            Self::Ours => Self::Old,
        }
    }
}

impl Way<'_> {
    /// From the Go controller to carto; `asked` replicas of each controller, or as many as it is to have.
    ///
    /// # Errors
    /// What was in the way; run again, it goes on from there.
    pub(super) async fn forth(mut self, asked: Option<i32>) -> anyhow::Result<()> {
        self.stop(Side::Old).await?;
        self.start(Side::Ours, asked).await?;
        say(&format!(
            "carto has taken over. The way back: carto migrate rollback --state {}",
            self.record.path().display()
        ))
    }

    /// And back.
    ///
    /// # Errors
    /// The same.
    pub(super) async fn back(mut self) -> anyhow::Result<()> {
        if !self.record.is_begun {
            bail!(
                "{} is not there, so that nothing says what the Go controller was like\n  next: name the file that `carto migrate apply` wrote, or go back by hand as docs/migrate.md says",
                self.record.path().display()
            );
        }
        self.stop(Side::Ours).await?;
        self.start(Side::Old, None).await?;
        say(
            "the Go controller is back. docs/migrate.md says what it makes of the objects that carto wrote",
        )
    }

    /// Scales a side down, waits until its Pods are gone, and removes its webhooks: nobody serves them any more, and they
    /// would refuse every change of a blueprint. What it was like is written down before anything is changed.
    async fn stop(&mut self, side: Side) -> anyhow::Result<()> {
        let deployments = self.deployments(side).await?;
        let webhooks = self.webhooks(side).await?;
        let state = &mut self.record.state;
        let (scaled, saved) = match side {
            Side::Old => (&mut state.old, &mut state.old_webhooks),
            Side::Ours => (&mut state.ours, &mut state.our_webhooks),
        };
        remember(scaled, deployments.iter().map(scaled_now));
        for webhook in &webhooks {
            saved.retain(|it| !is_same(it, webhook));
            saved.push(as_made(webhook));
        }
        self.record.save()?;
        say(&format!(
            "what is there is written to {}",
            self.record.path().display()
        ))?;
        for deployment in &deployments {
            self.scale(deployment, 0, side).await?;
        }
        for deployment in &deployments {
            self.until_gone(deployment, side).await?;
        }
        for webhook in &webhooks {
            self.remove(webhook).await?;
        }
        Ok(())
    }

    /// Puts the webhooks of a side back, scales it up, and waits until it is ready.
    async fn start(&self, side: Side, asked: Option<i32>) -> anyhow::Result<()> {
        let state = &self.record.state;
        let (scaled, saved) = match side {
            Side::Old => (&state.old, &state.old_webhooks),
            Side::Ours => (&state.ours, &state.our_webhooks),
        };
        for webhook in saved {
            self.put_back(webhook).await?;
        }
        let deployments = self.deployments(side).await?;
        if deployments.is_empty() {
            bail!(
                "there is no Deployment of {}, and {} is stopped: nothing is realized\n  next: install it as docs/migrate.md says, and run this again",
                side.word(),
                side.other().word()
            );
        }
        for deployment in &deployments {
            let now = scaled_now(deployment);
            let before = scaled
                .iter()
                .find(|it| it.namespace == now.namespace && it.name == now.name);
            if now.replicas == 0 {
                let before = before.map(|it| it.replicas).filter(|it| *it > 0);
                let replicas = asked.or(before).or_else(|| wanted(deployment));
                let replicas = replicas.unwrap_or_else(|| side.usual());
                self.scale(deployment, replicas, side).await?;
            }
        }
        for deployment in &deployments {
            self.until_ready(deployment, side).await?;
        }
        Ok(())
    }

    async fn deployments(&self, side: Side) -> anyhow::Result<Vec<Deployment>> {
        let api: Api<Deployment> = Api::all(self.client.clone());
        let mut found = api
            .list(&ListParams::default())
            .await
            .context("list deployments")?
            .items;
        found.retain(|it| match side {
            Side::Old => is_old(it, self.choice),
            Side::Ours => is_ours(it, self.choice),
        });
        Ok(found)
    }

    /// The webhook configurations for our group that are served from the namespace of a side.
    async fn webhooks(&self, side: Side) -> anyhow::Result<Vec<Value>> {
        let namespaces = match side {
            Side::Old => self.choice.old_namespaces(&self.record.state.old),
            Side::Ours => vec![self.choice.ours.clone()],
        };
        let mut found = Vec::new();
        for kind in [
            "ValidatingWebhookConfiguration",
            "MutatingWebhookConfiguration",
        ] {
            let listed = self.configurations(kind).list(&ListParams::default()).await;
            for item in listed.with_context(|| format!("list {kind}s"))? {
                let mut object = serde_json::to_value(item)?;
                object["apiVersion"] = json!("admissionregistration.k8s.io/v1");
                object["kind"] = json!(kind);
                if is_of_group(&object["webhooks"], &namespaces) {
                    found.push(object);
                }
            }
        }
        Ok(found)
    }

    fn configurations(&self, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    one["kind"] == other["kind"] && one["metadata"]["name"] == other["metadata"]["name"]
}

/// An object without what the API server has put into it.
fn as_made(object: &Value) -> Value {
    let mut made = object.clone();
    if let Some(metadata) = made["metadata"].as_object_mut() {
        metadata.retain(|key, _| ["name", "labels", "annotations"].contains(&key.as_str()));
    }
    made
}

fn scaled_now(deployment: &Deployment) -> Scaled {
    let spec = deployment.spec.as_ref();
    Scaled {
        namespace: deployment.namespace().unwrap_or_default(),
        name: deployment.name_any(),
        replicas: spec.and_then(|spec| spec.replicas).unwrap_or(1),
    }
}

/// How many replicas the chart was told to make, if it has written that down.
fn wanted(deployment: &Deployment) -> Option<i32> {
    let written = deployment.annotations().get(WANTED)?;
    written.parse().ok().filter(|it| (1..=MOST).contains(it))
}

fn say(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", crate::tree::plain(text))?;
    stdout.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_counts_if_it_is_a_number_of_replicas() {
        let wanted_of = |annotations: Value| {
            let deployment = json!({"metadata": {"annotations": annotations}});
            wanted(&serde_json::from_value(deployment).unwrap())
        };
        assert_eq!(wanted_of(json!({WANTED: "3"})), Some(3));
        assert_eq!(wanted_of(json!({})), None);
        for wrong in ["", "0", "-1", "two", "101", "3.5", "99999999999"] {
            assert_eq!(wanted_of(json!({WANTED: wrong})), None, "{wrong}");
        }
    }
}
