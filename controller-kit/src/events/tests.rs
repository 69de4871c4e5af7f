use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::FutureExt as _;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower_test::mock::{self, Handle};

use super::series::Request as Decision;
use super::series::Series;
use super::*;
use crate::metrics::EventOutcome;

const START: i64 = 1_800_000_000;

fn involved(name: &str) -> InvolvedObject {
    InvolvedObject {
        api_version: "carto.run/v1alpha1".into(),
        kind: "Workload".into(),
        namespace: "dev".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
    }
}

fn happening(name: &str, message: &str, second: i64) -> PendingEvent {
    PendingEvent {
        involved: involved(name),
        component: None,
        warning: false,
        reason: "StampedObjectApplied".into(),
        message: message.into(),
        since: Timestamp::from_second(START + second).unwrap(),
        at: Timestamp::from_second(START + second).unwrap(),
        count: 1,
    }
}

fn series() -> Series {
    Series::new(&EventSettings::default())
}

fn created(decision: Decision) -> Value {
    match decision {
        Decision::Create(created) => created.event,
        other => panic!("{other:?}"),
    }
}

fn count(decision: &Decision) -> Option<i64> {
    match decision {
        Decision::Count(counted) => counted.patch["count"].as_i64(),
        _ => None,
    }
}

#[test]
fn an_event_says_who_what_and_when() {
    let mut event =
        created(series().admit(&happening("app", "Created object [tests.test.run/app]", 0)));
    let name = event["metadata"]["name"].take();
    let name = name.as_str().unwrap();
    let hash = name.strip_prefix("app.").unwrap();
    assert!(
        hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{name}"
    );
    assert_eq!(
        event,
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": null, "namespace": "dev"},
            "involvedObject": {"apiVersion": "carto.run/v1alpha1", "kind": "Workload", "namespace": "dev", "name": "app", "uid": "uid-app"},
            "type": "Normal", "reason": "StampedObjectApplied", "message": "Created object [tests.test.run/app]",
            "source": {"component": "Workload"}, "reportingComponent": "Workload", "reportingInstance": "",
            "firstTimestamp": "2027-01-15T08:00:00Z", "lastTimestamp": "2027-01-15T08:00:00Z", "count": 1,
        })
    );
}

#[test]
fn an_event_about_a_cluster_scoped_object_is_in_the_default_namespace() {
    let mut happening = happening("chain", "m", 0);
    happening.involved.namespace = String::new();
    let event = created(series().admit(&happening));
    assert_eq!(event["metadata"]["namespace"], "default");
    assert_eq!(event["involvedObject"]["namespace"], Value::Null);
}

#[test]
fn the_same_event_is_counted_up_within_the_window_and_sent_anew_after() {
    let mut series = series();
    created(series.admit(&happening("app", "m", 0)));
    assert_eq!(count(&series.admit(&happening("app", "m", 10))), Some(2));
    let third = series.admit(&happening("app", "m", 609));
    assert_eq!(count(&third), Some(3));
    let Decision::Count(counted) = third else {
        panic!()
    };
    assert_eq!(counted.patch["lastTimestamp"], "2027-01-15T08:10:09Z");
    created(series.admit(&happening("app", "m", 609 + 601)));
}

#[test]
fn events_that_differ_in_anything_are_different_events() {
    let mut series = series();
    let base = happening("app", "m", 0);
    created(series.admit(&base));
    for other in [
        happening("app2", "m", 0),
        happening("app", "m2", 0),
        PendingEvent {
            reason: "Other".into(),
            ..base.clone()
        },
        PendingEvent {
            warning: true,
            ..base.clone()
        },
        PendingEvent {
            component: Some("policy.example.com/a".into()),
            ..base.clone()
        },
        PendingEvent {
            involved: InvolvedObject {
                uid: "made-again".into(),
                ..base.involved.clone()
            },
            ..base.clone()
        },
    ] {
        created(series.admit(&other));
    }
}

