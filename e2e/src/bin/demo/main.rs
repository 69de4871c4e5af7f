//! `make demo`: the whole product on this machine, told step by step.
//!
//! Real API server, real Flux, a real repository and a real image; the controllers run as their own processes with the rights
//! of deploy/install.yaml and no more. With a node, for which it needs root, Jobs and Pods run, too. Everything ends with this
//! process, whatever ends it.

mod full_path;
mod story;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use cli::args::Connection;
use cli::cluster::Cluster;
use cli::follow::{Change, Follower};
use cli::target::Target;
use cli::tree::Tree;
use e2e::path_stack::PathStack;
use e2e::{Stack, WebApp, binaries, web_app};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, DynamicObject};
use kube::runtime::wait::await_condition;
use story::Story;
use test_support::objects_in;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

/// How long anything may take before the demo gives up; it takes a few seconds.
const LIMIT: Duration = Duration::from_mins(2);
const FLUX: &str = "source.toolkit.fluxcd.io/v1";

fn main() -> ExitCode {
    let keep = std::env::args()
        .skip(1)
        .any(|argument| argument == "--keep");
    let story = Story::begin();
    match run(&story, keep) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            story.line(&format!("the demo failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(story: &Story, keep: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate())?;
        // Dropping the demo stops every process it started.
        tokio::select! {
            result = demo(story, keep) => return result,
            _ = tokio::signal::ctrl_c() => {}
            _ = terminated.recv() => {}
        }
        story.line("stopped, everything is cleaned up");
        Ok(())
    })
}

async fn demo(story: &Story, keep: bool) -> anyhow::Result<()> {
    story.chapter("A cluster on this machine, from real parts");
    let stack = Stack::start(|part| story.line(&format!("starting {part}"))).await?;

    story.chapter("The platform team applies the blueprint, once: examples/web-app/platform");
    let (app, commit) = WebApp::prepare(&stack).await?;
    story.line("ClusterSupplyChain web-app: source, image -> config -> pod -> deploy");

    story.chapter("A developer submits one small object: examples/web-app/developer");
    story.line(&format!(
        "repository {} at commit {}",
        app.repository,
        short(&commit)
    ));
    story.line(&format!("image      {}, version 1.0.0", app.image));
    app.hand_in().await?;
    let handed_in = Instant::now();
    let tree = ready_tree(story, &stack).await?;
    story.line(&format!(
        "ready {} after the Workload was submitted",
        seconds(handed_in.elapsed())
    ));

    story.chapter("carto tree -n dev workload/web-app");
    story.tree(&tree);

    story.chapter("The developer commits a change");
    show_commit(story, &stack, &app).await?;

    story.chapter("A new version of the image is released");
    show_release(story, &stack, &app).await?;

    // Kept while the rest is shown, or two control planes would run for nothing.
    let stack = keep.then_some(stack);
    let second = full_path::show(story).await?;
    let shown = Shown {
        pods: second.is_some(),
    };
    let second = second.filter(|_| keep);
    if let Some(stack) = stack {
        look_around(story, &stack, second.as_ref())?;
        shown.tell(story, "KEEP=1 is on: try the commands above");
        story.chapter("Ctrl-C here stops everything and cleans up");
        std::future::pending::<()>().await;
    }
    shown.tell(
        story,
        "KEEP=1 make demo leaves all of it running; then: carto tree -n dev --watch web-app",
    );
    Ok(())
}

/// What the demo has come through, every step of which it waited for.
struct Shown {
    /// Whether there was a node, so that Jobs and Pods ran.
    pods: bool,
}

impl Shown {
    /// The end: what was seen, what to try, where to read on.
    fn tell(&self, story: &Story, command: &str) {
        let seen = if self.pods {
            "a commit and a release carried to a Deployment, a commit to a running Pod, and none that failed its test"
        } else {
            "a commit and a release, each carried to the Deployment without a hand (no Pods: there is no node)"
        };
        story.chapter("That was all");
        story.plain(&format!("  you saw   {seen}"));
        story.plain(&format!("  try       {command}"));
        story.plain("  read on   README.md, \"Try it on a cluster\": the same with your own repository and image");
    }
}

/// Tells each step as it becomes ready, and returns the tree when all are.
async fn ready_tree(story: &Story, stack: &Stack) -> anyhow::Result<Box<Tree>> {
    let connection = Connection {
        kubeconfig: Some(stack.control_plane.kubeconfig_path().to_path_buf()),
        namespace: Some(web_app::NAMESPACE.into()),
        ..Connection::default()
    };
    let cluster = Cluster::connect(&connection).await?;
    let target: Target = web_app::NAME.parse()?;
    let mut follower = Follower::new(&cluster, &target);
    let mut last = None;
    let follow = async {
        loop {
            let Change::Tree(tree) = follower.next().await? else {
                bail!("the Workload was deleted")
            };
            story.new_steps(&tree);
            if tree.ready {
                return Ok(tree);
            }
            last = Some(tree);
        }
    };
    if let Ok(tree) = tokio::time::timeout(LIMIT, follow).await {
        return tree;
    }
    if let Some(tree) = &last {
        story.tree(tree);
    }
    bail!(
        "the Workload is not ready after {LIMIT:?}; the end of the controller's log:\n{}",
        stack.controller.process.log_tail()
    )
}

