//! One behaviour per test; time is paused, so waits are exact and cost nothing.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::state::{Pick, State};
use super::{Cause, Lane, Next, ObjectKey, Scheduler, SchedulerConfig, Terms, Work, run};
use crate::metrics::Metrics;

const DEBOUNCE: Duration = Duration::from_millis(10);

fn config(concurrency: usize) -> SchedulerConfig {
    SchedulerConfig {
        concurrency,
        retry_concurrency: 1,
        debounce: DEBOUNCE,
        progress_debounce: DEBOUNCE,
        backoff_min: Duration::from_secs(1),
        backoff_max: Duration::from_mins(1),
        slow: Duration::from_secs(55),
        // The top of every range.
        jitter: Arc::new(|| 1.0),
        congested: Arc::new(|| false),
    }
}

fn congested(concurrency: usize) -> SchedulerConfig {
    SchedulerConfig {
        congested: Arc::new(|| true),
        ..config(concurrency)
    }
}

fn scheduler(concurrency: usize) -> Scheduler {
    Scheduler::new(config(concurrency))
}

fn key(text: &str) -> ObjectKey {
    let (namespace, name) = text.split_once('/').unwrap();
    ObjectKey::new(namespace, name)
}

/// The next owner, if one is handed out without waiting for anything.
async fn now(scheduler: &Scheduler) -> Option<Work> {
    tokio::select! {
        biased;
        work = scheduler.next() => Some(work),
        () = tokio::task::yield_now() => None,
    }
}

async fn names(scheduler: &Scheduler, count: usize) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..count {
        let Some(work) = now(scheduler).await else {
            break;
        };
        names.push(work.key().to_string());
        work.finish(Next::Done);
    }
    names
}

/// Runs the next owner to the end and tells how long it had to wait for it.
async fn waited(scheduler: &Scheduler, outcome: Next) -> Duration {
    let before = Instant::now();
    scheduler.next().await.finish(outcome);
    before.elapsed()
}

#[tokio::test(start_paused = true)]
async fn several_wakes_are_one_run() {
    let queue = scheduler(4);
    for _ in 0..5 {
        queue.wake(key("a/1"), Lane::Fresh, None);
    }
    assert_eq!(names(&queue, 5).await, ["a/1"]);
}

