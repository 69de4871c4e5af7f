//! Which watches exist, and what they tell of an API server that answers as the test says.

mod scripted;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::share::tests::gaining::{OneOfThree, grows_among};
use crate::stamped::LISTING_PATIENCE;
use crate::stamped::uses::LINGER;
use scripted::{
    Answer, failure, is_watch, json_answer, listing, nothing, page, path, scripted, served,
    settings, text, watches_over,
};

/// An API server that never answers: which watches exist does not depend on it.
fn watches(tasks: &Tasks) -> Arc<StampedWatches> {
    scripted(tasks, settings(), |_| None)
}

/// The event of our own deletion finds nothing left, so that whoever waits for the place would never hear of it.
#[tokio::test]
async fn our_own_deletion_is_told_to_those_who_wait_for_the_place() {
    let tasks = Tasks::new();
    let answer = |uri: &str| (!is_watch(uri)).then(|| listing(&["a", "b"]));
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let moved: Moved = Arc::new(move |kind, key| {
        heard.lock().push(format!("{kind} {}", key.name));
    });
    let settings = WatchSettings {
        moved,
        ..settings()
    };
    let watches = scripted(&tasks, settings, answer);
    let watch = watches.ensure(&served("Test"), &path("status"));
    assert_eq!(watch.ready().await, Readiness::Synced);
    told.lock().clear();
    let kind = &watch.served().kind;
    watches.deleted(kind, &ObjectKey::new("n", "a"), "a");
    assert_eq!(*told.lock(), [format!("{kind} a")]);
    watches.deleted(kind, &ObjectKey::new("n", "b"), "another");
    assert_eq!(told.lock().len(), 1, "another object has the name");
    tasks.token().cancel();
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_was_refused_for_a_moment_is_relied_upon_again() {
    let tasks = Tasks::new();
    let refused = Arc::new(AtomicU32::new(0));
    let count = refused.clone();
    let answer = move |uri: &str| {
        if !is_watch(uri) {
            return Some(listing(&["a"]));
        }
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        first.then(|| failure(403, "not yet"))
    };
    let watches = scripted(&tasks, settings(), answer);
    let watch = watches.ensure(&served("Test"), &path("status"));
    let mut readiness = watch.readiness.subscribe();
    readiness
        .wait_for(|now| matches!(now, Readiness::Unavailable(_)))
        .await
        .unwrap();
    readiness
        .wait_for(|now| *now == Readiness::Synced)
        .await
        .unwrap();
    tasks.token().cancel();
}

#[tokio::test(start_paused = true)]
async fn a_refused_watch_says_so_and_misses_nothing_once_it_is_granted() {
    let tasks = Tasks::new();
    let granted = Arc::new(AtomicBool::new(false));
    let listings = Arc::new(AtomicU32::new(0));
    let grant = granted.clone();
    let answer = move |uri: &str| {
        let granted = granted.load(Ordering::Relaxed);
        if is_watch(uri) {
            return (!granted).then(|| failure(403, "no"));
        }
        let first = listings.fetch_add(1, Ordering::Relaxed) == 0;
        Some(match (first, granted) {
            (true, _) => listing(&["stays", "goes"]),
            (false, false) => failure(403, "no"),
            (false, true) => listing(&["stays", "comes"]),
        })
    };
    let woken = Arc::new(Mutex::new(BTreeSet::new()));
    let heard = woken.clone();
    let wake: Wake = Arc::new(move |_, name| {
        heard.lock().insert(name.to_owned());
    });
    let settings = WatchSettings { wake, ..settings() };
    let watches = scripted(&tasks, settings, answer);
    let watch = watches.ensure(&served("Test"), &path("status"));
    let told = async |expected: &[&str]| {
        let expected: BTreeSet<String> = expected.iter().map(|name| (*name).to_owned()).collect();
        test_support::eventually("owners are woken", Duration::from_mins(1), async || {
            let seen = woken.lock().clone();
            if seen == expected { Ok(()) } else { Err(seen) }
        })
        .await;
        woken.lock().clear();
    };
    told(&["of-stays", "of-goes"]).await;
    assert!(matches!(watch.ready().await, Readiness::Unavailable(_)));

    grant.store(true, Ordering::Relaxed);
    watches.rights_changed();
    assert_eq!(watch.ready().await, Readiness::Synced);
    told(&["of-goes", "of-comes"]).await;
    assert!(!watch.is_replaced());
    assert_eq!(watches.kinds(), [watch.served().kind.clone()]);
    tasks.token().cancel();
}

#[tokio::test]
async fn what_goes_while_a_watch_is_replaced_wakes_its_owner() {
    let tasks = Tasks::new();
    let listings = Arc::new(AtomicU32::new(0));
    let answer = move |uri: &str| {
        if is_watch(uri) {
            return None;
        }
        let before = listings.fetch_add(1, Ordering::Relaxed) == 0;
        let names: &[&str] = if before {
            &["stays", "goes"]
        } else {
            &["stays"]
        };
        Some(listing(names))
    };
    let woken = Arc::new(Mutex::new(Vec::new()));
    let heard = woken.clone();
    let wake: Wake = Arc::new(move |namespace, name| {
        heard.lock().push(format!("{namespace}/{name}"));
    });
    let settings = WatchSettings { wake, ..settings() };
    let watches = scripted(&tasks, settings, answer);
    let first = watches.ensure(&served("Test"), &path("status"));
    assert_eq!(first.ready().await, Readiness::Synced);
    assert!(woken.lock().is_empty());

    let second = watches.ensure(&served("Test"), &path("spec"));
    assert!(first.is_replaced());
    assert_eq!(second.ready().await, Readiness::Synced);
    let woken = test_support::eventually(
        "both owners are woken",
        Duration::from_mins(1),
        async || {
            let woken = woken.lock().clone();
            (woken.len() == 2).then_some(woken)
        },
    )
    .await;
    assert_eq!(woken, ["n/of-stays", "n/of-goes"]);
    tasks.token().cancel();
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_watch_that_was_replaced() {
    let tasks = Tasks::new();
    let watches = watches(&tasks);
    let small = watches.ensure(&served("Test"), &path("status.url"));
    watches.ensure(&served("Test"), &path("spec"));
    let began = Instant::now();
    assert!(matches!(small.ready().await, Readiness::Starting(_)));
    assert_eq!(began.elapsed(), Duration::ZERO);
    tasks.token().cancel();
}

/// A listing as a kind has it whose conversion webhook does not answer, until it is mended.
#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_is_waited_for_once_and_says_why() {
    let tasks = Tasks::new();
    let mended = Arc::new(AtomicBool::new(false));
    let mend = mended.clone();
    let answer = move |uri: &str| {
        if is_watch(uri) {
            return None;
        }
        let mended = mended.load(Ordering::Relaxed);
        Some(if mended {
            listing(&["a"])
        } else {
            failure(500, "conversion webhook failed")
        })
    };
    let watches = scripted(&tasks, settings(), answer);
    let began = Instant::now();
    let watch = watches.ensure(&served("Test"), &path("status"));
    let (one, other) = tokio::join!(watch.ready(), watch.ready());
    assert_eq!(began.elapsed(), LISTING_PATIENCE);
    assert_eq!(one, other);
    let Readiness::Failing { why, since } = one else {
        panic!("{one:?}");
    };
    assert!(why.contains("conversion webhook failed"), "{why}");
    assert_eq!(since, began);
    // Whoever comes later is not kept, nor by a watch that needs more paths.
    assert!(matches!(watch.ready().await, Readiness::Failing { .. }));
    let grown = watches.ensure(&served("Test"), &path("spec"));
    assert!(matches!(grown.ready().await, Readiness::Starting(_)));
    assert_eq!(began.elapsed(), LISTING_PATIENCE);

    // Its definition is edited: it need not wait for the back-off to end.
    let mut readiness = grown.readiness.subscribe();
    let failing = readiness.wait_for(|now| matches!(now, Readiness::Failing { .. }));
    failing.await.unwrap();
    tokio::time::sleep(Duration::from_mins(10)).await;
    mend.store(true, Ordering::Relaxed);
    let edited = Instant::now();
    watches.forget_group("test.run");
    readiness
        .wait_for(|now| *now == Readiness::Synced)
        .await
        .unwrap();
    assert!(edited.elapsed() < Duration::from_secs(1));
    tasks.token().cancel();
}

/// The first page of a long listing comes late, and the second one not at all.
#[tokio::test(start_paused = true)]
async fn a_listing_of_pages_fails_since_its_last_page_and_not_since_its_beginning() {
    const PAGE_TAKES: Duration = Duration::from_mins(1);
    let tasks = Tasks::new();
    let answer = |uri: String| async move {
        if uri.contains("continue=") {
            return Some(failure(500, "no"));
        }
        tokio::time::sleep(PAGE_TAKES).await;
        Some(page(&["a"], Some("more")))
    };
    let watches = watches_over(&tasks, settings(), answer);
    let began = Instant::now();
    let watch = watches.ensure(&served("Test"), &Projection::default());
    assert!(matches!(watch.ready().await, Readiness::Starting(_)));
    let mut readiness = watch.readiness.subscribe();
    let failing = readiness.wait_for(|now| matches!(now, Readiness::Failing { .. }));
    let Readiness::Failing { since, .. } = failing.await.unwrap().clone() else {
        panic!("it is not failing");
    };
    assert!(since >= began + PAGE_TAKES, "{:?}", since - began);
    tasks.token().cancel();
}

type Fails = Mutex<Option<fn() -> Answer>>;

/// A kind of two objects that is listed, and watched for a minute each, while all is well. Else
/// this is what is answered.
struct Scene {
    tasks: Tasks,
    watch: Arc<KindWatch>,
    fails: Arc<Fails>,
    listings: Arc<AtomicU32>,
    woken: Arc<Mutex<Vec<String>>>,
    began: Instant,
}

impl Scene {
    async fn set(hears_others: bool) -> Self {
        let (tasks, began) = (Tasks::new(), Instant::now());
        let fails = Arc::<Fails>::default();
        let (listings, woken) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::default()));
        let heard: Arc<Mutex<Vec<String>>> = woken.clone();
        let settings = WatchSettings {
            wake: Arc::new(move |_, name| heard.lock().push(name.to_owned())),
            hears_others: Arc::new(move |_| hears_others),
            clock: Arc::new(move || Timestamp::UNIX_EPOCH + began.elapsed()),
            ..settings()
        };
        let (failing, count) = (fails.clone(), listings.clone());
        let answer = move |uri: String| {
            let failure = failing.lock().map(|failure| failure());
            if !is_watch(&uri) {
                count.fetch_add(1, Ordering::Relaxed);
            }
            async move {
                match failure {
                    Some(failure) => Some(failure),
                    None if is_watch(&uri) => {
                        tokio::time::sleep(Duration::from_mins(1)).await;
                        Some(nothing())
                    }
                    None => Some(listing(&["a", "b"])),
                }
            }
        };
        let watches = watches_over(&tasks, settings, answer);
        let watch = watches.ensure(&served("Test"), &path("status"));
        assert_eq!(watch.ready().await, Readiness::Synced);
        Self {
            tasks,
            watch,
            fails,
            listings,
            woken,
            began,
        }
    }

    fn answers(&self, failure: Option<fn() -> Answer>) {
        *self.fails.lock() = failure;
    }

    async fn becomes(&self, is_so: fn(&Readiness) -> bool) -> Readiness {
        let mut readiness = self.watch.readiness.subscribe();
        readiness.wait_for(is_so).await.unwrap().clone()
    }

    fn woken(&self) -> Vec<String> {
        let mut woken = std::mem::take(&mut *self.woken.lock());
        woken.sort();
        woken
    }

    fn listings(&self) -> u32 {
        self.listings.swap(0, Ordering::Relaxed)
    }
}

