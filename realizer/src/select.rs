//! Choosing the blueprint for an owner (spec 2.1 to 2.3).

use std::sync::Arc;

use crate::matching::{Best, MatchError};
use crate::{Blueprint, Owner};
use api_types::names::ObjectName;

/// Which blueprint an owner is for.
#[derive(Clone, Debug)]
pub enum Selection<'a> {
    /// Exactly this one.
    One(&'a Arc<Blueprint>),
    /// The owner has no labels.
    LabelsMissing,
    /// None.
    NotFound,
    /// These are equally specific, sorted by name.
    Multiple(Vec<String>),
    /// A blueprint that may well be meant cannot be evaluated; the text is for `Unrealized::BlueprintUnreadable`.
    Broken(String),
}

/// Chooses the blueprint.
///
/// A blueprint that cannot be evaluated whatever the owner is skipped for owners it cannot match by labels, so that it
/// stalls no others (upstream, one broken blueprint stalls every owner, spec 2.3); what is wrong with it is in
/// [`Blueprint::warnings`]. An owner whose labels it does match is not handed to the next best blueprint instead:
/// that would delete what the right one has stamped.
pub fn select_blueprint<'a>(
    owner: &Owner,
    blueprints: impl IntoIterator<Item = &'a Arc<Blueprint>>,
) -> Selection<'a> {
    if owner.labels.is_empty() {
        return Selection::LabelsMissing;
    }
    let blueprints: Vec<&Arc<Blueprint>> = blueprints.into_iter().collect();
    let mut best = Best::default();
    let mut broken: Option<(&ObjectName, MatchError)> = None;
    for (index, blueprint) in blueprints.iter().enumerate() {
        match blueprint.matcher.matches(owner) {
            Ok(matched) => best.consider(index, &matched),
            Err(error) if concerns(blueprint, owner) => {
                // The smallest name, so that the text does not depend on the order of the cache.
                if broken
                    .as_ref()
                    .is_none_or(|(name, _)| blueprint.name < **name)
                {
                    broken = Some((&blueprint.name, error));
                }
            }
            Err(_) => {}
        }
    }
    if let Some((name, error)) = broken {
        return Selection::Broken(broken_text(owner, name, &error));
    }
    match best.indexes[..] {
        [] => Selection::NotFound,
        [index] => Selection::One(blueprints[index]),
        ref several => {
            let mut names: Vec<String> = several
                .iter()
                .map(|&index| blueprints[index].name.to_string())
                .collect();
            names.sort();
            Selection::Multiple(names)
        }
    }
}

/// Whether an error of this blueprint is this owner's: its labels speak for it, or its own data made the error.
fn concerns(blueprint: &Blueprint, owner: &Owner) -> bool {
    blueprint.matcher.is_chosen_by_labels(&owner.labels) || blueprint.matcher.broken().is_none()
}

/// The inner text says "supply chain" for both families, as upstream does.
fn broken_text(owner: &Owner, blueprint: &ObjectName, error: &MatchError) -> String {
    let family = owner.family;
    let (word, plural, kind) = (
        family.owner_word(),
        family.blueprints_words(),
        family.blueprint_kind(),
    );
    let owner = format!("{}/{}", owner.namespace, owner.name);
    format!(
        "failed to get {plural} for {word} [{owner}]: evaluating supply chain selectors against {word} [{owner}] \
         failed: error handling selectors, selectorMatchExpressions or selectorMatchFields of [{kind}/{blueprint}]: \
         {error}"
    )
}

#[cfg(test)]
mod tests;