#[test]
fn who_tells_of_an_event_is_the_kind_it_is_about_or_a_component() {
    let event = created(series().admit(&happening("app", "m", 0)));
    assert_eq!(event["source"], json!({"component": "Workload"}));
    assert_eq!(event["reportingComponent"], "Workload");
    let told = PendingEvent {
        component: Some("policy.example.com/a".into()),
        ..happening("app", "m", 0)
    };
    let event = created(series().admit(&told));
    assert_eq!(
        event["source"],
        json!({"component": "policy.example.com/a"})
    );
    assert_eq!(event["reportingComponent"], "policy.example.com/a");
    assert_eq!(event["involvedObject"]["kind"], "Workload");
}

/// A pod has no uid while it is admitted, and whoever writes a reference writes any uid into it.
#[test]
fn who_has_no_uid_or_that_of_another_object_spends_nothing_of_others() {
    let mut series = series();
    let named = |namespace: &str, name: &str, uid: &str| InvolvedObject {
        namespace: namespace.into(),
        uid: uid.into(),
        ..involved(name)
    };
    let admitted = |series: &mut Series, involved: &InvolvedObject| {
        let happening = |number| PendingEvent {
            involved: involved.clone(),
            ..happening("app", &format!("m{number}"), 0)
        };
        let sent = (0..100).map(|number| series.admit(&happening(number)));
        sent.filter(|it| matches!(it, Decision::Create(_))).count()
    };
    for involved in [
        named("dev", "web-1", ""),
        named("dev", "web-2", ""),
        named("other", "web-1", ""),
        named("other", "forged", "uid-app"),
        named("dev", "app", "uid-app"),
    ] {
        assert_eq!(admitted(&mut series, &involved), 25, "{involved:?}");
    }
}

#[test]
fn an_owner_that_sends_too_many_is_limited_and_others_are_not() {
    let mut series = series();
    let admitted = |series: &mut Series, name: &str, second| {
        (0..100)
            .filter(|number| {
                series.admit(&happening(name, &format!("m{number}"), second))
                    != Decision::RateLimited
            })
            .count()
    };
    assert_eq!(admitted(&mut series, "noisy", 0), 25);
    assert_eq!(admitted(&mut series, "quiet", 0), 25);
    assert_eq!(admitted(&mut series, "noisy", 299), 0);
    assert_eq!(admitted(&mut series, "noisy", 300), 1);
    assert_eq!(admitted(&mut series, "noisy", 300 + 600), 2);
    assert_eq!(admitted(&mut series, "noisy", 1_000_000), 25);
}

#[test]
fn good_news_take_nothing_from_the_bad_ones() {
    let mut series = series();
    for number in 0..100 {
        series.admit(&happening("app", &number.to_string(), 0));
    }
    let good = happening("app", "one more", 0);
    let bad = PendingEvent {
        warning: true,
        ..good.clone()
    };
    assert_eq!(series.admit(&good), Decision::RateLimited);
    assert_eq!(created(series.admit(&bad))["type"], "Warning");
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut series = series();
    for number in 0..10_000 {
        series.admit(&happening(&format!("app{number}"), "m", 0));
    }
    assert_eq!(series.remembered(), (4096, 4096));
    assert_eq!(count(&series.admit(&happening("app9999", "m", 1))), Some(2));
    created(series.admit(&happening("app0", "m", 1)));
}

/// A developer who makes thousands of different events is no reason why the repeated event next door becomes thousands of
/// objects.
#[test]
fn a_guest_s_event_is_counted_up_however_many_a_crowd_has_sent_in_between() {
    let mut series = series();
    let guest = |second| {
        let mut happening = happening("guest", "m", second);
        happening.involved.namespace = "guests".into();
        happening
    };
    created(series.admit(&guest(0)));
    for number in 0..10_000 {
        created(series.admit(&happening(&format!("app{number}"), "m", 1)));
    }
    assert_eq!(series.remembered(), (4096, 4096));
    assert_eq!(count(&series.admit(&guest(2))), Some(2));
}

