use std::collections::BTreeMap;

use super::*;
use crate::latency::Latency;
use crate::pairs::Pair;
use crate::phases::change::{SourceChange, TemplateEdit};
use crate::phases::cold::Cold;
use crate::phases::end::Deletion;
use crate::phases::fairness::Singles;
use crate::phases::steady::{Restart, Steady};
use crate::proc_stat::Usage;
use crate::reruns::{Rounds, Runs, Single};
use crate::tally::Requests;

/// A controller between floors of ten seconds.
fn pair(controller: f64) -> Pair {
    Pair {
        floor: [10.0, 10.0],
        controller,
    }
}

fn latency(p50_ms: f64) -> Latency {
    Latency {
        samples: 50,
        p50_ms,
        p99_ms: p50_ms,
        max_ms: p50_ms,
    }
}

/// A run that clears every bar by a little.
fn good_run(owners: usize) -> Run {
    let usage = Usage {
        cpu_seconds: 1.0,
        rss_mib: 50.0,
        peak_rss_mib: 59.0,
    };
    let cpu_seconds = BTreeMap::from([("controller".to_owned(), count(owners) / 100.0)]);
    let writes = u64::try_from(owners).unwrap() * 9;
    let listed = Requests {
        lists: 12,
        watches: 12,
        discovery: 3,
        ..Requests::default()
    };
    Run {
        kind: "Workload",
        owners,
        steps: 5,
        concurrency: 16,
        cold: Cold {
            pairs: vec![pair(14.9)],
            created: vec![pair(14.9)],
            reconciles: 1,
            requests: Requests {
                writes,
                events: writes,
                ..Requests::default()
            },
            events_seconds: 1.0,
            by_agent: BTreeMap::new(),
            cpu_seconds,
            floor_cpu_seconds: BTreeMap::new(),
            pace_ms: 2.0,
            usage,
        },
        steady: Steady {
            reconciles: 10_000,
            touches: 10_000,
            requests: Requests {
                leases: 4,
                watches: 1,
                ..Requests::default()
            },
            cpu_seconds: 1.0,
            pace_ms: 2.0,
        },
        source_change: SourceChange {
            latency: latency(79.0),
            bare: latency(40.0),
            requests: Requests::default(),
        },
        template_edit: TemplateEdit {
            seconds: 1.0,
            requests: Requests::default(),
        },
        restart: Restart {
            killed: usage,
            seconds: 1.0,
            requests: listed,
            usage,
        },
        deletion: Deletion {
            seconds: 1.0,
            requests: Requests::default(),
            usage,
        },
    }
}

fn missed(change: impl Fn(&mut Run)) -> Vec<String> {
    let mut run = good_run(300);
    change(&mut run);
    bars(&[run])
        .into_iter()
        .filter(|bar| !bar.is_cleared())
        .map(|bar| bar.what)
        .collect()
}

#[test]
fn a_run_within_all_bars_clears_them() {
    assert_eq!(missed(|_| ()), Vec::<String>::new());
    assert_eq!(bars(&[good_run(300)]).len(), 8);
}

#[test]
fn each_bar_is_missed_by_the_figure_it_is_for() {
    type Change = fn(&mut Run);
    let cases: [(&str, Change); 10] = [
        ("cold, ratio to the floor", |run| {
            run.cold.pairs = vec![pair(15.1)];
        }),
        // The floor drifted: there is no ratio.
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
            run.source_change.latency.p50_ms = 81.0;
        }),
        // What grew in the steady phase or with changes, and what grew after the restart.
        ("peak memory, MiB", |run| {
            run.restart.killed.peak_rss_mib = 61.0;
        }),
        ("peak memory, MiB", |run| {
            run.deletion.usage.peak_rss_mib = 61.0;
        }),
    ];
    for (what, change) in cases {
        assert_eq!(missed(change), [format!("300 Workloads: {what}")]);
    }
}

/// Of a run with this change, against one with fewer owners.
fn growth_of(change: impl Fn(&mut Run)) -> Vec<Bar> {
    let mut large = good_run(1000);
    change(&mut large);
    let mut bars = bars(&[good_run(300), large]);
    bars.split_off(bars.len() - 2)
}

