//! Which figures have a bar, and where it lies.

use test_support::Usage;

use super::{Bar, Limit, count, number};
use crate::pairs::{self, Pair};
use crate::phases::chains::Run;
use crate::phases::fairness::Fairness;
use crate::phases::intents::Intents;
use crate::phases::runs::Reruns;
use crate::phases::steady::{Restart, Steady};

/// Cold and rounds of runs, against the floor.
pub(super) const COLD: Limit = Limit::with_goal(1.5, 1.2);
/// Requests per owner beyond its steps.
const REQUESTS_BEYOND_STEPS: f64 = 4.0;
/// A source change or a single run, against the same by a bare client.
const CHANGE: Limit = Limit::of(2.0);
/// Resident memory, in MiB.
const MEMORY: Limit = Limit::with_goal(60.0, 40.0);
/// The same with the crowd settled.
const CROWD_MEMORY: Limit = Limit::with_goal(150.0, 100.0);
/// CPU time per owner or reconcile with the most owners, against that with the fewest: "independent of the number", and
/// what the clock's resolution and noise may add.
const GROWTH: Limit = Limit::of(1.25);
/// Time to Ready of one owner while thousands settle in another namespace, against that of an idle controller.
const FAIRNESS: f64 = 2.0;
/// The same against that of the bare client, where the API server alone makes even that one wait for longer.
const BESIDE_BARE_CLIENT: Limit = Limit::of(1.25);
/// Requests per run. Create, status and the deletion of the run that goes are three; a run that takes longer has another
/// status when it starts, and what cannot be helped now and then may come twice.
const REQUESTS_PER_RUN: f64 = 6.0;
/// Runs beyond those that are kept, per Runnable: the one under way, and one that is on its way out; the goal is one of them.
const RUNS_BEYOND_KEPT: usize = 2;

/// PodIntents, against a bare client that calls the same webhooks.
const INTENTS: Limit = Limit::of(1.5);
/// One status, and another where something came in between.
const REQUESTS_PER_INTENT: f64 = 2.0;
/// Manifest and config.
const REQUESTS_PER_IMAGE: f64 = 2.0;
/// Resident memory with large bills of materials, in MiB.
const BOM_MEMORY: Limit = Limit::of(150.0);

/// The bars for an owner beside a crowd, and for the memory that the crowd takes.
pub(super) fn of_fairness(fairness: &Fairness) -> [Bar; 2] {
    let (crowd, others, ratios) = (fairness.crowd, fairness.of_others(), fairness.ratios());
    let what = format!("one Workload beside {crowd} of {others}, p99 to Ready");
    let wait = if ratios.machine <= FAIRNESS {
        let what = format!("{what}, against idle");
        Bar::timed(what, ratios.controller, Limit::of(FAIRNESS))
    } else {
        // Nobody can wait less than the API server lets a client wait that does nothing else.
        let what = format!(
            "{what}, loaded against idle, against the bare client's ({:.1}, above {FAIRNESS} itself)",
            ratios.machine
        );
        Bar::timed(what, ratios.quotient(), BESIDE_BARE_CLIENT)
    };
    let memory = format!("{crowd} Workloads of {others}, settled: peak memory, MiB");
    let peak = fairness.settled.peak_rss_mib;
    [wait, Bar::timed(memory, peak, CROWD_MEMORY)]
}

/// The bars for owners of chains.
pub(super) fn of_run(run: &Run) -> impl Iterator<Item = Bar> + use<> {
    let requests = number(run.cold.blocks.work.requests.sum()) / count(run.cold.blocks.owners);
    let may_be = f64::from(run.steps) + REQUESTS_BEYOND_STEPS;
    let change = run.source_change.single.ratio();
    let mut bars = vec![
        Bar::timed(
            "cold, ratio to the floor",
            ratio(&run.cold.blocks.pairs),
            COLD,
        ),
        Bar::counted("cold, requests per owner (events aside)", requests, may_be),
    ];
    bars.extend(of_rest(&run.steady, &run.restart));
    bars.push(Bar::timed(
        "source change, p50, ratio to the floor",
        change,
        CHANGE,
    ));
    bars.push(memory([
        run.cold.blocks.work.usage,
        run.restart.killed,
        run.deletion.usage,
    ]));
    of(run.owners, run.kind, bars)
}

