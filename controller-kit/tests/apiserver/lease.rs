use std::sync::Arc;
use std::time::Duration;

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

/// Renews its Lease within `deadline`, or leads no more; others take over half as much later.
fn replica(client: &kube::Client, namespace: &str, identity: &str, deadline: Duration) -> Replica {
    let tasks = Tasks::new();
    let settings = LeaseSettings {
        duration: deadline * 3 / 2,
        renew_deadline: deadline,
        retry: Duration::from_millis(200),
        release: PATIENCE,
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
    // Nobody loses the Lease because the machine is busy, and nobody waits for its end.
    let replica = |identity| replica(&client, &namespace, identity, PATIENCE * 10);
    let first = replica("first");
    first.leads().await;
    let others = [replica("second"), replica("third")];
    let leases: Api<Lease> = Api::namespaced(client.clone(), &namespace);
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
    first.tasks.join(PATIENCE * 2).await.unwrap();
    // Within a tenth of the duration.
    eventually("another leads", PATIENCE, async || {
        others.iter().any(|other| other.leadership.is_leader())
    })
    .await;
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
    let only = replica(&client, &namespace, "only", Duration::from_secs(4));
    only.leads().await;
    plane.stop_apiserver();
    eventually("it steps down", PATIENCE, async || {
        !only.leadership.is_leader()
    })
    .await;
    plane.start_apiserver().await.unwrap();
    only.leads().await;
}
