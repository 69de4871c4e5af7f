//! Commits arrive while our controllers are killed at random: everything is later, and nothing is wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use test_support::{Dice, eventually};
use tokio::time::{Instant, sleep};

use super::runs::{Run, Runs, doubled};
use super::{FullPath, PASSING_TEST, TEST};
use crate::path_stack::CONTROLLERS;

/// How long the last commit may take when nothing is killed any more.
const LIMIT: Duration = Duration::from_mins(3);
/// What ClusterRunTemplate `config-write` allows.
const WRITE_ATTEMPTS: usize = 3;

/// How it goes: the same seed kills the same controllers after the same pauses.
#[derive(Debug, Clone, Copy)]
pub struct Killing {
    /// Decides everything.
    pub seed: u64,
    /// How long commits arrive.
    pub length: Duration,
}

/// What happened.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How many commits arrived.
    pub commits: usize,
    /// How often a controller was killed.
    pub kills: usize,
    /// How many runs there were.
    pub runs: usize,
    /// How many of the commits were written to the config repository; others were overtaken by newer ones.
    pub written: usize,
    /// From the last commit, with all controllers running, to the last hop.
    pub last: Duration,
}

impl Report {
    /// Whether enough went on for the rest to prove anything.
    ///
    /// # Errors
    ///
    /// When nothing was killed, or hardly a commit arrived.
    fn is_worth_something(&self) -> anyhow::Result<()> {
        // The first commit was there before, and the last one arrives when nothing is killed any more.
        ensure!(
            self.kills > 0 && self.commits > 2 && self.written > 1 && self.runs > self.written,
            "too little went on to prove anything: {self:?}"
        );
        Ok(())
    }
}

/// Lets commits arrive and kills controllers meanwhile, then waits for the last commit and looks for what went wrong.
///
/// # Errors
///
/// When something went wrong: a run was made twice, an object is left or doubled, a manifest is of another revision than
/// its commit says, or a controller does not start.
pub async fn commits_arrive(path: &FullPath<'_>, killing: Killing) -> anyhow::Result<Report> {
    let runs = Runs::watch(path.runs_api());
    let mut dice = Dice::new(killing.seed);
    let pause = |dice: &mut Dice| sleep(Duration::from_millis(dice.below(1500)));
    let mut report = Report::default();
    let mut commits = path.written()?;
    let end = Instant::now() + killing.length;
    while Instant::now() < end {
        commits.push(path.commit(&format!("greeting {}", commits.len()), PASSING_TEST)?);
        pause(&mut dice).await;
        // One time of four a second one dies, too; it may be the same.
        for _ in 0..=usize::from(dice.below(4) == 0) {
            let victim = *dice.pick(&CONTROLLERS);
            report.kills += usize::from(path.stack.kill_controller(victim).await);
        }
        pause(&mut dice).await;
        path.stack.start_missing_controllers().await?;
    }
    let begun = Instant::now();
    let last = path.commit("the last greeting", PASSING_TEST)?;
    commits.push(last.clone());
    path.arrives(&last, LIMIT).await;
    report.last = begun.elapsed();
    let runs = eventually("all runs are known", LIMIT, async || {
        runs.all().await.map(Some)
    })
    .await;
    report.commits = commits.len();
    report.runs = runs.len();
    report.written = path.written()?.len();
    report.is_worth_something()?;
    path.nothing_is_corrupt(&commits)?;
    nothing_ran_twice(&runs)?;
    eventually("nothing is left or doubled", LIMIT, async || {
        path.nothing_is_left().await
    })
    .await;
    Ok(report)
}

/// One run for what it was made from. A test is tried once per revision; writing may be tried again when it failed.
fn nothing_ran_twice(runs: &[Run]) -> anyhow::Result<()> {
    let doubled = doubled(runs);
    ensure!(doubled.is_empty(), "these ran twice: {doubled:#?}");
    let mut attempts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for run in runs {
        *attempts.entry((&run.runnable, &run.revision)).or_default() += 1;
    }
    for ((runnable, revision), attempts) in attempts {
        let allowed = if runnable == TEST { 1 } else { WRITE_ATTEMPTS };
        ensure!(
            attempts <= allowed,
            "{runnable} ran {attempts} times for {revision}: {runs:#?}"
        );
    }
    Ok(())
}

impl FullPath<'_> {
    /// What was written is what was committed, in this order, and each manifest is of the revision that its commit names.
    fn nothing_is_corrupt(&self, commits: &[String]) -> anyhow::Result<()> {
        let written = self.written()?;
        let mut rest = commits.iter();
        for revision in &written {
            // Finding it takes away what comes before: nothing is written again, nor out of order.
            let found = rest.find(|commit| *commit == revision);
            found.with_context(|| format!("{revision} is written twice or late: {written:#?}"))?;
        }
        for (manifests, revision) in self.written_manifests()? {
            let named = manifests.matches("main@sha1:").count();
            ensure!(
                named > 0 && named == manifests.matches(&revision).count(),
                "the manifests of {revision} are of another one:\n{manifests}"
            );
        }
        Ok(())
    }
}
