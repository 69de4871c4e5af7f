use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};
use test_support::documents;

use super::*;

const GOOD: &str = include_str!("good.yaml");
const MISSED: &str = include_str!("missed.yaml");

/// Figures that clear every bar by a little.
pub(crate) fn good_figures() -> Figures {
    let figures = documents(GOOD).unwrap().remove(0);
    serde_json::from_value(figures).unwrap()
}

/// The same, with every field there is.
fn good() -> Value {
    serde_json::to_value(good_figures()).unwrap()
}

/// The bars of good figures, but for these.
fn bars_with(changes: &[(&str, Value)]) -> Vec<Bar> {
    bars_of(good(), changes)
}

fn bars_of(mut figures: Value, changes: &[(&str, Value)]) -> Vec<Bar> {
    for (figure, value) in changes {
        *figures.pointer_mut(figure).expect(figure) = value.clone();
    }
    bars(&serde_json::from_value(figures).unwrap()).unwrap()
}

/// What makes good figures miss bars of some owners.
#[derive(Deserialize)]
struct Cases {
    of: String,
    at: String,
    /// Each with the figure, its value, and the bar.
    missed: Vec<(String, Value, String)>,
}

#[test]
fn each_bar_is_missed_by_the_figure_it_is_for() {
    let all = bars_with(&[]);
    assert!(all.iter().all(Bar::is_cleared), "{all:?}");
    let mut not_missed: BTreeSet<String> = all.into_iter().map(|bar| bar.what).collect();
    let cases = documents(MISSED).unwrap().remove(0);
    let cases: Vec<Cases> = serde_json::from_value(cases).unwrap();
    for Cases { of, at, missed } in cases {
        for (figure, value, bar) in missed {
            let bars = bars_with(&[(&format!("{at}{figure}"), value)]).into_iter();
            let missed = bars.filter(|bar| !bar.is_cleared()).map(|bar| bar.what);
            let expected = format!("{of}{bar}");
            assert_eq!(missed.collect::<Vec<_>>(), [&*expected], "{at}{figure}");
            not_missed.remove(&expected);
        }
    }
    assert_eq!(not_missed, BTreeSet::new());
}

#[test]
fn what_is_counted_is_told_from_what_is_timed() {
    let all = bars_with(&[]);
    let timed = all.iter().filter(|bar| !bar.is_count);
    let timed: Vec<&str> = timed.map(|bar| &*bar.what).collect();
    let expected = [
        "300 Workloads: cold, ratio to the floor",
        "300 Workloads: source change, p50, ratio to the floor",
        "300 Workloads: peak memory, MiB",
        "300 Workloads with rules: cold, ratio to those without",
        "100 Runnables: all rounds, ratio to the floor",
        "100 Runnables: runs at a time, per Runnable",
        "100 Runnables: one run again, p50, ratio to the bare client",
        "100 Runnables: peak memory, MiB",
        "100 PodIntents: cold, ratio to the floor",
        "100 PodIntents: peak memory with 2 bills of materials of 20 MB, MiB",
        "pods with 20 of 1000 presets: p99 in the handler, ms",
        "pods with 20 of 1000 presets: created by a client, p50, ratio to those without",
        "pods with 20 of 1000 presets: peak memory, MiB",
        "one Workload beside 50 of another namespace, p99 to Ready, against idle",
        "50 Workloads of another namespace, settled: peak memory, MiB",
    ];
    assert_eq!((timed, all.len()), (expected.to_vec(), 39));
}

/// Of a run with this change, against one with fewer owners.
fn growth_with(changes: &[(&str, Value)]) -> Vec<String> {
    let mut figures = good();
    let mut large = figures["runs"][0].clone();
    large["owners"] = json!(1000);
    large["cold"]["owners"] = json!(1000);
    large["cold"]["cpuSeconds"]["controller"] = json!(10.0);
    figures["runs"].as_array_mut().unwrap().push(large);
    let bars = bars_of(figures, changes).into_iter();
    bars.filter(|bar| bar.what.contains("N="))
        .map(|bar| format!("{}: {:.3}, {}", bar.what, bar.measured, bar.verdict()))
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
    let grown = growth_with(&[
        ("/runs/1/cold/cpuSeconds/controller", json!(13.0)),
        ("/runs/1/steady/reconciles", json!(7_500)),
    ]);
    assert_eq!(grown, of("1.300, MISS", "1.333, MISS"));
    // The machine got slower.
    let slower = growth_with(&[
        ("/runs/1/cold/cpuSeconds/controller", json!(16.0)),
        ("/runs/1/cold/paceMs", json!(3.2)),
        ("/runs/1/steady/cpuSeconds", json!(1.6)),
        ("/runs/1/steady/paceMs", json!(3.2)),
    ]);
    assert_eq!(slower, of("1.000, pass", "1.000, pass"));
}

#[test]
fn an_owner_beside_a_crowd_is_held_against_the_bare_client_where_the_api_server_is_the_limit() {
    let wait = |ready: f64, bare: f64| {
        let ready = ("/fairness/0/loaded/ready/p99Ms", json!(ready));
        let bare = ("/fairness/0/loaded/bare/p99Ms", json!(bare));
        let mut bars = bars_with(&[ready, bare]).into_iter();
        let wait = bars.find(|bar| bar.what.contains("p99 to Ready")).unwrap();
        (wait.is_cleared(), wait.what)
    };
    assert!(wait(200.0, 100.0).0 && !wait(201.0, 100.0).0);
    assert!(wait(500.0, 400.0).0);
    let (is_cleared, what) = wait(501.0, 400.0);
    assert!(
        !is_cleared && what.contains("the bare client's (4.0"),
        "{what}"
    );
}

#[test]
fn the_table_tells_a_goal_from_a_bar_and_what_is_no_number() {
    let bar = |what: &str, measured, limit, goal| Bar {
        what: what.to_owned(),
        measured,
        limit,
        goal,
        is_count: false,
    };
    let cold = |measured| bar("cold", measured, 1.5, Some(1.2));
    let writes = bar("writes", 3.0, 0.0, None);
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
