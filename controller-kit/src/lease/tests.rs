use std::sync::atomic::Ordering;

use serde_json::json;
use tokio::time::Instant;

use super::scripted::Server;
use super::*;

struct Replica {
    leadership: Leadership,
    tasks: Tasks,
    metrics: Arc<Metrics>,
}

fn replica(server: &Arc<Server>, identity: &str) -> Replica {
    let (tasks, metrics) = (Tasks::new(), Arc::new(Metrics::new()));
    // A clock that is wrong by years: only the local passing of time may count.
    let wrong = if identity == "b" {
        4_000_000_000
    } else {
        1_000_000_000
    };
    let start = Instant::now();
    let clock = Arc::new(move || {
        Timestamp::from_second(wrong + i64::try_from(start.elapsed().as_secs()).unwrap()).unwrap()
    });
    let settings = LeaseSettings::new("carto", "controller", identity);
    let leadership =
        Leadership::elect(&server.client(), settings, clock, metrics.clone(), &tasks).unwrap();
    Replica {
        leadership,
        tasks,
        metrics,
    }
}

impl Replica {
    async fn leads(&self) -> Duration {
        let start = Instant::now();
        self.leadership
            .changes()
            .wait_for(|leads| *leads)
            .await
            .unwrap();
        start.elapsed()
    }

    async fn lost(&self) -> Duration {
        let start = Instant::now();
        self.leadership
            .changes()
            .wait_for(|leads| !*leads)
            .await
            .unwrap();
        start.elapsed()
    }

