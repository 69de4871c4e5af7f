//! When the outputs of a stamped object are good (docs/behaviour/admission.md#templates).

use template_language::interpolate::Compiled;
use template_language::jsonpath;
use template_language::tags;

use super::Violation;
use crate::duration::parse_duration;
use crate::selector::label_syntax;
use crate::templates::{
    CompletionCondition, InputOnStatus, Lifecycle, MOST_CONDITION_DEPTH, MOST_OTHER_OBJECTS,
    ObservedMatch, OtherObject, SuccessRules,
};
use crate::vocabulary::STEP;

/// The rules of a template that need not have any.
pub(super) fn optional(rules: &SuccessRules, lifecycle: Lifecycle) -> Result<(), Violation> {
    if rules.given() > 1 {
        return Err(Violation::SeveralSuccessRules);
    }
    if rules.failed.is_some()
        && rules.observed_matches.is_empty()
        && rules.inputs_on_status.is_empty()
    {
        return Err(Violation::FailedWithoutRule);
    }
    strictly(rules)?;
    waiting(rules)?;
    let tells_of_which_spec = rules.observed_completion.is_some() || rules.always_successful;
    if rules.refuses_foreign_fields() && !tells_of_which_spec {
        return Err(Violation::RefuseWithoutRule);
    }
    if lifecycle.is_immutable() && !rules.inputs_on_status.is_empty() {
        return Err(Violation::InputsOfRun);
    }
    Ok(())
}

/// An object that is good as soon as it is there is never waited for.
fn waiting(rules: &SuccessRules) -> Result<(), Violation> {
    let Some(policy) = &rules.update_policy else {
        return Ok(());
    };
    if let Some(timeout) = &policy.timeout
        && parse_duration(timeout).is_none()
    {
        return Err(Violation::Timeout {
            timeout: timeout.clone(),
        });
    }
    let says_when = rules.given() > 0 && !rules.always_successful;
    if policy.waits() && !says_when {
        return Err(Violation::WaitWithoutRule);
    }
    Ok(())
}

/// The rules of a template that deploys. What the Go controller admits stays admitted, with its texts.
pub(super) fn of_deployment(rules: &SuccessRules, lifecycle: Lifecycle) -> Result<(), Violation> {
    if !rules.are_attributed() {
        let has_one = rules.observed_matches.is_empty() != rules.observed_completion.is_none();
        return if has_one {
            composed(rules)
        } else {
            Err(Violation::Observed)
        };
    }
    if rules.given() == 0 {
        return Err(Violation::Observed);
    }
    optional(rules, lifecycle)
}

/// The rules of a template that validates: they read the stamped object alone, by which a revision is judged.
pub(super) fn of_validation(rules: &SuccessRules) -> Result<(), Violation> {
    let at = conditions(rules).into_iter();
    let at = at.filter(|(_, it)| !it.other_objects().is_empty());
    let mut at: Vec<&str> = at.map(|(at, _)| at).collect();
    if rules.observed_matches.iter().any(|it| it.object.is_some()) {
        at.push("spec.observedMatches[]");
    }
    if let Some(at) = at.first() {
        return Err(Violation::Condition {
            at: (*at).to_owned(),
            why: "a validation reads no other object".to_owned(),
        });
    }
    composed(rules)
}

/// The conditions that the Go controller does not have, and that none is empty, which its schema says. A path that does not
/// parse is warned of there.
fn composed(rules: &SuccessRules) -> Result<(), Violation> {
    let is_ours = |it: &CompletionCondition| !it.is_value() || it.key.is_empty();
    conditions(rules)
        .into_iter()
        .filter(|(_, it)| is_ours(it))
        .try_for_each(|(at, it)| condition(at, it, 1))
}

fn strictly(rules: &SuccessRules) -> Result<(), Violation> {
    for (at, it) in conditions(rules) {
        condition(at, it, 1)?;
    }
    if let Some(completion) = &rules.observed_completion
        && completion.failed.as_ref() == Some(&completion.succeeded)
    {
        return Err(Violation::Condition {
            at: "spec.observedCompletion".to_owned(),
            why: "succeeded and failed are the same".to_owned(),
        });
    }
    rules.observed_matches.iter().try_for_each(pair)?;
    let others = rules.other_objects().len();
    if others > MOST_OTHER_OBJECTS {
        return Err(Violation::Condition {
            at: "spec".to_owned(),
            why: format!("reads {others} other objects, and {MOST_OTHER_OBJECTS} are allowed"),
        });
    }
    rules.inputs_on_status.iter().try_for_each(input)
}

