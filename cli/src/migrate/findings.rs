//! What a rehearsal finds.

use serde::Serialize;
use submission::OwnerFacts;

/// Something that is told of a step of an owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// `<Kind> <namespace>/<name>`.
    pub owner: String,
    /// The step; absent where the owner has none, or it is about all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What it is.
    pub text: String,
}

impl Told {
    pub(super) fn new(owner: OwnerFacts<'_>, step: &str, text: impl Into<String>) -> Self {
        let has_steps = owner.kind != realizer::runnable::KIND && !step.is_empty();
        Self {
            owner: format!("{} {}/{}", owner.kind, owner.namespace, owner.name),
            step: has_steps.then(|| step.to_owned()),
            text: text.into(),
        }
    }
}

/// An object that would be another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Of which step; its text is the object.
    #[serde(flatten)]
    pub told: Told,
    /// Whether the object is not there yet.
    pub created: bool,
    /// The fields that would have another value, or go.
    pub fields: Vec<String>,
}

/// A run that would start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartedRun {
    /// Of which step; its text is the object.
    #[serde(flatten)]
    pub told: Told,
    /// The newest run there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
    /// The fields in which that is not what is rendered.
    pub fields: Vec<String>,
}

/// What rehearsals find.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// Runs that would start.
    pub runs: Vec<StartedRun>,
    /// Objects that would be made or changed.
    pub changes: Vec<Change>,
    /// Objects that would be deleted: no step stands for them, or the family keeps fewer.
    pub removals: Vec<Told>,
    /// Objects that the API server, or the controller, would refuse.
    pub refused: Vec<Told>,
    /// Steps whose object is there, and would not be updated any more: an input that they declare is not there.
    pub held: Vec<Told>,
    /// What could not be judged.
    pub unjudged: Vec<Told>,
}

impl Findings {
    pub(super) fn add(&mut self, other: Self) {
        let Self {
            runs,
            changes,
            removals,
            refused,
            held,
            unjudged,
        } = other;
        self.runs.extend(runs);
        self.changes.extend(changes);
        self.removals.extend(removals);
        self.refused.extend(refused);
        self.held.extend(held);
        self.unjudged.extend(unjudged);
    }
}