#[tokio::test(start_paused = true)]
async fn the_first_wake_is_not_delayed() {
    let queue = scheduler(1);
    queue.wake(key("a/1"), Lane::Fresh, None);
    assert_eq!(waited(&queue, Next::Done).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_wake_right_after_a_run_waits_for_the_debounce() {
    let queue = scheduler(1);
    queue.wake(key("a/1"), Lane::Fresh, None);
    waited(&queue, Next::Done).await;
    queue.wake(key("a/1"), Lane::Progress, None);
    assert_eq!(waited(&queue, Next::Done).await, DEBOUNCE);
}

/// What began the next run, in milliseconds; the run ends with `outcome`.
async fn begun(scheduler: &Scheduler, outcome: Next) -> (bool, u128) {
    let work = scheduler.next().await;
    let Cause { woken, pause } = work.cause();
    work.finish(outcome);
    (woken, pause.as_millis())
}

#[tokio::test(start_paused = true)]
async fn a_run_knows_whether_something_woke_it_and_how_long_it_was_to_wait() {
    let queue = scheduler(1);
    let after = |seconds| Next::After(Duration::from_secs(seconds));
    queue.wake(key("a/1"), Lane::Fresh, None);
    assert_eq!(begun(&queue, after(30)).await, (true, 0));
    assert_eq!(begun(&queue, Next::Slow).await, (false, 30_000));
    assert_eq!(begun(&queue, Next::Backoff).await, (false, 44_000));
    assert_eq!(begun(&queue, after(30)).await, (false, 1_000));

    // Something wakes it before its time: at once, or when events were gathered.
    queue.wake(key("a/1"), Lane::Fresh, None);
    assert_eq!(begun(&queue, after(30)).await, (true, 0));
    queue.wake(key("a/1"), Lane::Fresh, Some(Duration::from_millis(200)));
    assert_eq!(begun(&queue, Next::Done).await, (true, 200));
    queue.wake(key("a/1"), Lane::Fresh, None);
    assert_eq!(
        begun(&queue, Next::Done).await,
        (true, DEBOUNCE.as_millis())
    );

    // Something wakes it while it runs.
    queue.wake(key("a/1"), Lane::Fresh, None);
    let work = queue.next().await;
    queue.wake(key("a/1"), Lane::Progress, None);
    work.finish(after(30));
    assert_eq!(begun(&queue, after(30)).await, (true, DEBOUNCE.as_millis()));
    assert_eq!(begun(&queue, Next::Done).await, (false, 30_000));
}

#[tokio::test(start_paused = true)]
async fn that_no_slot_is_free_is_no_pause() {
    let queue = scheduler(1);
    queue.wake(key("a/1"), Lane::Fresh, None);
    let hanging = queue.next().await;
    queue.wake(key("b/1"), Lane::Fresh, Some(Duration::from_millis(20)));
    tokio::time::advance(Duration::from_mins(1)).await;
    assert!(now(&queue).await.is_none());
    hanging.finish(Next::Done);
    assert_eq!(begun(&queue, Next::Done).await, (true, 20));
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_rests_is_not_woken_before_it_is_time() {
    let (hold, wait) = (Duration::from_secs(5), Duration::from_secs(8));
    let queue = scheduler(1);
    queue.wake(key("a/1"), Lane::Fresh, None);
    let rest = Next::Rest { hold, wait };
    waited(&queue, rest).await;
    // Nobody wakes it.
    assert_eq!(waited(&queue, rest).await, wait);
    // It is woken while it rests, and while it runs.
    queue.wake(key("a/1"), Lane::Progress, None);
    assert_eq!(waited(&queue, rest).await, hold);
    let work = queue.next().await;
    queue.wake(key("a/1"), Lane::Fresh, Some(Duration::from_secs(1)));
    work.finish(rest);
    assert_eq!(waited(&queue, Next::Done).await, hold);
    // And afterwards as ever.
    queue.wake(key("a/1"), Lane::Fresh, None);
    assert_eq!(waited(&queue, Next::Done).await, DEBOUNCE);
    // Another one does not rest with it.
    queue.wake(key("a/1"), Lane::Fresh, None);
    waited(&queue, rest).await;
    queue.wake(key("a/2"), Lane::Fresh, None);
    assert_eq!(waited(&queue, Next::Done).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_owner_under_way_waits_less_than_one_that_was_edited() {
    let progress = Duration::from_millis(1);
    let queue = Scheduler::new(SchedulerConfig {
        progress_debounce: progress,
        ..config(1)
    });
    queue.wake(key("a/1"), Lane::Fresh, None);
    waited(&queue, Next::Done).await;
    for (lane, wait) in [(Lane::Progress, progress), (Lane::Fresh, DEBOUNCE)] {
        queue.wake(key("a/1"), lane, None);
        assert_eq!(waited(&queue, Next::Done).await, wait);
        queue.wake(key("a/1"), lane, Some(Duration::ZERO));
        let work = now(&queue).await.unwrap();
        queue.wake(key("a/1"), lane, None);
        work.finish(Next::Done);
        assert_eq!(
            waited(&queue, Next::Done).await,
            wait,
            "also when it was woken while it ran"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_explicit_delay_is_kept_exactly() {
    let queue = scheduler(1);
    queue.wake(key("a/1"), Lane::Fresh, Some(Duration::from_millis(250)));
    assert_eq!(waited(&queue, Next::Done).await, Duration::from_millis(250));
    queue.wake(key("a/1"), Lane::Fresh, Some(Duration::ZERO));
    assert_eq!(waited(&queue, Next::Done).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_earliest_wake_wins() {
    let queue = scheduler(1);
    queue.wake(key("a/1"), Lane::Fresh, Some(Duration::from_secs(9)));
    queue.wake(key("a/1"), Lane::Fresh, Some(Duration::from_secs(3)));
    queue.wake(key("a/1"), Lane::Fresh, Some(Duration::from_secs(6)));
    assert_eq!(waited(&queue, Next::Done).await, Duration::from_secs(3));
    assert!(
        tokio::time::timeout(Duration::from_mins(1), queue.next())
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn owners_under_way_go_before_new_ones() {
    let queue = scheduler(1);
    for owner in ["a/new1", "a/new2"] {
        queue.wake(key(owner), Lane::Fresh, None);
    }
    queue.wake(key("a/underway"), Lane::Progress, None);
    assert_eq!(names(&queue, 3).await, ["a/underway", "a/new1", "a/new2"]);
}

#[tokio::test(start_paused = true)]
async fn a_better_lane_moves_a_waiting_owner_forward() {
    let queue = scheduler(1);
    for owner in ["a/1", "a/2", "a/3"] {
        queue.wake(key(owner), Lane::Fresh, None);
    }
    queue.wake(key("a/3"), Lane::Progress, None);
    queue.wake(key("a/3"), Lane::Retry, None);
    assert_eq!(names(&queue, 4).await, ["a/3", "a/1", "a/2"]);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_progress_does_not_starve_new_owners() {
    let queue = scheduler(1);
    for number in 0..100 {
        queue.wake(key(&format!("busy/{number}")), Lane::Progress, None);
    }
    queue.wake(key("other/1"), Lane::Fresh, None);
    let order = names(&queue, 101).await;
    let place = order.iter().position(|name| name == "other/1").unwrap();
    assert!(place <= 4, "served as number {place}");
    assert_eq!(order.len(), 101);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_owners_delay_another_namespace_by_one_slot() {
    for lane in [Lane::Progress, Lane::Fresh] {
        let queue = scheduler(1);
        for number in 0..10_000 {
            queue.wake(key(&format!("big/{number}")), lane, None);
        }
        queue.wake(key("small/1"), lane, None);
        let first = names(&queue, 2).await;
        assert!(first.contains(&"small/1".to_owned()), "{first:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn namespaces_take_turns() {
    let queue = scheduler(1);
    for owner in ["a/1", "a/2", "a/3", "b/1", "b/2", "c/1"] {
        queue.wake(key(owner), Lane::Fresh, None);
    }
    assert_eq!(
        names(&queue, 6).await,
        ["a/1", "b/1", "c/1", "a/2", "b/2", "a/3"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_empties_and_returns_stands_behind() {
    let queue = scheduler(1);
    for owner in ["a/1", "b/1", "b/2"] {
        queue.wake(key(owner), Lane::Fresh, None);
    }
    assert_eq!(names(&queue, 1).await, ["a/1"]);
    queue.wake(key("a/2"), Lane::Fresh, None);
    assert_eq!(names(&queue, 3).await, ["b/1", "a/2", "b/2"]);
}

#[tokio::test(start_paused = true)]
async fn retries_have_slots_of_their_own() {
    let queue = scheduler(2);
    for number in 0..50 {
        queue.wake(key(&format!("bad/{number}")), Lane::Retry, None);
    }
    let retry = now(&queue).await.unwrap();
    assert_eq!(retry.lane(), Lane::Retry);
    assert!(
        now(&queue).await.is_none(),
        "retries must leave the other slots alone"
    );
    queue.wake(key("good/1"), Lane::Fresh, None);
    queue.wake(key("fine/1"), Lane::Fresh, None);
    let (first, second) = (now(&queue).await.unwrap(), now(&queue).await.unwrap());
    assert_eq!((first.lane(), second.lane()), (Lane::Fresh, Lane::Fresh));
    first.finish(Next::Done);
    second.finish(Next::Done);
    retry.finish(Next::Done);
    assert_eq!(now(&queue).await.unwrap().lane(), Lane::Retry);
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_is_gathered_does_not_wait_behind_retries_that_hang() {
    let queue = scheduler(2);
    queue.wake(key("bad/hangs"), Lane::Retry, None);
    queue.wake(key("good/1"), Lane::Retry, None);
    let hanging = now(&queue).await.unwrap();
    assert!(now(&queue).await.is_none());
    queue.wake(key("good/1"), Lane::Fresh, Some(Duration::from_mins(1)));
    assert!(
        now(&queue).await.is_none(),
        "later is no reason to be first"
    );
    queue.wake(key("good/1"), Lane::Fresh, Some(Duration::from_millis(200)));
    let before = Instant::now();
    let work = queue.next().await;
    assert_eq!(
        (work.lane(), before.elapsed()),
        (Lane::Fresh, Duration::from_millis(200))
    );
    hanging.finish(Next::Done);
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_slots_are_handed_out() {
    let queue = scheduler(3);
    for number in 0..10 {
        queue.wake(key(&format!("a{number}/1")), Lane::Fresh, None);
    }
    let mut works = Vec::new();
    while let Some(work) = now(&queue).await {
        works.push(work);
    }
    assert_eq!(works.len(), 3);
    works.pop().unwrap().finish(Next::Done);
    assert!(now(&queue).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn replicas_that_share_the_owners_have_no_more_under_way_together_than_one_alone() {
    let queue = scheduler(16);
    for number in 0..40 {
        queue.wake(key(&format!("a{number}/1")), Lane::Fresh, None);
    }
    queue.share_among(3);
    let part = all_now(&queue).await;
    assert_eq!(part.len(), 6, "a third, rounded up");
    queue.share_among(1);
    let rest = all_now(&queue).await;
    assert_eq!(rest.len(), 10, "the others have gone");
    queue.share_among(100);
    drop(rest);
    assert!(all_now(&queue).await.is_empty(), "six are still under way");
    drop(part);
    assert_eq!(all_now(&queue).await.len(), 1, "never none");
}

/// Takes all that is handed out now.
async fn all_now(queue: &Scheduler) -> Vec<Work> {
    let mut works = Vec::new();
    while let Some(work) = now(queue).await {
        works.push(work);
    }
    works
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_hangs_leaves_a_quarter_of_the_slots_to_others() {
    for (lane, slots) in [(Lane::Progress, 12), (Lane::Fresh, 12), (Lane::Retry, 3)] {
        let queue = Scheduler::new(SchedulerConfig {
            retry_concurrency: 4,
            ..config(16)
        });
        for number in 0..100 {
            queue.wake(key(&format!("big/{number}")), lane, None);
        }
        let hanging = all_now(&queue).await;
        assert_eq!(hanging.len(), slots, "{lane:?}");
        queue.wake(key("small/1"), lane, None);
        queue.wake(key("small/2"), lane, None);
        let others = all_now(&queue).await;
        let names: Vec<String> = others.iter().map(|work| work.key().to_string()).collect();
        assert_eq!(names, ["small/1"], "{lane:?}: one each of the last slots");
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_may_take_a_kept_slot_again_when_it_holds_none() {
    let queue = scheduler(4);
    for owner in ["a/1", "a/2", "a/3", "b/1", "b/2"] {
        queue.wake(key(owner), Lane::Fresh, None);
    }
    let mut works = all_now(&queue).await;
    let names: Vec<String> = works.iter().map(|work| work.key().to_string()).collect();
    assert_eq!(names, ["a/1", "b/1", "a/2"], "the fourth slot is kept");
    works.remove(1).finish(Next::Done);
    let again = now(&queue).await.unwrap();
    assert_eq!(again.key().to_string(), "b/2");
    assert!(now(&queue).await.is_none(), "a holds two of the three");
    works.pop().unwrap().finish(Next::Done);
    assert_eq!(now(&queue).await.unwrap().key().to_string(), "a/3");
}

#[tokio::test(start_paused = true)]
async fn new_owners_of_a_namespace_keep_their_turn_while_only_newcomers_are_served() {
    let queue = scheduler(4);
    for number in 0..20 {
        queue.wake(key(&format!("big/{number}")), Lane::Progress, None);
    }
    queue.wake(key("big/new"), Lane::Fresh, None);
    let mut hanging = all_now(&queue).await;
    let mut served = Vec::new();
    for number in 0..10 {
        queue.wake(key(&format!("small/{number}")), Lane::Progress, None);
        names(&queue, 1).await;
        hanging.pop().unwrap().finish(Next::Done);
        let work = now(&queue).await.unwrap();
        served.push(work.key().to_string());
        hanging.push(work);
    }
    assert!(served.contains(&"big/new".to_owned()), "{served:?}");
}

/// Another namespace is known, thousands of `big` wait, and the server has been congested for a while.
async fn crowded(queue: &Scheduler) {
    queue.wake(key("small/0"), Lane::Fresh, None);
    names(queue, 1).await;
    for number in 0..1000 {
        queue.wake(key(&format!("big/{number}")), Lane::Fresh, None);
    }
    for _ in 0..20 {
        for work in all_now(queue).await {
            let again = work.key().clone();
            work.finish(Next::Done);
            queue.wake(again, Lane::Fresh, None);
        }
        tokio::time::advance(Duration::from_millis(200)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_goes_on_in_one_slot_while_the_server_is_congested() {
    let queue = Scheduler::new(congested(16));
    crowded(&queue).await;
    assert_eq!(all_now(&queue).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_crowd_stops_for_a_guest_and_goes_on() {
    let queue = Scheduler::new(congested(16));
    crowded(&queue).await;
    let big = now(&queue).await.unwrap();
    queue.wake(key("small/1"), Lane::Fresh, None);
    let start = Instant::now();
    assert_eq!(names(&queue, 2).await, ["small/1"]);
    big.finish(Next::Done);
    assert!(now(&queue).await.is_none(), "big waits");
    tokio::time::advance(Duration::from_millis(100)).await;
    queue.wake(key("small/1"), Lane::Progress, None);
    assert_eq!(names(&queue, 2).await, ["small/1"]);
    let work = queue.next().await;
    assert_eq!(&*work.key().namespace, "big");
    assert_eq!(start.elapsed(), Duration::from_millis(250));
}

#[tokio::test(start_paused = true)]
async fn a_crowd_goes_on_once_the_server_is_fast_though_nothing_comes_and_nothing_ends() {
    let slow = Arc::new(AtomicBool::new(true));
    let is_slow = slow.clone();
    let queue = Scheduler::new(SchedulerConfig {
        congested: Arc::new(move || is_slow.load(Ordering::Relaxed)),
        ..config(16)
    });
    crowded(&queue).await;
    let hanging = all_now(&queue).await;
    assert_eq!(hanging.len(), 1);
    slow.store(false, Ordering::Relaxed);
    let next = tokio::time::timeout(Duration::from_secs(5), queue.next());
    assert_eq!(&*next.await.unwrap().key().namespace, "big");
}

#[tokio::test(start_paused = true)]
async fn nobody_yields_while_the_server_is_fast() {
    let queue = scheduler(16);
    crowded(&queue).await;
    queue.wake(key("small/1"), Lane::Fresh, None);
    assert_eq!(all_now(&queue).await.len(), 12, "eleven of big");
}

#[tokio::test(start_paused = true)]
async fn nobody_yields_while_few_owners_wait() {
    let queue = Scheduler::new(congested(16));
    for number in 0..40 {
        queue.wake(key(&format!("big/{number}")), Lane::Fresh, None);
    }
    queue.wake(key("small/1"), Lane::Fresh, None);
    let names: Vec<Work> = all_now(&queue).await;
    assert_eq!(names.len(), 12, "eleven of big beside the one of small");
}

#[tokio::test(start_paused = true)]
async fn what_is_in_no_namespace_gets_all_slots() {
    let queue = scheduler(4);
    for number in 0..9 {
        queue.wake(ObjectKey::new("", &number.to_string()), Lane::Fresh, None);
    }
    assert_eq!(all_now(&queue).await.len(), 4);
}

/// Tenant `big` has 10,000 owners, each of which runs for 5 s every time; whenever the owner of `small` is
/// woken, it has a slot in the same moment.
#[tokio::test(start_paused = true)]
async fn ten_thousand_slow_owners_do_not_delay_another_namespace_at_all() {
    const OWNERS: usize = 10_000;
    let queue = Arc::new(Scheduler::new(SchedulerConfig {
        retry_concurrency: 4,
        ..config(16)
    }));
    for number in 0..OWNERS {
        let lane = Lane::ALL[number % 3];
        queue.wake(key(&format!("big/{number}")), lane, None);
    }
    let shutdown = CancellationToken::new();
    let began = Arc::new(Mutex::new(Vec::new()));
    let (noted, runs) = (began.clone(), Arc::new(AtomicUsize::new(0)));
    let (counted, stop) = (runs.clone(), shutdown.clone());
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(run(queue.clone(), until(stop), move |key| {
        let (noted, counted) = (noted.clone(), counted.clone());
        async move {
            if &*key.namespace == "small" {
                noted.lock().unwrap().push(Instant::now());
                return Next::Done;
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
            match counted.fetch_add(1, Ordering::SeqCst) % 3 {
                0 => Next::Backoff,
                1 => Next::After(Duration::ZERO),
                _ => Next::Done,
            }
        }
    }));
    let mut woken = Vec::new();
    for number in 0..200 {
        tokio::time::sleep(Duration::from_millis(1_234)).await;
        woken.push(Instant::now());
        queue.wake(key("small/1"), Lane::ALL[number % 3], None);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(*began.lock().unwrap(), woken);
    let ended = runs.load(Ordering::SeqCst);
    assert!(ended > 200 && ended < OWNERS, "{ended} of big have run");
    shutdown.cancel();
    serving.join_next().await.unwrap().unwrap();
}

/// How long a guest waits for each of its runs beside a crowd that is worked off, in a queue like this one.
async fn waits_beside(
    config: SchedulerConfig,
    namespaces: usize,
    takes: Duration,
) -> (Vec<Duration>, usize) {
    const OWNERS: usize = 20;
    let queue = Arc::new(Scheduler::new(config));
    for number in 0..namespaces * OWNERS {
        let owner = format!("crowd{}/{number}", number % namespaces);
        queue.wake(key(&owner), Lane::Fresh, None);
    }
    let shutdown = CancellationToken::new();
    let began = Arc::new(Mutex::new(Vec::new()));
    let (noted, runs) = (began.clone(), Arc::new(AtomicUsize::new(0)));
    let (counted, stop) = (runs.clone(), shutdown.clone());
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(run(queue.clone(), until(stop), move |key| {
        let (noted, counted) = (noted.clone(), counted.clone());
        async move {
            if &*key.namespace == "guest" {
                noted.lock().unwrap().push(Instant::now());
                return Next::Done;
            }
            tokio::time::sleep(takes).await;
            // Chains: most of the time, something that it made makes it go on.
            match counted.fetch_add(1, Ordering::SeqCst) % 6 {
                0 => Next::Done,
                _ => Next::After(Duration::from_millis(30)),
            }
        }
    }));
    let mut woken = Vec::new();
    tokio::time::sleep(Duration::from_secs(7)).await;
    for number in 0..60 {
        tokio::time::sleep(Duration::from_millis(1_234)).await;
        woken.push(Instant::now());
        let lane = [Lane::Fresh, Lane::Progress][number % 2];
        queue.wake(key("guest/1"), lane, None);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let ended = runs.load(Ordering::SeqCst);
    shutdown.cancel();
    serving.join_next().await.unwrap().unwrap();
    let began = began.lock().unwrap().clone();
    assert_eq!(began.len(), woken.len(), "each wake is a run");
    let waits = began.iter().zip(&woken).map(|(run, wake)| *run - *wake);
    (waits.collect(), ended)
}

#[tokio::test(start_paused = true)]
async fn a_crowd_of_five_hundred_small_namespaces_does_not_delay_another_one() {
    for (takes, congested_too) in [
        (Duration::from_millis(80), false),
        (Duration::from_millis(80), true),
        (Duration::from_secs(5), false),
    ] {
        let config = if congested_too {
            congested(16)
        } else {
            config(16)
        };
        let (waits, ended) = waits_beside(config, 500, takes).await;
        assert!(ended < 500 * 20 * 5, "the crowd was there to the end");
        let longest = waits.iter().max().unwrap();
        assert_eq!(
            *longest,
            Duration::ZERO,
            "{takes:?} {congested_too}: {waits:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_never_runs_twice_at_once_and_runs_again_after() {
    let queue = scheduler(4);
    queue.wake(key("a/1"), Lane::Fresh, None);
    let work = now(&queue).await.unwrap();
    queue.wake(key("a/1"), Lane::Progress, None);
    queue.wake(key("a/1"), Lane::Fresh, None);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert!(now(&queue).await.is_none());
    work.finish(Next::Done);
    let before = Instant::now();
    let again = queue.next().await;
    assert_eq!((again.lane(), before.elapsed()), (Lane::Progress, DEBOUNCE));
}

#[tokio::test(start_paused = true)]
async fn what_wakes_a_failing_owner_does_not_wait_for_its_back_off() {
    let queue = scheduler(1);
    queue.wake(key("a/1"), Lane::Fresh, None);
    let work = now(&queue).await.unwrap();
    queue.wake(key("a/1"), Lane::Fresh, None);
    work.finish(Next::Backoff);
    let before = Instant::now();
    let again = queue.next().await;
    assert_eq!(
        (again.lane(), before.elapsed(), again.failures()),
        (Lane::Fresh, DEBOUNCE, 1)
    );
    again.finish(Next::Backoff);
    queue.wake(key("a/1"), Lane::Fresh, None);
    assert_eq!(
        waited(&queue, Next::Done).await,
        Duration::ZERO,
        "waiting for back-off is not a rest"
    );
}

#[tokio::test(start_paused = true)]
async fn back_off_doubles_up_to_its_limit_and_a_success_ends_it() {
    let queue = scheduler(1);
    queue.wake(key("a/1"), Lane::Fresh, None);
    waited(&queue, Next::Backoff).await;
    let mut waits = Vec::new();
    for _ in 0..7 {
        waits.push(waited(&queue, Next::Backoff).await.as_secs());
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60]);
    assert_eq!(waited(&queue, Next::Done).await.as_secs(), 60);
    queue.wake(key("a/1"), Lane::Fresh, None);
    waited(&queue, Next::Backoff).await;
    assert_eq!(waited(&queue, Next::Done).await.as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_back_off_within_a_time_counts_as_a_failure_and_ends_by_then() {
    let queue = scheduler(1);
    let within = Next::BackoffWithin(Duration::from_secs(3));
    queue.wake(key("a/1"), Lane::Fresh, None);
    waited(&queue, within).await;
    let mut waits = Vec::new();
    for _ in 0..4 {
        waits.push(waited(&queue, within).await.as_secs());
    }
    assert_eq!(waits, [1, 2, 3, 3]);
    waited(&queue, Next::Backoff).await;
    assert_eq!(waited(&queue, Next::Done).await.as_secs(), 32);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_failures_in_a_row_still_wait_the_longest_time() {
    let queue = scheduler(1);
    queue.wake(key("a/1"), Lane::Fresh, None);
    for _ in 0..1000 {
        waited(&queue, Next::Backoff).await;
    }
    assert_eq!(waited(&queue, Next::Done).await.as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn owners_that_failed_together_come_back_apart() {
    let steps = AtomicUsize::new(0);
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let jitter = Arc::new(move || steps.fetch_add(1, Ordering::Relaxed) as f64 / 4.0);
    let queue = Scheduler::new(SchedulerConfig {
        jitter,
        retry_concurrency: 9,
        ..config(9)
    });
    let mut works = Vec::new();
    for number in 0..4 {
        queue.wake(key(&format!("a/{number}")), Lane::Fresh, None);
        works.push(now(&queue).await.unwrap());
    }
    for work in works {
        work.finish(Next::Backoff);
    }
    let start = Instant::now();
    let mut times = Vec::new();
    for _ in 0..4 {
        let work = queue.next().await;
        times.push(start.elapsed().as_millis());
        work.finish(Next::Done);
    }
    assert_eq!(times, [500, 625, 750, 875]);
}

#[tokio::test(start_paused = true)]
async fn slow_comes_back_within_a_minute_and_is_no_failure() {
    let queue = scheduler(1);
    queue.wake(key("a/1"), Lane::Fresh, None);
    waited(&queue, Next::Slow).await;
    let before = Instant::now();
    let work = queue.next().await;
    assert_eq!((work.lane(), work.failures()), (Lane::Retry, 0));
    assert!(
        before.elapsed() <= Duration::from_mins(1) && before.elapsed() >= Duration::from_secs(30)
    );
}

#[tokio::test(start_paused = true)]
async fn after_comes_back_as_an_owner_under_way() {
    let queue = scheduler(1);
    queue.wake(key("a/1"), Lane::Fresh, None);
    waited(&queue, Next::After(Duration::from_millis(250))).await;
    let before = Instant::now();
    let work = queue.next().await;
    assert_eq!(
        (work.lane(), before.elapsed()),
        (Lane::Progress, Duration::from_millis(250))
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_is_dropped_counts_as_a_failure_and_frees_its_slot() {
    let queue = scheduler(1);
    queue.wake(key("a/1"), Lane::Fresh, None);
    queue.wake(key("a/2"), Lane::Fresh, None);
    drop(now(&queue).await.unwrap());
    assert_eq!(names(&queue, 1).await, ["a/2"]);
    let before = Instant::now();
    assert_eq!(
        (queue.next().await.failures(), before.elapsed()),
        (1, Duration::from_secs(1))
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_next_takes_nothing() {
    let queue = scheduler(1);
    assert!(
        tokio::time::timeout(Duration::from_secs(1), queue.next())
            .await
            .is_err()
    );
    queue.wake(key("a/1"), Lane::Fresh, None);
    assert_eq!(names(&queue, 1).await, ["a/1"]);
}

#[tokio::test(start_paused = true)]
async fn every_waiting_caller_is_woken() {
    let queue = Arc::new(scheduler(8));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let queue = queue.clone();
        callers.spawn(async move { queue.next().await.key().to_string() });
    }
    tokio::task::yield_now().await;
    for number in 0..5 {
        queue.wake(key(&format!("a/{number}")), Lane::Fresh, None);
    }
    let mut served = tokio::time::timeout(Duration::from_millis(100), callers.join_all())
        .await
        .unwrap();
    served.sort();
    assert_eq!(served, ["a/0", "a/1", "a/2", "a/3", "a/4"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_handed_out_while_paused_and_nothing_is_lost() {
    let queue = scheduler(4);
    queue.wake(key("a/1"), Lane::Fresh, None);
    queue.pause();
    queue.wake(key("a/2"), Lane::Fresh, Some(Duration::from_secs(1)));
    assert!(
        tokio::time::timeout(Duration::from_secs(10), queue.next())
            .await
            .is_err()
    );
    queue.resume();
    assert_eq!(names(&queue, 3).await, ["a/1", "a/2"]);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_owner_is_gone_from_every_place() {
    let queue = scheduler(4);
    queue.wake(key("a/ready"), Lane::Fresh, None);
    queue.wake(key("a/delayed"), Lane::Fresh, Some(Duration::from_secs(1)));
    queue.wake(key("a/running"), Lane::Progress, None);
    let running = now(&queue).await.unwrap();
    assert_eq!(running.key().to_string(), "a/running");
    queue.wake(key("a/running"), Lane::Fresh, None);
    for owner in ["a/ready", "a/delayed", "a/running", "a/unknown"] {
        queue.forget(&key(owner));
    }
    running.finish(Next::Backoff);
    assert!(
        tokio::time::timeout(Duration::from_mins(10), queue.next())
            .await
            .is_err()
    );
    assert_eq!(queue.shared.state.lock().entries(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_owner_made_again_while_its_last_run_ends_starts_without_failures() {
    let queue = scheduler(4);
    queue.wake(key("a/1"), Lane::Fresh, None);
    waited(&queue, Next::Backoff).await;
    let work = queue.next().await;
    assert_eq!(work.failures(), 1);
    queue.forget(&key("a/1"));
    queue.wake(key("a/1"), Lane::Fresh, None);
    work.finish(Next::Done);
    assert_eq!(queue.next().await.failures(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_owners_at_rest() {
    let queue = scheduler(4);
    for number in 0..1000 {
        queue.wake(key(&format!("a/{number}")), Lane::Fresh, None);
    }
    assert_eq!(names(&queue, 1000).await.len(), 1000);
    tokio::time::advance(DEBOUNCE).await;
    assert!(now(&queue).await.is_none());
    assert_eq!(queue.shared.state.lock().entries(), 0);
}

#[tokio::test(start_paused = true)]
async fn depth_tells_what_waits_and_for_how_long() {
    let queue = scheduler(1);
    let metrics = Arc::new(Metrics::new());
    queue.observe(&metrics, "owners");
    for owner in ["a/1", "a/2", "a/3"] {
        queue.wake(key(owner), Lane::Fresh, None);
    }
    queue.wake(key("a/4"), Lane::Retry, Some(Duration::from_secs(100)));
    let work = now(&queue).await.unwrap();
    tokio::time::advance(Duration::from_secs(7)).await;
    let depth = queue.depth();
    assert_eq!(
        (depth.ready, depth.delayed, depth.running),
        ([0, 2, 0], 1, 1)
    );
    assert_eq!(depth.oldest[1], Duration::from_secs(7));
    work.finish(Next::Done);
    assert_eq!(
        queue.depth().delayed,
        1,
        "an owner at rest does not wait for anything"
    );
    let text = String::from_utf8(metrics.render()).unwrap();
    assert!(
        text.contains("carto_queue_depth{lane=\"fresh\",queue=\"owners\"} 2"),
        "{text}"
    );
}

/// Leading until then.
fn until(shutdown: CancellationToken) -> Terms {
    Terms {
        shutdown,
        grace: Duration::from_mins(1),
        leads: tokio::sync::watch::channel(true).1,
    }
}

/// Runs the loop over a counter until `enough` runs have ended.
async fn run_until(
    queue: &Arc<Scheduler>,
    enough: usize,
    reconcile: impl Fn(ObjectKey, usize) -> Next + Send + Sync + 'static,
) {
    let shutdown = CancellationToken::new();
    let (stop, runs) = (shutdown.clone(), Arc::new(AtomicUsize::new(0)));
    let reconcile = Arc::new(reconcile);
    run(queue.clone(), until(shutdown), move |key| {
        let (stop, runs, reconcile) = (stop.clone(), runs.clone(), reconcile.clone());
        async move {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            if run + 1 == enough {
                stop.cancel();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            reconcile(key, run)
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_reconcile_is_counted_and_retried_and_others_go_on() {
    let queue = Arc::new(scheduler(2));
    let metrics = Arc::new(Metrics::new());
    queue.observe(&metrics, "owners");
    queue.wake(key("a/poisoned"), Lane::Fresh, None);
    queue.wake(key("a/healthy"), Lane::Fresh, None);
    let start = Instant::now();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    run_until(&queue, 3, move |key, _| {
        noted.lock().unwrap().push(key.to_string());
        assert!(&*key.name != "poisoned", "boom");
        Next::Done
    })
    .await;
    assert_eq!(
        *seen.lock().unwrap(),
        ["a/poisoned", "a/healthy", "a/poisoned"]
    );
    assert!(
        start.elapsed() >= Duration::from_secs(1),
        "the retry waits for its back-off"
    );
    let text = String::from_utf8(metrics.render()).unwrap();
    assert!(text.contains("carto_reconcile_panics_total 2"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_what_is_under_way() {
    let queue = Arc::new(scheduler(2));
    queue.wake(key("a/1"), Lane::Fresh, None);
    let shutdown = CancellationToken::new();
    let ended = Arc::new(AtomicUsize::new(0));
    let (stop, count) = (shutdown.clone(), ended.clone());
    run(queue, until(shutdown), move |_| {
        stop.cancel();
        let count = count.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            count.fetch_add(1, Ordering::SeqCst);
            Next::Done
        }
    })
    .await;
    assert_eq!(ended.load(Ordering::SeqCst), 1);
}

#[derive(Debug, Clone)]
enum Move {
    Wake(usize, Lane, Option<u64>),
    Forget(usize),
    Pick,
    Finish(usize, Next),
    Advance(u64),
    ShareAmong(usize),
}

/// More than yield to a guest, with three slots.
const OWNERS: usize = 24;

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let owner = 0..OWNERS;
    let lane = prop::sample::select(Lane::ALL.to_vec());
    let outcome = prop::sample::select(vec![
        Next::Done,
        Next::Backoff,
        Next::Slow,
        Next::After(Duration::from_millis(3)),
    ]);
    let one = prop_oneof![
        4 => (owner.clone(), lane, prop::option::of(0..50_u64)).prop_map(|(owner, lane, delay)| Move::Wake(owner, lane, delay)),
        1 => owner.clone().prop_map(Move::Forget),
        4 => Just(Move::Pick),
        4 => (owner, outcome).prop_map(|(owner, outcome)| Move::Finish(owner, outcome)),
        2 => (0..100_u64).prop_map(Move::Advance),
        1 => (0..4_usize).prop_map(Move::ShareAmong),
    ];
    prop::collection::vec(one, 0..200)
}

/// Whether so many event slots and one retry slot may be taken like this, where one more was taken of these or those.
fn within_slots(
    running: &HashMap<ObjectKey, Lane>,
    event_slots: usize,
    namespace: &str,
    retries: bool,
) -> bool {
    let pool = || {
        running
            .iter()
            .filter(|(_, lane)| (**lane == Lane::Retry) == retries)
    };
    let own = pool()
        .filter(|(key, _)| &*key.namespace == namespace)
        .count();
    let (all, one) = if retries { (1, 1) } else { (event_slots, 1) };
    pool().count() <= all && own <= one
}

proptest! {
    /// Whatever happens in whatever order: no owner runs twice at once, slots are never exceeded and never all
    /// held by one namespace, every wake is followed by a run, and nothing is left behind.
    #[test]
    fn every_wake_is_followed_by_exactly_one_run_at_a_time(moves in moves()) {
        let start = std::time::Instant::now();
        let mut now = Instant::from_std(start);
        let mut state = State::new(SchedulerConfig {
            retry_concurrency: 1,
            ..congested(2)
        });
        let owners: Vec<ObjectKey> = (0..OWNERS).map(|number| key(&format!("ns{}/{number}", number / 18))).collect();
        let mut running: HashMap<ObjectKey, Lane> = HashMap::new();
        let mut owed: HashSet<ObjectKey> = HashSet::new();
        for step in moves {
            match step {
                Move::Wake(owner, lane, delay) => {
                    owed.insert(owners[owner].clone());
                    state.wake(owners[owner].clone(), lane, delay.map(Duration::from_millis), now);
                }
                Move::Forget(owner) => {
                    owed.remove(&owners[owner]);
                    state.forget(&owners[owner]);
                }
                Move::Pick => {
                    if let Pick::Run { key, lane, .. } = state.pick(now) {
                        prop_assert!(running.insert(key.clone(), lane).is_none(), "{key} runs twice");
                        let slots = state.depth(now).slots;
                        let within = within_slots(&running, slots, &key.namespace, lane == Lane::Retry);
                        prop_assert!(within, "{key} in {slots}: {running:?}");
                        owed.remove(&key);
                    } else if running.is_empty() && state.depth(now).ready != [0; 3] {
                        // A crowd waits for a guest: for a moment.
                        let soon = now + Duration::from_millis(150);
                        prop_assert!(matches!(state.pick(now), Pick::Wait(Some(until)) if until <= soon));
                        prop_assert!(matches!(state.pick(soon), Pick::Run { .. }), "somebody may always go on");
                    }
                }
                Move::Finish(owner, outcome) => {
                    if running.remove(&owners[owner]).is_some() {
                        state.finish(&owners[owner], outcome, now);
                    }
                }
                Move::Advance(millis) => now += Duration::from_millis(millis),
                Move::ShareAmong(replicas) => state.share_among(replicas),
            }
            prop_assert_eq!(state.depth(now).running, running.len());
        }
        for key in running.keys() {
            state.finish(key, Next::Done, now);
        }
        now += Duration::from_mins(10);
        while let Pick::Run { key, .. } = state.pick(now) {
            owed.remove(&key);
            state.finish(&key, Next::Done, now);
            now += Duration::from_secs(1);
        }
        prop_assert!(owed.is_empty(), "never run: {:?}", owed);
        state.pick(now + Duration::from_mins(10));
        prop_assert_eq!(state.entries(), 0);
        state.share_among(1);
        let empty = super::QueueDepth { slots: 2, ..super::QueueDepth::default() };
        prop_assert_eq!(state.depth(now), empty);
    }
}
