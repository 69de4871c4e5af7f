//! What the controller exports of its own is what `docs/metrics.md` says.

use std::collections::BTreeSet;

use serde_json::json;
use test_support::{DockerRegistry, TestImage};

use crate::stage::{applied, open_with_env, with_image};

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
    let (stage, _webhook) = open_with_env().await;
    let image = format!("{}/team/app:1.0", registry.host());
    stage.apply(&with_image(&image, &json!([]))).await;
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
