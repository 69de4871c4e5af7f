//! Figures as text, one paragraph a phase.

use std::collections::{BTreeMap, BTreeSet};

use crate::bars::{count, number};
use crate::cpu::CpuSeconds;
use crate::latency::Latency;
use crate::pairs::told;
use crate::phases::Work;
use crate::phases::blocks::Blocks;
use crate::phases::change::{Single, SourceChange, TemplateEdit};
use crate::phases::cold::Cold;
use crate::phases::fairness::{Fairness, Ratios, Singles};
use crate::phases::intents::Intents;
use crate::phases::runs::{Reruns, Rounds, Runs};
use crate::phases::steady::{Deletion, Restart, Steady};
use crate::table::Table;
use crate::tally::{Agent, ByAgent, Requests};

/// Says something on the terminal.
#[expect(clippy::print_stdout, reason = "the bench speaks to a terminal")]
pub(crate) fn say(text: &str) {
    println!("{}", text.trim_end_matches('\n'));
}

/// Says what a phase came to.
pub(crate) fn tell(phase: &str, text: &str) {
    say(&format!("{phase:<15}{text}"));
}

fn latency(latency: &Latency) -> String {
    let Latency {
        samples,
        p50_ms,
        p99_ms,
        max_ms,
    } = latency;
    format!("p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms, longest {max_ms:.1} ms ({samples} changes)")
}

/// The cold phase, against its floor.
pub(crate) fn cold(cold: &Cold) -> String {
    let Blocks { work, pairs, .. } = &cold.blocks;
    let per_owner = |requests| number(requests) / count(cold.blocks.owners);
    let cpu = cold.blocks.cpu_seconds.get("controller");
    let times = format!(
        "{:.2} s in {} blocks, {}; by POST, {}; pace {:.2} ms",
        cold.blocks.seconds(),
        pairs.len(),
        told(pairs),
        told(&cold.created),
        cold.pace_ms,
    );
    let events = format!(
        "events: {:.2} per owner, until {:.1} s after the last Ready",
        per_owner(work.requests.events),
        cold.events_seconds,
    );
    format!(
        "{times}; {:.2} requests per owner; controller {:.2} s CPU for {} reconciles, {:.1} MiB peak\n    {events}\n{}",
        per_owner(work.requests.sum()),
        cpu.copied().unwrap_or(f64::NAN),
        work.reconciles,
        work.usage.peak_rss_mib,
        in_detail(
            work,
            &cold.blocks.floor_cpu_seconds,
            &cold.blocks.cpu_seconds
        ),
    )
}

/// All rounds of runs, and what they cost the controller.
pub(crate) fn runs(reruns: &Reruns) -> String {
    let Runs { work, rounds: all } = &reruns.runs;
    let per_run = |requests| number(requests) / count(reruns.all_runs());
    format!(
        "{}; {}; {:.2} requests per run and {:.2} events; {:.1} MiB peak\n{}",
        rounds(all),
        told(&reruns.pairs),
        per_run(work.requests.sum()),
        per_run(work.requests.events),
        work.usage.peak_rss_mib,
        in_detail(work, &reruns.floor.cpu_seconds, &all.cpu_seconds),
    )
}

/// PodIntents, against the floor.
pub(crate) fn intents(intents: &Intents) -> String {
    let Blocks { work, pairs, .. } = &intents.cold;
    let per_intent = |figure| number(figure) / count(intents.cold.owners);
    format!(
        "{}; {:.2} requests and {:.2} calls of webhooks per PodIntent; {} requests to the registry for {} images; {:.1} MiB peak\n{}",
        told(pairs),
        per_intent(work.requests.sum()),
        per_intent(intents.calls),
        intents.registry_requests,
        intents.images,
        work.usage.peak_rss_mib,
        in_detail(
            work,
            &intents.cold.floor_cpu_seconds,
            &intents.cold.cpu_seconds
        ),
    )
}

/// All requests, and the CPU time of all processes in both runs.
fn in_detail(work: &Work, floor: &CpuSeconds, cold: &CpuSeconds) -> String {
    let tables = [agents_table(&work.by_agent), cpu_table(floor, cold)];
    requests(&work.requests) + &tables.concat()
}

/// Single runs, against those of the bare client.
pub(crate) fn single(single: Option<&Single>) -> String {
    match single {
        Some(single) => beside_bare_client(single, "the bare client's"),
        None => "not asked for".to_owned(),
    }
}

