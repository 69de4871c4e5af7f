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
