//! Warnings about the tags of simple templates.

use std::collections::BTreeMap;

use serde_json::Value;

use template_language::interpolate::Compiled;
use template_language::tags::{self, TagFault};

use crate::templates::TemplateKind;
use crate::vocabulary::{RUN, STEP};

/// What the API server passes on of a warning at least, in bytes.
const LONGEST: usize = 256;

/// The API server passes on 4096 bytes of all warnings together.
const MOST: usize = 10;

/// Warnings about the tags of an object, if it is a simple template: one for each tag, however often it stands there.
pub(super) fn warnings(kind: &str, object: &Value) -> Vec<String> {
    let vocabulary = match kind {
        "ClusterRunTemplate" => &RUN,
        _ if kind.parse::<TemplateKind>().is_ok() => &STEP,
        _ => return Vec::new(),
    };
    let Some(template) = object.pointer("/spec/template") else {
        return Vec::new();
    };
    told(
        kind,
        object,
        &tags::faults(&Compiled::compile(template), vocabulary),
    )
}

/// A warning for each tag with a fault, up to [`MOST`].
fn told(kind: &str, object: &Value, faults: &[TagFault]) -> Vec<String> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut first: Vec<&TagFault> = Vec::new();
    for fault in faults {
        let places = places.entry(&fault.tag).or_default();
        if *places == 0 {
            first.push(fault);
        }
        *places += 1;
    }
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    let told = first.iter().take(MOST);
    let mut warnings: Vec<String> = told
        .map(|fault| text(kind, name, fault, places[&*fault.tag] - 1))
        .collect();
    if first.len() > MOST {
        let more = first.len() - MOST;
        let name = beginning(name, 60);
        warnings.push(format!(
            "{kind} [{name}]: {more} more of its tags have no value or do not end"
        ));
    }
    warnings
}

/// Names and places are shortened, and only then the problem.
fn text(kind: &str, name: &str, fault: &TagFault, more: usize) -> String {
    let more = match more {
        0 => String::new(),
        1 => " (and at another place)".to_owned(),
        more => format!(" (and at {more} other places)"),
    };
    let place = match fault.at.as_str() {
        at if at.is_empty() || at.starts_with('[') => format!("spec.template{at}"),
        at => format!("spec.template.{at}"),
    };
    let told = |longest: [usize; 3]| {
        let name = beginning(name, longest[0]);
        let place = end(&place, longest[1]);
        let tag = beginning(&fault.tag, longest[2]);
        format!("{kind} [{name}]: {place}{more}: {tag} {}", fault.problem)
    };
    let whole = told([60, 90, 60]);
    if whole.len() <= LONGEST {
        return whole;
    }
    beginning(&told([20, 30, 30]), LONGEST)
}

fn beginning(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(most - 3)])
}

fn end(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!(
        "...{}",
        &text[text.ceil_char_boundary(text.len() + 3 - most)..]
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault(at: &str, tag: &str) -> TagFault {
        TagFault {
            at: at.to_owned(),
            tag: tag.to_owned(),
            problem: "is not a valid path: it is empty".to_owned(),
        }
    }

    #[test]
    fn a_place_is_named_as_it_is_found_in_the_manifest() {
        for (at, place) in [
            ("", "spec.template"),
            ("[0].a", "spec.template[0].a"),
            ("spec.a", "spec.template.spec.a"),
        ] {
            let expected =
                format!("ClusterTemplate [t]: {place}: $()$ is not a valid path: it is empty");
            assert_eq!(
                text("ClusterTemplate", "t", &fault(at, "$()$"), 0),
                expected
            );
        }
    }

    #[test]
    fn of_very_many_tags_the_first_are_told_and_the_others_counted() {
        let object = json!({"metadata": {"name": "t"}, "spec": {"template": {}}});
        let faulty = |count| -> Vec<TagFault> {
            (0..count)
                .map(|index| fault("a", &format!("$({index})$")))
                .collect()
        };
        assert_eq!(told("ClusterTemplate", &object, &faulty(10)).len(), 10);
        let told = told("ClusterTemplate", &object, &faulty(100_000));
        assert_eq!(told.len(), 11);
        assert_eq!(
            told[10],
            "ClusterTemplate [t]: 99990 more of its tags have no value or do not end"
        );
    }

    #[test]
    fn long_names_places_and_tags_leave_room_for_the_problem() {
        let long = "\u{e9}".repeat(200);
        let told = text(
            "ClusterDeploymentValidationTemplate",
            &long,
            &fault(&format!("{long}.name"), &format!("$({long})$")),
            20,
        );
        assert!(told.len() <= LONGEST, "{told}");
        assert!(
            told.contains(".name (and at 20 other places): $("),
            "{told}"
        );
        assert!(
            told.ends_with(" is not a valid path: it is empty"),
            "{told}"
        );
        let mut endless = fault("a", "$(b)$");
        endless.problem = long;
        let told = text("ClusterTemplate", "t", &endless, 0);
        assert!(told.len() <= LONGEST && told.ends_with("..."), "{told}");
    }
}
