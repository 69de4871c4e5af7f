//! Pods: what their admission costs with many presets in their namespace, of which some are for
//! them. They are created for show (`dryRun`), one after the other, in turn with pods that the API
//! server asks nobody about.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use test_support::{PRESET_WEBHOOKS, Scratch, Usage, eventually, free_port};

use crate::api::{Api, Kind};
use crate::args::Args;
use crate::controller::Controller;
use crate::family::Measured;
use crate::latency::Latency;
use crate::layout::{TEAM, namespaces};
use crate::report::{report, say};
use crate::world::{LIMIT, World};

const PRESETS: Kind = Kind::new("settings.carto.run/v1alpha1", "podpresets");
const PODS: Kind = Kind::new("v1", "pods");
/// Presets that are for each pod.
const MATCHING: usize = 20;
/// Pods of either sort.
const TRIES: usize = 500;
const IN_FLIGHT: usize = 16;
const SECONDS: &str = "carto_preset_admission_duration_seconds";
/// Upper bounds of the buckets of that, in seconds.
const BOUNDS: [f64; 8] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0];
/// The API server itself leaves out pods with this.
const EXCLUDE: &str = "podpreset.admission.kubernetes.io/exclude";

/// What was measured of presets.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Presets {
    /// How many are in the namespace.
    pub(crate) total: usize,
    /// How many of them are for each pod.
    pub(crate) matching: usize,
    /// 99 of 100 answers took at most this long in the controller: the bound of a bucket.
    pub(crate) handler_p99_ms: f64,
    /// Pods that nobody is asked about, as a client sees it.
    pub(crate) without: Latency,
    /// Pods that get presets.
    pub(crate) with: Latency,
    /// What the controller used.
    pub(crate) usage: Usage,
}

/// Measures it on a control plane of its own; nothing if no presets are asked for, or no times.
pub(crate) async fn measure(args: &Args, measured: &Measured) -> anyhow::Result<Option<Presets>> {
    if args.presets == 0 || args.counts_only {
        return Ok(None);
    }
    say(&format!("\n{} presets", args.presets));
    let (cache, port) = (Scratch::new("carto-images-")?, free_port()?);
    let mut args = args.clone();
    args.more.extend([
        format!("--image-cache={}", cache.path().display()),
        "--webhook-secret=conventions-controller-webhook".to_owned(),
        "--webhook-service=localhost".to_owned(),
        format!("--port={port}"),
        "--pod-presets".to_owned(),
        format!("--preset-webhook-configuration={PRESET_WEBHOOKS}"),
    ]);
    let name = "presets".to_owned();
    let presets = World::within(&args, measured, name, async |world| {
        world.furnish(TEAM, 1).await?;
        write_presets(world).await?;
        let kubeconfig = world.install().await?;
        world.install_presets().await?;
        let mut controller = Controller::start(world, &kubeconfig).await?;
        world.register_presets(port).await?;
        let tried = try_pods(world, &mut controller).await;
        tried.with_context(|| controller.process.log_tail())
    });
    let presets = presets.await?;
    report("presets", &presets)?;
    Ok(Some(presets))
}

fn namespace() -> String {
    namespaces(TEAM, 1).remove(0)
}

async fn write_presets(world: &World) -> anyhow::Result<()> {
    let path = PRESETS.within(&namespace());
    let write = move |client: Api, number: usize| {
        let path = path.clone();
        async move { client.create(&path, &preset(number)).await.map(drop) }
    };
    let all = 0..world.args.presets;
    world.client.each(IN_FLIGHT, all, write).await
}

/// Those for the pods set a variable each, and mount a volume.
fn preset(number: usize) -> Value {
    let app = if number < MATCHING {
        "web".to_owned()
    } else {
        format!("app{number}")
    };
    json!({
        "apiVersion": PRESETS.api, "kind": "PodPreset",
        "metadata": {"name": format!("preset{number}")},
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "env": [{"name": format!("A{number}"), "value": "b"}],
            "volumes": [{"name": format!("v{number}"), "emptyDir": {}}],
            "volumeMounts": [{"name": format!("v{number}"), "mountPath": format!("/v{number}")}],
        },
    })
}

fn pod(excluded: bool) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "labels": {"app": "web"},
            "annotations": {EXCLUDE: excluded.to_string()}},
        "spec": {"serviceAccountName": "builder", "containers": [{"name": "web", "image": "web"}]},
    })
}

/// The pod as it would be stored, and how long that took.
async fn tried(world: &World, pod: &Value) -> anyhow::Result<(Value, Duration)> {
    let path = format!("{}?dryRun=All", PODS.within(&namespace()));
    let started = Instant::now();
    let stored = world.client.post(&path, pod).await?;
    Ok((stored, started.elapsed()))
}

fn variables(pod: &Value) -> usize {
    let env = pod["spec"]["containers"][0]["env"].as_array();
    env.map_or(0, Vec::len)
}

async fn try_pods(world: &World, controller: &mut Controller) -> anyhow::Result<Presets> {
    let (excluded, selected) = (pod(true), pod(false));
    let matching = MATCHING.min(world.args.presets);
    eventually("a pod gets its presets", LIMIT, async || {
        let (stored, _) = tried(world, &selected).await?;
        ensure!(variables(&stored) == matching, "{stored}");
        anyhow::Ok(())
    })
    .await;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..TRIES {
        without.push(tried(world, &excluded).await?.1);
        let (stored, took) = tried(world, &selected).await?;
        ensure!(variables(&stored) == matching, "{stored}");
        with.push(took);
    }
    Ok(Presets {
        total: world.args.presets,
        matching,
        handler_p99_ms: controller.quantile(SECONDS, &BOUNDS, 0.99).await? * 1000.0,
        without: Latency::of(&without).unwrap_or_default(),
        with: Latency::of(&with).unwrap_or_default(),
        usage: controller.process.usage()?,
    })
}
