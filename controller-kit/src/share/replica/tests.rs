//! The loop against a scripted Lease, on a paused clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::Permit;
use super::*;
use crate::cluster::Fence;
use crate::lease::scripted::Server;

const TICK: Duration = Duration::from_millis(100);

/// What may pass from a death until everything is held again: the patience of the others, who hear of each beat at once.
const SERVED_AGAIN: Duration = Duration::from_secs(10);

/// The same where nobody may watch the Lease: they hear of it no more than one renewal after it was.
const SERVED_AGAIN_UNWATCHED: Duration = Duration::from_secs(12);

fn namespaces() -> Vec<String> {
    (1..=30).map(|number| format!("team-{number:02}")).collect()
}

struct Process {
    leadership: Leadership,
    share: Arc<OwnShare>,
    fence: Arc<Fence>,
    tasks: Tasks,
    metrics: Arc<Metrics>,
    is_cut_off: Arc<AtomicBool>,
}

fn settings(identity: &str) -> LeaseSettings {
    LeaseSettings {
        duration: Duration::from_secs(10),
        renew_deadline: Duration::from_secs(6),
        ..LeaseSettings::new("carto", "controller", identity)
    }
}

/// A clock that is wrong by years: only its going on shows in the Lease.
fn advancing() -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
    let start = Instant::now();
    Arc::new(move || {
        let seconds = i64::try_from(start.elapsed().as_secs()).unwrap();
        Timestamp::from_second(4_000_000_000 + seconds).unwrap()
    })
}

fn process(server: &Arc<Server>, identity: &str) -> Process {
    let (tasks, metrics) = (Tasks::new(), Arc::new(Metrics::new()));
    let (is_cut_off, fence) = (Arc::<AtomicBool>::default(), Arc::<Fence>::default());
    let share = OwnShare::new(identity, fence.clone());
    let leadership = take_part(
        &server.client_unless(&is_cut_off),
        settings(identity),
        advancing(),
        metrics.clone(),
        (&tasks, share.clone()),
    );
    // Whatever is to be listed is there after a moment.
    let lists = share.clone();
    tasks.spawn_until_stopped("lists", async move {
        let mut changes = lists.changes();
        while changes.changed().await.is_ok() {
            if let Some(listing) = lists.listing() {
                tokio::time::sleep(TICK).await;
                lists.listed(listing);
            }
        }
    });
    Process {
        leadership: leadership.unwrap(),
        share,
        fence,
        tasks,
        metrics,
        is_cut_off,
    }
}

impl Process {
    fn works_on(&self, namespace: &str) -> bool {
        self.fence.check().is_ok() && self.share.holds(namespace)
    }

    async fn stop(&self) {
        self.tasks.token().cancel();
        self.leadership.hand_over();
        self.tasks.join(Duration::from_mins(1)).await.unwrap();
    }

    /// What a scrape shows.
    fn metric(&self, line: &str) -> bool {
        String::from_utf8(self.metrics.render())
            .unwrap()
            .lines()
            .any(|it| it == line)
    }
}

/// How many namespaces nobody works on; no two may work on one.
fn unserved(processes: &[&Process]) -> usize {
    let namespaces = namespaces();
    let workers =
        |namespace: &&String| processes.iter().filter(|it| it.works_on(namespace)).count();
    assert!(
        namespaces.iter().all(|namespace| workers(&namespace) <= 1),
        "two work on a namespace"
    );
    namespaces.iter().filter(|it| workers(it) == 0).count()
}

/// How long it takes until everything is worked on, and each moment by one at the most.
async fn all_served(processes: &[&Process]) -> Duration {
    let start = Instant::now();
    while unserved(processes) > 0 || !processes.iter().all(|it| it.leadership.is_leader()) {
        tokio::time::sleep(TICK).await;
        assert!(
            start.elapsed() < Duration::from_mins(5),
            "{} are unserved",
            unserved(processes)
        );
    }
    start.elapsed()
}

async fn pass(processes: &[&Process], time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        tokio::time::sleep(TICK).await;
        unserved(processes);
    }
}

fn record(server: &Server) -> Value {
    let lease = server.lease.lock();
    let text = lease.as_ref().unwrap()["metadata"]["annotations"][RECORD]
        .as_str()
        .map(str::to_owned);
    serde_json::from_str(&text.unwrap()).unwrap()
}

fn write_record(server: &Server, text: &str) {
    server.touch();
    server.lease.lock().as_mut().unwrap()["metadata"]["annotations"][RECORD] = json!(text);
}

/// How many namespaces each works on.
fn shares(processes: &[&Process]) -> Vec<usize> {
    let count = |it: &&Process| namespaces().iter().filter(|name| it.works_on(name)).count();
    processes.iter().map(count).collect()
}

