//! examples/web-app, from the repository to the Deployment.

use anyhow::ensure;
use e2e::binaries::{CONVENTIONS_CONTROLLER, SUPPLY_CHAIN_CONTROLLER};
use e2e::{Stack, WebApp, web_app};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use test_support::eventually;

use crate::LIMIT;
use crate::rights::nothing_was_forbidden;

#[tokio::test]
async fn the_example_follows_commits_and_releases_under_exactly_the_rights_of_install_yaml() {
    let stack = Stack::start(|_| {}).await.unwrap();
    let (app, first) = WebApp::prepare(&stack).await.unwrap();
    app.hand_in().await.unwrap();

    await_revision(&app, &first).await;
    crate::carto::wait_until_ready(&stack.control_plane, web_app::NAMESPACE, web_app::NAME).await;

    let second = app.commit("Moin").unwrap();
    await_revision(&app, &second).await;
    await_settings(
        &stack,
        &format!("greeting: Hello\nname: web-app\nrevision: main@sha1:{second}\n"),
    )
    .await;

    let digest = app.release("1.1.0").unwrap();
    await_image(&app, &format!("{}:1.1.0@{digest}", app.image)).await;

    crate::carto::wait_until_ready(&stack.control_plane, web_app::NAMESPACE, web_app::NAME).await;
    nothing_was_forbidden(&stack.control_plane, SUPPLY_CHAIN_CONTROLLER);
    nothing_was_forbidden(&stack.control_plane, CONVENTIONS_CONTROLLER);
}

async fn await_revision(app: &WebApp<'_>, commit: &str) {
    eventually("the commit is in the Deployment", LIMIT, async || {
        let deployment = app.deployment().await?;
        let revision = deployment
            .as_ref()
            .map_or("no Deployment", web_app::revision);
        ensure!(
            revision == format!("main@sha1:{commit}"),
            "revision: {revision}"
        );
        anyhow::Ok(())
    })
    .await;
}

async fn await_image(app: &WebApp<'_>, image: &str) {
    eventually("the release is in the Deployment", LIMIT, async || {
        let deployment = app.deployment().await?;
        let found = deployment.as_ref().map_or("no Deployment", web_app::image);
        ensure!(found == image, "image: {found}");
        anyhow::Ok(())
    })
    .await;
}

/// Order of keys aside.
async fn await_settings(stack: &Stack, expected: &str) {
    let maps: Api<ConfigMap> =
        Api::namespaced(stack.control_plane.client().unwrap(), web_app::NAMESPACE);
    eventually("the commit is in the settings", LIMIT, async || {
        let map = maps.get("web-app-settings").await?;
        let settings = map
            .data
            .and_then(|mut data| data.remove("settings"))
            .unwrap_or_default();
        let mut lines: Vec<&str> = settings.lines().collect();
        lines.sort_unstable();
        ensure!(
            lines == expected.lines().collect::<Vec<_>>(),
            "settings: {settings}"
        );
        anyhow::Ok(())
    })
    .await;
}
