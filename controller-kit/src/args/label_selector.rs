//! A label selector as kubectl takes it: `a=b`, `a!=b`, `a in (b, c)`, `a notin (b)`, `a`, `!a`; several with commas between.

use std::collections::BTreeMap;

use api_types::selector::CompiledSelector;
use api_types::{FieldOperator, LabelRequirement};

/// The selector as it is sent; nothing of an empty text.
///
/// # Errors
/// What the API server would not accept. It would say so only once the process runs.
pub(super) fn label_selector(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(String::new());
    }
    let requirements: Result<Vec<_>, String> = split(text).map(requirement).collect();
    CompiledSelector::from_parts(&BTreeMap::new(), &requirements?)
        .map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

/// At the commas that are not between parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    text.split(move |character| {
        match character {
            '(' => is_inside = true,
            ')' => is_inside = false,
            _ => {}
        }
        character == ',' && !is_inside
    })
}

fn requirement(text: &str) -> Result<LabelRequirement, String> {
    let text = text.trim();
    if let Some(key) = text.strip_prefix('!') {
        return Ok(required(key, FieldOperator::DoesNotExist, []));
    }
    for (sign, operator) in [
        ("!=", FieldOperator::NotIn),
        ("==", FieldOperator::In),
        ("=", FieldOperator::In),
    ] {
        if let Some((key, value)) = text.split_once(sign) {
            return Ok(required(key, operator, [value]));
        }
    }
    let Some((key, set)) = text.split_once(char::is_whitespace) else {
        return Ok(required(text, FieldOperator::Exists, []));
    };
    let values = set.trim().strip_suffix(')');
    let (operator, values) = values
        .and_then(|values| values.split_once('('))
        .ok_or_else(|| format!("{text:?} is no requirement on a label"))?;
    let operator = match operator.trim() {
        "in" => FieldOperator::In,
        "notin" => FieldOperator::NotIn,
        other => return Err(format!("{other:?} is neither \"in\" nor \"notin\"")),
    };
    Ok(required(key, operator, values.split(',')))
}

fn required<'v>(
    key: &str,
    operator: FieldOperator,
    values: impl IntoIterator<Item = &'v str>,
) -> LabelRequirement {
    let values = values.into_iter().map(|value| value.trim().to_owned());
    LabelRequirement {
        key: key.trim().to_owned(),
        operator: operator.as_str().to_owned(),
        values: values.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubectl_takes_is_taken_as_it_is() {
        for text in [
            "shard=a",
            "shard==a",
            "shard!=a",
            "example.com/shard in (a, b),tier notin (x)",
            "shard,!legacy",
            "shard in(a,b)",
            "shard=",
        ] {
            assert_eq!(label_selector(text), Ok(text.to_owned()));
        }
        assert_eq!(label_selector("  a = b "), Ok("a = b".to_owned()));
        assert_eq!(label_selector(" "), Ok(String::new()), "says nothing");
    }

    #[test]
    fn what_the_api_server_would_refuse_is_refused_with_a_reason() {
        for (text, why) in [
            ("shard=a b", "a valid label must"),
            ("a=b,", "name part must be non-empty"),
            ("=a", "name part must be non-empty"),
            ("a/b/c=d", "a qualified name must"),
            ("a in (b", "no requirement"),
            ("a in b)", "no requirement"),
            ("a within (b)", "neither \"in\" nor \"notin\""),
            ("a in (b=c)", "name part must consist"),
            ("a b", "no requirement"),
        ] {
            let error = label_selector(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
