//! Figures as text, one paragraph a phase. How a phase is told is in `templates/report`; what a
//! template cannot say is here.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;

use crate::cpu::CpuSeconds;
use crate::pairs::{self, Pair};
use crate::phases::Work;
use crate::phases::blocks::Blocks;
use crate::phases::change::Single;
use crate::phases::fairness::{Fairness, of_others};
use crate::table;
use crate::tally::{Agent, ByAgent, Requests};
use crate::templates::render;

/// Says something on the terminal.
#[expect(clippy::print_stdout, reason = "the bench speaks to a terminal")]
pub(crate) fn say(text: &str) {
    println!("{}", text.trim_end_matches('\n'));
}

/// Says something of a phase.
pub(crate) fn tell(phase: &str, text: &str) {
    say(&format!("{phase:<15}{text}"));
}

/// Says what a phase came to.
pub(crate) fn report(phase: &str, figures: impl Serialize) -> anyhow::Result<()> {
    let file = format!("report/{}.txt", phase.replace(' ', "-"));
    tell(phase, &render(&file, figures)?);
    Ok(())
}

/// What the templates of reports call.
pub(crate) fn add_filters(templates: &mut Environment<'_>) {
    // What is divided by nothing is no number, and no error.
    templates.add_filter("per", |of: f64, number: f64| of / number);
    templates.add_filter("ratio", |pairs: Serde<Vec<Pair>>| {
        pairs::ratio(&pairs).unwrap_or(f64::NAN)
    });
    templates.add_filter("p50_ratio", |single: Serde<Option<Single>>| {
        single.map_or(f64::NAN, |single| {
            single.latency.p50_ms / single.bare.p50_ms
        })
    });
    templates.add_filter("others", of_others);
    templates.add_filter("against_floor", |pairs: Serde<Vec<Pair>>| {
        pairs::told(&pairs)
    });
    templates.add_filter("sent", |requests: Serde<Requests>| requests.sum());
    templates.add_filter("reads", |requests: Serde<Requests>| requests.reads());
    templates.add_filter("sorts", |requests: Serde<Requests>| sorts(&requests));
    templates.add_filter("in_detail", in_detail);
    templates.add_filter("cpu_per_owner", cpu_per_owner);
    templates.add_filter("cpus_in_use", |fairness: Serde<Fairness>| {
        cpus_in_use(&fairness)
    });
    templates.add_filter("table", |rows: Serde<Vec<Vec<String>>>| {
        table::render(&rows)
    });
}

/// All requests, and the CPU time of all processes in both runs.
fn in_detail(
    Serde(work): Serde<Work>,
    Serde(floor): Serde<CpuSeconds>,
    Serde(cold): Serde<CpuSeconds>,
) -> String {
    let tables = [agents_table(&work.by_agent), cpu_table(&floor, &cold)];
    sorts(&work.requests) + &tables.concat()
}

/// What each process takes for an owner, in milliseconds of CPU time: without rules, and with them.
fn cpu_per_owner(Serde(with): Serde<Blocks>, Serde(without): Serde<Blocks>) -> String {
    let sides = [&without, &with].map(|blocks| {
        let spent = blocks.cpu_seconds.iter();
        let owners = pairs::number(blocks.owners as u64);
        let each = |(name, seconds): (&String, &f64)| (name.clone(), seconds * 1000.0 / owners);
        spent.map(each).collect::<CpuSeconds>()
    });
    compared(
        ["    CPU, ms per owner", "without", "with"],
        sides.each_ref(),
    )
}

/// What each process takes of the machine beside a crowd, and without one.
fn cpus_in_use(fairness: &Fairness) -> String {
    let shares = [&fairness.idle, &fairness.loaded].map(|singles| {
        let shares = singles.cpu_seconds.iter();
        let share = |(name, spent): (&String, &f64)| (name.clone(), spent / singles.seconds);
        shares.map(share).collect::<CpuSeconds>()
    });
    let heading = ["    CPUs in use", "idle", "loaded"];
    table::render(&by_process(heading, shares.each_ref()))
}

