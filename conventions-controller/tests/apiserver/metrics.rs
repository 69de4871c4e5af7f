//! What the controller exports of its own is what `docs/metrics.md` says.

use std::collections::BTreeSet;

use serde_json::json;
use test_support::{DockerRegistry, TestImage};

use crate::stage::{applied, open_with_env, set, start, with_image};
use crate::webhook::{Does, Webhook};

/// The names in the section of this controller.
pub(crate) fn documented() -> BTreeSet<String> {
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
    // Those of presets are in the tests of these.
    let (of_presets, documented): (BTreeSet<_>, BTreeSet<_>) = documented()
        .into_iter()
        .partition(|name| name.starts_with("carto_preset"));
    assert_eq!(documented.len(), 4, "{documented:?}");
    assert_eq!(of_presets.len(), 4, "{of_presets:?}");
    for metric in documented {
        let series = stage.metric(&metric, &[]).await;
        let counted = stage.metric(&format!("{metric}_count"), &[]).await;
        assert!(series.or(counted).is_some_and(|sum| sum > 0.0), "{metric}");
    }
}

#[tokio::test]
async fn a_webhook_that_fails_and_a_tag_that_is_unknown_are_counted_as_such() {
    let registry = DockerRegistry::start().await.unwrap();
    let pushed = TestImage::new();
    registry.push("team/app", "1.0", &pushed).await.unwrap();
    let mut stage = set().await;
    let failing = Webhook::start(Does::Answers(500, "no".to_owned())).await;
    let of_failing = json!({"selectors": [{"matchLabels": {"app": "failing"}}]});
    stage
        .apply(&failing.convention("failing", of_failing, json!({})))
        .await;
    let fine = Webhook::start(Does::AddsEnv("A", "b")).await;
    let of_unknown = json!({"selectors": [{"matchLabels": {"app": "unknown"}}]});
    stage
        .apply(&fine.convention("fine", of_unknown, json!({})))
        .await;
    start(&mut stage, &[]);
    let host = registry.host();
    for (name, tag) in [("failing", "1.0"), ("unknown", "2.0")] {
        let image = format!("{host}/team/app:{tag}");
        let template = json!({"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "web", "image": image}]}});
        let intent = json!({
            "apiVersion": "conventions.carto.run/v1alpha1", "kind": "PodIntent",
            "metadata": {"name": name}, "spec": {"serviceAccountName": "sa", "template": template},
        });
        stage.apply(&intent.to_string()).await;
        stage.ready(name, "False", "ConventionsApplied").await;
    }
    let count = async |metric: &str, labels: &[&str]| stage.metric(metric, labels).await.unwrap();
    let calls = "carto_convention_calls_total";
    let of_failing = r#"convention="failing""#;
    assert!(count(calls, &[of_failing, r#"outcome="failed""#]).await >= 1.0);
    let answered = count(calls, &[of_failing, r#"outcome="answered""#]).await;
    assert!(answered < 0.5, "{answered}");
    let of_fine = count(calls, &[r#"convention="fine""#]).await;
    assert!(
        of_fine < 0.5,
        "without its image nobody is asked: {of_fine}"
    );
    let requests = "carto_registry_requests_total";
    let registry = format!(r#"registry="{host}""#);
    assert!(count(requests, &[&registry, r#"outcome="unknown""#]).await >= 1.0);
    assert!(count(requests, &[&registry, r#"outcome="answered""#]).await >= 2.0);
    let failed = count(requests, &[&registry, r#"outcome="failed""#]).await;
    assert!(failed < 0.5, "{failed}");
    let ended = [r#"kind="PodIntent""#, r#"outcome="user_error""#];
    assert!(count("carto_reconcile_total", &ended).await >= 2.0);
}
