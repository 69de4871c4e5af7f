use test_support::Usage;

use super::limits::COLD;
use super::*;
use crate::latency::Latency;
use crate::pairs::Pair;
use crate::phases::Work;
use crate::phases::blocks::Blocks;
use crate::phases::chains::Run;
use crate::phases::change::{Single, SourceChange};
use crate::phases::cold::Cold;
use crate::phases::fairness::{Fairness, Singles};
use crate::phases::intents::{Boms, Intents};
use crate::phases::runs::{Reruns, Rounds, Runs};
use crate::phases::steady::{Restart, Steady};
use crate::tally::Requests;

/// A controller between floors of ten seconds.
fn pair(controller: f64) -> Pair {
    let floor = [10.0, 10.0];
    Pair { floor, controller }
}

/// Medians, against those of the bare client.
fn single(ours: f64, bare: f64) -> Single {
    let [latency, bare] = [ours, bare].map(|p50| Latency::with(p50, p50));
    Single { latency, bare }
}

fn peak(peak_rss_mib: f64) -> Usage {
    Usage {
        peak_rss_mib,
        ..Usage::default()
    }
}

/// So many writes, and events, which do not count.
fn work(writes: u64) -> Work {
    Work {
        requests: Requests {
            writes,
            events: writes,
            ..Requests::default()
        },
        usage: peak(59.0),
        ..Work::default()
    }
}

fn good_steady() -> Steady {
    Steady {
        reconciles: 10_000,
        requests: Requests {
            leases: 4,
            watches: 1,
            ..Requests::default()
        },
        cpu_seconds: 1.0,
        pace_ms: 2.0,
        ..Steady::default()
    }
}

fn good_restart() -> Restart {
    Restart {
        killed: peak(59.0),
        requests: Requests {
            lists: 12,
            watches: 12,
            discovery: 3,
            ..Requests::default()
        },
        ..Restart::default()
    }
}

/// Of so many owners, with so many writes for each.
fn good_blocks(owners: u64, writes: u64) -> Blocks {
    Blocks {
        owners: usize::try_from(owners).unwrap(),
        pairs: vec![pair(14.9); 2],
        work: work(owners * writes),
        ..Blocks::default()
    }
}

/// A run that clears every bar by a little.
fn good_run(owners: u32) -> Run {
    let cpu_seconds = f64::from(owners) / 100.0;
    Run {
        kind: "Workload",
        owners: owners as usize,
        steps: 5,
        cold: Cold {
            blocks: Blocks {
                cpu_seconds: [("controller".to_owned(), cpu_seconds)].into(),
                ..good_blocks(u64::from(owners), 9)
            },
            pace_ms: 2.0,
            ..Cold::default()
        },
        steady: good_steady(),
        source_change: SourceChange {
            single: single(79.0, 40.0),
            ..SourceChange::default()
        },
        restart: good_restart(),
        ..Run::default()
    }
}

/// Runs that clear every bar by a little.
fn good_reruns() -> Reruns {
    Reruns {
        runnables: 100,
        again: 1,
        kept: 1,
        pairs: vec![pair(14.9); 2],
        runs: Runs {
            rounds: Rounds {
                most: 300,
                left: 100,
                ..Rounds::default()
            },
            work: work(1200),
        },
        single: Some(single(39.0, 20.0)),
        steady: good_steady(),
        restart: good_restart(),
        ..Reruns::default()
    }
}

/// PodIntents that clear every bar by a little.
fn good_intents() -> Intents {
    Intents {
        owners: 100,
        conventions: 5,
        images: 10,
        registry_requests: 20,
        cold: good_blocks(100, 2),
        calls: 500,
        steady: good_steady(),
        restart: good_restart(),
        boms: Some(Boms {
            images: 2,
            usage: peak(149.0),
            ..Boms::default()
        }),
        ..Intents::default()
    }
}