fn beside_bare_client(single: &Single, floor: &str) -> String {
    format!(
        "{}; p50 {:.2} × {floor}\n    bare client: {}",
        latency(&single.latency),
        single.ratio(),
        latency(&single.bare)
    )
}

/// Rounds of runs.
pub(crate) fn rounds(rounds: &Rounds) -> String {
    format!(
        "{}; at most {} runs at a time, {} in the end",
        seconds(rounds),
        rounds.most,
        rounds.left,
    )
}

/// How long rounds took.
pub(crate) fn seconds(rounds: &Rounds) -> String {
    let each = rounds.each.iter().map(|seconds| format!("{seconds:.2}"));
    let each: Vec<String> = each.collect();
    format!(
        "{:.2} s ({}) with {} requests in flight",
        rounds.seconds(),
        each.join(" + "),
        rounds.concurrency,
    )
}

/// The steady phase.
pub(crate) fn steady(steady: &Steady) -> String {
    format!(
        "{} reconciles by {} touches: {} writes, {} reads; {:.2} s CPU, pace {:.2} ms\n{}",
        steady.reconciles,
        steady.touches,
        steady.requests.writes,
        steady.requests.reads(),
        steady.cpu_seconds,
        steady.pace_ms,
        requests(&steady.requests),
    )
}

/// Source changes.
pub(crate) fn source_change(change: &SourceChange) -> String {
    let single = beside_bare_client(&change.single, "floor");
    format!("{single}\n{}", requests(&change.requests))
}

/// A template edit.
pub(crate) fn template_edit(edit: &TemplateEdit) -> String {
    format!("{:.2} s\n{}", edit.seconds, requests(&edit.requests))
}

/// A restart.
pub(crate) fn restart(restart: &Restart) -> String {
    format!(
        "settled in {:.2} s: {} writes, {} reads, {} watches; {:.2} s CPU, {:.1} MiB peak ({:.1} before)\n{}",
        restart.seconds,
        restart.requests.writes,
        restart.requests.reads(),
        restart.requests.watches,
        restart.usage.cpu_seconds,
        restart.usage.peak_rss_mib,
        restart.killed.peak_rss_mib,
        requests(&restart.requests),
    )
}

/// The deletion.
pub(crate) fn deletion(deletion: &Deletion) -> String {
    format!(
        "{:.2} s\n{}",
        deletion.seconds,
        requests(&deletion.requests)
    )
}

/// What a single owner waits beside a crowd, against one alone.
pub(crate) fn ratios(idle: &Singles, loaded: &Singles) -> String {
    let mut table = Table::new(["    milliseconds", "idle p50", "p99", "loaded p50", "p99"]);
    let mut row = |what: &str, of: fn(&Singles) -> &Latency| {
        let (idle, loaded) = (of(idle), of(loaded));
        let figures = [idle.p50_ms, idle.p99_ms, loaded.p50_ms, loaded.p99_ms];
        let [a, b, c, d] = figures.map(|figure| format!("{figure:.1}"));
        table.row([format!("    {what}"), a, b, c, d]);
    };
    row("to Ready", |singles| &singles.ready);
    row("to the first object", |singles| &singles.first_step);
    row("bare client", |singles| &singles.bare);
    let ratios = |of: fn(&Latency) -> f64| {
        let ratios = Ratios::of(idle, loaded, of);
        format!(
            "controller {:.2}, bare client {:.2}, quotient {:.2}",
            ratios.controller,
            ratios.machine,
            ratios.quotient()
        )
    };
    format!(
        "    {} and {} samples\n{}    loaded against idle, p99: {}\n    loaded against idle, p50: {}\n",
        idle.ready.samples,
        loaded.ready.samples,
        table.render(),
        ratios(|latency| latency.p99_ms),
        ratios(|latency| latency.p50_ms),
    )
}

/// The crowd beside which a single owner was measured.
pub(crate) fn fairness(fairness: &Fairness) -> String {
    let queue = fairness.queue.iter();
    let queue: Vec<String> = queue
        .map(|(series, value)| format!("{series} {value:.1}"))
        .collect();
    let shares = [&fairness.idle, &fairness.loaded].map(|singles| {
        let shares = singles.cpu_seconds.iter();
        let share = |(name, spent): (&String, &f64)| (name.clone(), spent / singles.seconds);
        shares.map(share).collect::<CpuSeconds>()
    });
    let table = by_process(["    CPUs in use", "idle", "loaded"], shares.each_ref());
    format!(
        "{} of {} others not Ready at the end; {:.1} MiB peak when they were\n    queue at the end: {}\n{}",
        fairness.unsettled,
        fairness.crowd,
        fairness.settled.peak_rss_mib,
        queue.join(", "),
        table.render(),
    )
}

