//! The bars that the product must clear, and whether a run did.

mod limits;

use serde::Serialize;

use crate::Figures;
use crate::table::Table;
use limits::{growth, of_fairness, of_intents, of_reruns, of_run};

/// What a figure may be at most, and what we wish for beyond that.
#[derive(Clone, Copy)]
struct Limit {
    bar: f64,
    goal: Option<f64>,
}

impl Limit {
    const fn of(bar: f64) -> Self {
        Self { bar, goal: None }
    }

    const fn with_goal(bar: f64, goal: f64) -> Self {
        let goal = Some(goal);
        Self { bar, goal }
    }
}

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
    /// A figure that depends on the machine.
    fn timed(what: impl Into<String>, measured: f64, limit: Limit) -> Self {
        Self {
            what: what.into(),
            measured,
            limit: limit.bar,
            goal: limit.goal,
            is_count: false,
        }
    }

    fn counted(what: &str, measured: f64, limit: f64) -> Self {
        Self {
            is_count: true,
            ..Self::timed(what, measured, Limit::of(limit))
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
pub(crate) fn bars(figures: &Figures) -> Vec<Bar> {
    let mut bars: Vec<Bar> = figures.runs.iter().flat_map(of_run).collect();
    for of_kind in figures.runs.chunk_by(|one, next| one.kind == next.kind) {
        bars.extend(growth(of_kind));
    }
    bars.extend(figures.reruns.iter().flat_map(of_reruns));
    bars.extend(figures.intents.iter().flat_map(of_intents));
    bars.extend(figures.fairness.iter().flat_map(of_fairness));
    bars
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

pub(crate) fn count(objects: usize) -> f64 {
    number(objects as u64)
}

#[cfg(test)]
mod tests;