    async fn stop(&self) {
        self.leadership.hand_over();
        self.tasks.join(Duration::from_mins(1)).await.unwrap();
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_replica_leads_at_once() {
    let server = Arc::new(Server::default());
    let a = replica(&server, "a");
    assert_eq!(a.leads().await, Duration::ZERO);
    let spec = server.spec();
    assert_eq!(
        (
            &spec["holderIdentity"],
            &spec["leaseDurationSeconds"],
            &spec["leaseTransitions"]
        ),
        (&json!("a"), &json!(15), &json!(0))
    );
    assert!(
        String::from_utf8(a.metrics.render())
            .unwrap()
            .contains("carto_leader 1")
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_renews_with_one_request_and_the_other_waits() {
    let server = Arc::new(Server::default());
    let a = replica(&server, "a");
    a.leads().await;
    let before = (server.count("GET"), server.count("PUT"));
    pass(99).await;
    assert_eq!(
        (server.count("GET"), server.count("PUT")),
        (before.0, before.1 + 49)
    );
    let b = replica(&server, "b");
    pass(300).await;
    assert!(a.leadership.is_leader() && !b.leadership.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_handed_over_is_taken_within_one_retry() {
    let server = Arc::new(Server::default());
    let (a, b) = (replica(&server, "a"), replica(&server, "b"));
    a.leads().await;
    pass(60).await;
    a.stop().await;
    assert!(!a.leadership.is_leader());
    assert!(b.leads().await <= Duration::from_secs(2));
    assert_eq!(
        (
            &server.spec()["holderIdentity"],
            &server.spec()["leaseTransitions"]
        ),
        (&json!("b"), &json!(1))
    );
}

/// A renewal that was cut short is carried out when the Lease was just read to give it back.
#[tokio::test(start_paused = true)]
async fn a_lease_that_changes_while_it_is_handed_over_is_handed_over_all_the_same() {
    let server = Arc::new(Server::default());
    let a = replica(&server, "a");
    a.leads().await;
    server.late.store(true, Ordering::SeqCst);
    a.stop().await;
    assert!(!server.late.load(Ordering::SeqCst));
    assert_eq!(server.spec()["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_leadership_hands_it_over_too() {
    let server = Arc::new(Server::default());
    let a = replica(&server, "a");
    a.leads().await;
    let clone = a.leadership.clone();
    let Replica {
        leadership, tasks, ..
    } = a;
    drop((clone, leadership));
    tasks.join(Duration::from_secs(10)).await.unwrap();
    assert_eq!(server.spec()["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn a_silent_leader_is_replaced_after_the_duration() {
    let server = Arc::new(Server::default());
    *server.lease.lock() = Some(
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "controller", "resourceVersion": "x"},
        "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 15, "leaseTransitions": 4, "renewTime": "2099-01-01T00:00:00.000000Z"}}),
    );
    let b = replica(&server, "b");
    let waited = b.leads().await;
    assert!(
        waited >= Duration::from_secs(15) && waited <= Duration::from_secs(17),
        "{waited:?}"
    );
    assert_eq!(server.spec()["leaseTransitions"], 5);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_promised_more_time_gets_it() {
    let server = Arc::new(Server::default());
    *server.lease.lock() = Some(
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "controller", "resourceVersion": "x"},
        "spec": {"holderIdentity": "slow", "leaseDurationSeconds": 60}}),
    );
    assert!(replica(&server, "b").leads().await >= Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_api_server_steps_down_before_another_can_take_over() {
    for hang in [false, true] {
        let server = Arc::new(Server::default());
        let a = replica(&server, "a");
        a.leads().await;
        pass(7).await;
        server.away.store(!hang, Ordering::SeqCst);
        server.hangs.store(hang, Ordering::SeqCst);
        let lost = a.lost().await;
        // The last renewal was up to one retry ago.
        assert!(
            lost >= Duration::from_secs(8) && lost <= Duration::from_secs(10),
            "{lost:?}"
        );
        server.away.store(false, Ordering::SeqCst);
        server.hangs.store(false, Ordering::SeqCst);
        assert!(
            a.leads().await <= Duration::from_secs(12),
            "it leads again when the server is back"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn of_three_replicas_no_two_lead_at_once_while_the_server_comes_and_goes() {
    let server = Arc::new(Server::default());
    let replicas = [
        replica(&server, "a"),
        replica(&server, "b"),
        replica(&server, "c"),
    ];
    let mut led = 0;
    for tick in 0_u32..4000 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        match tick % 97 {
            0 => server.away.store(true, Ordering::SeqCst),
            60 => server.away.store(false, Ordering::SeqCst),
            75 => server.touch(),
            _ => {}
        }
        let leaders = replicas
            .iter()
            .filter(|replica| replica.leadership.is_leader())
            .count();
        assert!(leaders <= 1, "{leaders} leaders at tick {tick}");
        led += leaders;
    }
    assert!(led > 1000, "somebody must lead, too: {led}");
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_change_to_the_lease_does_not_end_the_leadership() {
    let server = Arc::new(Server::default());
    let a = replica(&server, "a");
    a.leads().await;
    server.touch();
    pass(30).await;
    assert!(a.leadership.is_leader());
    assert_eq!(
        server.lease.lock().as_ref().unwrap()["metadata"]["annotations"]["touched"],
        "by kubectl"
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_away_stops_at_the_next_renewal() {
    let server = Arc::new(Server::default());
    let a = replica(&server, "a");
    a.leads().await;
    server.touch();
    server.lease.lock().as_mut().unwrap()["spec"]["holderIdentity"] = json!("usurper");
    assert!(a.lost().await <= Duration::from_secs(2));
    a.stop().await;
    assert_eq!(
        server.spec()["holderIdentity"],
        "usurper",
        "only our own lease is released"
    );
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_again() {
    let server = Arc::new(Server::default());
    let a = replica(&server, "a");
    a.leads().await;
    *server.lease.lock() = None;
    pass(5).await;
    assert!(a.leadership.is_leader());
    assert_eq!(server.spec()["holderIdentity"], "a");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_restarts_under_its_name_goes_on_at_once() {
    let server = Arc::new(Server::default());
    let a = replica(&server, "a");
    a.leads().await;
    std::mem::forget(a.leadership.clone());
    let again = replica(&server, "a");
    assert_eq!(again.leads().await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_does_not_hold_up_the_shutdown() {
    let server = Arc::new(Server::default());
    let a = replica(&server, "a");
    a.leads().await;
    server.hangs.store(true, Ordering::SeqCst);
    let start = Instant::now();
    a.stop().await;
    assert!(start.elapsed() <= Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn without_election_the_replica_always_leads() {
    let metrics = Metrics::new();
    let leadership = Leadership::always(&metrics);
    assert!(leadership.is_leader() && leadership.acquired(&CancellationToken::new()).await);
    assert!(
        String::from_utf8(metrics.render())
            .unwrap()
            .contains("carto_leader 1")
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_lease_ends_at_shutdown() {
    let server = Arc::new(Server::default());
    server.away.store(true, Ordering::SeqCst);
    let a = replica(&server, "a");
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let (acquired, ()) = tokio::join!(a.leadership.acquired(&shutdown), async move {
        pass(5).await;
        stop.cancel();
    });
    assert!(!acquired);
}

#[test]
fn settings_that_let_two_lead_at_once_are_refused() {
    let good = LeaseSettings::new("ns", "n", "i");
    assert_eq!(good.check(), Ok(()));
    let seconds = Duration::from_secs;
    for (settings, error) in [
        (
            LeaseSettings {
                renew_deadline: seconds(15),
                ..good.clone()
            },
            LeaseSettingsError::DeadlineTooLong,
        ),
        (
            LeaseSettings {
                retry: seconds(6),
                ..good.clone()
            },
            LeaseSettingsError::RetryTooLong,
        ),
        (
            LeaseSettings {
                retry: Duration::ZERO,
                ..good.clone()
            },
            LeaseSettingsError::RetryTooLong,
        ),
        (
            LeaseSettings {
                duration: Duration::ZERO,
                ..good.clone()
            },
            LeaseSettingsError::Duration,
        ),
        (
            LeaseSettings {
                duration: seconds(u64::MAX),
                ..good.clone()
            },
            LeaseSettingsError::Duration,
        ),
        (
            LeaseSettings {
                identity: String::new(),
                ..good.clone()
            },
            LeaseSettingsError::Unnamed,
        ),
    ] {
        assert_eq!(settings.check(), Err(error));
    }
}
