//! Paths of RFC 9535, evaluated by `jsonpath-rust`.
//!
//! The library is used as it is, with three things around it:
//! - a budget ([`super::budget`]), as it has none;
//! - a bound on nested brackets, as its parser's time grows with the power of their depth;
//! - its errors in one line, as conditions and admission warnings want them.
//!
//! `$` stands for the context of a template, or for the object of a path field. Filters may look back
//! at it (`$.a[?@.x == $.b]`); such paths need the whole root at once.

use std::borrow::Cow;

use jsonpath_rust::parser::model::{JpQuery, Segment, Selector};
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde_json::Value;

use super::budget;
use super::root::{Root, copied};

/// The library's parser tries several readings of every nested function call, so its time grows with the
/// power of the depth. Nobody nests deeper than this.
const DEEPEST: usize = 8;

/// A compiled path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Standard {
    query: JpQuery,
    /// The query behind the leading name, if nothing in it looks at the root again.
    behind_name: Option<(String, JpQuery)>,
    /// Whether something in it looks at the root again.
    looks_back: bool,
}

/// Whether an expression is meant as RFC 9535. In the old dialect such a path finds nothing.
pub(super) fn is_standard(expression: &str) -> bool {
    expression.starts_with("$.") || expression.starts_with("$[")
}

impl Standard {
    /// Parses an expression.
    ///
    /// # Errors
    /// What is wrong, and at which character; or that brackets are nested too deeply.
    pub(super) fn compile(expression: &str) -> Result<Self, String> {
        if depth(expression) > DEEPEST {
            return Err(format!("brackets are nested deeper than {DEEPEST}"));
        }
        let query = parse_json_path(expression).map_err(|error| in_one_line(&error.to_string()))?;
        let looks_back = expression.matches('$').count() > 1;
        let behind_name = match query.segments.split_first() {
            Some((Segment::Selector(Selector::Name(name)), rest)) if !looks_back => {
                Some((name.clone(), JpQuery::new(rest.to_vec())))
            }
            _ => None,
        };
        Ok(Self {
            query,
            behind_name,
            looks_back,
        })
    }

    /// All values at the path, in document order.
    ///
    /// # Errors
    /// It would come by too many values.
    pub(super) fn find<'v>(&self, data: &'v Value) -> Result<Vec<Cow<'v, Value>>, String> {
        self.run(&self.query, data)
    }

    /// The same, of a root that borrows its entries.
    pub(super) fn find_in_root<'v>(
        &self,
        root: &'v dyn Root,
    ) -> Result<Vec<Cow<'v, Value>>, String> {
        if let Some((name, rest)) = &self.behind_name {
            return root
                .get(name)
                .map_or_else(|| Ok(Vec::new()), |entry| self.run(rest, entry));
        }
        let found = self
            .run(&self.query, &copied(root))?
            .into_iter()
            .map(|value| Cow::Owned(value.into_owned()))
            .collect();
        Ok(found)
    }

    fn run<'v>(&self, query: &JpQuery, data: &'v Value) -> Result<Vec<Cow<'v, Value>>, String> {
        if !budget::is_plain(query) {
            budget::check(query, self.looks_back, data)?;
        }
        let found = js_path_process(query, data).map_err(|error| error.to_string())?;
        Ok(found
            .into_iter()
            .map(|found| Cow::Borrowed(found.val()))
            .collect())
    }

    /// The names at its start, if nothing in it looks at the root again.
    pub(super) fn static_prefix(&self) -> Vec<String> {
        if self.behind_name.is_none() {
            return Vec::new();
        }
        let names = self.query.segments.iter().map_while(|segment| {
            let Segment::Selector(Selector::Name(name)) = segment else {
                return None;
            };
            Some(name.clone())
        });
        names.collect()
    }
}

/// The library draws a picture of several lines. Conditions read badly with it, and the API server drops an admission
/// warning that has a line break.
fn in_one_line(drawing: &str) -> String {
    let column = drawing.split_once("--> 1:");
    let column = column.and_then(|(_, rest)| rest.lines().next());
    let mut lines = drawing.lines().rev();
    let cause = lines.find_map(|line| line.trim().strip_prefix("= "));
    match (cause, column) {
        (Some(cause), Some(column)) => format!("{cause} at character {column}"),
        (Some(cause), None) => cause.to_owned(),
        (None, _) => drawing.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// How deep brackets are nested, counting those in quoted text, too: only too strict for paths nobody writes.
fn depth(expression: &str) -> usize {
    let (mut now, mut deepest) = (0_usize, 0);
    for character in expression.chars() {
        match character {
            '(' | '[' => now += 1,
            ')' | ']' => now = now.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(now);
    }
    deepest
}
