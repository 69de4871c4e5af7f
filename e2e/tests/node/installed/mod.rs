//! The charts, installed unchanged: controllers are Pods with the shipped rights, images and probes, and what an operator does
//! with them in a year is done here in minutes. One installation serves all: its parts are told apart by what they print.

mod cluster;
mod enriched;
mod operations;
mod parts;
mod policies;
mod tekton_runs;
mod upgrades;

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use e2e::binaries::CONVENTIONS_CONTROLLER;
use e2e::full_path::{FullPath, PASSING_TEST, WITH_PODS};
use e2e::path_stack::{CONTROLLERS, PathStack};
use e2e::stack::forbidden_requests;
use e2e::{AdmissionLoad, NodeRegistry, Release, pods};
use serde_json::{Value, json};
use test_support::CONTROLLERS_NAMESPACE;

/// A commit passes two Jobs, and the machine is busy.
const LIMIT: Duration = Duration::from_mins(3);

/// What is said to helm: kinds and parts that are there only if asked for.
fn values() -> Value {
    json!({
        "watchedKinds": {"tekton": true},
        "conventions-controller": {"podPresets": {"enabled": true}},
    })
}

/// Everything that is installed, and the example that goes on through all of it.
struct Installed<'a> {
    stack: &'a PathStack,
    release: &'a Release,
    registry: &'a NodeRegistry,
    path: &'a FullPath<'a>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_helm_installs_works_and_outlives_what_an_operator_does() -> anyhow::Result<()> {
    let begun = Instant::now();
    let (stack, release, registry) = PathStack::start_installed(values(), |part| {
        println!("{:>4} s  {part}", begun.elapsed().as_secs());
    })
    .await?;
    let done = go_on(&stack, &release, &registry, begun).await;
    if done.is_err() {
        let node = stack.node().context("there is a node")?;
        for namespace in [CONTROLLERS_NAMESPACE, "dev"] {
            println!(
                "{}",
                pods::tell(&stack.control_plane, node, namespace).await?
            );
        }
    }
    done
}

#[expect(
    clippy::print_stderr,
    reason = "a test of many minutes says where it is"
)]
async fn go_on(
    stack: &PathStack,
    release: &Release,
    registry: &NodeRegistry,
    begun: Instant,
) -> anyhow::Result<()> {
    let step = |name: &str| eprintln!("{:>4} s  {name}", begun.elapsed().as_secs());
    step("webhooks answer through the Service");
    cluster::every_replica_is_ready(stack).await?;
    let load = AdmissionLoad::begin(&stack.control_plane)?;
    step("a commit ends as a running Pod");
    let (path, first) = FullPath::hand_in(stack, WITH_PODS).await?;
    path.arrives(&first, LIMIT).await;
    let installed = Installed {
        stack,
        release,
        registry,
        path: &path,
    };
    step("conventions and presets enrich Pods");
    enriched::pods_get_presets(&installed).await?;
    enriched::pods_get_conventions(&installed).await?;
    step("Tekton runs are stamped");
    tekton_runs::are_stamped(&installed).await?;
    step("nothing was refused to our controllers");
    for controller in CONTROLLERS.iter().chain([&CONVENTIONS_CONTROLLER]) {
        let refused = forbidden_requests(&stack.control_plane, controller)?;
        ensure!(refused.is_empty(), "{controller} may not: {refused:#?}");
    }
    load.end()?;
    step("NetworkPolicies allow what is connected");
    policies::allow_what_is_connected(&installed).await?;
    step("the node is drained");
    operations::the_node_is_drained(&installed).await?;
    step("certificates are rotated");
    operations::certificates_are_rotated(&installed).await?;
    step("the release is upgraded and rolled back under load");
    upgrades::lose_nothing(&installed).await?;
    step("shards, replicas that share and a webhook of its own take over");
    parts::take_over_from_one(&installed).await?;
    step("the release is uninstalled");
    upgrades::an_uninstall_leaves_what_users_made(&installed).await?;
    step("done");
    Ok(())
}

impl Installed<'_> {
    /// Another commit, which must arrive.
    async fn a_commit_arrives(&self, greeting: &str) -> anyhow::Result<()> {
        let revision = self.path.commit(greeting, PASSING_TEST)?;
        self.path.arrives(&revision, LIMIT).await;
        Ok(())
    }
}
