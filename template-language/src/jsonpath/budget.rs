//! What a path of RFC 9535 would cost, found before it is evaluated: the library has no limit, and
//! `$..*..*..*` multiplies.
//!
//! The places that the path comes by are walked here as the library walks them, and counted. Which items
//! of a filter match is asked of the library, item by item, once that is paid for.
//!
//! | what | costs |
//! |---|---|
//! | a value that a selector or a descent comes by | 1 |
//! | 256 bytes of the way to it, which the library writes down for every value | 1 more |
//! | an item to which a filter is applied, and each part of the filter | 1 |
//! | a regular expression, for each item | 100 |
//! | 256 bytes of a text that a function goes through | 1 |
//!
//! The sum may be 100,000, as in the old dialect. Where it is not known what the library would do, more
//! is counted, never less. Paths of names and indexes alone are not counted at all ([`is_plain`]).

use std::cell::Cell;

use jsonpath_rust::parser::model::{
    Comparable, Comparison, Filter, FilterAtom, FnArg, JpQuery, Segment, Selector, SingularQuery,
    Test, TestFunction,
};
use jsonpath_rust::query::js_path_process;
use serde_json::Value;

use super::evaluate::{MOST_VALUES, too_many};

/// The library writes down the way to every value; so many bytes of it count as one value more.
const WAY: usize = 256;

/// Of a key or an index, what the library writes beside it.
const BRACKETS: usize = 8;

/// A regular expression may be made of data, and is compiled for each item.
const REGEX: usize = 100;

/// A place that the path comes by, and how long the way to it is.
#[derive(Clone, Copy)]
struct Place<'v> {
    value: &'v Value,
    way: usize,
}

type Places<'v> = Vec<Place<'v>>;

/// More values on the way than are allowed.
struct Exceeded;

/// What is left to spend on one evaluation.
struct Budget<'v> {
    left: Cell<usize>,
    root: &'v Value,
    /// Whether a filter may look at the root; then all items count as matching, because the library takes
    /// what it is given for the root.
    looks_back: bool,
}

/// Whether a path finds one value at the most, and costs nothing worth counting.
pub(super) fn is_plain(query: &JpQuery) -> bool {
    let is_plain = |segment: &Segment| {
        matches!(
            segment,
            Segment::Selector(Selector::Name(_) | Selector::Index(_))
        )
    };
    query.segments.iter().all(is_plain)
}

/// Refuses a query that would come by too many values of this data.
pub(super) fn check(query: &JpQuery, looks_back: bool, data: &Value) -> Result<(), String> {
    let budget = Budget {
        left: Cell::new(MOST_VALUES),
        root: data,
        looks_back,
    };
    let places = vec![Place {
        value: data,
        way: 1,
    }];
    match budget.segments(&query.segments, places) {
        Ok(_) => Ok(()),
        Err(Exceeded) => Err(too_many()),
    }
}

impl<'v> Budget<'v> {
    fn spend(&self, values: usize) -> Result<(), Exceeded> {
        let left = self.left.get().checked_sub(values).ok_or(Exceeded)?;
        self.left.set(left);
        Ok(())
    }

