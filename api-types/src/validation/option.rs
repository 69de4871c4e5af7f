//! References to templates and their options (docs/behaviour/admission.md#template-references).

use std::collections::BTreeMap;

use serde_json::Value;

use super::Violation;
use super::field::{self, Owner};
use crate::blueprint::{TemplateOption, TemplateReference};
use crate::selector::{CompiledSelector, Selector};

/// Checks a reference to a template; `raw_options` are its options as written.
pub(super) fn check_reference(
    reference: &TemplateReference,
    raw_options: &Value,
    owner: Owner,
) -> Result<(), Violation> {
    let options = &reference.options;
    match (is_given(reference.name.as_ref()), options.len()) {
        (true, 1..) => return Err(Violation::TemplateNameAndOptions),
        (false, 0) => return Err(Violation::NoTemplate),
        (false, 1) => return Err(Violation::SingleOption),
        _ => {}
    }
    let count = options
        .iter()
        .filter(|option| is_given(option.pass_through.as_ref()))
        .count();
    if count > 1 {
        return Err(Violation::SeveralPassThroughs { count });
    }
    options
        .iter()
        .try_for_each(|option| check_option(option, owner))?;
    check_distinct(options, raw_options)
}

/// Go reads an absent string as an empty one and cannot tell them apart.
pub(super) fn is_given(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

fn check_option(option: &TemplateOption, owner: Owner) -> Result<(), Violation> {
    match (
        is_given(option.name.as_ref()),
        is_given(option.pass_through.as_ref()),
    ) {
        (true, true) => return Err(Violation::OptionNameAndPassThrough),
        (false, false) => return Err(Violation::EmptyOption),
        _ => {}
    }
    check_selector(&option.selector, owner).map_err(|violation| Violation::OptionSelector {
        option: title(option),
        violation: Box::new(violation),
    })
}

fn title(option: &TemplateOption) -> String {
    option
        .name
        .clone()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "passThrough".to_owned())
}

fn check_selector(selector: &Selector, owner: Owner) -> Result<(), Violation> {
    if selector.is_empty() {
        return Err(Violation::EmptySelector);
    }
    CompiledSelector::from_parts(&selector.match_labels, &[]).map_err(Violation::MatchLabels)?;
    CompiledSelector::from_parts(&BTreeMap::new(), &selector.match_expressions)
        .map_err(Violation::MatchExpressions)?;
    field::check_all(&selector.match_fields, owner)
}

/// Selectors are compared as written: to the Go controller an empty list and none are different, and admitted.
fn check_distinct(options: &[TemplateOption], raw_options: &Value) -> Result<(), Violation> {
    let selectors: Vec<&Value> = (0..options.len())
        .map(|index| &raw_options[index]["selector"])
        .collect();
    for (index, first) in options.iter().enumerate() {
        for (later, second) in options.iter().enumerate().skip(index + 1) {
            if selectors[index] == selectors[later] {
                return Err(Violation::DuplicateSelector {
                    first: title(first),
                    second: title(second),
                });
            }
        }
    }
    Ok(())
}
