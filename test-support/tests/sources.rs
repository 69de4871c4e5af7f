//! Real Flux reads from our git server and registry.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use test_support::{
    ControlPlane, FluxSourceController, GitServer, OciRegistry, eventually, objects_in,
};

const LIMIT: Duration = Duration::from_mins(3);

/// The revision of the artifact, once Flux says that the source is Ready at this revision.
async fn await_revision(
    control_plane: &ControlPlane,
    kind: &str,
    name: &str,
    part: &str,
) -> anyhow::Result<Value> {
    let client = control_plane.client()?;
    let api = objects_in(&client, "default", "source.toolkit.fluxcd.io/v1", kind);
    let status = eventually(
        &format!("{kind} {name} is Ready at {part}"),
        LIMIT,
        async || {
            let status = api.get_status(name).await?.data["status"].take();
            let ready = status["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|c| c["type"] == "Ready" && c["status"] == "True");
            let revision = status["artifact"]["revision"].as_str().unwrap_or_default();
            ensure!(ready && revision.contains(part), "{status:#}");
            anyhow::Ok(Some(status))
        },
    )
    .await;
    Ok(status["artifact"].clone())
}

#[tokio::test]
async fn flux_follows_a_git_repository_commit_by_commit() -> anyhow::Result<()> {
    let control_plane = ControlPlane::start().await?;
    let _flux = FluxSourceController::start(&control_plane).await?;
    let git = GitServer::start()?;
    let url = git.create_repo("app")?;
    let first = git.commit("app", &[("main.go", "package main")], "first")?;
    control_plane
        .apply_yaml(&format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: app}}\n\
             spec: {{url: '{url}', interval: 1s, ref: {{branch: main}}}}\n"
        ))
        .await?;
    let artifact = await_revision(&control_plane, "GitRepository", "app", &first).await?;
    let address = artifact["url"].as_str().context("url")?;
    assert!(address.starts_with("http://127.0.0.1:"), "{address}");

    let second = git.commit("app", &[("main.go", "package app")], "second")?;
    let later = await_revision(&control_plane, "GitRepository", "app", &second).await?;
    assert_ne!(artifact["digest"], later["digest"]);
    Ok(())
}

#[tokio::test]
async fn flux_pulls_an_image_from_the_registry() -> anyhow::Result<()> {
    let control_plane = ControlPlane::start().await?;
    let _flux = FluxSourceController::start(&control_plane).await?;
    let registry = OciRegistry::start().await?;
    let digest = registry.push_image("team/config", "v1", &[("deploy/a.yaml", "a: 1")])?;
    control_plane
        .apply_yaml(&format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {{name: config}}\n\
             spec: {{url: 'oci://{}/team/config', interval: 1m, insecure: true, ref: {{tag: v1}}}}\n",
            registry.host()
        ))
        .await?;
    await_revision(&control_plane, "OCIRepository", "config", &digest).await?;
    Ok(())
}