/// Else one that was told to be quiet could go on as soon as a crowd has pushed its account out.
#[test]
fn a_guest_that_is_limited_stays_so_however_many_owners_a_crowd_has() {
    let mut series = series();
    let guest = |number: i32| {
        let mut happening = happening("guest", &number.to_string(), 0);
        happening.involved.namespace = "guests".into();
        happening
    };
    for number in 0..25 {
        created(series.admit(&guest(number)));
    }
    for number in 0..10_000 {
        created(series.admit(&happening(&format!("app{number}"), "m", 0)));
    }
    assert_eq!(series.admit(&guest(25)), Decision::RateLimited);
}

fn joined(first: &PendingEvent, later: &PendingEvent) -> Option<PendingEvent> {
    let mut joined = first.clone();
    joined.take_in(later.clone()).ok()?;
    assert_eq!(first.likeness(), later.likeness());
    assert!(first.likeness().is_some());
    Some(joined)
}

#[test]
fn an_event_that_tells_several_has_all_their_sentences_and_times() {
    let (first, later) = (happening("app", "a", 0), happening("app", "b", 7));
    let both = joined(&first, &later).unwrap();
    let event = created(series().admit(&both));
    assert_eq!(event["message"], "a; b");
    assert_eq!(event["firstTimestamp"], "2027-01-15T08:00:00Z");
    assert_eq!(event["lastTimestamp"], "2027-01-15T08:00:07Z");
    assert_eq!(event["count"], 1);
    let again = joined(&both, &happening("app", "a", 8)).unwrap();
    assert_eq!((&*again.message, again.count), ("a; b", 2));
    let mut series = series();
    assert_eq!(created(series.admit(&again))["count"], 2);
    assert_eq!(count(&series.admit(&again)), Some(4));
}

#[test]
fn only_good_news_of_one_owner_and_reason_are_told_together_and_not_without_end() {
    let first = happening("app", "a", 0);
    let others = [
        happening("app2", "b", 1),
        happening("app", &"b".repeat(1022), 1),
        PendingEvent {
            reason: "Other".into(),
            ..happening("app", "b", 1)
        },
        PendingEvent {
            warning: true,
            ..happening("app", "b", 1)
        },
    ];
    for other in others {
        let mut told = first.clone();
        assert_eq!(told.take_in(other.clone()), Err(other));
        assert_eq!(told, first);
    }
    let warning = PendingEvent {
        warning: true,
        ..first.clone()
    };
    assert_eq!(warning.likeness(), None);
    assert!(joined(&first, &happening("app", &"b".repeat(1021), 1)).is_some());
}

/// What a chain of so many steps tells while it settles: each object is created, then has an output and is healthy.
fn told_of_a_chain(name: &str, steps: usize) -> Vec<PendingEvent> {
    let mut told = Vec::new();
    for step in 0..steps {
        let mut tell = |reason: &str, message: String| {
            told.push(PendingEvent {
                reason: reason.to_owned(),
                ..happening(name, &message, 0)
            });
        };
        tell(
            "StampedObjectApplied",
            format!("Created object [tests.test.run/{name}-{step}]"),
        );
        if step + 1 < steps {
            tell(
                "ResourceOutputChanged",
                format!("[step{step}] found a new output in [tests.test.run/{name}-{step}]"),
            );
        }
        if step > 0 {
            tell(
                "ResourceHealthyStatusChanged",
                format!(
                    "[step{step}] found healthy status in [tests.test.run/{name}-{step}] changed to [True]"
                ),
            );
        }
    }
    told
}

/// Owners that settle side by side, each within this many seconds, at the pace of the default settings. Returns what was sent.
fn settle(owners: usize, seconds: u32) -> Vec<PendingEvent> {
    let settings = EventSettings::default();
    let lane = Lane::new(
        Turns::new(settings.queue, settings.queue_per_namespace),
        settings.join_beyond,
    );
    let mut told: Vec<(u32, PendingEvent)> = Vec::new();
    for owner in 0..owners {
        let chain = told_of_a_chain(&format!("app{owner}"), 5);
        let of_all = u32::try_from(chain.len()).unwrap();
        for (happening, number) in chain.into_iter().zip(0_u32..) {
            told.push((seconds * 1000 * number / of_all, happening));
        }
    }
    told.sort_by_key(|(at, _)| *at);
    let mut told = told.into_iter().peekable();
    let mut sent = Vec::new();
    let mut now = 0;
    loop {
        while let Some((_, happening)) = told.next_if(|(at, _)| *at <= now) {
            assert!(matches!(
                lane.push(happening),
                None | Some(EventOutcome::Joined)
            ));
        }
        let allowed =
            usize::try_from(settings.head_start + now * settings.per_second / 1000).unwrap();
        while sent.len() < allowed
            && let Some(happening) = lane.next(&BTreeSet::new()).now_or_never()
        {
            sent.push(happening);
        }
        if told.peek().is_none() && sent.len() < allowed {
            return sent;
        }
        now += 1;
    }
}

