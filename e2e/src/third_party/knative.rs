//! Knative Serving: its controller, and in the place of its autoscaler, its ingress and a node a client that says what these
//! would.

use std::pin::pin;

use anyhow::Context;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use test_support::{ControlPlane, Process, Scratch, free_port, objects_in, yaml_files};

use super::{built, folder, let_watch};

/// Where it looks for its configuration.
const NAMESPACE: &str = "knative-serving";

/// The controller of Knative Serving, with the administrator's rights. Dropping it stops it, its kinds stay.
pub struct KnativeServing {
    process: Process,
    _home: Scratch,
}

impl KnativeServing {
    /// Installs its kinds and its configuration, lets our controllers watch its Services, and starts it.
    ///
    /// # Errors
    ///
    /// It is not built, or the API server refuses a manifest.
    pub async fn start(control_plane: &ControlPlane) -> anyhow::Result<Self> {
        let folder = folder()?;
        let crds = built(&folder, "knative-serving-crds")?;
        control_plane.install_crds(crds).await?;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        control_plane.apply_yaml(&namespace.to_string()).await?;
        for file in yaml_files(&built(&folder, "knative-serving-config")?)? {
            let objects = std::fs::read_to_string(&file)?;
            let applied = control_plane.apply_yaml(&objects).await;
            applied.with_context(|| file.display().to_string())?;
        }
        let_watch(control_plane, "knative").await?;
        let home = Scratch::new("carto-knative-")?;
        let (metrics, profiling) = (free_port()?, free_port()?);
        let process = Process::builder(built(&folder, "knative-serving-controller")?)
            .arg("-kubeconfig")
            .arg(control_plane.kubeconfig_path())
            .env("SYSTEM_NAMESPACE", NAMESPACE)
            .env("METRICS_DOMAIN", "knative.dev/serving")
            .env("METRICS_PROMETHEUS_PORT", metrics.to_string())
            .env("PROFILING_PORT", profiling.to_string())
            .env("CONFIG_LOGGING_NAME", "config-logging")
            .env("CONFIG_OBSERVABILITY_NAME", "config-observability")
            // It takes its part of the work from the number in this name.
            .env("POD_NAME", "controller-0")
            .start(home.path().join("controller.log"))?;
        Ok(Self {
            process,
            _home: home,
        })
    }

    /// Says of each revision's scale and of each route in a namespace that it is as it is wanted, as the autoscaler and an
    /// ingress say it. Returns only when the API server refuses, or the controller ends.
    ///
    /// # Errors
    ///
    /// These two.
    pub async fn serves(&mut self, client: Client, namespace: &str) -> anyhow::Result<()> {
        tokio::select! {
            ended = self.process.early_end() => anyhow::bail!(ended),
            refused = all_is_well(client, namespace) => refused,
        }
    }
}

async fn all_is_well(client: Client, namespace: &str) -> anyhow::Result<()> {
    let kinds = [
        ("autoscaling.internal.knative.dev/v1alpha1", "PodAutoscaler"),
        ("networking.internal.knative.dev/v1alpha1", "Ingress"),
    ];
    let changes = kinds.map(|(api_version, kind)| {
        let api = objects_in(&client, namespace, api_version, kind);
        let changes = watcher(api.clone(), watcher::Config::default());
        let changes = changes.default_backoff().applied_objects();
        changes
            .map_ok(move |object| (api.clone(), kind, object))
            .boxed()
    });
    let mut changes = pin!(stream::select_all(changes));
    while let Some((api, kind, object)) = changes.try_next().await? {
        let generation = object.metadata.generation;
        if object.data["status"]["observedGeneration"] == json!(generation) {
            continue;
        }
        let mut status = match kind {
            "Ingress" => routed(),
            _ => scaled(&object),
        };
        status["observedGeneration"] = json!(generation);
        let name = object.metadata.name.clone().unwrap_or_default();
        let patch = Patch::Merge(json!({"status": status}));
        match api
            .patch_status(&name, &PatchParams::default(), &patch)
            .await
        {
            // Its Service went meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// What the autoscaler says of a revision whose one Pod answers.
fn scaled(object: &DynamicObject) -> Value {
    let name = object.metadata.name.clone().unwrap_or_default();
    json!({
        "serviceName": name, "metricsServiceName": format!("{name}-private"),
        "desiredScale": 1, "actualScale": 1,
        "conditions": are_true(["Active", "Ready", "SKSReady", "ScaleTargetInitialized"]),
    })
}

/// What an ingress says of a route that it has taken over.
fn routed() -> Value {
    let gateway = json!({"ingress": [{"domainInternal": "gateway.ingress.svc.cluster.local"}]});
    json!({
        "publicLoadBalancer": gateway, "privateLoadBalancer": gateway,
        "conditions": are_true(["LoadBalancerReady", "NetworkConfigured", "Ready"]),
    })
}

fn are_true<const N: usize>(types: [&str; N]) -> Value {
    types
        .iter()
        .map(|it| json!({"type": it, "status": "True"}))
        .collect()
}
