//! The bars that the product must clear, and whether a run did.

use serde::Serialize;
use test_support::Usage;

use crate::pairs::{self, Pair};
use crate::phases::chains::Run;
use crate::phases::fairness::Fairness;
use crate::phases::runs::Reruns;
use crate::phases::steady::{Deletion, Restart, Steady};
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

/// All bars; the runs are ordered by kind and number of owners.
pub(crate) fn bars(runs: &[Run], reruns: Option<&Reruns>, fairness: &[Fairness]) -> Vec<Bar> {
    let mut bars: Vec<Bar> = runs.iter().flat_map(of_run).collect();
    for of_kind in runs.chunk_by(|one, next| one.kind == next.kind) {
        bars.extend(growth(of_kind));
    }
    bars.extend(reruns.into_iter().flat_map(of_reruns));
    bars.extend(fairness.iter().flat_map(of_fairness));
    bars
}

/// The bars for an owner beside a crowd, and for the memory that the crowd takes.
fn of_fairness(fairness: &Fairness) -> [Bar; 2] {
    let (crowd, others, ratios) = (fairness.crowd, fairness.of_others(), fairness.ratios());
    let what = format!("one Workload beside {crowd} of {others}, p99 to Ready");
    let wait = if ratios.machine <= FAIRNESS {
        let what = format!("{what}, against idle");
        Bar::new(what, ratios.controller, FAIRNESS)
    } else {
        // Nobody can wait less than the API server lets a client wait that does nothing else.
        let what = format!(
            "{what}, loaded against idle, against the bare client's ({:.1}, above {FAIRNESS} itself)",
            ratios.machine
        );
        Bar::new(what, ratios.quotient(), BESIDE_BARE_CLIENT)
    };
    let memory = format!("{crowd} Workloads of {others}, settled: peak memory, MiB");
    let memory = Bar::new(memory, fairness.settled.peak_rss_mib, CROWD_MEMORY);
    [wait, memory.with_goal(CROWD_MEMORY_GOAL)]
}

fn of_run(run: &Run) -> Vec<Bar> {
    let of = format!("{} {}s", run.owners, run.kind);
    let bar = |what: &str, figure: f64, bar: f64| Bar::new(format!("{of}: {what}"), figure, bar);
    let per_owner = number(run.cold.requests.sum()) / count(run.cold.owners);
    let mut bars = vec![
        bar("cold, ratio to the floor", ratio(&run.cold.pairs), COLD).with_goal(COLD_GOAL),
        bar(
            "cold, requests per owner (events aside)",
            per_owner,
            f64::from(run.steps) + REQUESTS_BEYOND_STEPS,
        )
        .counted(),
    ];
    bars.extend(of_rest(&of, &run.steady, &run.restart));
    let change = run.source_change.single.ratio();
    bars.push(bar(
        "source change, p50, ratio to the floor",
        change,
        CHANGE,
    ));
    bars.push(memory(&of, run.cold.usage, &run.restart, &run.deletion));
    bars
}

/// The bars for Runnables.
fn of_reruns(reruns: &Reruns) -> Vec<Bar> {
    let of = format!("{} Runnables", reruns.runnables);
    let bar = |what: &str, figure: f64, bar: f64| Bar::new(format!("{of}: {what}"), figure, bar);
    let runs = &reruns.runs;
    let per_runnable = |objects: usize| count(objects) / count(reruns.runnables);
    let per_run = number(runs.requests.sum()) / count(reruns.all_runs());
    let may_be = |beyond: usize| count(reruns.kept + beyond);
    let (most, left) = (
        per_runnable(runs.rounds.most),
        per_runnable(runs.rounds.left),
    );
    let rounds = ratio(&reruns.pairs);
    let single = reruns.single.map_or(f64::NAN, |single| single.ratio());
    let mut bars = vec![
        bar("all rounds, ratio to the floor", rounds, COLD).with_goal(COLD_GOAL),
        bar("requests per run (events aside)", per_run, REQUESTS_PER_RUN).counted(),
        bar(
            "runs at a time, per Runnable",
            most,
            may_be(RUNS_BEYOND_KEPT),
        )
        .with_goal(may_be(RUNS_BEYOND_KEPT_GOAL)),
        bar("runs in the end, per Runnable", left, may_be(0)).counted(),
        bar(
            "one run again, p50, ratio to the bare client",
            single,
            CHANGE,
        ),
    ];
    bars.extend(of_rest(&of, &reruns.steady, &reruns.restart));
    bars.push(memory(&of, runs.usage, &reruns.restart, &reruns.deletion));
    bars
}

/// Not a number, when it is not known well enough.
fn ratio(pairs: &[Pair]) -> f64 {
    pairs::ratio(pairs).unwrap_or(f64::NAN)
}

/// Of each process at its end: a peak that is read earlier tells nothing of the phases that follow.
fn memory(of: &str, first: Usage, restart: &Restart, deletion: &Deletion) -> Bar {
    let peaks = [first, restart.killed, deletion.usage].map(|usage| usage.peak_rss_mib);
    let most = peaks.into_iter().fold(0.0, f64::max);
    Bar::new(format!("{of}: peak memory, MiB"), most, MEMORY).with_goal(MEMORY_GOAL)
}

/// What asks nothing of the API server.
fn of_rest(of: &str, steady: &Steady, restart: &Restart) -> [Bar; 4] {
    [
        ("steady, writes", steady.requests.writes),
        ("steady, reads", steady.requests.reads()),
        ("restart, writes", restart.requests.writes),
        (
            "restart, reads but LIST, WATCH and discovery",
            restart.requests.gets,
        ),
    ]
    .map(|(what, requests)| Bar::new(format!("{of}: {what}"), number(requests), 0.0).counted())
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
    let cold = |run: &Run| {
        let cpu = run.cold.cpu_seconds.get("controller");
        cpu.copied().unwrap_or(f64::NAN) / count(run.cold.owners) / run.cold.pace_ms
    };
    let steady = |run: &Run| {
        let steady = &run.steady;
        steady.cpu_seconds / number(steady.reconciles) / steady.pace_ms
    };
    vec![
        bar(&format!("cold, CPU per {kind} at equal pace"), &cold),
        bar(
            &format!("steady, CPU per reconcile of a {kind} at equal pace"),
            &steady,
        ),
    ]
}

/// The bars as a table.
pub(crate) fn render(bars: &[Bar]) -> String {
    let mut table = Table::new(["what", "measured", "bar", "goal", "verdict"]);
    for bar in bars {
        let goal = bar.goal.map_or(String::new(), |goal| format!("≤ {goal}"));
        table.row([
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
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
pub(crate) fn count(objects: usize) -> f64 {
    objects as f64
}

#[cfg(test)]
mod tests;
