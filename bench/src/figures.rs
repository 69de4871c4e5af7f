//! All figures of a run, as they are written to `--json`.

use serde::Serialize;

use crate::bars::{Bar, bars, of_fairness, of_reruns};
use crate::phases::change::{SourceChange, TemplateEdit};
use crate::phases::cold::Cold;
use crate::phases::end::Deletion;
use crate::phases::fairness::Fairness;
use crate::phases::steady::{Restart, Steady};
use crate::reruns::Reruns;

/// All that was measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    /// By family and number of owners.
    pub(crate) runs: Vec<Run>,
    /// One owner beside many of others, by how many namespaces those live in.
    pub(crate) fairness: Vec<Fairness>,
    /// Runnables.
    pub(crate) reruns: Option<Reruns>,
}

impl Figures {
    /// The bars for these.
    pub(crate) fn bars(&self) -> Vec<Bar> {
        let mut bars = bars(&self.runs);
        bars.extend(self.reruns.iter().flat_map(of_reruns));
        bars.extend(self.fairness.iter().flat_map(of_fairness));
        bars
    }
}

/// Everything measured for one family and number of owners.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    /// Kind of the owners.
    pub(crate) kind: &'static str,
    /// Number of owners.
    pub(crate) owners: usize,
    /// Steps of the chain.
    pub(crate) steps: u8,
    /// Requests in flight of the bare client, and of the bench as a user.
    pub(crate) concurrency: usize,
    /// Owners created at once.
    pub(crate) cold: Cold,
    /// Reconciles that change nothing.
    pub(crate) steady: Steady,
    /// Single source changes.
    pub(crate) source_change: SourceChange,
    /// A template edit.
    pub(crate) template_edit: TemplateEdit,
    /// Killed and started again.
    pub(crate) restart: Restart,
    /// All owners deleted.
    pub(crate) deletion: Deletion,
}
