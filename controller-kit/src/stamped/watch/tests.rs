//! Which watches exist, and what they tell of an API server that answers as the test says.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::*;
use crate::stamped::LISTING_PATIENCE;
use crate::stamped::scripted::{
    failure, is_watch, listing, page, path, scripted, served, settings, watches_over,
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
        heard.lock().unwrap().push(format!("{kind} {}", key.name));
    });
    let settings = WatchSettings {
        moved,
        ..settings()
    };
    let watches = scripted(&tasks, settings, answer);
    let watch = watches.ensure(&served("Test"), &path("status"));
    assert_eq!(watch.ready().await, Readiness::Synced);
    told.lock().unwrap().clear();
    let kind = &watch.served().kind;
    watches.deleted(kind, &ObjectKey::new("n", "a"), "a");
    assert_eq!(*told.lock().unwrap(), [format!("{kind} a")]);
    watches.deleted(kind, &ObjectKey::new("n", "b"), "another");
    assert_eq!(told.lock().unwrap().len(), 1, "another object has the name");
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
        heard.lock().unwrap().insert(name.to_owned());
    });
    let settings = WatchSettings { wake, ..settings() };
    let watches = scripted(&tasks, settings, answer);
    let watch = watches.ensure(&served("Test"), &path("status"));
    let told = async |expected: &[&str]| {
        let expected: BTreeSet<String> = expected.iter().map(|name| (*name).to_owned()).collect();
        test_support::eventually("owners are woken", Duration::from_mins(1), async || {
            let seen = woken.lock().unwrap().clone();
            if seen == expected { Ok(()) } else { Err(seen) }
        })
        .await;
        woken.lock().unwrap().clear();
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
        heard.lock().unwrap().push(format!("{namespace}/{name}"));
    });
    let settings = WatchSettings { wake, ..settings() };
    let watches = scripted(&tasks, settings, answer);
    let first = watches.ensure(&served("Test"), &path("status"));
    assert_eq!(first.ready().await, Readiness::Synced);
    assert!(woken.lock().unwrap().is_empty());

    let second = watches.ensure(&served("Test"), &path("spec"));
    assert!(first.is_replaced());
    assert_eq!(second.ready().await, Readiness::Synced);
    let woken = test_support::eventually(
        "both owners are woken",
        Duration::from_mins(1),
        async || {
            let woken = woken.lock().unwrap().clone();
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
