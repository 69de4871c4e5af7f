//! Running a query over a value.
//!
//! A query is run element by element, each over all values that the one before has found. Where an
//! evaluation stops, it must be known whether there were values at that moment: a filter that asks
//! whether something exists takes an error behind values for "yes", as upstream's evaluator does.
//!
//! Slips of upstream that documents may depend on, and that are repeated here:
//! - A wildcard over a text takes its bytes, as numbers.
//! - `[1:1]`, which asks for no element, ends the search instead of going on with the next list.
//! - A null has no items in a slice, but cannot be filtered.
//! - A text in quotes stands once, whatever was found before it.
//!
//! Nearly all paths are plain names; these allocate one vector and nothing else.

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::Value;

use super::PathError;
use super::ast::{Element, Slice};
use super::compare::compare;
use crate::go_format;

/// The current values. They are borrowed, but for texts, numbers and bytes that the query itself makes.
type Values<'v> = Vec<Cow<'v, Value>>;

/// `..*..*..*` multiplies what it finds. Paths that real objects have find a few values.
pub(super) const MOST_VALUES: usize = 100_000;

/// What is said of a path that comes by more.
pub(super) fn too_many() -> String {
    format!("more than {MOST_VALUES} values on the way")
}

/// An error, and whether there were values when it happened: an existence filter counts those as existing.
struct Stop {
    cause: String,
    had_values: bool,
    /// Whether only the items of a list were missing that has none.
    at_empty_list: bool,
}

impl Stop {
    fn with_values(cause: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            had_values: true,
            at_empty_list: false,
        }
    }

    fn at_empty_list(cause: impl Into<String>) -> Self {
        Self {
            at_empty_list: true,
            ..Self::with_values(cause)
        }
    }
}

impl From<Stop> for PathError {
    fn from(stop: Stop) -> Self {
        if stop.at_empty_list {
            Self::EmptyList(stop.cause)
        } else {
            Self::Find(stop.cause)
        }
    }
}

/// What the query finds in the data, in document order.
pub(super) fn run<'v>(query: &[Element], data: &'v Value) -> Result<Values<'v>, PathError> {
    // Nearly all paths are plain fields.
    if query
        .iter()
        .all(|element| matches!(element, Element::Field(_)))
    {
        return Ok(plain(query, data).map(Cow::Borrowed).into_iter().collect());
    }
    run_on(query, vec![Cow::Borrowed(data)])
}

/// What the rest of a query says when nothing is left to apply it to: literals and words still speak.
pub(super) fn run_on_nothing<'v>(query: &[Element]) -> Result<Values<'v>, PathError> {
    run_on(query, Vec::new())
}

fn run_on<'v>(query: &[Element], input: Values<'v>) -> Result<Values<'v>, PathError> {
    let evaluation = Evaluation {
        values_left: Cell::new(MOST_VALUES),
    };
    evaluation.list(query, input).map_err(PathError::from)
}

/// The value at a path of plain names.
fn plain<'v>(query: &[Element], data: &'v Value) -> Option<&'v Value> {
    query.iter().try_fold(data, |value, element| {
        let Element::Field(name) = element else {
            return None;
        };
        value.as_object()?.get(name)
    })
}

/// One evaluation, and what it may still come by.
struct Evaluation {
    values_left: Cell<usize>,
}

