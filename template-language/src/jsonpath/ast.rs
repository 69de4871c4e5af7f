//! What an expression compiles to.

use std::ops::Range;

use serde_json::Value;

/// One instruction: from the current values to the next ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Element {
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    /// `[?(query)]`: the items for which the query finds something.
    Exists(Vec<Self>),
    /// `[?(left operator right)]`.
    Compare {
        left: Vec<Self>,
        operator: String,
        right: Vec<Self>,
    },
    Union(Vec<Vec<Self>>),
    Text(String),
    /// A number or boolean.
    Literal(Value),
    /// Any other word.
    Word(String),
}

/// `[start:end:step]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slice {
    pub(super) start: i64,
    pub(super) end: Bound,
    pub(super) step: Option<i64>,
}

/// Where a slice ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bound {
    /// After the one element that a single index names.
    After(i64),
    /// As written.
    Given(i64),
    /// At the end.
    Length,
}

/// Whether the printing templates' loop is somewhere in the query.
pub(super) fn mentions_range(query: &[Element]) -> bool {
    query.iter().any(|element| match element {
        Element::Word(word) => word == "range",
        Element::Exists(query) => mentions_range(query),
        Element::Compare { left, right, .. } => mentions_range(left) || mentions_range(right),
        Element::Union(parts) => parts.iter().any(|part| mentions_range(part)),
        Element::Field(_)
        | Element::Wildcard
        | Element::Recursive
        | Element::Slice(_)
        | Element::Text(_)
        | Element::Literal(_) => false,
    })
}

impl Slice {
    /// The indexes to take from a list of this length; `None` when start and end are the same.
    pub(super) fn bounds(&self, length: usize) -> Result<Option<Range<usize>>, String> {
        let whole = i64::try_from(length).unwrap_or(i64::MAX);
        let from_end = |index: i64| {
            if index < 0 {
                index.wrapping_add(whole)
            } else {
                index
            }
        };
        let start = from_end(self.start);
        let end = match self.end {
            Bound::Length | Bound::After(0) => whole,
            Bound::After(end) | Bound::Given(end) => from_end(end),
        };
        if start == end {
            return Ok(None);
        }
        let outside =
            |index: i64| format!("array index out of bounds: index {index}, length {length}");
        let Some(first) = usize::try_from(start).ok().filter(|first| *first < length) else {
            return Err(outside(start));
        };
        let Some(last) = usize::try_from(end).ok().filter(|last| *last <= length) else {
            return Err(outside(end.wrapping_sub(1)));
        };
        if first > last {
            return Err(format!(
                "starting index {start} is greater than ending index {end}"
            ));
        }
        Ok(Some(first..last))
    }
}