    /// Where a query leads from these places.
    fn segments(&self, segments: &[Segment], from: Places<'v>) -> Result<Places<'v>, Exceeded> {
        segments
            .iter()
            .try_fold(from, |places, segment| self.segment(segment, places))
    }

    fn segment(&self, segment: &Segment, from: Places<'v>) -> Result<Places<'v>, Exceeded> {
        match segment {
            Segment::Descendant(inner) => {
                let mut found = Vec::new();
                for place in from {
                    self.descend(place, &mut found)?;
                }
                self.segment(inner, found)
            }
            Segment::Selector(selector) => self.selector(selector, &from),
            Segment::Selectors(selectors) => {
                let mut found = Vec::new();
                for selector in selectors {
                    // Each begins with a copy of all that there is.
                    self.spend(from.len())?;
                    found.extend(self.selector(selector, &from)?);
                }
                Ok(found)
            }
        }
    }

    /// The place itself and all below that hold others; the library comes by the others, too.
    fn descend(&self, place: Place<'v>, found: &mut Places<'v>) -> Result<(), Exceeded> {
        if place.value.is_array() || place.value.is_object() {
            found.push(place);
            for child in self.children(place)? {
                self.descend(child, found)?;
            }
        }
        Ok(())
    }

    fn children(&self, place: Place<'v>) -> Result<Places<'v>, Exceeded> {
        let count = match place.value {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        };
        self.spend(count.saturating_mul(1 + place.way / WAY))?;
        let children: Places<'v> = match place.value {
            Value::Array(items) => items
                .iter()
                .map(|value| place.at(BRACKETS, value))
                .collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| place.at(key.len() + BRACKETS, value))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        };
        for child in &children {
            self.spend((child.way - place.way) / WAY)?;
        }
        Ok(children)
    }

    fn selector(&self, selector: &Selector, from: &[Place<'v>]) -> Result<Places<'v>, Exceeded> {
        let mut found = Vec::new();
        for place in from {
            match selector {
                Selector::Name(name) => {
                    let value = place.value.get(name);
                    found.extend(value.map(|value| place.at(name.len() + BRACKETS, value)));
                }
                Selector::Index(index) => found.extend(place.item(*index)),
                // A slice has no more than all of them.
                Selector::Wildcard | Selector::Slice(..) => found.extend(self.children(*place)?),
                Selector::Filter(filter) => found.extend(self.matching(filter, *place)?),
            }
        }
        self.spend(found.len())?;
        Ok(found)
    }

    /// The items of a place that pass a filter.
    fn matching(&self, filter: &Filter, place: Place<'v>) -> Result<Places<'v>, Exceeded> {
        let items = self.children(place)?;
        for item in &items {
            self.filter(filter, item.value)?;
        }
        if self.looks_back {
            return Ok(items);
        }
        let alone = JpQuery::new(vec![Segment::Selector(Selector::Filter(filter.clone()))]);
        // It fails where nothing can be filtered.
        let found = js_path_process(&alone, place.value).unwrap_or_default();
        let found = found.into_iter();
        Ok(found
            .map(|found| place.at(found.path.len(), found.val))
            .collect())
    }

    /// What it costs to try a filter on an item. All of it counts, also what the library need not look at.
    fn filter(&self, filter: &Filter, item: &'v Value) -> Result<(), Exceeded> {
        self.spend(1)?;
        match filter {
            Filter::Or(parts) | Filter::And(parts) => {
                parts.iter().try_for_each(|part| self.filter(part, item))
            }
            Filter::Atom(FilterAtom::Filter { expr, .. }) => self.filter(expr, item),
            Filter::Atom(FilterAtom::Test { expr, .. }) => self.test(expr, item).map(|_| ()),
            Filter::Atom(FilterAtom::Comparison(comparison)) => self.comparison(comparison, item),
        }
    }

    /// Both sides of a comparison are singular: each is one walk along names and indexes.
    fn comparison(&self, comparison: &Comparison, item: &'v Value) -> Result<(), Exceeded> {
        let (left, right) = comparison.vals();
        for side in [left, right] {
            match side {
                Comparable::Literal(_) => {}
                Comparable::Function(function) => self.function(function, item)?,
                Comparable::SingularQuery(
                    SingularQuery::Current(segments) | SingularQuery::Root(segments),
                ) => self.spend(segments.len())?,
            }
        }
        Ok(())
    }

    fn test(&self, test: &Test, item: &'v Value) -> Result<Places<'v>, Exceeded> {
        let from = |value| vec![Place { value, way: 0 }];
        match test {
            Test::RelQuery(segments) => self.segments(segments, from(item)),
            Test::AbsQuery(query) => self.segments(&query.segments, from(self.root)),
            Test::Function(function) => self.function(function, item).map(|()| Vec::new()),
        }
    }

    fn function(&self, function: &TestFunction, item: &'v Value) -> Result<(), Exceeded> {
        match function {
            TestFunction::Length(argument) => self.argument(argument, item),
            TestFunction::Value(argument) | TestFunction::Count(argument) => {
                self.argument(argument, item)
            }
            TestFunction::Search(text, pattern) | TestFunction::Match(text, pattern) => {
                self.spend(REGEX)?;
                self.argument(text, item)?;
                self.argument(pattern, item)
            }
            TestFunction::Custom(_, arguments) => arguments
                .iter()
                .try_for_each(|argument| self.argument(argument, item)),
        }
    }

    /// A function goes through all of a text.
    fn argument(&self, argument: &FnArg, item: &'v Value) -> Result<(), Exceeded> {
        let places = match argument {
            FnArg::Literal(_) => return Ok(()),
            FnArg::Filter(filter) => return self.filter(filter, item),
            FnArg::Test(test) => self.test(test, item)?,
        };
        let texts = places.iter().filter_map(|place| place.value.as_str());
        texts
            .map(|text| text.len() / WAY)
            .try_for_each(|length| self.spend(length))
    }
}

impl<'v> Place<'v> {
    fn at(self, further: usize, value: &'v Value) -> Self {
        Self {
            value,
            way: self.way.saturating_add(further),
        }
    }

    /// The item with this index, from the end if it is negative.
    fn item(self, index: i64) -> Option<Self> {
        let items = self.value.as_array()?;
        let distance = usize::try_from(index.unsigned_abs()).ok()?;
        let index = if index < 0 {
            items.len().checked_sub(distance)?
        } else {
            distance
        };
        Some(self.at(BRACKETS, items.get(index)?))
    }
}

#[cfg(test)]
mod tests {
    use jsonpath_rust::parser::parse_json_path;
    use serde_json::json;

    use super::*;
    use crate::jsonpath::Path;

    fn costs_too_much(expression: &str, data: &Value) -> bool {
        let query = parse_json_path(expression).unwrap();
        let looks_back = expression.matches('$').count() > 1;
        check(&query, looks_back, data).is_err()
    }

    /// Half a million values in one list, and lists in lists to the depth that a parser reads.
    fn bombs() -> [Value; 3] {
        let flat = Value::Array(vec![json!(0); 500_000]);
        let mut deep = json!([0, 0]);
        for _ in 0..120 {
            deep = json!([deep, 0, {"a": 1}]);
        }
        let wide: Value = (0..20_000)
            .map(|number| json!({"x": number, "y": [number]}))
            .collect();
        [flat, deep, wide]
    }

    #[test]
    fn a_bomb_ends_with_a_clear_error() {
        let [flat, deep, wide] = bombs();
        for (expression, data) in [
            ("$..*..*..*..*", &flat),
            ("$..*..*..*..*", &deep),
            ("$..*..*..*..*", &wide),
            ("$..[?@..x]", &wide),
            ("$[?$..x]", &wide),
            ("$..[?count(@..*) > 1]", &wide),
            ("$[?search(@.x, 'a')]", &wide),
        ] {
            let cause = Path::compile(expression)
                .evaluate(data)
                .unwrap_err()
                .to_string();
            assert!(
                cause.contains("more than 100000 values on the way"),
                "{expression}: {cause}"
            );
        }
    }

    #[test]
    fn a_long_way_to_many_values_costs_its_length() {
        let far = json!({"k".repeat(200_000): vec![0; 1000]});
        assert!(costs_too_much("$.*.*", &far));
        let near = json!({"k": vec![0; 1000]});
        assert!(!costs_too_much("$.*.*", &near));
    }

    #[test]
    fn paths_of_real_objects_cost_little() {
        let items: Vec<Value> = (0..1000)
            .map(|number| json!({"type": format!("t{number}"), "status": "True", "more": {"a": [1, 2, {"b": 3}]}}))
            .collect();
        let object = json!({"status": {"conditions": items}});
        for expression in [
            "$.status.conditions[?@.type == 't7'].status",
            "$..conditions[?@.type == 't7']..b",
            "$.status.conditions[-1].status",
            "$.status.conditions[1:3]['type','status']",
            "$.status.conditions[?@.type == $.status.conditions[5].type].status",
            "$.status.conditions[?count(@.more.a[*]) > 5 || !(@.more)].status",
        ] {
            assert!(!costs_too_much(expression, &object), "{expression}");
        }
    }

    #[test]
    fn only_what_a_filter_lets_through_is_followed() {
        let heavy: Vec<Value> = (0..500)
            .map(|number| json!({"n": number, "below": vec![0; 500]}))
            .collect();
        let heavy = Value::from(heavy);
        assert!(!costs_too_much("$[?@.n == 3].below[*]", &heavy));
        assert!(costs_too_much("$[*].below[*]", &heavy));
    }
}
