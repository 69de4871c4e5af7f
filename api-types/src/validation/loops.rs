//! Steps that wait for themselves, directly or through others: their inputs are never there.
//!
//! Admission answers while somebody waits, and a blueprint may have ten thousand steps: nothing here grows faster than they
//! and their inputs, times [`MOST`].

use std::collections::{BTreeMap, VecDeque};

use super::steps::Steps;
use crate::blueprint::BlueprintResource;

/// So many loops are named. The API server passes on fewer: 4096 bytes of all warnings together.
const MOST: usize = 50;

/// A warning for each loop, the shortest through its first step.
pub(super) fn warnings(resources: &[BlueprintResource]) -> Vec<String> {
    let providers = Steps::of(resources).providers();
    let knots = knots(&providers);
    let mut warnings = Vec::new();
    let mut is_reported = vec![false; resources.len()];
    for start in 0..resources.len() {
        if is_reported[start] || warnings.len() == MOST {
            continue;
        }
        let Some(steps) = way_back(&providers, &knots, start) else {
            continue;
        };
        let names: Vec<&str> = steps
            .iter()
            .map(|&step| resources[step].name.as_str())
            .collect();
        for &step in &steps {
            is_reported[step] = true;
        }
        warnings.push(match names[..] {
            [name] => {
                format!("resource [{name}] takes its own output as input: the input is never there")
            }
            _ => format!(
                "resources [{}] wait for each other: their inputs are never there",
                names.join(", ")
            ),
        });
    }
    warnings
}

/// The shortest way from a step along its inputs back to itself, beginning with the step. It never leaves the knot.
fn way_back(providers: &[Vec<usize>], knots: &[usize], start: usize) -> Option<Vec<usize>> {
    let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(step) = next.pop_front() {
        for &provider in &providers[step] {
            if provider == start {
                return Some(way(&came_from, start, step));
            }
            if knots[provider] == knots[start] && !came_from.contains_key(&provider) {
                came_from.insert(provider, step);
                next.push_back(provider);
            }
        }
    }
    None
}

fn way(came_from: &BTreeMap<usize, usize>, start: usize, end: usize) -> Vec<usize> {
    let mut way = vec![end];
    let mut step = end;
    while step != start
        && let Some(&before) = came_from.get(&step)
    {
        way.push(before);
        step = before;
    }
    way.reverse();
    way
}

/// For each step the knot that it is in: steps are in the same one if each waits for the other.
fn knots(providers: &[Vec<usize>]) -> Vec<usize> {
    let mut consumers = vec![Vec::new(); providers.len()];
    for (step, providers) in providers.iter().enumerate() {
        for &provider in providers {
            consumers[provider].push(step);
        }
    }
    let mut knots: Vec<Option<usize>> = vec![None; providers.len()];
    for root in finished(providers).into_iter().rev() {
        let mut reached = vec![root];
        while let Some(step) = reached.pop() {
            if knots[step].is_none() {
                knots[step] = Some(root);
                reached.extend(&consumers[step]);
            }
        }
    }
    let alone = knots.into_iter().enumerate();
    alone.map(|(step, knot)| knot.unwrap_or(step)).collect()
}

/// All steps, each after those that are first reached from it. Without recursion: a chain may be as long as the list.
fn finished(providers: &[Vec<usize>]) -> Vec<usize> {
    let mut is_seen = vec![false; providers.len()];
    let mut order = Vec::with_capacity(providers.len());
    for root in 0..providers.len() {
        if std::mem::replace(&mut is_seen[root], true) {
            continue;
        }
        // Each step with the number of its inputs that were looked at.
        let mut way = vec![(root, 0)];
        while let Some((step, looked)) = way.last_mut() {
            let (step, input) = (*step, *looked);
            *looked += 1;
            match providers[step].get(input) {
                Some(&provider) if !is_seen[provider] => {
                    is_seen[provider] = true;
                    way.push((provider, 0));
                }
                Some(_) => {}
                None => {
                    order.push(step);
                    way.pop();
                }
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blueprint::InputReference;

    /// A step for each list of indexes, which are those whose outputs it takes.
    fn steps(inputs: &[Vec<usize>]) -> Vec<BlueprintResource> {
        let step = |(index, inputs): (usize, &Vec<usize>)| BlueprintResource {
            name: format!("s{index}"),
            configs: inputs
                .iter()
                .map(|provider| InputReference {
                    name: format!("i{provider}"),
                    resource: format!("s{provider}"),
                })
                .collect(),
            ..BlueprintResource::default()
        };
        inputs.iter().enumerate().map(step).collect()
    }

    #[test]
    fn each_loop_is_named_once_by_its_shortest_way() {
        // 0 -> 1 -> 2 -> 0, with a shorter way 0 -> 3 -> 0; 4 waits for them and is in no loop; 5 takes its own output.
        let inputs = [
            vec![1, 3],
            vec![2],
            vec![0],
            vec![0],
            vec![0],
            vec![5],
            vec![9],
        ];
        assert_eq!(
            warnings(&steps(&inputs)),
            [
                "resources [s0, s3] wait for each other: their inputs are never there",
                "resources [s1, s2, s0] wait for each other: their inputs are never there",
                "resource [s5] takes its own output as input: the input is never there",
            ]
        );
    }

    #[test]
    fn ten_thousand_steps_are_looked_through_at_once() {
        let count = 10_000;
        let chain: Vec<Vec<usize>> = (0..count).map(|step| vec![step + 1]).collect();
        assert!(warnings(&steps(&chain)).is_empty());
        let ring: Vec<Vec<usize>> = (0..count).map(|step| vec![(step + 1) % count]).collect();
        assert_eq!(warnings(&steps(&ring)).len(), 1);
        let pairs: Vec<Vec<usize>> = (0..count).map(|step| vec![step ^ 1]).collect();
        assert_eq!(warnings(&steps(&pairs)).len(), MOST);
        // Every step is in a loop of two with its neighbour, and all are in one knot.
        let ladder: Vec<Vec<usize>> = (0..count)
            .map(|step| vec![(step + 1) % count, (step + count - 1) % count])
            .collect();
        assert_eq!(warnings(&steps(&ladder)).len(), MOST);
    }
}
