//! Running a program over a value.

use std::borrow::Cow;

use serde_json::Value;

use super::compare;
use crate::go_format;

/// One instruction: from the current values to the next ones.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Element {
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Filter {
        left: Vec<Element>,
        operator: String,
        right: Vec<Element>,
    },
    Union(Vec<Vec<Element>>),
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Identifier(String),
}

/// `[start:end:step]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slice {
    pub(crate) start: i64,
    pub(crate) end: Bound,
    pub(crate) step: Option<i64>,
}

/// Where a slice ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bound {
    /// After the one element that a single index names.
    After(i64),
    /// As written.
    Given(i64),
    /// At the end.
    Length,
}

type Values<'v> = Vec<Cow<'v, Value>>;

/// `..*..*..*` multiplies its results; nobody reads that many.
const MOST_RESULTS: usize = 100_000;

/// An error, and whether there were values when it happened: an existence filter counts those as existing.
struct Stop {
    cause: String,
    had_values: bool,
}

pub(super) fn run<'v>(elements: &[Element], data: &'v Value) -> Result<Values<'v>, String> {
    // Nearly all paths are plain fields.
    if elements
        .iter()
        .all(|element| matches!(element, Element::Field(_)))
    {
        return Ok(plain(elements, data)
            .map(Cow::Borrowed)
            .into_iter()
            .collect());
    }
    list(elements, vec![Cow::Borrowed(data)]).map_err(|stop| stop.cause)
}

/// What the rest of a program says when nothing is left to apply it to: literals and words still speak.
pub(super) fn run_on_nothing<'v>(elements: &[Element]) -> Result<Values<'v>, String> {
    list(elements, Vec::new()).map_err(|stop| stop.cause)
}

fn plain<'v>(elements: &[Element], data: &'v Value) -> Option<&'v Value> {
    elements
        .iter()
        .try_fold(data, |value, element| match element {
            Element::Field(name) => value.as_object()?.get(name),
            _ => None,
        })
}

fn list<'v>(elements: &[Element], input: Values<'v>) -> Result<Values<'v>, Stop> {
    let mut current = input;
    for element in elements {
        current = walk(element, current)?;
        if current.len() > MOST_RESULTS {
            return Err(Stop {
                cause: format!("more than {MOST_RESULTS} results"),
                had_values: true,
            });
        }
    }
    Ok(current)
}

fn walk<'v>(element: &Element, input: Values<'v>) -> Result<Values<'v>, Stop> {
    let literal = |value: Value| Ok(input.iter().map(|_| Cow::Owned(value.clone())).collect());
    match element {
        Element::Field(name) => Ok(input
            .into_iter()
            .filter_map(|value| member(value, name))
            .collect()),
        Element::Wildcard => Ok(input.into_iter().flat_map(children).collect()),
        Element::Recursive => {
            let mut found = Vec::new();
            for value in input {
                descend(value, &mut found);
            }
            Ok(found)
        }
        Element::Slice(slice) => sliced(slice, input),
        Element::Filter {
            left,
            operator,
            right,
        } => filtered(left, operator, right, input),
        Element::Union(parts) => {
            let mut found = Vec::new();
            for part in parts {
                let had_values = !input.is_empty();
                found
                    .extend(list(part, input.clone()).map_err(|stop| Stop { had_values, ..stop })?);
            }
            Ok(found)
        }
        // A quoted text stands for itself, whatever came before.
        Element::Text(text) => Ok(vec![Cow::Owned(Value::from(text.as_str()))]),
        Element::Int(number) => literal(Value::from(*number)),
        Element::Float(number) => literal(Value::from(*number)),
        Element::Bool(value) => literal(Value::from(*value)),
        Element::Identifier(name) if name == "range" => Ok(Vec::new()),
        Element::Identifier(name) if name == "end" => Err(Stop {
            cause: "not in range, nothing to end".into(),
            had_values: false,
        }),
        Element::Identifier(name) => Err(Stop {
            cause: format!("unrecognized identifier {name}"),
            had_values: !input.is_empty(),
        }),
    }
}

fn member<'v>(value: Cow<'v, Value>, name: &str) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.as_object()?.get(name).cloned().map(Cow::Owned),
    }
}

/// Members, items, or the bytes of a text.
fn children(value: Cow<'_, Value>) -> Values<'_> {
    match value {
        Cow::Borrowed(Value::Object(fields)) => fields.values().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::String(text)) => bytes(text),
        Cow::Owned(Value::Object(fields)) => fields
            .into_iter()
            .map(|(_, value)| Cow::Owned(value))
            .collect(),
        Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
        Cow::Owned(Value::String(text)) => bytes(&text),
        Cow::Borrowed(Value::Null | Value::Bool(_) | Value::Number(_))
        | Cow::Owned(Value::Null | Value::Bool(_) | Value::Number(_)) => Vec::new(),
    }
}