/// Requests by sort, most frequent first.
fn requests(requests: &Requests) -> String {
    let mut sorts: Vec<(&String, &u64)> = requests.by_sort.iter().collect();
    sorts.sort_by(|one, other| other.1.cmp(one.1).then(one.0.cmp(other.0)));
    let lines = sorts.iter();
    let lines = lines.map(|(sort, count)| format!("    {count:>7}  {sort}\n"));
    lines.collect::<Vec<_>>().concat()
}

/// How many requests of each verb came with each `User-Agent`, events and the lease among them.
fn agents_table(by_agent: &ByAgent) -> String {
    let mut table = Table::new([
        "    requests",
        "carto-*",
        "bench-client",
        "bench-downstream",
        "bench-observer",
        "others",
    ]);
    let verbs: BTreeSet<_> = by_agent.values().flat_map(BTreeMap::keys).collect();
    for verb in verbs.into_iter().map(Some).chain([None]) {
        let sent = |verbs: &BTreeMap<String, u64>| match verb {
            Some(verb) => verbs.get(verb).copied().unwrap_or(0),
            None => verbs.values().sum(),
        };
        let of = |agent| by_agent.get(&agent).map_or(0, sent).to_string();
        let [ours, client, downstream, observer, others] = Agent::ALL.map(of);
        let name = format!("    {}", verb.map_or("all", String::as_str));
        table.row([name, ours, client, downstream, observer, others]);
    }
    table.render()
}

fn cpu_table(floor: &CpuSeconds, cold: &CpuSeconds) -> String {
    let mut table = by_process(["    CPU seconds", "floor", "cold"], [floor, cold]);
    // The share of time that other work on the machine takes does not show here.
    let [floor, cold] = [floor, cold].map(|side| side.values().sum::<f64>());
    let all = format!("    all ({:.2} × floor)", cold / floor);
    table.row([all, format!("{floor:.2}"), format!("{cold:.2}")]);
    table.render()
}

/// What each process has on either side.
fn by_process(heading: [&str; 3], sides: [&CpuSeconds; 2]) -> Table<3> {
    let mut table = Table::new(heading);
    let names: BTreeSet<_> = sides.iter().flat_map(|side| side.keys()).collect();
    for name in names {
        let figure = |side: &CpuSeconds| side.get(name).map(|figure| format!("{figure:.2}"));
        let [one, other] = sides.map(|side| figure(side).unwrap_or_default());
        table.row([format!("    {name}"), one, other]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_listed_most_frequent_first() {
        let by_sort = [("get x", 1), ("patch y", 1500), ("list z", 1)]
            .map(|(sort, count)| (sort.to_owned(), count));
        let seen = Requests {
            by_sort: by_sort.into(),
            ..Requests::default()
        };
        assert_eq!(
            requests(&seen),
            "       1500  patch y\n          1  get x\n          1  list z\n"
        );
    }

    #[test]
    fn requests_of_all_senders_stand_side_by_side_by_verb() {
        let verbs = |verbs: &[(&str, u64)]| -> BTreeMap<String, u64> {
            let owned = |&(verb, count): &(&str, u64)| (verb.to_owned(), count);
            verbs.iter().map(owned).collect()
        };
        let by_agent = ByAgent::from([
            (Agent::Controller, verbs(&[("patch", 1500), ("create", 7)])),
            (Agent::Other, verbs(&[("get", 12)])),
        ]);
        let expected = "
    requests  carto-*  bench-client  bench-downstream  bench-observer  others
------------  -------  ------------  ----------------  --------------  ------
    create          7             0                 0               0       0
    get             0             0                 0               0      12
    patch        1500             0                 0               0       0
    all          1507             0                 0               0      12
";
        assert_eq!(format!("\n{}", agents_table(&by_agent)), expected);
    }

    #[test]
    fn a_process_that_ran_on_one_side_only_has_one_figure() {
        let floor = BTreeMap::from([("etcd".to_owned(), 1.0)]);
        let cold = BTreeMap::from([("etcd".to_owned(), 1.5), ("controller".to_owned(), 0.25)]);
        let text = cpu_table(&floor, &cold);
        let expected = "
    controller                 0.25
    etcd                 1.00  1.50
    all (1.75 × floor)   1.00  1.75
";
        assert!(text.ends_with(expected), "{text}");
    }
}