/// What a change makes a good measurement miss.
type Case<T> = (&'static str, fn(&mut T));

/// Each bar is there because of a case that misses it, and it alone.
fn hold<T>(good: impl Fn() -> T, bars: impl Fn(&T) -> Vec<Bar>, cases: &[Case<T>]) {
    let name = |bar: &Bar| bar.what.split_once(": ").unwrap().1.to_owned();
    let all = bars(&good());
    assert!(all.iter().all(Bar::is_cleared), "{all:?}");
    let in_a_case = |bar: &Bar| cases.iter().any(|(what, _)| *what == name(bar));
    assert!(all.iter().all(in_a_case), "{all:?}");
    for (what, change) in cases {
        let mut measured = good();
        change(&mut measured);
        let bars = bars(&measured);
        let missed = bars.iter().filter(|bar| !bar.is_cleared()).map(name);
        assert_eq!(missed.collect::<Vec<_>>(), [*what]);
    }
}

#[test]
fn each_bar_is_missed_by_the_figure_it_is_for() {
    let cold = "cold, ratio to the floor";
    let requests = "cold, requests per owner (events aside)";
    let restart_reads = "restart, reads but LIST, WATCH and discovery";
    let change = "source change, p50, ratio to the floor";
    let memory = "peak memory, MiB";
    let cases: [Case<Run>; 10] = [
        (cold, |run| run.cold.blocks.pairs = vec![pair(15.1); 2]),
        // They scatter: there is no ratio.
        (cold, |run| run.cold.blocks.pairs[0].floor[1] = 12.0),
        (requests, |run| run.cold.blocks.work.requests.gets = 1),
        ("steady, writes", |run| run.steady.requests.writes = 1),
        ("steady, reads", |run| run.steady.requests.lists = 1),
        ("restart, writes", |run| run.restart.requests.writes = 1),
        (restart_reads, |run| run.restart.requests.gets = 1),
        (change, |run| run.source_change.single = single(81.0, 40.0)),
        // What grew in the steady phase or with changes, and what grew after the restart.
        (memory, |run| run.restart.killed = peak(61.0)),
        (memory, |run| run.deletion.usage = peak(61.0)),
    ];
    hold(|| good_run(300), |run| of_run(run).collect(), &cases);
}

#[test]
fn each_bar_of_runnables_is_missed_by_the_figure_it_is_for() {
    let rounds = "all rounds, ratio to the floor";
    let requests = "requests per run (events aside)";
    let most = "runs at a time, per Runnable";
    let left = "runs in the end, per Runnable";
    let again = "one run again, p50, ratio to the bare client";
    let restart_reads = "restart, reads but LIST, WATCH and discovery";
    let cases: [Case<Reruns>; 12] = [
        (rounds, |all| all.pairs = vec![pair(15.1); 2]),
        // One is too few.
        (rounds, |all| all.pairs.truncate(1)),
        (requests, |all| all.runs.work.requests.gets = 1),
        (most, |all| all.runs.rounds.most = 301),
        (left, |all| all.runs.rounds.left = 101),
        (again, |all| all.single = Some(single(41.0, 20.0))),
        (again, |all| all.single = None),
        ("steady, writes", |all| all.steady.requests.writes = 1),
        ("steady, reads", |all| all.steady.requests.gets = 1),
        ("restart, writes", |all| all.restart.requests.writes = 1),
        (restart_reads, |all| all.restart.requests.gets = 1),
        ("peak memory, MiB", |all| all.deletion.usage = peak(61.0)),
    ];
    hold(good_reruns, |all| of_reruns(all).collect(), &cases);
}

#[test]
fn each_bar_of_pod_intents_is_missed_by_the_figure_it_is_for() {
    let requests = "cold, requests per PodIntent (events aside)";
    let calls = "cold, calls of webhooks per PodIntent";
    let registry = "requests to the registry per image";
    let restart_reads = "restart, reads but LIST, WATCH and discovery";
    let at_rest = "steady and restart, calls and requests to the registry";
    let memory = "peak memory with 2 bills of materials of 20 MB, MiB";
    let cases: [Case<Intents>; 10] = [
        ("cold, ratio to the floor", |all| {
            all.cold.pairs = vec![pair(15.1); 2];
        }),
        (requests, |all| all.cold.work.requests.gets = 1),
        (calls, |all| all.calls = 501),
        (registry, |all| all.registry_requests = 21),
        ("steady, writes", |all| all.steady.requests.writes = 1),
        ("steady, reads", |all| all.steady.requests.gets = 1),
        ("restart, writes", |all| all.restart.requests.writes = 1),
        (restart_reads, |all| all.restart.requests.gets = 1),
        (at_rest, |all| all.asked_at_rest = 1),
        (memory, |all| all.boms.as_mut().unwrap().usage = peak(151.0)),
    ];
    hold(good_intents, |all| of_intents(all).collect(), &cases);
}

#[test]
fn what_is_counted_is_told_from_what_is_timed() {
    let all = bars(&Figures {
        runs: vec![good_run(300)],
        reruns: Some(good_reruns()),
        intents: Some(good_intents()),
        ..Figures::default()
    });
    let timed = all.iter().filter(|bar| !bar.is_count);
    let timed: Vec<&str> = timed.map(|bar| &*bar.what).collect();
    let expected = [
        "300 Workloads: cold, ratio to the floor",
        "300 Workloads: source change, p50, ratio to the floor",
        "300 Workloads: peak memory, MiB",
        "100 Runnables: all rounds, ratio to the floor",
        "100 Runnables: runs at a time, per Runnable",
        "100 Runnables: one run again, p50, ratio to the bare client",
        "100 Runnables: peak memory, MiB",
        "100 PodIntents: cold, ratio to the floor",
        "100 PodIntents: peak memory with 2 bills of materials of 20 MB, MiB",
    ];
    assert_eq!((timed, all.len()), (expected.to_vec(), 28));
}

/// Of a run with this change, against one with fewer owners.
fn growth_of(change: impl Fn(&mut Run)) -> Vec<String> {
    let mut large = good_run(1000);
    change(&mut large);
    let bars = growth(&[good_run(300), large]).into_iter();
    bars.map(|bar| format!("{}: {:.3}, {}", bar.what, bar.measured, bar.verdict()))
        .collect()
}

#[test]
fn growth_compares_the_largest_run_with_the_smallest_at_the_pace_of_each() {
    let of = |cold: &str, steady: &str| {
        let against = "at equal pace, N=1000 against N=300";
        [
            format!("cold, CPU per Workload {against}: {cold}"),
            format!("steady, CPU per reconcile of a Workload {against}: {steady}"),
        ]
    };
    let grown = growth_of(|large| {
        large
            .cold
            .blocks
            .cpu_seconds
            .insert("controller".to_owned(), 13.0);
        large.steady.reconciles = 7_500;
    });
    assert_eq!(grown, of("1.300, MISS", "1.333, MISS"));
    // The machine got slower.
    let slower = growth_of(|large| {
        large
            .cold
            .blocks
            .cpu_seconds
            .insert("controller".to_owned(), 16.0);
        large.cold.pace_ms *= 1.6;
        large.steady.cpu_seconds *= 1.6;
        large.steady.pace_ms *= 1.6;
    });
    assert_eq!(slower, of("1.000, pass", "1.000, pass"));
    assert!(growth(&[good_run(300)]).is_empty());
}

/// The p99 of the controller's and the bare client's when loaded, against 100; and the memory of the crowd.
fn fairness(ready: f64, bare: f64, peak_rss_mib: f64) -> [Bar; 2] {
    let singles = |ready, bare| Singles {
        ready: Latency::with(1.0, ready),
        bare: Latency::with(1.0, bare),
        ..Singles::default()
    };
    of_fairness(&Fairness {
        idle: singles(100.0, 100.0),
        loaded: singles(ready, bare),
        settled: peak(peak_rss_mib),
        ..Fairness::default()
    })
}

#[test]
fn an_owner_beside_a_crowd_is_held_against_the_bare_client_where_the_api_server_is_the_limit() {
    let cleared = |ready, bare, memory| fairness(ready, bare, memory).map(|bar| bar.is_cleared());
    assert_eq!(cleared(200.0, 100.0, 150.0), [true, true]);
    assert_eq!(cleared(201.0, 100.0, 150.0), [false, true]);
    assert_eq!(cleared(200.0, 100.0, 151.0), [true, false]);
    assert_eq!(cleared(500.0, 400.0, 0.0), [true, true]);
    assert_eq!(cleared(501.0, 400.0, 0.0), [false, true]);
    let [wait, _] = fairness(500.0, 400.0, 0.0);
    assert!(
        wait.what.contains("the bare client's (4.0"),
        "{}",
        wait.what
    );
}

#[test]
fn the_table_tells_a_goal_from_a_bar_and_what_is_no_number() {
    let cold = |measured| Bar::timed("cold", measured, COLD);
    let writes = Bar::counted("writes", 3.0, 0.0);
    let expected = "\
what    measured    bar   goal         verdict
------  --------  -----  -----  --------------
cold        1.10  ≤ 1.5  ≤ 1.2  pass, goal met
cold        1.40  ≤ 1.5  ≤ 1.2            pass
cold         NaN  ≤ 1.5  ≤ 1.2            VOID
writes      3.00    ≤ 0                   MISS
";
    let all = [cold(1.1), cold(1.4), cold(f64::NAN), writes];
    assert_eq!(render(&all), expected);
    assert!(!cold(f64::NAN).is_cleared());
}