#[test]
fn growth_compares_the_largest_run_with_the_smallest() {
    let [cold, steady] = growth_of(|large| {
        large.cold.cpu_seconds.insert("controller".to_owned(), 13.0);
        large.steady.reconciles = 7_500;
    })
    .try_into()
    .unwrap();
    assert_eq!(
        cold.what,
        "cold, CPU per Workload at equal pace, N=1000 against N=300"
    );
    assert_eq!(
        steady.what,
        "steady, CPU per reconcile of a Workload at equal pace, N=1000 against N=300"
    );
    assert!((cold.measured - 1.3).abs() < 1e-9 && !cold.is_cleared());
    assert!((steady.measured - 4.0 / 3.0).abs() < 1e-9 && !steady.is_cleared());
    let alone = bars(&[good_run(300)]);
    assert!(alone.iter().all(|bar| !bar.what.contains("against N")));
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

/// Runs that clear every bar by a little.
fn good_reruns() -> Reruns {
    let of_owners = good_run(100);
    let rounds = |seconds, most| Rounds {
        each: vec![seconds / 2.0; 2],
        concurrency: 8,
        most,
        left: 100,
        cpu_seconds: BTreeMap::new(),
    };
    Reruns {
        runnables: 100,
        again: 1,
        kept: 1,
        floor: [rounds(10.0, 100), rounds(10.0, 100)],
        runs: Runs {
            rounds: rounds(14.9, 300),
            reconciles: 1,
            requests: Requests {
                writes: 1200,
                ..Requests::default()
            },
            by_agent: BTreeMap::new(),
            usage: of_owners.cold.usage,
        },
        single: Some(Single {
            latency: latency(39.0),
            bare: latency(20.0),
        }),
        steady: of_owners.steady,
        restart: of_owners.restart,
        deletion: of_owners.deletion,
    }
}

#[test]
fn each_bar_of_runnables_is_missed_by_the_figure_it_is_for() {
    type Change = fn(&mut Reruns);
    let missed = |change: Change| {
        let mut reruns = good_reruns();
        change(&mut reruns);
        let bars = of_reruns(&reruns).into_iter();
        bars.filter(|bar| !bar.is_cleared())
            .map(|bar| bar.what)
            .collect::<Vec<_>>()
    };
    assert_eq!(missed(|_| ()), Vec::<String>::new());
    let cases: [(&str, Change); 10] = [
        ("all rounds, ratio to the floor", |reruns| {
            reruns.runs.rounds.each.push(0.2);
        }),
        ("all rounds, ratio to the floor", |reruns| {
            reruns.floor[1].each.push(2.0);
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
            let single = reruns.single.as_mut().unwrap();
            single.latency = latency(41.0);
        }),
        ("one run again, p50, ratio to the bare client", |reruns| {
            let single = reruns.single.as_mut().unwrap();
            single.bare = latency(19.0);
        }),
        ("restart, writes", |reruns| {
            reruns.restart.requests.writes = 1;
        }),
        ("peak memory, MiB", |reruns| {
            reruns.restart.killed.peak_rss_mib = 61.0;
        }),
        ("peak memory, MiB", |reruns| {
            reruns.deletion.usage.peak_rss_mib = 61.0;
        }),
    ];
    for (what, change) in cases {
        assert_eq!(missed(change), [format!("100 Runnables: {what}")]);
    }
}

#[test]
fn an_owner_beside_a_crowd_has_a_bar_of_its_own() {
    let singles = |p99_ms| Singles {
        ready: Latency::with(1.0, p99_ms),
        first_step: Latency::with(1.0, 1.0),
        bare: Latency::with(1.0, 1.0),
        seconds: 1.0,
        cpu_seconds: BTreeMap::new(),
    };
    let cleared = |loaded, peak_rss_mib| {
        let fairness = Fairness {
            crowd: 10_000,
            namespaces: 500,
            unsettled: 1,
            idle: singles(100.0),
            loaded: singles(loaded),
            settled: Usage {
                peak_rss_mib,
                ..Usage::default()
            },
            queue: BTreeMap::new(),
        };
        of_fairness(&fairness).map(|bar| bar.is_cleared())
    };
    assert_eq!(cleared(200.0, 150.0), [true, true]);
    assert_eq!(cleared(201.0, 150.0), [false, true]);
    assert_eq!(cleared(200.0, 151.0), [true, false]);
}

#[test]
fn where_the_api_server_is_the_limit_the_bare_client_is_the_measure() {
    let singles = |ready, bare| Singles {
        ready: Latency::with(1.0, ready),
        first_step: Latency::with(1.0, 1.0),
        bare: Latency::with(1.0, bare),
        seconds: 1.0,
        cpu_seconds: BTreeMap::new(),
    };
    let wait = |loaded| {
        let fairness = Fairness {
            crowd: 10_000,
            namespaces: 500,
            unsettled: 1,
            idle: singles(100.0, 100.0),
            loaded: singles(loaded, 400.0),
            settled: Usage::default(),
            queue: BTreeMap::new(),
        };
        let [wait, _] = of_fairness(&fairness);
        wait
    };
    assert!(wait(500.0).is_cleared() && !wait(501.0).is_cleared());
    assert!(wait(500.0).what.contains("the bare client's (4.0"));
}

#[test]
fn what_is_counted_is_told_from_what_is_timed() {
    let mut all = bars(&[good_run(300)]);
    all.extend(of_reruns(&good_reruns()));
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
fn what_is_not_a_number_clears_nothing() {
    assert!(!Bar::new("x".into(), f64::NAN, 1.0).is_cleared());
}

#[test]
fn the_table_tells_a_goal_from_a_bar() {
    let bars = [
        Bar::new("cold".into(), 1.1, COLD).with_goal(COLD_GOAL),
        Bar::new("cold".into(), 1.4, COLD).with_goal(COLD_GOAL),
        Bar::new("writes".into(), 3.0, 0.0),
    ];
    let expected = "\
what    measured    bar   goal         verdict
------  --------  -----  -----  --------------
cold        1.10  ≤ 1.5  ≤ 1.2  pass, goal met
cold        1.40  ≤ 1.5  ≤ 1.2            pass
writes      3.00    ≤ 0                   MISS
";
    assert_eq!(render(&bars), expected);
}
