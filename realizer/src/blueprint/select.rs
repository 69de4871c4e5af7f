//! Choosing the blueprint for an owner (docs/behaviour/selection.md#blueprint).

use std::sync::Arc;

use crate::values::matching::{Best, Candidate, MatchError};
use crate::{Blueprint, Owner};
use api_types::names::ObjectName;

/// Which blueprint an owner is for.
#[derive(Clone, Debug)]
pub enum Selection<'a> {
    /// Exactly this one.
    One(&'a Arc<Blueprint>),
    /// The owner has no labels.
    LabelsMissing,
    /// None. One that asks for no label may have been skipped because the owner's data made it impossible to
    /// evaluate; the text is for a warning.
    NotFound(Option<String>),
    /// These are equally specific, sorted by name.
    Multiple(Vec<String>),
    /// A blueprint that may well be meant cannot be evaluated; the text is for `Unrealized::BlueprintUnreadable`.
    Broken(String),
}

/// Chooses the blueprint.
///
/// A blueprint that cannot be evaluated is skipped for owners whose labels do not speak for it, so that it stalls no
/// others (upstream, one broken blueprint stalls every owner,
/// docs/behaviour/selection.md#broken-blueprint); what is wrong with it whatever the owner is in
/// [`Blueprint::warnings`]. An owner whose labels it does match is not handed to the next best blueprint instead:
/// that would delete what the right one has stamped.
///
/// A selector that asks for no label, or only for labels not to be there, says nothing of whom it is for before its fields
/// are read. With `spec.env[0].name` it would stall every owner in the cluster that has no `spec.env`, so an owner it cannot
/// be evaluated for is one that it does not match.
pub fn select_blueprint<'a>(
    owner: &Owner,
    blueprints: impl IntoIterator<Item = &'a Arc<Blueprint>>,
) -> Selection<'a> {
    if owner.labels.is_empty() {
        return Selection::LabelsMissing;
    }
    let blueprints: Vec<&Arc<Blueprint>> = blueprints.into_iter().collect();
    let mut best = Best::default();
    let mut skipped = None;
    let mut broken: Option<(&ObjectName, MatchError)> = None;
    for (index, blueprint) in blueprints.iter().enumerate() {
        match blueprint.matcher.matches(owner) {
            Ok(matched) => best.consider(index, &matched),
            Err(error) if blueprint.matcher.is_chosen_by_labels(&owner.labels) => {
                // The smallest name, so that the text does not depend on the order of the cache.
                if broken
                    .as_ref()
                    .is_none_or(|(name, _)| blueprint.name < **name)
                {
                    broken = Some((&blueprint.name, error));
                }
            }
            Err(error) if blueprint.matcher.broken().is_none() => {
                skipped.get_or_insert_with(|| broken_text(owner, &blueprint.name, &error));
            }
            Err(_) => {}
        }
    }
    if let Some((name, error)) = broken {
        return Selection::Broken(broken_text(owner, name, &error));
    }
    match best.indexes[..] {
        [] => Selection::NotFound(skipped),
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

/// What the selector of each blueprint says of an owner.
///
/// ```
/// # use std::sync::Arc;
/// # use realizer::{Blueprint, Family, Owner, weigh_blueprints};
/// use realizer::explanation::Match;
///
/// # let chain = serde_json::json!({"metadata": {"name": "api"}, "spec": {"selector": {"type": "api"}, "resources": []}});
/// # let chain = Arc::new(Blueprint::compile(Family::SupplyChain, &chain)?);
/// # let owner = serde_json::json!({
/// #     "metadata": {"namespace": "dev", "name": "app", "uid": "u", "labels": {"type": "web"}}});
/// # let owner = Owner::parse(Family::SupplyChain, Arc::new(owner))?;
/// let candidates = weigh_blueprints(&owner, [&chain]);
/// let Ok(Match::No(unmet)) = &candidates[0].fit else { unreachable!() };
/// assert_eq!(unmet.to_string(), "label [type] must be one of [api], but is [web]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn weigh_blueprints<'a>(
    owner: &'a Owner,
    blueprints: impl IntoIterator<Item = &'a Arc<Blueprint>>,
) -> Vec<Candidate<'a>> {
    let blueprints = blueprints.into_iter();
    blueprints
        .map(|blueprint| Candidate {
            name: blueprint.name.as_str(),
            fit: blueprint.matcher.matches(owner),
        })
        .collect()
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