#[tokio::test(start_paused = true)]
async fn three_share_what_there_is_and_each_renewal_is_two_requests() {
    let server = Arc::new(Server::default());
    let a = process(&server, "a");
    assert!(all_served(&[&a]).await <= TICK * 2);
    let (b, c) = (process(&server, "b"), process(&server, "c"));
    let all = [&a, &b, &c];
    pass(&all, Duration::from_secs(10)).await;
    assert_eq!(all_served(&all).await, Duration::ZERO);
    assert!(
        shares(&all).iter().all(|share| *share >= 5),
        "{:?}",
        shares(&all)
    );
    assert!(a.metric("carto_replicas 3"));
    let before = (server.count("GET"), server.count("PUT"));
    pass(&all, Duration::from_secs(100)).await;
    let after = (
        server.count("GET") - before.0,
        server.count("PUT") - before.1,
    );
    // Two that look in the same moment meet, and one of them looks again.
    assert!(after.0 <= 4 * 51 && after.1 <= 4 * 51, "{after:?}");
    assert_eq!(server.spec()["holderIdentity"], TOGETHER);
}

#[tokio::test(start_paused = true)]
async fn what_one_had_that_dies_is_served_again_when_the_others_have_lost_patience() {
    for (forbids_watches, served_again) in [(false, SERVED_AGAIN), (true, SERVED_AGAIN_UNWATCHED)] {
        // Whenever in the time between two renewals of the others its last one is.
        for later in 0..10 {
            let server = Arc::new(Server::default());
            server
                .forbids_watches
                .store(forbids_watches, Ordering::SeqCst);
            one_dies(&server, TICK * 2 * later, served_again).await;
        }
    }
}

async fn one_dies(server: &Arc<Server>, later: Duration, served_again: Duration) {
    let (a, b) = (process(server, "a"), process(server, "b"));
    tokio::time::sleep(later).await;
    let c = process(server, "c");
    pass(&[&a, &b, &c], Duration::from_secs(15)).await;
    let before = shares(&[&a, &b]);
    c.is_cut_off.store(true, Ordering::SeqCst);
    let died = Instant::now();
    pass(&[&a, &b, &c], Duration::from_millis(7_900)).await;
    assert!(!c.leadership.is_leader(), "it has stopped by itself before");
    assert_eq!(shares(&[&a, &b]), before, "and the others go on meanwhile");
    all_served(&[&a, &b]).await;
    let took = died.elapsed();
    assert!(took <= served_again + TICK * 3, "{took:?}, {later:?} later");
    // When it is back it begins anew.
    c.is_cut_off.store(false, Ordering::SeqCst);
    pass(&[&a, &b, &c], Duration::from_secs(15)).await;
    assert_eq!(all_served(&[&a, &b, &c]).await, Duration::ZERO);
    assert!(shares(&[&c])[0] > 0);
}

#[tokio::test(start_paused = true)]
async fn what_one_had_that_leaves_is_served_again_after_one_renewal() {
    let server = Arc::new(Server::default());
    let (a, b) = (process(&server, "a"), process(&server, "b"));
    pass(&[&a, &b], Duration::from_secs(10)).await;
    b.stop().await;
    assert!(all_served(&[&a]).await <= Duration::from_secs(2) + TICK * 2);
    a.stop().await;
    assert_eq!(
        server.spec()["holderIdentity"],
        "",
        "the last one gives the Lease back"
    );
    let again = process(&server, "c");
    assert!(all_served(&[&again]).await <= TICK * 2);
}

/// Permits for all namespaces that it holds.
fn work(process: &Process) -> Vec<Permit> {
    let enter = |name: &String| process.share.enter(name);
    namespaces().iter().filter_map(enter).collect()
}

#[tokio::test(start_paused = true)]
async fn who_comes_waits_for_what_is_under_way_and_not_for_ever() {
    let server = Arc::new(Server::default());
    let a = process(&server, "a");
    all_served(&[&a]).await;
    let under_way = work(&a);
    assert_eq!(under_way.len(), 30);
    let b = process(&server, "b");
    pass(&[&a, &b], Duration::from_secs(4)).await;
    assert_eq!(shares(&[&b]), [0]);
    // Those that hang are told to end, of what is lost only.
    pass(&[&a, &b], Duration::from_secs(5)).await;
    let told = async {
        let mut told = 0;
        for permit in &under_way {
            let ended = tokio::time::timeout(Duration::from_secs(1), permit.dropped());
            told += usize::from(ended.await.is_ok());
        }
        told
    };
    let told = told.await;
    assert_eq!(30 - told, shares(&[&a])[0]);
    assert_eq!(shares(&[&b]), [0], "they have not ended yet");
    drop(under_way);
    pass(&[&a, &b], Duration::from_secs(5)).await;
    assert_eq!(shares(&[&a, &b]), [30 - told, told]);
}

