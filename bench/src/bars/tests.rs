use super::*;
use crate::latency::Latency;
use crate::phases::change::{Single, SourceChange};
use crate::phases::cold::Cold;
use crate::phases::fairness::Singles;
use crate::phases::runs::{Rounds, Runs};
use crate::tally::Requests;

/// A controller between floors of ten seconds.
fn pair(controller: f64) -> Pair {
    Pair {
        floor: [10.0, 10.0],
        controller,
    }
}

/// Medians, against those of the bare client.
fn single(ours: f64, bare: f64) -> Single {
    Single {
        latency: Latency::with(ours, ours),
        bare: Latency::with(bare, bare),
    }
}

fn peak(peak_rss_mib: f64) -> Usage {
    Usage {
        peak_rss_mib,
        ..Usage::default()
    }
}

fn writes(writes: u64) -> Requests {
    Requests {
        writes,
        events: writes,
        ..Requests::default()
    }
}

fn good_steady() -> Steady {
    Steady {
        reconciles: 10_000,
        touches: 10_000,
        requests: Requests {
            leases: 4,
            watches: 1,
            ..Requests::default()
        },
        cpu_seconds: 1.0,
        pace_ms: 2.0,
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

/// A run that clears every bar by a little.
fn good_run(owners: usize) -> Run {
    let cpu_seconds = count(owners) / 100.0;
    Run {
        kind: "Workload",
        owners,
        steps: 5,
        cold: Cold {
            owners,
            pairs: vec![pair(14.9); 2],
            requests: writes(u64::try_from(owners).unwrap() * 9),
            cpu_seconds: [("controller".to_owned(), cpu_seconds)].into(),
            pace_ms: 2.0,
            usage: peak(59.0),
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
    let rounds = |seconds, most| Rounds {
        each: vec![seconds / 2.0; 2],
        most,
        left: 100,
        ..Rounds::default()
    };
    Reruns {
        runnables: 100,
        again: 1,
        kept: 1,
        pairs: vec![pair(14.9); 2],
        floor: rounds(10.0, 100),
        runs: Runs {
            rounds: rounds(14.9, 300),
            requests: writes(1200),
            ..Runs::default()
        },
        single: Some(single(39.0, 20.0)),
        steady: good_steady(),
        restart: good_restart(),
        ..Reruns::default()
    }
}

fn missed(bars: Vec<Bar>) -> Vec<String> {
    let missed = bars.into_iter().filter(|bar| !bar.is_cleared());
    missed.map(|bar| bar.what).collect()
}

#[test]
fn each_bar_is_missed_by_the_figure_it_is_for() {
    type Change = fn(&mut Run);
    let missed = |change: Change| {
        let mut run = good_run(300);
        change(&mut run);
        missed(bars(&[run], None, &[]))
    };
    assert_eq!(missed(|_| ()), Vec::<String>::new());
    assert_eq!(of_run(&good_run(300)).len(), 8);
    let cases: [(&str, Change); 10] = [
        ("cold, ratio to the floor", |run| {
            run.cold.pairs = vec![pair(15.1); 2];
        }),
        // They scatter: there is no ratio.
        ("cold, ratio to the floor", |run| {
            run.cold.pairs[0].floor[1] = 12.0;
        }),
        ("cold, requests per owner (events aside)", |run| {
            run.cold.requests.gets = 1;
        }),
        ("steady, writes", |run| run.steady.requests.writes = 1),
        ("steady, reads", |run| run.steady.requests.lists = 1),
        ("restart, writes", |run| run.restart.requests.writes = 1),
        ("restart, reads but LIST, WATCH and discovery", |run| {
            run.restart.requests.gets = 1;
        }),
        ("source change, p50, ratio to the floor", |run| {
            run.source_change.single = single(81.0, 40.0);
        }),
        // What grew in the steady phase or with changes, and what grew after the restart.
        ("peak memory, MiB", |run| run.restart.killed = peak(61.0)),
        ("peak memory, MiB", |run| run.deletion.usage = peak(61.0)),
    ];
    for (what, change) in cases {
        assert_eq!(missed(change), [format!("300 Workloads: {what}")]);
    }
}

#[test]
fn each_bar_of_runnables_is_missed_by_the_figure_it_is_for() {
    type Change = fn(&mut Reruns);
    let missed = |change: Change| {
        let mut reruns = good_reruns();
        change(&mut reruns);
        missed(bars(&[], Some(&reruns), &[]))
    };
    assert_eq!(missed(|_| ()), Vec::<String>::new());
    let cases: [(&str, Change); 9] = [
        ("all rounds, ratio to the floor", |reruns| {
            reruns.pairs = vec![pair(15.1); 2];
        }),
        ("all rounds, ratio to the floor", |reruns| {
            reruns.pairs.pop();
        }),
        ("requests per run (events aside)", |reruns| {
            reruns.runs.requests.gets = 1;
        }),
        ("runs at a time, per Runnable", |reruns| {
            reruns.runs.rounds.most = 301;
        }),
        ("runs in the end, per Runnable", |reruns| {
            reruns.runs.rounds.left = 101;
        }),
        ("one run again, p50, ratio to the bare client", |reruns| {
            reruns.single = Some(single(41.0, 20.0));
        }),
        ("one run again, p50, ratio to the bare client", |reruns| {
            reruns.single = None;
        }),
        ("restart, writes", |reruns| {
            reruns.restart.requests.writes = 1;
        }),
        ("peak memory, MiB", |reruns| {
            reruns.deletion.usage = peak(61.0);
        }),
    ];
    for (what, change) in cases {
        assert_eq!(missed(change), [format!("100 Runnables: {what}")]);
    }
}

/// Of a run with this change, against one with fewer owners.
fn growth_of(change: impl Fn(&mut Run)) -> Vec<Bar> {
    let mut large = good_run(1000);
    change(&mut large);
    growth(&[good_run(300), large])
}

#[test]
fn growth_compares_the_largest_run_with_the_smallest() {
    let bars = growth_of(|large| {
        large.cold.cpu_seconds.insert("controller".to_owned(), 13.0);
        large.steady.reconciles = 7_500;
    });
    let measured: Vec<String> = bars
        .iter()
        .map(|bar| format!("{}: {:.3}", bar.what, bar.measured))
        .collect();
    let expected = [
        "cold, CPU per Workload at equal pace, N=1000 against N=300: 1.300",
        "steady, CPU per reconcile of a Workload at equal pace, N=1000 against N=300: 1.333",
    ];
    assert_eq!(measured, expected);
    assert!(bars.iter().all(|bar| !bar.is_cleared()));
    assert!(growth(&[good_run(300)]).is_empty());
}

#[test]
fn a_machine_that_got_slower_is_no_growth() {
    let bars = growth_of(|large| {
        large.cold.cpu_seconds.insert("controller".to_owned(), 16.0);
        large.cold.pace_ms *= 1.6;
        large.steady.cpu_seconds *= 1.6;
        large.steady.pace_ms *= 1.6;
    });
    assert!(bars.iter().all(|bar| (bar.measured - 1.0).abs() < 1e-9));
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
fn an_owner_beside_a_crowd_has_a_bar_of_its_own() {
    let cleared =
        |ready, peak_rss_mib| fairness(ready, 100.0, peak_rss_mib).map(|bar| bar.is_cleared());
    assert_eq!(cleared(200.0, 150.0), [true, true]);
    assert_eq!(cleared(201.0, 150.0), [false, true]);
    assert_eq!(cleared(200.0, 151.0), [true, false]);
}

#[test]
fn where_the_api_server_is_the_limit_the_bare_client_is_the_measure() {
    let wait = |ready| {
        let [wait, _] = fairness(ready, 400.0, 0.0);
        wait
    };
    assert!(wait(500.0).is_cleared() && !wait(501.0).is_cleared());
    assert!(wait(500.0).what.contains("the bare client's (4.0"));
}

#[test]
fn what_is_counted_is_told_from_what_is_timed() {
    let all = bars(&[good_run(300)], Some(&good_reruns()), &[]);
    let counted = all.iter().filter(|bar| bar.is_count);
    let counted: Vec<&str> = counted
        .map(|bar| bar.what.split_once(": ").unwrap().1)
        .collect();
    let at_rest = [
        "steady, writes",
        "steady, reads",
        "restart, writes",
        "restart, reads but LIST, WATCH and discovery",
    ];
    let of_owners = ["cold, requests per owner (events aside)"];
    let of_runs = [
        "requests per run (events aside)",
        "runs in the end, per Runnable",
    ];
    let expected: [&[&str]; 4] = [&of_owners, &at_rest, &of_runs, &at_rest];
    assert_eq!(counted, expected.concat());
}

#[test]
fn the_table_tells_a_goal_from_a_bar_and_what_is_no_number() {
    let cold = |measured| Bar::new("cold".into(), measured, COLD).with_goal(COLD_GOAL);
    let writes = Bar::new("writes".into(), 3.0, 0.0);
    let expected = "\
what    measured    bar   goal         verdict
------  --------  -----  -----  --------------
cold        1.10  ≤ 1.5  ≤ 1.2  pass, goal met
cold        1.40  ≤ 1.5  ≤ 1.2            pass
cold         NaN  ≤ 1.5  ≤ 1.2            VOID
writes      3.00    ≤ 0                   MISS
";
    assert_eq!(
        render(&[cold(1.1), cold(1.4), cold(f64::NAN), writes]),
        expected
    );
    assert!(!cold(f64::NAN).is_cleared());
}
