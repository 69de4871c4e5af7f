//! What is wrong with the steps as the blueprint puts them together.

use std::collections::BTreeSet;

use super::Step;

/// Why an input of this step will never be there: no such step, or steps that wait for one another.
pub(super) fn never_there(steps: &[Step], step: &Step) -> Option<String> {
    let known = |name: &str| steps.iter().find(|step| step.name == name);
    let unknown = step.waiting_for.iter().find(|name| known(name).is_none());
    if let Some(unknown) = unknown {
        return Some(format!(
            "there is no step {unknown}; correct the inputs of step {}",
            step.name
        ));
    }
    let round = round(steps, step, &mut Vec::new(), &mut BTreeSet::new())?;
    Some(format!(
        "steps {} wait for one another; take out one of these inputs",
        round.join(" -> ")
    ))
}

/// Follows what is waited for until a step comes again. Each step is entered once: from one that was left, no round is found.
fn round<'s>(
    steps: &'s [Step],
    step: &'s Step,
    path: &mut Vec<&'s str>,
    entered: &mut BTreeSet<&'s str>,
) -> Option<Vec<&'s str>> {
    if let Some(first) = path.iter().position(|name| *name == step.name) {
        return Some([&path[first..], &[&step.name]].concat());
    }
    if !entered.insert(&step.name) {
        return None;
    }
    path.push(&step.name);
    let awaited = step.waiting_for.iter();
    let found = awaited
        .filter_map(|name| steps.iter().find(|step| &step.name == name))
        .find_map(|next| round(steps, next, path, entered));
    path.pop();
    found
}

/// `ClusterSourceTemplate/git (step source)` for each step that a message names as `…[source, image]`.
pub(super) fn templates_named(steps: &[Step], message: &str) -> Option<String> {
    let (_, list) = message.rsplit_once('[')?;
    let names: Vec<&str> = list
        .trim_end_matches(']')
        .split([',', ' '])
        .filter(|name| !name.is_empty())
        .collect();
    let named: Vec<String> = steps
        .iter()
        .filter(|step| names.contains(&step.name.as_str()))
        .filter_map(|step| {
            let template = step.template.as_deref()?;
            template
                .contains('/')
                .then(|| format!("{template} (step {})", step.name))
        })
        .collect();
    (!named.is_empty()).then(|| named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, waiting_for: &[&str]) -> Step {
        Step {
            name: name.to_owned(),
            template: Some(format!("ClusterTemplate/{name}-template")),
            waiting_for: waiting_for.iter().map(|&name| name.to_owned()).collect(),
            ..Step::default()
        }
    }

    #[test]
    fn steps_that_wait_for_one_another_are_named_in_their_order() {
        let steps = [
            step("entry", &["done", "b"]),
            step("done", &[]),
            step("a", &["b"]),
            step("b", &["c"]),
            step("c", &["a"]),
        ];
        let told = |index: usize| never_there(&steps, &steps[index]);
        assert_eq!(
            told(0).as_deref(),
            Some("steps b -> c -> a -> b wait for one another; take out one of these inputs")
        );
        assert_eq!(told(1), None);
        let itself = [step("a", &["a"])];
        assert_eq!(
            never_there(&itself, &itself[0]).as_deref(),
            Some("steps a -> a wait for one another; take out one of these inputs")
        );
    }

    #[test]
    fn an_input_from_no_step_is_named() {
        let steps = [step("deploy", &["sorce"])];
        assert_eq!(
            never_there(&steps, &steps[0]).as_deref(),
            Some("there is no step sorce; correct the inputs of step deploy")
        );
    }

    #[test]
    fn a_wide_blueprint_without_a_round_is_walked_in_no_time() {
        let mut steps: Vec<Step> = vec![step("0", &[])];
        for layer in 1..200 {
            let below: Vec<String> = (0..layer).map(|below: u32| below.to_string()).collect();
            let below: Vec<&str> = below.iter().map(String::as_str).collect();
            steps.push(step(&layer.to_string(), &below));
        }
        assert_eq!(never_there(&steps, &steps[199]), None);
    }

    #[test]
    fn templates_that_are_missing_are_named_with_their_steps() {
        let steps = [
            step("source", &[]),
            step("image", &[]),
            Step {
                template: Some("ClusterTemplate (one of 2)".to_owned()),
                ..step("chosen", &[])
            },
        ];
        let message = "did not find the template of the resource(s) [image]";
        assert_eq!(
            templates_named(&steps, message).as_deref(),
            Some("ClusterTemplate/image-template (step image)")
        );
        let both = templates_named(&steps, "… [source, image]").unwrap();
        assert!(both.contains("(step source), ") && both.contains("(step image)"));
        for unknown in ["… [chosen]", "… [other]", "no list", "[]", ""] {
            assert_eq!(templates_named(&steps, unknown), None, "{unknown}");
        }
    }
}