#[tokio::test(start_paused = true)]
async fn while_the_server_comes_and_goes_for_each_of_them_no_two_work_on_a_namespace() {
    let server = Arc::new(Server::default());
    let processes = ["a", "b", "c"].map(|identity| process(&server, identity));
    let all: Vec<&Process> = processes.iter().collect();
    let mut served = 0;
    for tick in 0_usize..6000 {
        tokio::time::sleep(TICK).await;
        let cut = |place: usize| tick / 100 % (place + 3) == place;
        for (place, process) in all.iter().enumerate() {
            process.is_cut_off.store(cut(place), Ordering::SeqCst);
        }
        server.away.store(tick % 700 > 650, Ordering::SeqCst);
        served += 30 - unserved(&all);
    }
    assert!(served > 30 * 2000, "somebody must work, too: {served}");
    for process in &all {
        process.is_cut_off.store(false, Ordering::SeqCst);
    }
    server.away.store(false, Ordering::SeqCst);
    pass(&all, Duration::from_secs(30)).await;
    assert_eq!(all_served(&all).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn whatever_is_written_into_the_record_is_over_when_it_has_been_silent_for_long() {
    let bogus = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("bogus-{number}")).collect();
        let entry = json!({"process": "0", "beat": 1, "lasts": 10, "claims": 1});
        let replicas: serde_json::Map<_, _> =
            names.iter().map(|it| (it.clone(), entry.clone())).collect();
        json!({"view": 1, "views": {"1": names}, "replicas": replicas}).to_string()
    };
    for text in [
        "{\"not\": \"a record\"}".to_owned(),
        "garbage".to_owned(),
        bogus(20),
        bogus(1000),
    ] {
        let server = Arc::new(Server::default());
        let (a, b) = (process(&server, "a"), process(&server, "b"));
        pass(&[&a, &b], Duration::from_secs(10)).await;
        write_record(&server, &text);
        pass(&[&a, &b], Duration::from_secs(2)).await;
        let again = all_served(&[&a, &b]).await;
        assert!(
            again <= SERVED_AGAIN + Duration::from_secs(4),
            "{again:?} after {text}"
        );
        pass(&[&a, &b], Duration::from_secs(5)).await;
        let record = record(&server);
        let names: Vec<&String> = record["replicas"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(record["views"].as_object().unwrap().len(), 1, "{record}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_deleted_while_they_work_is_made_again_and_no_two_work_meanwhile() {
    let server = Arc::new(Server::default());
    let (a, b) = (process(&server, "a"), process(&server, "b"));
    pass(&[&a, &b], Duration::from_secs(10)).await;
    *server.lease.lock() = None;
    // They go on until they have noticed.
    pass(&[&a, &b], Duration::from_secs(3)).await;
    assert!(all_served(&[&a, &b]).await <= SERVED_AGAIN);
}

#[tokio::test(start_paused = true)]
async fn who_leads_alone_and_those_who_share_wait_for_each_other() {
    let server = Arc::new(Server::default());
    let tasks = Tasks::new();
    let elect = |identity: &str| {
        let metrics = Arc::new(Metrics::new());
        Leadership::elect(
            &server.client(),
            settings(identity),
            advancing(),
            metrics,
            &tasks,
        )
        .unwrap()
    };
    let alone = elect("alone");
    tokio::time::sleep(TICK).await;
    assert!(alone.is_leader());
    let (a, b) = (process(&server, "a"), process(&server, "b"));
    pass(&[&a, &b], Duration::from_secs(40)).await;
    assert_eq!(shares(&[&a, &b]), [0, 0]);
    alone.hand_over();
    assert!(all_served(&[&a, &b]).await <= Duration::from_secs(8));
    let alone = elect("alone-again");
    pass(&[&a, &b], Duration::from_secs(40)).await;
    assert!(!alone.is_leader());
    a.stop().await;
    pass(&[&b], Duration::from_secs(5)).await;
    assert!(!alone.is_leader());
    b.stop().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(alone.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_restarts_under_its_name_goes_on_and_one_with_the_name_of_another_does_not_take_turns()
 {
    let server = Arc::new(Server::default());
    let (a, b) = (process(&server, "a"), process(&server, "b"));
    pass(&[&a, &b], Duration::from_secs(10)).await;
    let before = shares(&[&a, &b]);
    a.is_cut_off.store(true, Ordering::SeqCst);
    pass(&[&a, &b], Duration::from_secs(7)).await;
    // The next container of the pod.
    let again = process(&server, "a");
    assert!(all_served(&[&again, &b]).await <= TICK * 2);
    assert_eq!(shares(&[&again, &b]), before);
    a.is_cut_off.store(false, Ordering::SeqCst);
    pass(&[&a, &again, &b], Duration::from_mins(1)).await;
    assert_eq!(shares(&[&a, &again, &b]), [0, before[0], before[1]]);
}
