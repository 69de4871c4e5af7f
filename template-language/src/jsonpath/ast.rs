//! What an expression of kubectl's dialect compiles to.
//!
//! A path is a list of [`Element`]s. Evaluation begins with one value, the root, and each element turns
//! the values there are into the next ones. So the type of a path can be found as its value is: begin
//! with the type of the root, and let each element turn types into types.
//!
//! | written | element | of each value it takes |
//! |---|---|---|
//! | `.name`, `['name']` | [`Element::Field`] | the entry of a map, if it is there |
//! | `.*` | [`Element::Wildcard`] | all entries of a map, all items of a list |
//! | `..` | [`Element::Recursive`] | itself and all below it that has parts |
//! | `[1]`, `[-1]`, `[1:3]`, `[::2]`, `[*]` | [`Element::Slice`] | items of a list |
//! | `[?(@.a)]` | [`Element::Exists`] | the items of a list in which the query finds something |
//! | `[?(@.a=="x")]` | [`Element::Compare`] | the items of a list that pass |
//! | `[0,'a']` | [`Element::Union`] | what each part takes, one part after the other |
//! | `"text"`, `'text'` | [`Element::Text`] | nothing: the text takes the place of all |
//! | `1`, `true` | [`Element::Literal`] | nothing: the value takes the place of each |
//! | any other word | [`Element::Word`] | an error, but for `range` |
//!
//! ```
//! use template_language::jsonpath::Path;
//! use template_language::jsonpath::ast::{Bound, Element, Slice};
//!
//! let path = Path::compile(".list[1:]..name");
//! assert_eq!(
//!     path.elements().unwrap(),
//!     [
//!         Element::Field("list".to_owned()),
//!         Element::Slice(Slice { start: 1, end: Bound::Length, step: None }),
//!         Element::Recursive,
//!         Element::Field("name".to_owned()),
//!     ]
//! );
//! ```
//!
//! More elements may come with newer versions of the dialect.

use std::ops::Range;

use serde_json::Value;

/// One instruction: from the current values to the next ones.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// `.name`: the entry of this name of every map.
    Field(String),
    /// `.*`: everything directly below.
    Wildcard,
    /// `..`: the value and everything below it that has parts.
    Recursive,
    /// `[1]` or `[1:3]`: items of a list, by their places.
    Slice(Slice),
    /// `[?(query)]`: the items for which the query finds something.
    Exists(Vec<Self>),
    /// `[?(left operator right)]`.
    ///
    /// Each side must find one value in an item; an item in which a side finds none does not pass.
    Compare {
        /// What is compared, of the item.
        left: Vec<Self>,
        /// `==`, `!=`, `<`, `<=`, `>`, `>=`, or something that an evaluation refuses.
        operator: String,
        /// What it is compared with; mostly a text.
        right: Vec<Self>,
    },
    /// `[0,2]`: what each of the queries finds, in their order.
    Union(Vec<Vec<Self>>),
    /// A text in quotes.
    Text(String),
    /// A number or boolean.
    Literal(Value),
    /// Any other word, such as the `range` and `end` of kubectl's printing templates.
    Word(String),
}

/// `[start:end:step]`.
///
/// Indexes count from 0, negative ones from the end. Unlike Python's, a slice that reaches beyond the
/// list is an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// The first item; 0 if it is not written.
    pub start: i64,
    /// Behind the last item.
    pub end: Bound,
    /// Every how-manieth item is taken; every one if it is not written. It must be above 0.
    pub step: Option<i64>,
}

/// Where a slice ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
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
    /// The indexes to take from a list of this length; `None` when start and end are the same, which
    /// ends the search.
    ///
    /// # Errors
    /// The indexes are outside of the list, or in the wrong order; the text is upstream's.
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
