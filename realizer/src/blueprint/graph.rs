//! The graph of steps: in which order they are submitted, and what about it cannot work.

use std::collections::{BTreeMap, BTreeSet};

use crate::blueprint::BlueprintStep;
use api_types::names::ResourceName;

/// Something about a blueprint that cannot work; reported by a condition of its own and a Warning event, never in `Ready`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphWarning {
    /// A step takes its own output.
    #[error("resource [{resource}] takes its own output; the input will never be there")]
    SelfReference {
        /// The step.
        resource: ResourceName,
    },
    /// Steps wait for one another.
    #[error(
        "resources [{}] wait for one another; none of them will ever have its inputs",
        joined(path, " -> ")
    )]
    Cycle {
        /// The steps, each taking an output of the next; the first one is repeated at the end.
        path: Vec<ResourceName>,
    },
    /// A step takes the output of a step that does not exist.
    #[error(
        "resource [{resource}] takes input [{input}] from resource [{provider}], which does not exist"
    )]
    UnknownInput {
        /// The step.
        resource: ResourceName,
        /// Local name of the input.
        input: String,
        /// The step that does not exist.
        provider: ResourceName,
    },
    /// The selector can never be evaluated; the blueprint is skipped for owners it cannot match by labels.
    #[error("selector cannot be evaluated: {message}")]
    Selector {
        /// Why not.
        message: String,
    },
}

impl GraphWarning {
    /// Whether it is why this step will never have all its inputs.
    pub(crate) fn starves(&self, step: &ResourceName) -> bool {
        match self {
            Self::SelfReference { resource } | Self::UnknownInput { resource, .. } => {
                resource == step
            }
            Self::Cycle { path } => path.contains(step),
            Self::Selector { .. } => false,
        }
    }
}

/// Indexes of the steps so that providers come before consumers, ties in blueprint order.
///
/// What waits for itself comes in blueprint order too, once nothing else is left; its inputs are missing, as they are
/// upstream for every reference to a later step.
pub(crate) fn order(steps: &[BlueprintStep]) -> Vec<usize> {
    let mut waiting_for: Vec<usize> = (0..steps.len())
        .map(|step| providers(steps, step).len())
        .collect();
    let consumers = consumers(steps);
    let mut ready: BTreeSet<usize> = (0..steps.len())
        .filter(|&step| waiting_for[step] == 0)
        .collect();
    let mut left: BTreeSet<usize> = (0..steps.len()).collect();
    let mut order = Vec::with_capacity(steps.len());
    while let Some(next) = ready.pop_first().or_else(|| left.first().copied()) {
        left.remove(&next);
        order.push(next);
        for &consumer in &consumers[next] {
            waiting_for[consumer] = waiting_for[consumer].saturating_sub(1);
            if waiting_for[consumer] == 0 && left.contains(&consumer) {
                ready.insert(consumer);
            }
        }
    }
    order
}

/// For each deployment step with validations behind it, the deployment and validation steps behind it in submission order:
/// those that are reached through such steps alone, because they hand on the revision that goes in.
pub(crate) fn downstream(steps: &[BlueprintStep], order: &[usize]) -> Vec<Vec<usize>> {
    let behind = |environment: usize| {
        let mut reached: BTreeSet<usize> = [environment].into();
        // In submission order providers come first, but for cycles, in which nothing is ever submitted.
        for &step in order {
            let echoes = steps[step].deploys() || steps[step].validates();
            if echoes
                && steps[step]
                    .deployment_providers()
                    .any(|provider| reached.contains(&provider))
            {
                reached.insert(step);
            }
        }
        reached.remove(&environment);
        let behind: Vec<usize> = order
            .iter()
            .copied()
            .filter(|step| reached.contains(step))
            .collect();
        let validated = behind.iter().any(|&step| steps[step].validates());
        if validated { behind } else { Vec::new() }
    };
    (0..steps.len())
        .map(|step| {
            if steps[step].deploys() {
                behind(step)
            } else {
                Vec::new()
            }
        })
        .collect()
}

/// What cannot work, in blueprint order, cycles last.
pub(crate) fn warnings(steps: &[BlueprintStep]) -> Vec<GraphWarning> {
    let mut warnings = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        if step
            .inputs
            .iter()
            .any(|input| input.provider == Some(index))
        {
            warnings.push(GraphWarning::SelfReference {
                resource: step.name.clone(),
            });
        }
        for input in step.inputs.iter().filter(|input| input.provider.is_none()) {
            warnings.push(GraphWarning::UnknownInput {
                resource: step.name.clone(),
                input: input.shown(),
                provider: input.resource.clone(),
            });
        }
    }
    warnings.extend(cycles(steps));
    warnings
}

/// So many cycles are looked for. Nobody mends more at a time, and a blueprint may have ten thousand steps.
const MOST_CYCLES: usize = 50;

/// One cycle per knot of steps that wait for one another, the first [`MOST_CYCLES`].
fn cycles(steps: &[BlueprintStep]) -> Vec<GraphWarning> {
    let order = order(steps);
    let mut left: BTreeSet<usize> = (0..steps.len()).collect();
    let mut cycles = Vec::new();
    while cycles.len() < MOST_CYCLES {
        drop_leaves(steps, &order, &mut left);
        // Every step that is left waits for another one that is left, so following them must come round.
        let Some(&start) = left.first() else {
            return cycles;
        };
        let mut path = vec![start];
        let mut places = BTreeMap::from([(start, 0)]);
        let mut at = start;
        let begin = loop {
            let Some(next) = providers(steps, at)
                .into_iter()
                .find(|step| left.contains(step))
            else {
                return cycles;
            };
            if let Some(begin) = places.get(&next) {
                break *begin;
            }
            places.insert(next, path.len());
            path.push(next);
            at = next;
        };
        let cycle = &path[begin..];
        let names = cycle
            .iter()
            .chain(cycle.first())
            .map(|&step| steps[step].name.clone());
        cycles.push(GraphWarning::Cycle {
            path: names.collect(),
        });
        for step in cycle {
            left.remove(step);
        }
    }
    cycles
}

/// Removes, again and again, what waits for nothing that is left; in submission order one round does nearly all.
fn drop_leaves(steps: &[BlueprintStep], order: &[usize], left: &mut BTreeSet<usize>) {
    loop {
        let before = left.len();
        for step in order {
            if left.contains(step)
                && !providers(steps, *step)
                    .iter()
                    .any(|provider| left.contains(provider))
            {
                left.remove(step);
            }
        }
        if left.len() == before {
            return;
        }
    }
}

/// The other steps whose outputs a step takes, each once, in order of declaration.
fn providers(steps: &[BlueprintStep], step: usize) -> Vec<usize> {
    let mut providers = Vec::new();
    for provider in steps[step].inputs.iter().filter_map(|input| input.provider) {
        if provider != step && !providers.contains(&provider) {
            providers.push(provider);
        }
    }
    providers
}

fn consumers(steps: &[BlueprintStep]) -> Vec<Vec<usize>> {
    let mut consumers = vec![Vec::new(); steps.len()];
    for step in 0..steps.len() {
        for provider in providers(steps, step) {
            consumers[provider].push(step);
        }
    }
    consumers
}

/// Names of steps with something between them.
pub(crate) fn joined(steps: &[ResourceName], between: &str) -> String {
    let names: Vec<&str> = steps.iter().map(ResourceName::as_str).collect();
    names.join(between)
}

#[cfg(test)]
mod tests;