fn is_stale(readiness: &Readiness) -> bool {
    matches!(readiness, Readiness::Stale { .. })
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_with_errors_for_long_is_believed_no_longer_until_it_is_listed_again() {
    // Of a conversion webhook that does not answer, before and after the store of the kind begins
    // anew; of a server behind the API server.
    const BROKEN: [fn() -> Answer; 3] = [
        || failure(500, "conversion webhook failed"),
        || {
            failure(
                429,
                "storage is (re)initializing: conversion webhook failed",
            )
        },
        || text(503, "conversion webhook failed"),
    ];
    for broken in BROKEN {
        let scene = Scene::set(true).await;
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(scene.listings(), 1, "while all is well");
        assert_eq!(scene.woken(), [""; 0]);

        scene.answers(Some(broken));
        let stale = scene.becomes(is_stale).await;
        let Readiness::Stale { why, since, at } = stale else {
            panic!("{stale:?}");
        };
        assert!(why.contains("conversion webhook failed"), "{why}");
        // The watch ends within a minute, and is tried again once a minute.
        let took = since.elapsed();
        assert!(
            took >= STALE_AFTER && took <= STALE_AFTER + Duration::from_mins(2),
            "{took:?}"
        );
        assert_eq!(
            at.duration_since(Timestamp::UNIX_EPOCH).as_secs(),
            i64::try_from((since - scene.began).as_secs()).unwrap()
        );
        assert_eq!(scene.woken(), ["of-a", "of-b"]);
        tokio::time::sleep(Duration::from_hours(1)).await;
        let asked = scene.listings();
        assert!((60..=90).contains(&asked), "once a minute: {asked}");
        assert_eq!(scene.woken(), [""; 0], "they know");
        let still = scene.watch.readiness.borrow().clone();
        assert!(matches!(still, Readiness::Stale { at: then, .. } if then == at));

        scene.answers(None);
        scene.becomes(|now| *now == Readiness::Synced).await;
        assert_eq!(scene.woken(), ["of-a", "of-b"]);
        scene.listings();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(scene.listings(), 0, "all is well again");
        scene.tasks.token().cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn what_everything_suffers_from_makes_nothing_stale() {
    const PASSING: [fn() -> Answer; 4] = [
        || text(429, "Too many requests, please try again later."),
        || failure(500, "etcdserver: request timed out"),
        || failure(504, "Timeout: request did not complete"),
        || text(200, "cut off"),
    ];
    let alone: [(fn() -> Answer, bool); 1] = [(|| text(503, "no backend"), false)];
    for (failure, hears_others) in PASSING
        .map(|failure| (failure, true))
        .into_iter()
        .chain(alone)
    {
        let scene = Scene::set(hears_others).await;
        scene.answers(Some(failure));
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(*scene.watch.readiness.borrow(), Readiness::Synced);
        assert_eq!(scene.woken(), [""; 0]);
        scene.answers(None);
        scene.tasks.token().cancel();
    }
}

/// What is held is true each time.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_listed_and_fails_to_be_watched_is_listed_now_and_then_and_not_stale() {
    let tasks = Tasks::new();
    let listings = Arc::new(AtomicU32::new(0));
    let count = listings.clone();
    let answer = move |uri: &str| {
        if is_watch(uri) {
            return Some(failure(500, "no"));
        }
        count.fetch_add(1, Ordering::Relaxed);
        Some(listing(&["a"]))
    };
    let watches = scripted(&tasks, settings(), answer);
    let watch = watches.ensure(&served("Test"), &path("status"));
    assert_eq!(watch.ready().await, Readiness::Synced);
    let mut readiness = watch.readiness.subscribe();
    let stale = readiness.wait_for(is_stale);
    let hours = tokio::time::timeout(Duration::from_hours(2), stale);
    assert!(hours.await.is_err(), "it is stale");
    let listed = listings.load(Ordering::Relaxed);
    assert!((8..=25).contains(&listed), "{listed}");
    tasks.token().cancel();
}

/// It is not waited for anew.
#[tokio::test(start_paused = true)]
async fn a_watch_that_replaces_a_stale_one_is_stale_until_it_is_listed() {
    let tasks = Tasks::new();
    let broken = Arc::new(AtomicBool::new(false));
    let fails = broken.clone();
    let answer = move |uri: String| {
        let fails = fails.load(Ordering::Relaxed);
        async move {
            if fails {
                return Some(failure(500, "no"));
            }
            if is_watch(&uri) {
                tokio::time::sleep(Duration::from_mins(1)).await;
                return Some(nothing());
            }
            Some(listing(&["a"]))
        }
    };
    let watches = watches_over(&tasks, settings(), answer);
    let first = watches.ensure(&served("Test"), &path("status"));
    assert_eq!(first.ready().await, Readiness::Synced);
    broken.store(true, Ordering::Relaxed);
    first
        .readiness
        .subscribe()
        .wait_for(is_stale)
        .await
        .unwrap();
    assert_eq!(watches.stale(), [("tests.test.run".to_owned(), true)]);

    let second = watches.ensure(&served("Test"), &path("spec"));
    let began = Instant::now();
    assert!(is_stale(&second.ready().await));
    assert_eq!(began.elapsed(), Duration::ZERO);
    broken.store(false, Ordering::Relaxed);
    let mut readiness = second.readiness.subscribe();
    readiness
        .wait_for(|now| *now == Readiness::Synced)
        .await
        .unwrap();
    assert_eq!(watches.stale(), [("tests.test.run".to_owned(), false)]);
    tasks.token().cancel();
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_may_be_listed_but_not_watched_is_listed_ever_less_often() {
    let tasks = Tasks::new();
    let listings = Arc::new(AtomicU32::new(0));
    let count = listings.clone();
    let answer = move |uri: &str| {
        if is_watch(uri) {
            return Some(failure(403, "no"));
        }
        count.fetch_add(1, Ordering::Relaxed);
        Some(listing(&["a"]))
    };
    let watches = scripted(&tasks, settings(), answer);
    watches.ensure(&served("Test"), &path("status"));
    tokio::time::sleep(Duration::from_hours(1)).await;
    let listed = listings.load(Ordering::Relaxed);
    assert!((10..=25).contains(&listed), "{listed}");
    tasks.token().cancel();
}

#[tokio::test]
async fn a_kind_in_use_by_a_walk_under_way_is_kept() {
    let tasks = Tasks::new();
    let watches = watches(&tasks);
    let kind = served("Test").kind.clone();
    watches.ensure(&served("Test"), &path("status"));
    watches.add_use("owner", &kind);
    let now = Instant::now();
    watches.sweep(now);
    watches.sweep(now + LINGER);
    assert_eq!(watches.kinds(), [kind]);
    tasks.token().cancel();
}

#[tokio::test]
async fn a_kind_is_watched_once_for_all_owners() {
    let tasks = Tasks::new();
    let watches = watches(&tasks);
    let first = watches.ensure(&served("Test"), &path("status.url"));
    let second = watches.ensure(&served("Test"), &path("status.url"));
    assert!(Arc::ptr_eq(&first, &second));
    tasks.token().cancel();
}

#[tokio::test]
async fn a_watch_that_needs_more_paths_replaces_the_one_with_fewer() {
    let tasks = Tasks::new();
    let watches = watches(&tasks);
    let small = watches.ensure(&served("Test"), &path("status.url"));
    assert!(!watches.covers(&small.served().kind, &path("spec")));
    let grown = watches.ensure(&served("Test"), &path("spec"));
    assert!(small.cancel.is_cancelled());
    assert!(watches.covers(&grown.served().kind, &path("status.url.deeper")));
    assert!(watches.covers(&grown.served().kind, &path("spec")));
    tasks.token().cancel();
}

#[tokio::test]
async fn a_watch_stops_when_its_kind_was_unused_for_a_while() {
    let tasks = Tasks::new();
    let watches = watches(&tasks);
    let (used, unused) = (served("Used"), served("Unused"));
    let watch = watches.ensure(&unused, &path("status"));
    watches.ensure(&used, &path("status"));
    let both = BTreeSet::from([used.kind.clone(), unused.kind.clone()]);
    watches.set_uses("owner", both);
    let now = Instant::now();
    watches.sweep(now);
    watches.sweep(now + LINGER * 2);
    assert_eq!(watches.kinds().len(), 2, "an owner uses both");

    watches.set_uses("owner", BTreeSet::from([used.kind.clone()]));
    watches.sweep(now);
    watches.sweep(now + LINGER / 2);
    assert_eq!(watches.kinds().len(), 2, "not long enough");
    watches.sweep(now + LINGER);
    assert_eq!(watches.kinds(), std::slice::from_ref(&used.kind));
    assert!(watch.cancel.is_cancelled());

    watches.set_uses("owner", BTreeSet::new());
    watches.sweep(now);
    watches.sweep(now + LINGER);
    assert!(watches.kinds().is_empty());
    tasks.token().cancel();
}

/// As the server lists this object of a namespace, or those of several.
fn objects_in<'a>(namespaces: impl Iterator<Item = &'a str>, version: &str) -> Answer {
    let object = |namespace: &str| {
        json!({"metadata": {"name": "app", "namespace": namespace, "uid": namespace, "resourceVersion": version,
            "ownerReferences": [{"apiVersion": "carto.run/v1alpha1", "kind": "Workload", "name": "app",
                "uid": "o", "controller": true}]}})
    };
    let items: Vec<Value> = namespaces.map(object).collect();
    json_answer(
        200,
        &json!({"metadata": {"resourceVersion": "9"}, "items": items}),
    )
}

#[tokio::test]
async fn what_falls_to_a_replica_is_listed_by_namespace_and_the_rest_is_not_listed_again() {
    let mut replica = OneOfThree::new();
    let namespaces: Vec<String> = (0..60).map(|number| format!("team-{number}")).collect();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let (log, all) = (asked.clone(), namespaces.clone());
    let answer = move |path: &str| {
        if is_watch(path) {
            return None;
        }
        log.lock().push(path.to_owned());
        let of_one = path.split("/namespaces/").nth(1);
        Some(match of_one.and_then(|rest| rest.split('/').next()) {
            Some(namespace) => objects_in(std::iter::once(namespace), "7"),
            None => objects_in(all.iter().map(String::as_str), "5"),
        })
    };
    let settings = WatchSettings {
        share: MayShare(Some(replica.share.clone())),
        ..settings()
    };
    let tasks = Tasks::new();
    let watches = scripted(&tasks, settings, answer);
    replica.begins();
    let everywhere: Vec<Box<str>> = namespaces.iter().map(|it| Box::from(&**it)).collect();
    grows_among(&replica.share, 0, &everywhere);
    let watch = watches.ensure(&served("Test"), &path("status"));
    assert_eq!(watch.ready().await, Readiness::Synced);
    let (first, before) = (watch.len(), replica.share.accepted());
    replica.share.listed(replica.share.listing().unwrap());

    replica.one_dies();
    grows_among(&replica.share, 1, &everywhere);
    watches.read_anew();
    assert!(matches!(*watch.readiness.borrow(), Readiness::Starting(_)));
    assert_eq!(watch.ready().await, Readiness::Synced);
    let after = replica.share.accepted();
    let gained = namespaces
        .iter()
        .filter(|it| after.takes(it) && !before.takes(it));
    let gained: BTreeSet<String> = gained.cloned().collect();
    assert!(!gained.is_empty());
    assert_eq!(watch.len(), first + gained.len());
    let asked: Vec<String> = asked.lock()[1..].to_vec();
    let listed: BTreeSet<String> = asked
        .iter()
        .map(|path| path.split('/').nth(5).unwrap().to_owned())
        .collect();
    assert_eq!(
        (listed, asked.len()),
        (gained.clone(), gained.len()),
        "{asked:?}"
    );
    tasks.token().cancel();
}
