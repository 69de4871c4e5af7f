//! What templates of PodIntents get from presets.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use test_support::stage::{NOTHING, PATIENCE, condition};
use test_support::{all_objects, eventually};

use super::stage::{MARKER, Pods, open, open_with, pod, preset, set_pods};
use crate::stage::{applied, env, fails, receipts, set, start};

const KIND: &str = "PodPreset";

/// A PodIntent with this label on its template, and this value of a variable of its own.
fn intent(name: &str, label: &str, own: Option<&str>) -> String {
    let own = own.map(|value| json!([{"name": "A", "value": value}]));
    json!({
        "apiVersion": "conventions.carto.run/v1alpha1", "kind": "PodIntent", "metadata": {"name": name},
        "spec": {"serviceAccountName": "sa", "template": {
            "metadata": {"labels": {"a": label}},
            "spec": {"containers": [{"name": "web", "env": own.unwrap_or_else(|| json!([]))}]}}},
    })
    .to_string()
}

fn sets(value: &str) -> Value {
    json!({"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A", "value": value}]})
}

/// Templates get presets from now on.
async fn apply_presets(pods: &Pods) {
    let convention = json!({
        "apiVersion": "conventions.carto.run/v1alpha1", "kind": "ClusterPodConvention",
        "metadata": {"name": "presets"}, "spec": {"podPresets": {}},
    });
    pods.apply(&convention.to_string()).await;
}

async fn until(pods: &Pods, intent: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    pods.until(intent, what, |intent| is_so(intent)).await
}

fn marker(intent: &Value, preset: &str) -> Value {
    let annotations = &intent["status"]["template"]["metadata"]["annotations"];
    annotations[format!("{MARKER}{preset}")].clone()
}

#[tokio::test]
async fn a_template_gets_what_a_pod_of_it_would_get_and_its_pod_nothing_more() {
    let pods = open().await;
    apply_presets(&pods).await;
    pods.preset("env", sets("1")).await;
    let known = pods.until_marked("env", &pod("a", json!({"a": "b"}))).await;
    // Its author cannot say which version it has.
    let mut forged: Value = serde_json::from_str(&intent("app", "b", None)).unwrap();
    forged["spec"]["template"]["metadata"]["annotations"] = json!({format!("{MARKER}env"): "999"});
    pods.apply(&forged.to_string()).await;
    let app = until(&pods, "app", "the template has the preset", |it| {
        env(it) == ["A=1"]
    })
    .await;
    assert_eq!(receipts(&app), "presets/podpreset-env");
    assert_eq!(marker(&app, "env").as_str(), known.marker("env").as_deref());

    let template = &app["status"]["template"];
    let mut of_template = pod("of-template", json!({}));
    of_template["metadata"]["labels"] = template["metadata"]["labels"].clone();
    of_template["metadata"]["annotations"] = template["metadata"]["annotations"].clone();
    of_template["spec"]["containers"] = template["spec"]["containers"].clone();
    of_template["spec"]["containers"][0]["image"] = json!("web");
    let created = pods.create_pod(of_template.clone()).await.pod;
    let annotations = &created["metadata"]["annotations"];
    assert_eq!(annotations, &of_template["metadata"]["annotations"]);
    let variables = &created["spec"]["containers"][0]["env"];
    assert_eq!(variables, &json!([{"name": "A", "value": "1"}]));
}

#[tokio::test]
async fn a_preset_that_changes_makes_another_template_of_those_it_selects_and_of_no_other() {
    let mut pods = open_with(&["--mutable-presets"]).await;
    apply_presets(&pods).await;
    pods.preset("env", sets("1")).await;
    pods.apply(&intent("app", "b", None)).await;
    pods.apply(&intent("other", "c", None)).await;
    until(&pods, "app", "it has the preset", |it| env(it) == ["A=1"]).await;
    applied(&pods, "other").await;
    pods.idle().await;
    let other = pods.owner("other").await;
    let before = pods.place_in_the_log();
    pods.preset("env", sets("2")).await;
    until(&pods, "app", "it has the new one", |it| env(it) == ["A=2"]).await;
    pods.idle().await;
    assert_eq!(pods.runs_since(before, "other"), []);
    // Counts of pods are written, which is no other preset.
    pods.create_pod(pod("a", json!({"a": "b"}))).await;
    let counted = |preset: &Value| preset["status"]["matched"] == 1;
    eventually("the pod is counted", PATIENCE, async || {
        let preset = pods.get("settings.carto.run/v1alpha1", KIND, "env").await;
        preset
            .as_ref()
            .is_some_and(counted)
            .then_some(())
            .ok_or(preset)
    })
    .await;
    let seen = pods.owner("app").await;
    assert_eq!(pods.traffic_of_reconciles("app", 3).await, NOTHING);
    pods.kill_controller();
    pods.start_by(None, &["--mutable-presets"]).await;
    pods.reconcile("app").await;
    pods.idle().await;
    assert_eq!(pods.owner("app").await["status"], seen["status"]);
    assert_eq!(pods.owner("other").await["status"], other["status"]);
    let presets = pods.api("settings.carto.run/v1alpha1", KIND);
    presets
        .delete("env", &DeleteParams::default())
        .await
        .unwrap();
    until(&pods, "app", "it has none", |it| env(it).is_empty()).await;
}