fn bytes<'v>(text: &str) -> Values<'v> {
    text.bytes()
        .map(|byte| Cow::Owned(Value::from(byte)))
        .collect()
}

/// The value and everything below it that has parts.
fn descend<'v>(value: Cow<'v, Value>, found: &mut Values<'v>) {
    let parts = children(value.clone());
    if parts.is_empty() || found.len() > MOST_RESULTS {
        return;
    }
    found.push(value);
    for part in parts {
        descend(part, found);
    }
}

fn items<'v>(value: &Cow<'v, Value>) -> Option<Values<'v>> {
    match value {
        Cow::Borrowed(Value::Array(items)) => Some(items.iter().map(Cow::Borrowed).collect()),
        Cow::Owned(Value::Array(items)) => Some(items.iter().cloned().map(Cow::Owned).collect()),
        _ => None,
    }
}

fn sliced<'v>(slice: &Slice, input: Values<'v>) -> Result<Values<'v>, Stop> {
    let mut found = Vec::new();
    for value in &input {
        if value.is_null() {
            continue;
        }
        let stop = |cause: String| Stop {
            cause,
            had_values: true,
        };
        let items = items(value).ok_or_else(|| {
            stop(format!(
                "{} is not array or slice",
                go_format::type_name(value)
            ))
        })?;
        let Some((start, end)) = bounds(slice, items.len()).map_err(stop)? else {
            // Asking for no element at all ends the search, as it does upstream.
            return Ok(found);
        };
        let step = match slice.step {
            Some(step) if step <= 0 => return Err(stop("step must be > 0".into())),
            Some(step) => usize::try_from(step).unwrap_or(usize::MAX),
            None => 1,
        };
        found.extend(items.into_iter().take(end).skip(start).step_by(step));
    }
    Ok(found)
}

fn bounds(slice: &Slice, length: usize) -> Result<Option<(usize, usize)>, String> {
    let whole = i64::try_from(length).unwrap_or(i64::MAX);
    let from_end = |index: i64| {
        if index < 0 {
            index.saturating_add(whole)
        } else {
            index
        }
    };
    let start = from_end(slice.start);
    let end = match slice.end {
        Bound::Length => whole,
        Bound::After(0) => whole,
        Bound::After(end) | Bound::Given(end) => from_end(end),
    };
    if start == end {
        return Ok(None);
    }
    let outside = |index: i64| format!("array index out of bounds: index {index}, length {length}");
    let (Ok(first), Ok(last)) = (usize::try_from(start), usize::try_from(end)) else {
        return Err(outside(if start < 0 {
            start
        } else {
            end.saturating_sub(1)
        }));
    };
    if first >= length {
        return Err(outside(start));
    }
    if last > length {
        return Err(outside(end - 1));
    }
    if first > last {
        return Err(format!(
            "starting index {start} is greater than ending index {end}"
        ));
    }
    Ok(Some((first, last)))
}

fn filtered<'v>(
    left: &[Element],
    operator: &str,
    right: &[Element],
    input: Values<'v>,
) -> Result<Values<'v>, Stop> {
    let mut found: Values<'v> = Vec::new();
    for value in &input {
        let items = items(value).ok_or_else(|| Stop {
            cause: format!(
                "{} is not array or slice and cannot be filtered",
                go_format::display(value)
            ),
            had_values: true,
        })?;
        for item in items {
            if operator == "exists" {
                let exists = match list(left, vec![item.clone()]) {
                    Ok(found) => !found.is_empty(),
                    Err(stop) => stop.had_values,
                };
                if exists {
                    found.push(item);
                }
                continue;
            }
            let one = |side: &[Element]| -> Result<Option<Cow<'v, Value>>, Stop> {
                let values = list(side, vec![item.clone()]).map_err(|stop| Stop {
                    had_values: true,
                    ..stop
                })?;
                if values.len() > 1 {
                    return Err(Stop {
                        cause: "can only compare one element at a time".into(),
                        had_values: true,
                    });
                }
                Ok(values.into_iter().next())
            };
            let Some(left) = one(left)? else { continue };
            let Some(right) = one(right)? else { continue };
            let passes = compare::compare(&left, operator, &right).map_err(|cause| Stop {
                cause,
                had_values: !found.is_empty(),
            })?;
            if passes {
                found.push(item);
            }
        }
    }
    Ok(found)
}