/// The bars for Runnables.
pub(super) fn of_reruns(reruns: &Reruns) -> impl Iterator<Item = Bar> + use<> {
    let runs = &reruns.runs;
    let per_run = number(runs.work.requests.sum()) / count(reruns.all_runs());
    let per_runnable = |objects: usize| count(objects) / count(reruns.runnables);
    let (most, left) = (
        per_runnable(runs.rounds.most),
        per_runnable(runs.rounds.left),
    );
    let kept = count(reruns.kept);
    let at_a_time = Limit::with_goal(count(reruns.kept + RUNS_BEYOND_KEPT), kept + 1.0);
    let single = reruns.single.map_or(f64::NAN, |single| single.ratio());
    let mut bars = vec![
        Bar::timed("all rounds, ratio to the floor", ratio(&reruns.pairs), COLD),
        Bar::counted("requests per run (events aside)", per_run, REQUESTS_PER_RUN),
        Bar::timed("runs at a time, per Runnable", most, at_a_time),
        Bar::counted("runs in the end, per Runnable", left, kept),
        Bar::timed(
            "one run again, p50, ratio to the bare client",
            single,
            CHANGE,
        ),
    ];
    bars.extend(of_rest(&reruns.steady, &reruns.restart));
    bars.push(memory([
        runs.work.usage,
        reruns.restart.killed,
        reruns.deletion.usage,
    ]));
    of(reruns.runnables, "Runnable", bars)
}

/// The bars for PodIntents.
pub(super) fn of_intents(intents: &Intents) -> impl Iterator<Item = Bar> + use<> {
    let per_intent = |figure: u64| number(figure) / count(intents.cold.owners);
    let requests = per_intent(intents.cold.work.requests.sum());
    let calls = per_intent(intents.calls);
    let registry = number(intents.registry_requests) / count(intents.images);
    let asked = number(intents.asked_at_rest);
    let conventions = count(intents.conventions);
    let mut bars = vec![
        Bar::timed(
            "cold, ratio to the floor",
            ratio(&intents.cold.pairs),
            INTENTS,
        ),
        Bar::counted(
            "cold, requests per PodIntent (events aside)",
            requests,
            REQUESTS_PER_INTENT,
        ),
        Bar::counted("cold, calls of webhooks per PodIntent", calls, conventions),
        Bar::counted(
            "requests to the registry per image",
            registry,
            REQUESTS_PER_IMAGE,
        ),
    ];
    bars.extend(of_rest(&intents.steady, &intents.restart));
    bars.push(Bar::counted(
        "steady and restart, calls and requests to the registry",
        asked,
        0.0,
    ));
    bars.extend(intents.boms.map(|boms| {
        let what = format!(
            "peak memory with {} bills of materials of 20 MB, MiB",
            boms.images
        );
        Bar::timed(what, boms.usage.peak_rss_mib, BOM_MEMORY)
    }));
    of(intents.owners, "PodIntent", bars)
}

/// Names the owners of whom these bars speak.
fn of(owners: usize, kind: &str, bars: Vec<Bar>) -> impl Iterator<Item = Bar> + use<> {
    let of = format!("{owners} {kind}s");
    bars.into_iter().map(move |bar| Bar {
        what: format!("{of}: {}", bar.what),
        ..bar
    })
}

/// Not a number, when it is not known well enough.
fn ratio(pairs: &[Pair]) -> f64 {
    pairs::ratio(pairs).unwrap_or(f64::NAN)
}

/// Of each process at its end: a peak that is read earlier tells nothing of the phases that follow.
fn memory(processes: [Usage; 3]) -> Bar {
    let peaks = processes.map(|usage| usage.peak_rss_mib);
    let most = peaks.into_iter().fold(0.0, f64::max);
    Bar::timed("peak memory, MiB", most, MEMORY)
}

/// What asks nothing of the API server.
fn of_rest(steady: &Steady, restart: &Restart) -> [Bar; 4] {
    let (steady, restart) = (&steady.requests, &restart.requests);
    let none = |what, requests| Bar::counted(what, number(requests), 0.0);
    [
        none("steady, writes", steady.writes),
        none("steady, reads", steady.reads()),
        none("restart, writes", restart.writes),
        none("restart, reads but LIST, WATCH and discovery", restart.gets),
    ]
}

/// CPU times of runs that are minutes apart, each divided by the machine's pace of its own phase.
pub(super) fn growth(runs: &[Run]) -> Vec<Bar> {
    let (Some(fewest), Some(most)) = (runs.first(), runs.last()) else {
        return Vec::new();
    };
    if most.owners == fewest.owners {
        return Vec::new();
    }
    let bar = |of: String, cost: &dyn Fn(&Run) -> f64| {
        let what = format!("{of}, N={} against N={}", most.owners, fewest.owners);
        Bar::timed(what, cost(most) / cost(fewest), GROWTH)
    };
    let kind = most.kind;
    let cold = |run: &Run| {
        let cpu = run.cold.blocks.cpu_seconds.get("controller");
        cpu.copied().unwrap_or(f64::NAN) / count(run.cold.blocks.owners) / run.cold.pace_ms
    };
    let steady = |run: &Run| {
        let steady = &run.steady;
        steady.cpu_seconds / number(steady.reconciles) / steady.pace_ms
    };
    vec![
        bar(format!("cold, CPU per {kind} at equal pace"), &cold),
        bar(
            format!("steady, CPU per reconcile of a {kind} at equal pace"),
            &steady,
        ),
    ]
}