impl Evaluation {
    /// Applies the elements one after the other, each to all that the one before has found.
    fn list<'v>(&self, query: &[Element], input: Values<'v>) -> Result<Values<'v>, Stop> {
        query
            .iter()
            .try_fold(input, |values, element| self.apply(element, values))
    }

    /// Every value found costs: together they bound the work of an evaluation, and its memory.
    fn spend(&self, values: usize) -> Result<(), Stop> {
        let left = self.values_left.get().checked_sub(values);
        self.values_left
            .set(left.ok_or_else(|| Stop::with_values(too_many()))?);
        Ok(())
    }

    /// One instruction.
    fn apply<'v>(&self, element: &Element, input: Values<'v>) -> Result<Values<'v>, Stop> {
        match element {
            Element::Field(name) => Ok(input
                .iter()
                .filter_map(|value| member(value, name))
                .collect()),
            Element::Wildcard => self.wildcard(input),
            Element::Recursive => self.recursive(input),
            Element::Slice(slice) => self.slice(slice, input),
            Element::Exists(query) => self.filter(input, |item, _| {
                let found = self.list(query, vec![item]);
                Ok(found.map_or_else(|stop| stop.had_values, |found| !found.is_empty()))
            }),
            Element::Compare {
                left,
                operator,
                right,
            } => self.filter(input, |item, passed_before| {
                let left = self.operand(left, item.clone())?;
                let Some(left) = left else { return Ok(false) };
                let right = self.operand(right, item)?;
                let Some(right) = right else { return Ok(false) };
                compare(&left, operator, &right).map_err(|cause| Stop {
                    had_values: passed_before,
                    ..Stop::with_values(cause)
                })
            }),
            Element::Union(parts) => self.union(parts, &input),
            // A quoted text stands once, whatever came before; a number or boolean replaces each value.
            Element::Text(text) => Ok(vec![Cow::Owned(Value::from(text.as_str()))]),
            Element::Literal(literal) => {
                Ok(input.iter().map(|_| Cow::Owned(literal.clone())).collect())
            }
            // Such a path has several queries, which is said when all of it went well.
            Element::Word(word) if word == "range" => Ok(input),
            Element::Word(word) => Err(Stop {
                had_values: word != "end" && !input.is_empty(),
                ..Stop::with_values(match word.as_str() {
                    "end" => "not in range, nothing to end".into(),
                    _ => format!("unrecognized identifier {word}"),
                })
            }),
        }
    }

    /// What each part finds, one part after the other.
    fn union<'v>(
        &self,
        parts: &[Vec<Element>],
        input: &[Cow<'v, Value>],
    ) -> Result<Values<'v>, Stop> {
        let mut found = Vec::new();
        for part in parts {
            self.spend(input.len())?;
            let more = self.list(part, input.to_vec());
            found.extend(more.map_err(|stop| Stop {
                had_values: !input.is_empty(),
                ..stop
            })?);
        }
        Ok(found)
    }

    /// Everything directly below each value.
    fn wildcard<'v>(&self, input: Values<'v>) -> Result<Values<'v>, Stop> {
        let mut found = Vec::new();
        for value in input {
            self.spend(size(&value))?;
            found.extend(children(value));
        }
        Ok(found)
    }

    fn recursive<'v>(&self, input: Values<'v>) -> Result<Values<'v>, Stop> {
        let mut found = Vec::new();
        input
            .into_iter()
            .try_for_each(|value| self.descend(value, &mut found))?;
        Ok(found)
    }

    /// The value and everything below it that has parts.
    fn descend<'v>(&self, value: Cow<'v, Value>, found: &mut Values<'v>) -> Result<(), Stop> {
        let size = size(&value);
        if size == 0 {
            return Ok(());
        }
        self.spend(size)?;
        found.push(value.clone());
        children(value)
            .into_iter()
            .try_for_each(|part| self.descend(part, found))
    }

    /// Items by their places; what is no list is an error.
    fn slice<'v>(&self, slice: &Slice, input: Values<'v>) -> Result<Values<'v>, Stop> {
        let mut found = Vec::new();
        for value in input {
            if value.is_null() {
                continue;
            }
            let items = items(&value).ok_or_else(|| {
                Stop::with_values(format!(
                    "{} is not array or slice",
                    go_format::type_name(&value)
                ))
            })?;
            let Some(range) = slice.bounds(items.len()).map_err(|cause| {
                if items.is_empty() {
                    Stop::at_empty_list(cause)
                } else {
                    Stop::with_values(cause)
                }
            })?
            else {
                // Asking for no element at all ends the search, as it does upstream.
                return Ok(found);
            };
            let step = match slice.step {
                Some(step) if step <= 0 => return Err(Stop::with_values("step must be > 0")),
                Some(step) => usize::try_from(step).unwrap_or(usize::MAX),
                None => 1,
            };
            self.spend(range.len())?;
            found.extend(items[range].iter().step_by(step).map(Cow::Borrowed));
        }
        Ok(found)
    }

    /// The items for which `passes` holds. It is told whether an item passed before.
    fn filter<'v>(
        &self,
        input: Values<'v>,
        mut passes: impl FnMut(Cow<'v, Value>, bool) -> Result<bool, Stop>,
    ) -> Result<Values<'v>, Stop> {
        let mut found: Values<'v> = Vec::new();
        for value in input {
            let items = items(&value).ok_or_else(|| {
                let shown = go_format::display_exact(&value);
                let cause = format!("{shown} is not array or slice and cannot be filtered");
                if value.is_null() {
                    Stop::at_empty_list(cause)
                } else {
                    Stop::with_values(cause)
                }
            })?;
            self.spend(items.len())?;
            for item in items {
                if passes(Cow::Borrowed(item), !found.is_empty())? {
                    found.push(Cow::Borrowed(item));
                }
            }
        }
        Ok(found)
    }

    /// One side of a comparison; without a value there, the item does not pass.
    fn operand<'v>(
        &self,
        query: &[Element],
        item: Cow<'v, Value>,
    ) -> Result<Option<Cow<'v, Value>>, Stop> {
        let mut values = self.list(query, vec![item]).map_err(|stop| Stop {
            had_values: true,
            ..stop
        })?;
        let last = values.pop();
        if values.is_empty() {
            Ok(last)
        } else {
            Err(Stop::with_values("can only compare one element at a time"))
        }
    }
}

/// The entry of this name, if the value is a map that has it.
fn member<'v>(value: &Cow<'v, Value>, name: &str) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        // Only literals and bytes are owned, and they have no members.
        Cow::Owned(_) => None,
    }
}

/// The items, if the value is a list.
fn items<'v>(value: &Cow<'v, Value>) -> Option<&'v [Value]> {
    match value {
        Cow::Borrowed(value) => value.as_array().map(Vec::as_slice),
        Cow::Owned(_) => None,
    }
}

/// How many parts a value has.
fn size(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Members, items, or the bytes of a text: upstream's evaluator takes a text for a list of those.
fn children(value: Cow<'_, Value>) -> Values<'_> {
    let value = match value {
        Cow::Borrowed(value) => value,
        Cow::Owned(Value::String(text)) => return bytes(&text),
        Cow::Owned(_) => return Vec::new(),
    };
    match value {
        Value::Object(fields) => fields.values().map(Cow::Borrowed).collect(),
        Value::Array(items) => items.iter().map(Cow::Borrowed).collect(),
        Value::String(text) => bytes(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// The bytes of a text, as numbers.
fn bytes<'v>(text: &str) -> Values<'v> {
    text.bytes()
        .map(|byte| Cow::Owned(Value::from(byte)))
        .collect()
}
