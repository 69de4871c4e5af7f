//! The names that templates can use in their tags, whatever they are rendered for.
//!
//! Admission warns of a tag that names anything else; the engine's tests compare these names with the contexts it renders with.

use template_language::vocabulary::Vocabulary::{self, Each, Names, Open};

/// An object of ours; the API server drops every other field (`deploy/crds`).
const OBJECT: Vocabulary = Names(&[
    ("apiVersion", Open),
    ("kind", Open),
    ("metadata", Open),
    ("spec", Open),
    ("status", Open),
]);
const SOURCE: Vocabulary = Names(&[("url", Open), ("revision", Open), ("name", Open)]);

/// What the templates of steps see (docs/behaviour/context.md#keys). The same kinds serve supply
/// chains and deliveries, and the shortcuts are
/// there or not by what the blueprint declares: a name is unknown only if no step of any blueprint has it.
pub static STEP: Vocabulary = Names(&[
    ("workload", OBJECT),
    ("deliverable", OBJECT),
    ("params", Open),
    ("sources", Each(&SOURCE)),
    ("images", Each(&Names(&[("image", Open), ("name", Open)]))),
    ("configs", Each(&Names(&[("config", Open), ("name", Open)]))),
    ("deployment", SOURCE),
    ("labels", Open),
    ("source", SOURCE),
    ("image", Open),
    ("config", Open),
]);

/// What ClusterRunTemplates see (docs/behaviour/runnables.md#context).
pub static RUN: Vocabulary = Names(&[("runnable", OBJECT), ("selected", Open)]);

#[cfg(test)]
mod tests;
