use std::sync::Arc;
use std::time::{Duration, Instant};

use controller_kit::lease::{Leadership, LeaseSettings};
use controller_kit::metrics::Metrics;
use controller_kit::shutdown::Tasks;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use test_support::{ControlPlane, eventually, shared_control_plane};

use crate::stage::{PATIENCE, clock};

struct Replica {
    leadership: Leadership,
    tasks: Tasks,
}

fn replica(client: &kube::Client, namespace: &str, identity: &str) -> Replica {
    let tasks = Tasks::new();
    let settings = LeaseSettings {
        duration: Duration::from_secs(6),
        renew_deadline: Duration::from_secs(4),
        retry: Duration::from_millis(200),
        ..LeaseSettings::new(namespace, "controller", identity)
    };
    let leadership =
        Leadership::elect(client, settings, clock(), Arc::new(Metrics::new()), &tasks).unwrap();
    Replica { leadership, tasks }
}

impl Replica {
    async fn leads(&self) {
        let leads = self.leadership.changes();
        eventually("it leads", PATIENCE, async || *leads.borrow()).await;
    }
}

#[tokio::test]
async fn one_of_three_leads_and_hands_over_at_once() {
    let plane = shared_control_plane().await.unwrap();
    let client = plane.client().unwrap();
    let namespace = plane.create_namespace("lease").await.unwrap();
    let first = replica(&client, &namespace, "first");
    first.leads().await;
    let others = [
        replica(&client, &namespace, "second"),
        replica(&client, &namespace, "third"),
    ];
    let leases: Api<Lease> = Api::namespaced(client, &namespace);
    let renewed = async || {
        leases
            .get("controller")
            .await
            .unwrap()
            .spec
            .unwrap()
            .renew_time
            .unwrap()
    };
    let before = renewed().await;
    eventually("it is renewed", PATIENCE, async || {
        renewed().await.0 > before.0
    })
    .await;
    assert!(
        first.leadership.is_leader() && others.iter().all(|other| !other.leadership.is_leader())
    );

    first.leadership.hand_over();
    first.tasks.join(PATIENCE).await.unwrap();
    let start = Instant::now();
    eventually("another leads", PATIENCE, async || {
        others.iter().any(|other| other.leadership.is_leader())
    })
    .await;
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "not after the full duration: {:?}",
        start.elapsed()
    );
    let spec = leases.get("controller").await.unwrap().spec.unwrap();
    assert!(
        spec.lease_transitions >= Some(1)
            && spec.holder_identity.is_some_and(|holder| holder != "first")
    );
    assert_eq!(
        others
            .iter()
            .filter(|other| other.leadership.is_leader())
            .count(),
        1
    );
}

#[tokio::test]
async fn a_leader_that_loses_the_api_server_steps_down_and_returns() {
    let plane = ControlPlane::start().await.unwrap();
    let client = plane.client().unwrap();
    let namespace = plane.create_namespace("lease").await.unwrap();
    let only = replica(&client, &namespace, "only");
    only.leads().await;
    plane.stop_apiserver();
    eventually("it steps down", PATIENCE, async || {
        !only.leadership.is_leader()
    })
    .await;
    plane.start_apiserver().await.unwrap();
    only.leads().await;
}
