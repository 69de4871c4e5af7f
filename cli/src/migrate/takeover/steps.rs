//! The steps of a way. Each is done again without harm.

use anyhow::{Context as _, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{LOOK, Side, Way, say, scaled_now};

impl Way<'_> {
    pub(super) async fn scale(
        &self,
        deployment: &Deployment,
        replicas: i32,
        side: Side,
    ) -> anyhow::Result<()> {
        let now = scaled_now(deployment);
        let address = format!("{}/{}", now.namespace, now.name);
        if now.replicas == replicas {
            return say(&format!("Deployment {address} has {replicas} replicas"));
        }
        say(&format!(
            "Deployment {address} ({}): {} replicas become {replicas}",
            side.word(),
            now.replicas
        ))?;
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), &now.namespace);
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        api.patch_scale(&now.name, &PatchParams::default(), &patch)
            .await
            .with_context(|| format!("scale Deployment {address}"))?;
        Ok(())
    }

    /// A controller works until its last Pod is gone, whatever its Deployment says.
    pub(super) async fn until_gone(
        &self,
        deployment: &Deployment,
        side: Side,
    ) -> anyhow::Result<()> {
        let now = scaled_now(deployment);
        let address = format!("{}/{}", now.namespace, now.name);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &now.namespace);
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &now.namespace);
        let selected = ListParams::default().labels(&selector(deployment)?);
        let begun = Instant::now();
        loop {
            let there = deployments.get_opt(&now.name).await?;
            if there.as_ref().is_some_and(|it| scaled_now(it).replicas > 0) {
                bail!(
                    "somebody has scaled Deployment {address} up again\n  next: pause what manages it (`carto migrate plan` names it), and run this again"
                );
            }
            let left = pods.list_metadata(&selected).await?;
            let names: Vec<String> = left.items.iter().map(ResourceExt::name_any).collect();
            if names.is_empty() {
                return say(&format!("no Pod of Deployment {address} is left"));
            }
            if begun.elapsed() > self.limit {
                bail!(
                    "Pods of {} are still there: {}\n  next: see why they do not end (kubectl -n {} describe pod), and run this again; the other controller is not started before",
                    side.word(),
                    names.join(", "),
                    now.namespace
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(super) async fn until_ready(
        &self,
        deployment: &Deployment,
        side: Side,
    ) -> anyhow::Result<()> {
        let now = scaled_now(deployment);
        let address = format!("{}/{}", now.namespace, now.name);
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), &now.namespace);
        let begun = Instant::now();
        loop {
            let there = api
                .get(&now.name)
                .await
                .with_context(|| format!("read Deployment {address}"))?;
            let wanted = scaled_now(&there).replicas;
            let status = there.status.unwrap_or_default();
            let is_seen = status.observed_generation >= there.metadata.generation;
            let ready = status.ready_replicas.unwrap_or(0);
            if is_seen && wanted > 0 && ready >= wanted {
                return say(&format!("Deployment {address}: {ready} of {wanted} ready"));
            }
            if begun.elapsed() > self.limit {
                bail!(
                    "Deployment {address} ({}) is not ready: {ready} of {wanted}\n  next: see why (kubectl -n {} describe deployment {}), and run this again",
                    side.word(),
                    now.namespace,
                    now.name
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(super) async fn remove(&self, webhook: &Value) -> anyhow::Result<()> {
        let (kind, name) = kind_and_name(webhook)?;
        say(&format!("{kind} {name} is removed"))?;
        let removed = self
            .configurations(kind)
            .delete(name, &DeleteParams::default())
            .await;
        match removed {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error).with_context(|| format!("delete {kind} {name}")),
        }
    }

    pub(super) async fn put_back(&self, webhook: &Value) -> anyhow::Result<()> {
        let (kind, name) = kind_and_name(webhook)?;
        let object: DynamicObject = serde_json::from_value(webhook.clone())?;
        let made = self
            .configurations(kind)
            .create(&PostParams::default(), &object)
            .await;
        match made {
            Ok(_) => say(&format!("{kind} {name} is put back")),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                say(&format!("{kind} {name} is there"))
            }
            Err(error) => Err(error).with_context(|| format!("create {kind} {name}")),
        }
    }
}

/// What a file may have put back: nothing else is made from it.
fn kind_and_name(webhook: &Value) -> anyhow::Result<(&'static str, &str)> {
    let kind = match webhook["kind"].as_str() {
        Some("ValidatingWebhookConfiguration") => "ValidatingWebhookConfiguration",
        Some("MutatingWebhookConfiguration") => "MutatingWebhookConfiguration",
        other => bail!(
            "{} is no webhook configuration, and nothing else is put back",
            other.unwrap_or("an object without a kind")
        ),
    };
    let name = webhook["metadata"]["name"].as_str();
    Ok((kind, name.context("a webhook configuration has no name")?))
}

/// By what the Pods of a Deployment are found.
fn selector(deployment: &Deployment) -> anyhow::Result<String> {
    let labels = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.selector.match_labels.as_ref());
    let labels = labels
        .filter(|labels| !labels.is_empty())
        .with_context(|| {
            format!(
                "Deployment {} selects its Pods by no label",
                deployment.name_any()
            )
        })?;
    let labels: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    Ok(labels.join(","))
}
