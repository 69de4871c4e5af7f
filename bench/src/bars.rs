//! The bars that the product must clear, and whether a run did.

use serde::Serialize;

use crate::figures::Run;
use crate::pairs;
use crate::phases::fairness::{Fairness, of_others};
use crate::phases::steady::{Restart, Steady};
use crate::proc_stat::Usage;
use crate::reruns::Reruns;
use crate::table::Table;

/// Cold, against the floor.
const COLD: f64 = 1.5;
/// The goal beyond the bar.
const COLD_GOAL: f64 = 1.2;
/// Requests per owner beyond its steps.
const REQUESTS_BEYOND_STEPS: f64 = 4.0;
/// A source change or a single run, against the same by a bare client.
const CHANGE: f64 = 2.0;
/// Resident memory, in MiB.
const MEMORY: f64 = 60.0;
/// The goal beyond the bar.
const MEMORY_GOAL: f64 = 40.0;
/// The same with the crowd settled.
const CROWD_MEMORY: f64 = 150.0;
/// The goal beyond the bar.
const CROWD_MEMORY_GOAL: f64 = 100.0;
/// CPU time per owner or reconcile with the most owners, against that with the fewest: "independent of the number", and
/// what the clock's resolution and noise may add.
const GROWTH: f64 = 1.25;

/// Time to Ready of one owner while thousands settle in another namespace, against that of an idle controller.
const FAIRNESS: f64 = 2.0;
/// The same against that of the bare client, where the API server alone makes even that one wait for longer.
const BESIDE_BARE_CLIENT: f64 = 1.25;

/// Requests per run. Create, status and the deletion of the run that goes are three; a run that takes longer has another
/// status when it starts, and what cannot be helped now and then may come twice.
const REQUESTS_PER_RUN: f64 = 6.0;
/// Runs beyond those that are kept, per Runnable: the one under way, and one that is on its way out.
const RUNS_BEYOND_KEPT: usize = 2;
/// The goal beyond the bar.
const RUNS_BEYOND_KEPT_GOAL: usize = 1;

/// One figure and what it may be at most.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bar {
    /// What was measured.
    pub(crate) what: String,
    /// The figure.
    pub(crate) measured: f64,
    /// It may be at most this.
    pub(crate) limit: f64,
    /// What we wish for beyond the bar.
    pub(crate) goal: Option<f64>,
    /// Whether it is a number of requests or objects, which is the same on any machine.
    pub(crate) is_count: bool,
}

impl Bar {
    fn new(what: String, measured: f64, limit: f64) -> Self {
        Self {
            what,
            measured,
            limit,
            goal: None,
            is_count: false,
        }
    }

    fn counted(self) -> Self {
        Self {
            is_count: true,
            ..self
        }
    }

    /// Of what is no number, since its floor drifted.
    fn of_ratio(what: String, pairs: &[pairs::Pair]) -> Self {
        Self::new(what, pairs::ratio(pairs).unwrap_or(f64::NAN), COLD).with_goal(COLD_GOAL)
    }

    fn with_goal(self, goal: f64) -> Self {
        Self {
            goal: Some(goal),
            ..self
        }
    }

    /// Whether the bar is cleared. What is not a number does not clear it.
    pub(crate) fn is_cleared(&self) -> bool {
        self.measured <= self.limit
    }

    fn verdict(&self) -> &'static str {
        match self.goal {
            _ if self.measured.is_nan() => "VOID",
            _ if !self.is_cleared() => "MISS",
            Some(goal) if self.measured <= goal => "pass, goal met",
            Some(_) | None => "pass",
        }
    }
}

/// All bars for these runs, which are ordered by kind and number of owners.
pub(crate) fn bars(runs: &[Run]) -> Vec<Bar> {
    let mut bars: Vec<Bar> = runs.iter().flat_map(of_run).collect();
    for of_kind in runs.chunk_by(|one, next| one.kind == next.kind) {
        bars.extend(growth(of_kind));
    }
    bars
}

/// The bars for an owner beside a crowd, and for the memory that the crowd takes.
pub(crate) fn of_fairness(fairness: &Fairness) -> [Bar; 2] {
    let crowd = fairness.crowd;
    let others = of_others(fairness.namespaces);
    let ratios = fairness.ratios(|latency| latency.p99_ms);
    let wait = if ratios.machine <= FAIRNESS {
        let what = format!("one Workload beside {crowd} of {others}, p99 to Ready, against idle");
        Bar::new(what, ratios.controller, FAIRNESS)
    } else {
        // Nobody can wait less than the API server lets a client wait that does nothing else.
        let what = format!(
            "one Workload beside {crowd} of {others}, p99 to Ready, loaded against idle, against the bare client's ({:.1}, \
             above {FAIRNESS} itself)",
            ratios.machine
        );
        Bar::new(what, ratios.quotient(), BESIDE_BARE_CLIENT)
    };
    let memory = format!("{crowd} Workloads of {others}, settled: peak memory, MiB");
    [
        wait,
        Bar::new(memory, fairness.settled.peak_rss_mib, CROWD_MEMORY).with_goal(CROWD_MEMORY_GOAL),
    ]
}

