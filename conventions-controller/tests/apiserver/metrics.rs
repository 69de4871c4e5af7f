//! What the controller exports of its own is what `docs/metrics.md` says.

use std::collections::BTreeSet;

use serde_json::json;
use test_support::{DockerRegistry, TestImage};

use crate::stage::{applied, set, start};
use crate::webhook::{Does, Webhook};

/// The names in the section of this controller.
fn documented() -> BTreeSet<String> {
    let page = include_str!("../../../docs/metrics.md");
    let section = page
        .split("\n## ")
        .find(|it| it.starts_with("conventions-controller\n"));
    let rows = section.unwrap().lines();
    let names = rows.filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn what_is_exported_beside_what_all_export_is_documented_and_true() {
    let registry = DockerRegistry::start().await.unwrap();
    registry
        .push("team/app", "1.0", &TestImage::new())
        .await
        .unwrap();
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    stage
        .apply(&webhook.convention("add-env", json!({}), json!({})))
        .await;
    start(&mut stage, &[]);
    let image = format!("{}/team/app:1.0", registry.host());
    let intent = json!({
        "apiVersion": "conventions.carto.run/v1alpha1", "kind": "PodIntent", "metadata": {"name": "app"},
        "spec": {"serviceAccountName": "sa", "template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
    });
    stage.apply(&intent.to_string()).await;
    applied(&stage, "app").await;
    for (metric, labels) in [
        (
            "carto_convention_calls_total",
            &[r#"convention="add-env""#, r#"outcome="answered""#][..],
        ),
        (
            "carto_convention_call_duration_seconds_count",
            &[r#"convention="add-env""#],
        ),
        ("carto_owners", &[r#"kind="PodIntent""#, r#"ready="True""#]),
    ] {
        assert_eq!(stage.metric(metric, labels).await, Some(1.0), "{metric}");
    }
    let documented = documented();
    assert_eq!(documented.len(), 4, "{documented:?}");
    for metric in documented {
        let series = stage.metric(&metric, &[]).await;
        let counted = stage.metric(&format!("{metric}_count"), &[]).await;
        assert!(series.or(counted).is_some_and(|sum| sum > 0.0), "{metric}");
    }
}
