//! All figures of a run, as they are written to `--json`.

use serde::Serialize;

use crate::bars::{Bar, bars, of_fairness};
use crate::floor::Floor;
use crate::latency::Latency;
use crate::phases::change::{SourceChange, TemplateEdit};
use crate::phases::cold::Cold;
use crate::phases::end::Deletion;
use crate::phases::fairness::Fairness;
use crate::phases::steady::{Restart, Steady};

/// All that was measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    /// By number of Workloads.
    pub(crate) runs: Vec<Run>,
    /// One owner beside many of another namespace.
    pub(crate) fairness: Option<Fairness>,
}

impl Figures {
    /// The bars for these.
    pub(crate) fn bars(&self) -> Vec<Bar> {
        let mut bars = bars(&self.runs);
        bars.extend(self.fairness.as_ref().map(of_fairness));
        bars
    }
}

/// Everything measured for one number of Workloads.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    /// Number of Workloads.
    pub(crate) owners: usize,
    /// Steps of the chain.
    pub(crate) steps: u8,
    /// The bare client, before the controller.
    pub(crate) floor: Floor,
    /// The bare client, after the controller: what differs is drift of the machine and of the database.
    pub(crate) floor_again: Floor,
    /// Source changes carried through by the bare client.
    pub(crate) chains: Option<Latency>,
    /// The controller; absent with `--floor-only`.
    pub(crate) measured: Option<Measured>,
}

/// What was measured of the controller.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Measured {
    /// All Workloads at once.
    pub(crate) cold: Cold,
    /// Reconciles that change nothing.
    pub(crate) steady: Steady,
    /// Single source changes.
    pub(crate) source_change: SourceChange,
    /// A template edit.
    pub(crate) template_edit: TemplateEdit,
    /// Killed and started again.
    pub(crate) restart: Restart,
    /// All Workloads deleted.
    pub(crate) deletion: Deletion,
}