/// All conditions, with where they stand.
fn conditions(rules: &SuccessRules) -> Vec<(&'static str, &CompletionCondition)> {
    let completion = rules.observed_completion.as_ref();
    let succeeded = completion.map(|it| ("spec.observedCompletion.succeeded", &it.succeeded));
    let failed = completion.and_then(|it| it.failed.as_ref());
    let failed = failed.map(|it| ("spec.observedCompletion.failed", it));
    let beside = rules.failed.as_ref().map(|it| ("spec.failed", it));
    [succeeded, failed, beside].into_iter().flatten().collect()
}

fn condition(at: &str, it: &CompletionCondition, depth: usize) -> Result<(), Violation> {
    let refused = |why: String| Violation::Condition {
        at: at.to_owned(),
        why,
    };
    if depth > MOST_CONDITION_DEPTH {
        return Err(refused(format!(
            "nested deeper than {MOST_CONDITION_DEPTH}"
        )));
    }
    let given = [
        !it.key.is_empty(),
        !it.all_of.is_empty(),
        !it.any_of.is_empty(),
        it.not.is_some(),
    ];
    if given.into_iter().filter(|given| *given).count() != 1 {
        return Err(refused(
            "must set exactly one of key, allOf, anyOf and not".to_owned(),
        ));
    }
    if it.is_value() {
        path(at, "key", &it.key)?;
        return it.object.as_ref().map_or(Ok(()), |it| other_object(at, it));
    }
    if it.object.is_some() {
        return Err(refused("object stands beside key and value".to_owned()));
    }
    if let Some(key) = contradiction(it) {
        return Err(refused(format!(
            "can never hold: [{key}] cannot have two values"
        )));
    }
    let named = |list: &str, parts: &[CompletionCondition]| {
        let mut parts = parts.iter().enumerate();
        parts.try_for_each(|(index, part)| {
            condition(&format!("{at}.{list}[{index}]"), part, depth + 1)
        })
    };
    named("allOf", &it.all_of)?;
    named("anyOf", &it.any_of)?;
    let not = it.not.as_deref();
    not.map_or(Ok(()), |part| {
        condition(&format!("{at}.not"), part, depth + 1)
    })
}

/// A path of which all of the conditions ask two values.
fn contradiction(it: &CompletionCondition) -> Option<&str> {
    let values: Vec<&CompletionCondition> =
        it.all_of.iter().filter(|part| part.is_value()).collect();
    let mut pairs = values.iter().enumerate();
    let found = pairs.find(|(index, part)| {
        let mut others = values[index + 1..].iter();
        others.any(|other| {
            let is_same = other.key == part.key && other.object == part.object;
            is_same && other.value != part.value
        })
    });
    found.map(|(_, part)| part.key.as_str())
}

fn pair(pair: &ObservedMatch) -> Result<(), Violation> {
    let at = "spec.observedMatches[]";
    path(at, "input", &pair.input)?;
    path(at, "output", &pair.output)?;
    let object = pair.object.as_ref();
    object.map_or(Ok(()), |object| other_object(at, object))
}

fn other_object(at: &str, object: &OtherObject) -> Result<(), Violation> {
    let refused = |why: String| {
        Err(Violation::Condition {
            at: format!("{at}.object"),
            why,
        })
    };
    if object.api_version.is_empty() || object.kind.is_empty() {
        return refused("must set apiVersion and kind".to_owned());
    }
    if object.name.is_empty() == object.match_labels.is_empty() {
        return refused("must set exactly one of name and matchLabels".to_owned());
    }
    let mut keys = object.match_labels.keys();
    if let Some(key) = keys.find(|key| !label_syntax::label_key_errors(key).is_empty()) {
        return refused(format!(
            "matchLabels has [{key}], which is no key of a label"
        ));
    }
    for (field, text) in object.texts() {
        let compiled = Compiled::compile(&text.into());
        if let Some(fault) = tags::faults(&compiled, &STEP).first() {
            return refused(format!("{field} [{text}] {}", fault.problem));
        }
    }
    Ok(())
}

fn input(input: &InputOnStatus) -> Result<(), Violation> {
    let at = "spec.inputsOnStatus[]";
    path(at, "objectPath", &input.object_path)?;
    let tag = Compiled::compile(&input.tag().into());
    match tags::faults(&tag, &STEP).first() {
        None => Ok(()),
        Some(fault) => Err(Violation::Condition {
            at: at.to_owned(),
            why: format!(
                "templatingContextPath [{}] {}",
                input.templating_context_path, fault.problem
            ),
        }),
    }
}

fn path(at: &str, field: &str, path: &str) -> Result<(), Violation> {
    jsonpath::check_field(path).map_err(|error| Violation::Condition {
        at: at.to_owned(),
        why: format!("{field} [{path}] is not a valid path: {error}"),
    })
}
