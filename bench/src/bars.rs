//! The bars that the product must clear, and whether a run did. Which there are, and where they
//! lie: `templates/bars.yaml`.

use minijinja::Value;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use test_support::documents;

use crate::Figures;
use crate::phases::chains::Run;
use crate::table;
use crate::templates::{evaluate, fill, value};

const BARS: &str = include_str!("../templates/bars.yaml");

/// One figure and what it may be at most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// The bars for one sort of figures.
#[derive(Deserialize)]
struct Rules {
    of: String,
    /// What stands before the name of each bar.
    prefix: String,
    bars: Vec<Rule>,
}

/// A bar as expressions over the figures; its name is a template.
#[derive(Deserialize)]
struct Rule {
    what: String,
    when: Option<Json>,
    measured: Json,
    limit: Json,
    goal: Option<Json>,
    #[serde(default)]
    is_count: bool,
}

impl Rule {
    /// The bar for some figures, if it is one for them.
    fn judge(&self, prefix: &str, figures: &Value) -> anyhow::Result<Option<Bar>> {
        if let Some(when) = &self.when
            && !evaluate(when, figures)?.is_true()
        {
            return Ok(None);
        }
        let number = |expression| anyhow::Ok(f64::try_from(evaluate(expression, figures)?)?);
        Ok(Some(Bar {
            what: fill(&format!("{prefix}{}", self.what), figures)?,
            measured: number(&self.measured)?,
            limit: number(&self.limit)?,
            goal: self.goal.as_ref().map(number).transpose()?,
            is_count: self.is_count,
        }))
    }
}

impl Bar {
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

/// Runs of the most and of the fewest owners of a kind.
#[derive(Serialize)]
struct Growth<'a> {
    fewest: &'a Run,
    most: &'a Run,
}

impl<'a> Growth<'a> {
    /// Nothing where there is one number of owners only.
    fn of(runs: &'a [Run]) -> Option<Self> {
        let (fewest, most) = (runs.first()?, runs.last()?);
        (fewest.owners != most.owners).then_some(Self { fewest, most })
    }
}

/// All bars; the runs are ordered by kind and number of owners.
pub(crate) fn bars(figures: &Figures) -> anyhow::Result<Vec<Bar>> {
    let kinds = figures.runs.chunk_by(|one, next| one.kind == next.kind);
    let growth: Vec<_> = kinds.filter_map(Growth::of).collect();
    let mut bars = Vec::new();
    for rules in documents(BARS)?.into_iter().take(1) {
        for Rules {
            of,
            prefix,
            bars: rules,
        } in serde_json::from_value::<Vec<Rules>>(rules)?
        {
            let figures: Vec<Value> = match &*of {
                "runs" => figures.runs.iter().map(value).collect(),
                "attribution" => figures.attribution.iter().map(value).collect(),
                "growth" => growth.iter().map(value).collect(),
                "reruns" => figures.reruns.iter().map(value).collect(),
                "intents" => figures.intents.iter().map(value).collect(),
                "presets" => figures.presets.iter().map(value).collect(),
                _ => figures.fairness.iter().map(value).collect(),
            };
            for figures in &figures {
                let judged = rules.iter().map(|rule| rule.judge(&prefix, figures));
                let judged: Vec<_> = judged.collect::<anyhow::Result<_>>()?;
                bars.extend(judged.into_iter().flatten());
            }
        }
    }
    Ok(bars)
}

/// The bars as a table.
pub(crate) fn render(bars: &[Bar]) -> String {
    let row = |bar: &Bar| {
        let goal = bar.goal.map_or(String::new(), |goal| format!("≤ {goal}"));
        let (measured, limit) = (format!("{:.2}", bar.measured), format!("≤ {}", bar.limit));
        vec![
            bar.what.clone(),
            measured,
            limit,
            goal,
            bar.verdict().to_owned(),
        ]
    };
    let heading = ["what", "measured", "bar", "goal", "verdict"].map(str::to_owned);
    let rows: Vec<_> = [heading.to_vec()]
        .into_iter()
        .chain(bars.iter().map(row))
        .collect();
    table::render(&rows)
}

#[cfg(test)]
pub(crate) mod tests;