#[test]
fn what_a_crowd_tells_is_told_in_half_as_many_events_and_not_a_word_is_missing() {
    const OWNERS: usize = 300;
    let sent = settle(OWNERS, 15);
    assert!(
        sent.len() * 2 <= OWNERS * 13,
        "{} events of {OWNERS} owners",
        sent.len()
    );
    for owner in 0..OWNERS {
        let chain = told_of_a_chain(&format!("app{owner}"), 5);
        assert_eq!(chain.len(), 13);
        for reason in [
            "StampedObjectApplied",
            "ResourceOutputChanged",
            "ResourceHealthyStatusChanged",
        ] {
            let of_reason = |of: &[PendingEvent]| -> Vec<String> {
                of.iter()
                    .filter(|it| it.involved == chain[0].involved && it.reason == reason)
                    .flat_map(|it| it.message.split(BETWEEN).map(str::to_owned))
                    .collect()
            };
            assert_eq!(of_reason(&sent), of_reason(&chain), "app{owner} {reason}");
        }
    }
}

#[test]
fn what_one_owner_tells_is_told_as_it_is() {
    assert_eq!(settle(1, 0), told_of_a_chain("app0", 5));
    assert_eq!(settle(3, 60).len(), 3 * 13);
}

#[tokio::test(start_paused = true)]
async fn what_joins_another_event_is_counted_as_joined() {
    let mut scene = scene(&EventSettings {
        join_beyond: 1,
        ..one_writer()
    });
    for message in ["a", "b", "c", "d"] {
        scene.record("app", message);
    }
    // Of the first two nothing would have to wait for long.
    for message in ["a", "b; c; d"] {
        assert_eq!(
            scene.answer(StatusCode::CREATED).await.2["message"],
            message
        );
    }
    scene.stop().await;
    assert_eq!((scene.counted("created"), scene.counted("joined")), (2, 2));
}

#[test]
fn a_huge_message_is_cut_and_says_so() {
    let event = created(series().admit(&happening("app", &"ä".repeat(10_000), 0)));
    let message = event["message"].as_str().unwrap();
    assert!(message.len() <= 8 * 1024 + '…'.len_utf8() && message.ends_with("ä…"));
}

proptest! {
    #[test]
    fn names_are_always_names_that_the_api_server_takes(owner in "[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", message in ".*") {
        let event = created(series().admit(&happening(&owner, &message, 0)));
        let name = event["metadata"]["name"].as_str().unwrap();
        prop_assert!(name.len() <= 253);
        prop_assert!(!name.contains("..") || owner.contains(".."));
        prop_assert!(!name.contains("-.") || owner.contains("-."));
    }
}

/// A recorder, the server it sends to, and a clock that the test sets.
struct Scene {
    recorder: EventRecorder,
    server: Handle<Request<Body>, Response<Body>>,
    seconds: Arc<AtomicI64>,
    metrics: Arc<Metrics>,
    tasks: Tasks,
}

fn scene(settings: &EventSettings) -> Scene {
    let (service, server) = mock::pair::<Request<Body>, Response<Body>>();
    let seconds = Arc::new(AtomicI64::new(START));
    let time = seconds.clone();
    let clock = Arc::new(move || Timestamp::from_second(time.load(Ordering::SeqCst)).unwrap());
    let (metrics, tasks) = (Arc::new(Metrics::new()), Tasks::new());
    let client = kube::Client::new(service, "default");
    let recorder = EventRecorder::start(&client, settings, clock, metrics.clone(), &tasks);
    Scene {
        recorder,
        server,
        seconds,
        metrics,
        tasks,
    }
}

