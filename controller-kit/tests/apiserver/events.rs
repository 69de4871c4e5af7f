use std::sync::Arc;

use controller_kit::events::{EventRecorder, EventSettings, InvolvedObject};
use controller_kit::metrics::Metrics;
use controller_kit::shutdown::Tasks;
use k8s_openapi::api::core::v1::{Event, Namespace};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use test_support::{eventually, shared_control_plane};

use crate::stage::{PATIENCE, clock};

struct Scene {
    recorder: EventRecorder,
    metrics: Arc<Metrics>,
    tasks: Tasks,
}

fn scene(client: &kube::Client) -> Scene {
    let (metrics, tasks) = (Arc::new(Metrics::new()), Tasks::new());
    // However slow the API server is, what is recorded is sent.
    let settings = EventSettings {
        flush: PATIENCE,
        ..EventSettings::default()
    };
    let recorder = EventRecorder::start(client, &settings, clock(), metrics.clone(), &tasks);
    Scene {
        recorder,
        metrics,
        tasks,
    }
}

fn involved(namespace: &str, name: &str) -> InvolvedObject {
    InvolvedObject {
        api_version: "carto.run/v1alpha1".into(),
        kind: if namespace.is_empty() {
            "ClusterSupplyChain"
        } else {
            "Workload"
        }
        .into(),
        namespace: namespace.into(),
        name: name.into(),
        uid: format!("uid-{namespace}-{name}"),
    }
}

async fn events_of(client: &kube::Client, namespace: &str, name: &str) -> Vec<Event> {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    events
        .list(&ListParams::default().fields(&format!("involvedObject.name={name}")))
        .await
        .unwrap()
        .items
}

#[tokio::test]
async fn repeated_events_are_one_with_a_count_and_belong_to_their_object() {
    let plane = shared_control_plane().await.unwrap();
    let client = plane.client().unwrap();
    let namespace = plane.create_namespace("events").await.unwrap();
    let scene = scene(&client);
    for _ in 0..3 {
        scene.recorder.record(
            involved(&namespace, "app"),
            false,
            "StampedObjectApplied",
            "Created object [tests.test.run/app]",
        );
    }
    scene.recorder.record(
        involved(&namespace, "app"),
        true,
        "ResourceFailed",
        "[fetch] failed",
    );
    let events = eventually("both events", PATIENCE, async || {
        let mut events = events_of(&client, &namespace, "app").await;
        events.sort_by_key(|event| event.reason.clone());
        (events.len() == 2 && events[1].count == Some(3)).then_some(events)
    })
    .await;
    let applied = &events[1];
    assert_eq!(
        applied.message.as_deref(),
        Some("Created object [tests.test.run/app]")
    );
    assert_eq!(
        applied.source.as_ref().unwrap().component.as_deref(),
        Some("Workload")
    );
    assert_eq!(
        (applied.type_.as_deref(), events[0].type_.as_deref()),
        (Some("Normal"), Some("Warning"))
    );
    assert_eq!(
        applied.involved_object.uid.as_deref(),
        Some(&*format!("uid-{namespace}-app"))
    );
    scene.tasks.token().cancel();
    scene.tasks.join(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn events_of_cluster_scoped_objects_are_in_the_default_namespace() {
    let plane = shared_control_plane().await.unwrap();
    let client = plane.client().unwrap();
    let scene = scene(&client);
    let name = plane.create_namespace("chain").await.unwrap();
    scene.recorder.record(
        involved("", &name),
        true,
        "BlueprintProblem",
        "unknown input",
    );
    // What waits at shutdown is still sent.
    scene.tasks.token().cancel();
    scene.tasks.join(PATIENCE * 2).await.unwrap();
    let events = events_of(&client, "default", &name).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].involved_object.namespace, None);
}

#[tokio::test]
async fn a_namespace_that_goes_away_takes_its_events_with_it() {
    let plane = shared_control_plane().await.unwrap();
    let client = plane.client().unwrap();
    let namespace = plane.create_namespace("going").await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    // No controller manager runs here, so the namespace stays in this state.
    namespaces
        .delete(&namespace, &DeleteParams::default())
        .await
        .unwrap();
    let scene = scene(&client);
    scene.recorder.record(
        involved(&namespace, "app"),
        false,
        "StampedObjectApplied",
        "m",
    );
    eventually("the event is given up", PATIENCE, async || {
        String::from_utf8(scene.metrics.render())
            .unwrap()
            .contains("carto_events_total{outcome=\"failed\"} 1")
    })
    .await;
}

/// A backlog is sent at fifty a second.
const BACKLOG: usize = 1000;

#[tokio::test]
async fn a_warning_waits_no_two_seconds_for_the_backlog_of_another_namespace() {
    let plane = shared_control_plane().await.unwrap();
    let client = plane.client().unwrap();
    let crowd = plane.create_namespace("crowd").await.unwrap();
    let guests = plane.create_namespace("guests").await.unwrap();
    let (metrics, tasks) = (Arc::new(Metrics::new()), Tasks::new());
    // The rest of the backlog tells nothing.
    let settings = EventSettings {
        flush: std::time::Duration::ZERO,
        ..EventSettings::default()
    };
    let recorder = EventRecorder::start(&client, &settings, clock(), metrics, &tasks);
    for number in 0..BACKLOG {
        let owner = involved(&crowd, &format!("app{number}"));
        recorder.record(owner, false, "StampedObjectApplied", "m");
    }
    let of_crowd: Api<Event> = Api::namespaced(client.clone(), &crowd);
    eventually("the backlog is being sent", PATIENCE, async || {
        let sent = of_crowd.list_metadata(&ListParams::default()).await;
        sent.unwrap().items.len() > 20
    })
    .await;
    recorder.record(involved(&guests, "app"), true, "ResourceFailed", "m");
    let event = eventually("the warning", PATIENCE, async || {
        events_of(&client, &guests, "app").await.pop()
    })
    .await;
    let sent = of_crowd.list_metadata(&ListParams::default()).await;
    let sent = sent.unwrap().items.len();
    assert!(sent < BACKLOG, "the backlog is gone");
    // By the API server's word: this test may have had no processor for a while.
    let (recorded, created) = (event.last_timestamp, event.metadata.creation_timestamp);
    let waited = created.unwrap().0.duration_since(recorded.unwrap().0);
    assert!(waited.as_secs() <= 2, "{waited:#}, {sent} were before it");
    tasks.token().cancel();
    tasks.join(PATIENCE).await.unwrap();
}