/// Requests by sort, most frequent first.
fn sorts(requests: &Requests) -> String {
    let mut sorts: Vec<(&String, &u64)> = requests.by_sort.iter().collect();
    sorts.sort_by(|one, other| other.1.cmp(one.1).then(one.0.cmp(other.0)));
    let lines = sorts.iter();
    let lines = lines.map(|(sort, count)| format!("    {count:>7}  {sort}\n"));
    lines.collect()
}

/// How many requests of each verb came with each `User-Agent`, events and the lease among them.
fn agents_table(by_agent: &ByAgent) -> String {
    let agents = Agent::ALL.map(|(_, name)| name.to_owned());
    let mut rows = vec![[vec!["    requests".to_owned()], agents.to_vec()].concat()];
    let verbs: BTreeSet<_> = by_agent.values().flat_map(BTreeMap::keys).collect();
    for verb in verbs.into_iter().map(Some).chain([None]) {
        let sent = |verbs: &BTreeMap<String, u64>| match verb {
            Some(verb) => verbs.get(verb).copied().unwrap_or(0),
            None => verbs.values().sum(),
        };
        let of = |(agent, _)| by_agent.get(&agent).map_or(0, sent).to_string();
        let name = format!("    {}", verb.map_or("all", String::as_str));
        rows.push([vec![name], Agent::ALL.map(of).to_vec()].concat());
    }
    table::render(&rows)
}

fn cpu_table(floor: &CpuSeconds, cold: &CpuSeconds) -> String {
    compared(["    CPU seconds", "floor", "cold"], [floor, cold])
}

/// Each process of both sides, and all together, as a ratio as well.
fn compared(heading: [&str; 3], sides: [&CpuSeconds; 2]) -> String {
    let mut rows = by_process(heading, sides);
    // The share of time that other work on the machine takes does not show here.
    let [one, other] = sides.map(|side| side.values().sum::<f64>());
    let all = format!("    all ({:.2} × {})", other / one, heading[1]);
    rows.push(vec![all, format!("{one:.2}"), format!("{other:.2}")]);
    table::render(&rows)
}

/// What each process has on either side.
fn by_process(heading: [&str; 3], sides: [&CpuSeconds; 2]) -> Vec<Vec<String>> {
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let names: BTreeSet<_> = sides.iter().flat_map(|side| side.keys()).collect();
    for name in names {
        let figure = |side: &CpuSeconds| side.get(name).map(|figure| format!("{figure:.2}"));
        let [one, other] = sides.map(|side| figure(side).unwrap_or_default());
        rows.push(vec![format!("    {name}"), one, other]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars::tests::good_figures;

    /// How each phase is told, of the figures of the bars' tests. Requests are listed most frequent
    /// first, and by name where as many; those of all senders stand side by side by verb; a process
    /// that ran on one side only has one figure.
    #[test]
    fn each_phase_is_told_as_in_the_golden_file() {
        let figures = good_figures();
        let (run, fairness) = (&figures.runs[0], &figures.fairness[0]);
        let (reruns, intents) = (figures.reruns.unwrap(), figures.intents.unwrap());
        let told = [
            render("report/cold.txt", &run.cold),
            render("report/steady.txt", &run.steady),
            render("report/source-change.txt", &run.source_change),
            render("report/template-edit.txt", &run.template_edit),
            render("report/restart.txt", &run.restart),
            render("report/deletion.txt", &run.deletion),
            render("report/attribution.txt", figures.attribution),
            render("report/floor.txt", &reruns.runs.rounds),
            render("report/part.txt", &reruns.runs.rounds),
            render("report/runs.txt", &reruns),
            render("report/single.txt", reruns.single),
            render("report/single.txt", None::<Single>),
            render("report/intents.txt", &intents),
            render("report/presets.txt", figures.presets),
            render("report/singles.txt", fairness),
            render("report/fairness.txt", fairness),
        ];
        let told = told.map(|text| format!("{}\n", text.unwrap().trim_end()));
        assert_eq!(told.concat(), include_str!("report/golden.txt"));
    }
}