async fn show_commit(story: &Story, stack: &Stack, app: &WebApp<'_>) -> anyhow::Result<()> {
    let client = stack.control_plane.client()?;
    let sources = objects_in(&client, web_app::NAMESPACE, FLUX, "GitRepository");
    let commit = app.commit("Moin")?;
    let committed = Instant::now();
    story.line(&format!("commit {}", short(&commit)));
    let fetched = wait(sources, |source: &DynamicObject| {
        artifact(source).ends_with(&commit)
    });
    let deployed = wait(deployments(&client), |deployment: &Deployment| {
        web_app::revision(deployment).ends_with(&commit)
    });
    let (fetched, deployed) = tokio::try_join!(fetched, deployed)?;
    tell(
        story,
        committed,
        fetched,
        deployed,
        &format!("is of revision {}", short(&commit)),
    );
    Ok(())
}

async fn show_release(story: &Story, stack: &Stack, app: &WebApp<'_>) -> anyhow::Result<()> {
    let client = stack.control_plane.client()?;
    let images = objects_in(&client, web_app::NAMESPACE, FLUX, "OCIRepository");
    let digest = app.release("1.1.0")?;
    let released = Instant::now();
    story.line(&format!(
        "{}:1.1.0, digest {}",
        app.image,
        short(digest.trim_start_matches("sha256:"))
    ));
    let fetched = wait(images, |image: &DynamicObject| {
        artifact(image).ends_with(&digest)
    });
    let deployed = wait(deployments(&client), |deployment: &Deployment| {
        web_app::image(deployment).ends_with(&digest)
    });
    let (fetched, deployed) = tokio::try_join!(fetched, deployed)?;
    tell(story, released, fetched, deployed, "has it, by its digest");
    Ok(())
}

/// The moment from which on an object is as awaited.
async fn wait<K>(api: Api<K>, arrived: impl Fn(&K) -> bool) -> anyhow::Result<Instant>
where
    K: Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + kube::Resource + 'static,
{
    let condition = await_condition(api, web_app::NAME, |object: Option<&K>| {
        object.is_some_and(&arrived)
    });
    tokio::time::timeout(LIMIT, condition)
        .await
        .context("waited too long")??;
    Ok(Instant::now())
}

fn tell(story: &Story, start: Instant, fetched: Instant, deployed: Instant, what: &str) {
    story.line(&format!(
        "Flux, which looks every second, found it after {}",
        seconds(fetched - start)
    ));
    let chain = deployed.saturating_duration_since(fetched);
    story.line(&format!(
        "the Deployment {what}, {} ms later: {} in all",
        chain.as_millis(),
        seconds(deployed - start)
    ));
}

/// How to look at what keeps running: the first half, and the second one if there was a node for it.
fn look_around(story: &Story, stack: &Stack, second: Option<&PathStack>) -> anyhow::Result<()> {
    story.chapter("Everything keeps running. In another terminal:");
    let kubectl = test_support::assets()?.binary("kubectl")?;
    story.plain(&format!(
        "  export KUBECONFIG={}",
        stack.control_plane.kubeconfig_path().display()
    ));
    story.plain(&format!(
        "  export PATH=\"{}:{}:$PATH\"",
        parent(&kubectl),
        parent(&binaries::carto()?)
    ));
    story.plain("  carto tree -n dev --watch web-app");
    story.plain(
        "  kubectl get -n dev workloads,gitrepositories,ocirepositories,configmaps,podintents,deployments",
    );
    story.plain("  kubectl edit -n dev workload web-app");
    if let Some(second) = second {
        story.chapter("And the cluster with a node, in a third one:");
        let kubeconfig = second.control_plane.kubeconfig_path();
        story.plain(&format!("  export KUBECONFIG={}", kubeconfig.display()));
        story.plain(&format!(
            "  export PATH=\"{}:{}:$PATH\"",
            parent(&kubectl),
            parent(&binaries::carto()?)
        ));
        story.plain("  carto tree -n dev full-path");
        story.plain("  kubectl get -n dev runnables,jobs,pods");
    }
    Ok(())
}

fn parent(file: &std::path::Path) -> String {
    file.parent()
        .map(|folder| folder.display().to_string())
        .unwrap_or_default()
}

fn deployments(client: &kube::Client) -> Api<Deployment> {
    Api::namespaced(client.clone(), web_app::NAMESPACE)
}

/// The revision of what Flux holds.
fn artifact(source: &DynamicObject) -> &str {
    source.data["status"]["artifact"]["revision"]
        .as_str()
        .unwrap_or_default()
}

fn short(hash: &str) -> &str {
    hash.get(..8).unwrap_or(hash)
}

fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}