fn of_run(run: &Run) -> Vec<Bar> {
    let of = format!("{} {}s", run.owners, run.kind);
    let per_owner = number(run.cold.requests.sum()) / count(run.owners);
    let mut bars = vec![
        Bar::of_ratio(format!("{of}: cold, ratio to the floor"), &run.cold.pairs),
        Bar::new(
            format!("{of}: cold, requests per owner (events aside)"),
            per_owner,
            f64::from(run.steps) + REQUESTS_BEYOND_STEPS,
        )
        .counted(),
    ];
    bars.extend(of_rest(&of, &run.steady, &run.restart));
    let change = &run.source_change;
    bars.push(Bar::new(
        format!("{of}: source change, p50, ratio to the floor"),
        change.latency.p50_ms / change.bare.p50_ms,
        CHANGE,
    ));
    bars.push(memory(
        &of,
        &[run.cold.usage, run.restart.killed, run.deletion.usage],
    ));
    bars
}

/// Of each process at its end: a peak that is read earlier tells nothing of the phases that follow.
fn memory(of: &str, ends: &[Usage]) -> Bar {
    let peaks = ends.iter().map(|usage| usage.peak_rss_mib);
    let most = peaks.fold(0.0, f64::max);
    Bar::new(format!("{of}: peak memory, MiB"), most, MEMORY).with_goal(MEMORY_GOAL)
}

/// What asks nothing of the API server.
fn of_rest(of: &str, steady: &Steady, restart: &Restart) -> [Bar; 4] {
    let restarted = &restart.requests;
    [
        ("steady, writes", steady.requests.writes),
        ("steady, reads", steady.requests.reads()),
        ("restart, writes", restarted.writes),
        (
            "restart, reads but LIST, WATCH and discovery",
            restarted.gets,
        ),
    ]
    .map(|(what, requests)| Bar::new(format!("{of}: {what}"), number(requests), 0.0).counted())
}

/// The bars for Runnables.
pub(crate) fn of_reruns(reruns: &Reruns) -> Vec<Bar> {
    let of = format!("{} Runnables", reruns.runnables);
    let bar = |what: &str, figure: f64, bar: f64| Bar::new(format!("{of}: {what}"), figure, bar);
    let runs = &reruns.runs;
    let per_runnable = |objects: usize| count(objects) / count(reruns.runnables);
    let per_run = number(runs.requests.sum()) / count(reruns.all_runs());
    let may_be = |beyond: usize| count(reruns.kept + beyond);
    let mut bars = vec![
        Bar::of_ratio(
            format!("{of}: all rounds, ratio to the floor"),
            &[reruns.pair()],
        ),
        bar("requests per run (events aside)", per_run, REQUESTS_PER_RUN).counted(),
        bar(
            "runs at a time, per Runnable",
            per_runnable(runs.rounds.most),
            may_be(RUNS_BEYOND_KEPT),
        )
        .with_goal(may_be(RUNS_BEYOND_KEPT_GOAL)),
        bar(
            "runs in the end, per Runnable",
            per_runnable(runs.rounds.left),
            may_be(0),
        )
        .counted(),
    ];
    let ratio = reruns.single.map(|single| single.ratio());
    bars.push(bar(
        "one run again, p50, ratio to the bare client",
        ratio.unwrap_or(f64::NAN),
        CHANGE,
    ));
    bars.extend(of_rest(&of, &reruns.steady, &reruns.restart));
    let ends = [runs.usage, reruns.restart.killed, reruns.deletion.usage];
    bars.push(memory(&of, &ends));
    bars
}

/// CPU times of runs that are minutes apart, each divided by the machine's pace of its own phase.
fn growth(runs: &[Run]) -> Vec<Bar> {
    let (Some(fewest), Some(most)) = (runs.first(), runs.last()) else {
        return Vec::new();
    };
    if most.owners == fewest.owners {
        return Vec::new();
    }
    let bar = |of: &str, cost: &dyn Fn(&Run) -> f64| {
        let what = format!("{of}, N={} against N={}", most.owners, fewest.owners);
        Bar::new(what, cost(most) / cost(fewest), GROWTH)
    };
    let kind = most.kind;
    vec![
        bar(&format!("cold, CPU per {kind} at equal pace"), &|run| {
            let cpu = run.cold.cpu_seconds.get("controller");
            cpu.copied().unwrap_or(f64::NAN) / count(run.owners) / run.cold.pace_ms
        }),
        bar(
            &format!("steady, CPU per reconcile of a {kind} at equal pace"),
            &|run| run.steady.cpu_seconds / number(run.steady.reconciles) / run.steady.pace_ms,
        ),
    ]
}

/// The bars as a table.
pub(crate) fn render(bars: &[Bar]) -> String {
    let mut table = Table::new(["what", "measured", "bar", "goal", "verdict"]);
    for bar in bars {
        let goal = bar.goal.map_or(String::new(), |goal| format!("≤ {goal}"));
        table.row(&[
            bar.what.clone(),
            format!("{:.2}", bar.measured),
            format!("≤ {}", bar.limit),
            goal,
            bar.verdict().to_owned(),
        ]);
    }
    table.render()
}

#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
fn number(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
fn count(owners: usize) -> f64 {
    owners as f64
}

#[cfg(test)]
mod tests;