fn one_writer() -> EventSettings {
    EventSettings {
        writers: 1,
        ..EventSettings::default()
    }
}

impl Scene {
    fn record(&self, name: &str, message: &str) {
        self.recorder
            .record(involved(name), false, "StampedObjectApplied", message);
    }

    async fn answer(&mut self, code: StatusCode) -> (String, String, Value) {
        let (request, send) = self.server.next_request().await.unwrap();
        let (method, path) = (
            request.method().to_string(),
            request.uri().path().to_owned(),
        );
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let reply = if code.is_success() {
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "x"}, "involvedObject": {}})
        } else {
            json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code.as_u16(), "message": "no", "reason": if code == StatusCode::NOT_FOUND { "NotFound" } else { "x" }})
        };
        send.send_response(
            Response::builder()
                .status(code)
                .body(Body::from(reply.to_string().into_bytes()))
                .unwrap(),
        );
        (method, path, body)
    }

    fn counted(&self, outcome: &str) -> u64 {
        let text = String::from_utf8(self.metrics.render()).unwrap();
        let prefix = format!("carto_events_total{{outcome=\"{outcome}\"}} ");
        text.lines()
            .find_map(|line| line.strip_prefix(&prefix))
            .map_or(0, |number| number.parse().unwrap())
    }

    async fn stop(&self) {
        self.tasks.token().cancel();
        self.tasks.join(Duration::from_mins(1)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_posted_and_its_repetition_patched() {
    let mut scene = scene(&one_writer());
    scene.record("app", "m");
    let (method, path, body) = scene.answer(StatusCode::CREATED).await;
    assert_eq!(
        (&*method, &*path),
        ("POST", "/api/v1/namespaces/dev/events")
    );
    let name = body["metadata"]["name"].as_str().unwrap().to_owned();
    scene.seconds.fetch_add(3, Ordering::SeqCst);
    scene.record("app", "m");
    let (method, path, body) = scene.answer(StatusCode::OK).await;
    assert_eq!(
        (&*method, &*path),
        ("PATCH", &*format!("/api/v1/namespaces/dev/events/{name}"))
    );
    assert_eq!(
        body,
        json!({"count": 2, "lastTimestamp": "2027-01-15T08:00:03Z"})
    );
    scene.stop().await;
    assert_eq!((scene.counted("created"), scene.counted("counted")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_has_expired_on_the_server_is_sent_anew() {
    let mut scene = scene(&one_writer());
    scene.record("app", "m");
    scene.answer(StatusCode::CREATED).await;
    scene.seconds.fetch_add(5, Ordering::SeqCst);
    scene.record("app", "m");
    assert_eq!(scene.answer(StatusCode::NOT_FOUND).await.0, "PATCH");
    let (method, _, body) = scene.answer(StatusCode::CREATED).await;
    assert_eq!((&*method, body["count"].as_i64()), ("POST", Some(1)));
    scene.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_and_counts_and_never_waits() {
    let mut scene = scene(&EventSettings {
        queue: 4,
        ..one_writer()
    });
    scene.record("app0", "m");
    let (_, send) = scene.server.next_request().await.unwrap();
    for number in 1..=10 {
        scene.record(&format!("app{number}"), "m");
    }
    assert_eq!(scene.counted("queue_full"), 6);
    drop(send);
}

#[tokio::test(start_paused = true)]
async fn a_guest_s_warning_does_not_wait_for_a_crowd_whose_queue_is_full() {
    let mut scene = scene(&one_writer());
    // The writer has no chance to run before the first `await`.
    for number in 0..10_000 {
        scene.record(&format!("app{number}"), "m");
    }
    let left_out = 10_000 - u64::try_from(EventSettings::default().queue_per_namespace).unwrap();
    assert_eq!(scene.counted("queue_full"), left_out);
    let guest = InvolvedObject {
        namespace: "guests".to_owned(),
        ..involved("guest")
    };
    scene.recorder.record(guest, true, "ResourceFailed", "m");
    assert_eq!(scene.counted("queue_full"), left_out);
    assert_eq!(
        scene.answer(StatusCode::CREATED).await.1,
        "/api/v1/namespaces/dev/events"
    );
    let (_, path, event) = scene.answer(StatusCode::CREATED).await;
    assert_eq!(path, "/api/v1/namespaces/guests/events");
    assert_eq!(event["type"], "Warning");
}

/// Answers the events of `guests` at once and those of any other namespace as if the server was overloaded, or not at all.
/// Returns when the first event of a guest arrived.
async fn first_guest(scene: &mut Scene, hangs: bool) -> tokio::time::Instant {
    let mut hanging = Vec::new();
    loop {
        let (request, send) = scene.server.next_request().await.unwrap();
        if request.uri().path().contains("/guests/") {
            return tokio::time::Instant::now();
        }
        if hangs {
            hanging.push(send);
            continue;
        }
        let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 503, "message": "no", "reason": "x"});
        let response = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE);
        send.send_response(
            response
                .body(Body::from(status.to_string().into_bytes()))
                .unwrap(),
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_backlog_that_fails_or_hangs_delays_no_warning_of_another_namespace() {
    for hangs in [false, true] {
        let mut scene = scene(&one_writer());
        for number in 0..4000 {
            scene.record(&format!("app{number}"), "m");
        }
        // The backlog is being sent when the guest comes, and has failed for a while.
        let (backlog, send) = scene.server.next_request().await.unwrap();
        assert!(backlog.uri().path().contains("/dev/"));
        if !hangs {
            drop(send);
        }
        tokio::time::advance(Duration::from_millis(500)).await;
        let since = tokio::time::Instant::now();
        let guest = InvolvedObject {
            namespace: "guests".to_owned(),
            ..involved("guest")
        };
        scene.recorder.record(guest, true, "ResourceFailed", "m");
        let arrived = first_guest(&mut scene, hangs).await;
        let took = arrived - since;
        assert!(
            took < Duration::from_secs(2),
            "hangs: {hangs}, took {took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_events_of_a_namespace_are_sent_one_at_a_time() {
    let mut scene = scene(&one_writer());
    for number in 0..3 {
        scene.record(&format!("app{number}"), "m");
    }
    let (_, first) = scene.server.next_request().await.unwrap();
    let second = tokio::time::timeout(Duration::from_secs(5), scene.server.next_request());
    assert!(second.await.is_err(), "the first one is not answered");
    drop(first);
    scene.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_is_asked_again_later_and_a_refusal_is_final() {
    let mut scene = scene(&one_writer());
    let start = tokio::time::Instant::now();
    scene.record("app", "m");
    scene.answer(StatusCode::TOO_MANY_REQUESTS).await;
    scene.answer(StatusCode::INTERNAL_SERVER_ERROR).await;
    assert_eq!(scene.answer(StatusCode::CREATED).await.0, "POST");
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    scene.record("app", "into a namespace that goes away");
    scene.answer(StatusCode::FORBIDDEN).await;
    scene.record("app", "next");
    assert_eq!(scene.answer(StatusCode::CREATED).await.2["message"], "next");
    scene.stop().await;
    assert_eq!((scene.counted("created"), scene.counted("failed")), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn what_waits_at_shutdown_is_still_sent() {
    let mut scene = scene(&one_writer());
    for number in 0..3 {
        scene.record(&format!("app{number}"), "m");
    }
    scene.tasks.token().cancel();
    for _ in 0..3 {
        scene.answer(StatusCode::CREATED).await;
    }
    scene.stop().await;
    assert_eq!(scene.counted("created"), 3);
}

#[tokio::test(start_paused = true)]
async fn what_ends_after_the_signal_is_still_told() {
    let mut scene = scene(&one_writer());
    scene.tasks.token().cancel();
    // A reconcile may take as long as `--shutdown-seconds` to end.
    tokio::time::advance(Duration::from_secs(20)).await;
    scene.record("app", "m");
    assert_eq!(scene.answer(StatusCode::CREATED).await.2["message"], "m");
    scene.stop().await;
    assert_eq!(
        (scene.counted("created"), scene.counted("queue_full")),
        (1, 0)
    );
}

/// Answers every request after `latency`, however many come at once. Returns the messages in the order in which they came.
async fn serve(
    mut server: Handle<Request<Body>, Response<Body>>,
    latency: Duration,
) -> Vec<String> {
    let mut messages = Vec::new();
    let mut answers = JoinSet::new();
    while let Some((request, send)) = server.next_request().await {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        messages.push(body["message"].as_str().unwrap_or("counted").to_owned());
        answers.spawn(async move {
            tokio::time::sleep(latency).await;
            let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "x"}, "involvedObject": {}});
            let response = Response::builder().status(StatusCode::CREATED);
            send.send_response(response.body(Body::from(event.to_string().into_bytes())).unwrap());
        });
    }
    messages
}

/// Ends the process; what the server was told meanwhile, how long it took, and the metrics.
async fn end(scene: Scene, latency: Duration) -> (Vec<String>, Duration, String) {
    let Scene {
        recorder,
        server,
        metrics,
        tasks,
        ..
    } = scene;
    let start = tokio::time::Instant::now();
    let ending = async move {
        // One is under way.
        tokio::time::sleep(Duration::from_millis(1)).await;
        tasks.token().cancel();
        tasks.join(Duration::from_mins(1)).await.unwrap();
        drop(recorder);
    };
    let (messages, ()) = tokio::join!(serve(server, latency), ending);
    let text = String::from_utf8(metrics.render()).unwrap();
    (messages, start.elapsed(), text)
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_leaves_before_the_process_ends() {
    let mut settings = one_writer();
    settings.queue_per_namespace = settings.queue;
    settings.join_beyond = usize::MAX;
    let waiting = settings.queue;
    let scene = scene(&settings);
    for number in 0..waiting {
        scene.record(&format!("app{}", number / 20), &format!("m{number}"));
    }
    let (messages, took, metrics) = end(scene, Duration::from_millis(9)).await;
    assert!(took < settings.flush, "{took:?}");
    assert_eq!(messages.len(), waiting);
    let all = format!("carto_events_total{{outcome=\"created\"}} {waiting}");
    assert!(metrics.contains(&all), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn the_last_events_of_an_owner_keep_their_order_and_count_up() {
    let scene = scene(&EventSettings {
        join_beyond: usize::MAX,
        ..one_writer()
    });
    for number in 0..200 {
        // Every fifth of an owner is the first again.
        let message = if number % 10 == 8 { 0 } else { number };
        scene.record(&format!("app{}", number % 2), &format!("m{message}"));
    }
    let (messages, ..) = end(scene, Duration::from_millis(5)).await;
    let odd: Vec<usize> = messages
        .iter()
        .filter_map(|message| message.strip_prefix('m')?.parse().ok())
        .filter(|number: &usize| !number.is_multiple_of(2))
        .collect();
    // An owner may send 25.
    assert_eq!(odd, (0..25).map(|index| 2 * index + 1).collect::<Vec<_>>());
    assert!(messages.iter().any(|message| message == "counted"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_does_not_hold_up_the_shutdown() {
    let mut scene = scene(&one_writer());
    for number in 0..3 {
        scene.record(&format!("app{number}"), "m");
    }
    let hanging = scene.server.next_request().await.unwrap();
    let start = tokio::time::Instant::now();
    scene.stop().await;
    assert_eq!(start.elapsed(), EventSettings::default().flush);
    assert_eq!(
        scene.counted("shutdown"),
        3,
        "what was not answered is counted"
    );
    scene.record("app", "too late");
    assert_eq!(
        (scene.counted("shutdown"), scene.counted("queue_full")),
        (4, 0)
    );
    drop(hanging);
}

#[tokio::test(start_paused = true)]
async fn the_events_of_an_owner_keep_their_order() {
    let mut scene = scene(&EventSettings {
        writers: 4,
        ..EventSettings::default()
    });
    for number in 0..20 {
        scene.record("app", &format!("m{number}"));
    }
    for number in 0..20 {
        assert_eq!(
            scene.answer(StatusCode::CREATED).await.2["message"],
            format!("m{number}")
        );
    }
    scene.stop().await;
}