#[tokio::test]
async fn a_template_that_conflicts_is_as_it_was_and_says_so_and_is_refused_only_if_a_preset_says_so()
 {
    let pods = open_with(&["--mutable-presets"]).await;
    apply_presets(&pods).await;
    pods.preset("env", sets("1")).await;
    pods.until_marked("env", &pod("a", json!({"a": "b"}))).await;
    pods.apply(&intent("app", "b", Some("own"))).await;
    let message = "PodPreset env: Conflict on pod preset. Duplicate env A.";
    let app = until(&pods, "app", "the conflict is told", |it| {
        it["status"]["conventions"][0]["error"] == message
    })
    .await;
    assert_eq!(env(&app), ["A=own"]);
    assert_eq!(receipts(&app), "");
    assert_eq!(condition(&app["status"], "Ready")["status"], "True");
    let told = format!("convention presets: {message}");
    eventually("an event tells it", PATIENCE, async || {
        let events = pods.events().await;
        { events.iter() }
            .any(|it| it.contains(&told))
            .then_some(())
            .ok_or(events)
    })
    .await;
    let mut denies = sets("1");
    denies["conflictPolicy"] = json!("Deny");
    pods.preset("env", denies).await;
    let message = format!("failed to apply convention with name presets: {message}");
    let app = fails(&pods, "app", "ConventionsApplied", &message).await;
    assert_eq!(env(&app), ["A=own"], "the last good one stays");
}

#[tokio::test]
async fn presets_of_the_cluster_follow_the_labels_of_the_namespace() {
    let pods = open().await;
    apply_presets(&pods).await;
    let mut spec = sets("1");
    spec["namespaceSelector"] = json!({"matchLabels": {"team": pods.namespace}});
    let of_cluster = preset("ClusterPodPreset", &pods.namespace, spec);
    pods.apply(&of_cluster.to_string()).await;
    pods.apply(&intent("app", "b", None)).await;
    applied(&pods, "app").await;
    assert_eq!(env(&pods.owner("app").await), NOTHING);
    let label = |value: Value| json!({"metadata": {"labels": {"team": value}}});
    let namespace = pods.namespace.clone();
    let namespaces = all_objects(&pods.client, "v1", "Namespace");
    for (value, expected) in [(json!(namespace), vec!["A=1"]), (Value::Null, vec![])] {
        let patch = Patch::Merge(label(value));
        let params = PatchParams::default();
        namespaces.patch(&namespace, &params, &patch).await.unwrap();
        until(&pods, "app", "it has what is for it", |it| {
            env(it) == expected
        })
        .await;
    }
}

#[tokio::test]
async fn where_presets_are_not_served_a_convention_that_applies_them_says_so() {
    let mut pods = set_pods(set().await);
    start(&mut pods, &[]);
    apply_presets(&pods).await;
    pods.apply(&intent("app", "b", None)).await;
    let message = "failed to apply convention with name presets: it applies pod presets, and the \
                   controller runs without --pod-presets";
    fails(&pods, "app", "ConventionsApplied", message).await;
    pods.kill_controller();
    pods.start_by(None, &[]).await;
    applied(&pods, "app").await;
}

#[tokio::test]
async fn a_convention_asks_a_webhook_or_applies_presets() {
    let pods = open().await;
    let refused = |spec: Value| {
        let convention = json!({
            "apiVersion": "conventions.carto.run/v1alpha1", "kind": "ClusterPodConvention",
            "metadata": {"name": "both"}, "spec": spec,
        });
        let all = all_objects(
            &pods.client,
            "conventions.carto.run/v1alpha1",
            "ClusterPodConvention",
        );
        async move {
            let convention = serde_json::from_value(convention).unwrap();
            let created = all.create(&PostParams::default(), &convention).await;
            created.unwrap_err().to_string()
        }
    };
    let webhook = json!({"clientConfig": {"url": "https://hook"}});
    let said = refused(json!({"webhook": webhook, "podPresets": {}})).await;
    let expected = "only one of webhook and podPresets may be there";
    assert!(said.contains(expected), "{said}");
}
