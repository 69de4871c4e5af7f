//! JSONPath in the dialect of kubectl, compiled once and evaluated often.
//!
//! # Two dialects
//!
//! | expression begins with | dialect |
//! |---|---|
//! | `$.` or `$[` | RFC 9535, evaluated by `jsonpath-rust` |
//! | anything else | kubectl's ([`ast`]), as `k8s.io/client-go/util/jsonpath` has it |
//!
//! In the old dialect a path that begins with `$.` finds nothing, so no document that works today is
//! read otherwise.
//!
//! # What an expression may look like
//!
//! `.a.b`, `a.b`, `{.a.b}` and `{a.b}` are the same path. A path field of a template
//! ([`Path::compile_field`]) may also be written `$(a.b)$`, which older documents show.
//!
//! # What an evaluation yields
//!
//! A path is a program over a set of current values that starts with the root. Each element replaces
//! the set by what it finds in it.
//!
//! | found | outcome |
//! |---|---|
//! | exactly one value | the value; a null is one, too |
//! | none | [`PathError::DoesNotExist`]: it may come |
//! | several | [`PathError::TooMany`]: the author must say which |
//! | an index out of range, an item of what is no list | [`PathError::Find`] |
//! | an item of an empty list | [`PathError::EmptyList`]: it may get some |
//!
//! Missing keys are no errors, and neither is a key of what is no map: both find nothing.
//!
//! # Budget
//!
//! A path may come by 100,000 values and no more: `..*..*..*` multiplies what it finds. Both dialects
//! have the same budget, and the same text where it ends.
//!
//! ```
//! use template_language::jsonpath::Path;
//! let object = serde_json::json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
//! let path = Path::compile(r#".status.conditions[?(@.type=="Ready")].status"#);
//! assert_eq!(path.evaluate(&object).unwrap().as_ref(), "True");
//! assert!(path.evaluate(&serde_json::json!({"status": {"conditions": []}})).unwrap_err().is_absent());
//! ```

pub mod ast;
mod budget;
mod compare;
mod compile;
mod error;
mod escapes;
mod evaluate;
mod parse;
mod root;
mod standard;

use std::borrow::Cow;

use serde_json::Value;

pub use compile::{check_field, check_unwrapped};
pub use error::{PathError, PathFieldError};
pub use root::Root;

use ast::Element;
use compile::{compile, filter_instead_of};
use standard::Standard;

/// What an expression compiled to.
#[derive(Clone, Debug, PartialEq)]
enum Program {
    /// One query of the old dialect.
    Kubectl(Vec<Element>),
    /// What stands in each pair of braces, or a loop. All is evaluated, for its errors; then it is one
    /// query too many.
    Several(Vec<Vec<Element>>),
    /// A path of RFC 9535.
    Standard(Standard),
    /// Kept, so that every evaluation reports it: upstream finds out at evaluation, too.
    Broken(PathError),
}

/// A compiled path.
///
/// It borrows nothing and can be shared. Two paths are equal if they were written the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    source: String,
    /// The part of the source that is the path; error texts name it.
    expression: String,
    program: Program,
}

impl Path {
    /// Compiles an expression: `.a.b`, `a.b` or `{.a.b}`. One that cannot be parsed reports so whenever it
    /// is evaluated.
    ///
    /// ```
    /// # use template_language::jsonpath::{Path, PathError};
    /// let data = serde_json::json!({"a": [{"b": 1}, {"b": 2}]});
    /// assert_eq!(Path::compile("a[1].b").evaluate(&data).unwrap().as_ref(), 2);
    /// assert_eq!(Path::compile("$.a[-1].b").evaluate(&data).unwrap().as_ref(), 2);
    /// assert!(matches!(Path::compile("a[*].b").evaluate(&data), Err(PathError::TooMany(_))));
    /// assert!(matches!(Path::compile("a[").evaluate(&data), Err(PathError::Parse { .. })));
    /// ```
    pub fn compile(expression: &str) -> Self {
        Self {
            source: expression.to_owned(),
            expression: expression.to_owned(),
            program: compile(expression).unwrap_or_else(Program::Broken),
        }
    }

    /// Compiles a path field of a template, which may also have the form `$(a.b)$` of older documents.
    ///
    /// Blanks around it do not count.
    ///
    /// ```
    /// # use template_language::jsonpath::Path;
    /// let data = serde_json::json!({"status": {"url": "http://a"}});
    /// let path = Path::compile_field("$(status.url)$").unwrap();
    /// assert_eq!(path.evaluate(&data).unwrap().as_ref(), "http://a");
    ///
    /// let error = Path::compile_field(r#"conditions.#(type=="Ready").status"#).unwrap_err();
    /// assert!(error.to_string().ends_with(r#"write `conditions[?(@.type=="Ready")].status`"#));
    /// ```
    ///
    /// # Errors
    /// [`PathFieldError`]: the author of the template must correct it; the text shows how.
    pub fn compile_field(expression: &str) -> Result<Self, PathFieldError> {
        let trimmed = expression.trim();
        let inner = trimmed
            .strip_prefix("$(")
            .and_then(|rest| rest.strip_suffix(")$"))
            .unwrap_or(trimmed);
        if let Some(instead) = filter_instead_of(inner) {
            return Err(PathFieldError::OldForm {
                found: expression.to_owned(),
                instead,
            });
        }
        let path = Self {
            source: expression.to_owned(),
            ..Self::compile(inner)
        };
        match path.program {
            Program::Broken(error) => Err(error.into()),
            Program::Kubectl(_) | Program::Several(_) | Program::Standard(_) => Ok(path),
        }
    }

    /// The expression as it was given, with what was written around it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What the expression compiled to, if it is one query of the old dialect.
    ///
    /// For whoever wants to know more of a path than its value, such as of which type it is where only
    /// the types of the data are known. `None` for RFC 9535, for several queries, and for what cannot
    /// be parsed.
    ///
    /// ```
    /// # use template_language::jsonpath::{Path, ast::Element};
    /// let path = Path::compile(".spec.containers[*].image");
    /// assert!(matches!(
    ///     path.elements(),
    ///     Some([Element::Field(spec), Element::Field(_), Element::Slice(_), Element::Field(_)])
    ///         if spec == "spec"
    /// ));
    /// assert_eq!(Path::compile("$.spec").elements(), None);
    /// ```
    pub fn elements(&self) -> Option<&[Element]> {
        match &self.program {
            Program::Kubectl(elements) => Some(elements),
            Program::Several(_) | Program::Standard(_) | Program::Broken(_) => None,
        }
    }

    /// The one value at the path.
    ///
    /// It is borrowed where it stands in the data, which is nearly always.
    ///
    /// # Errors
    /// [`PathError`]; [`PathError::is_absent`] tells "nothing there" from the rest.
    pub fn evaluate<'v>(&self, data: &'v Value) -> Result<Cow<'v, Value>, PathError> {
        match &self.program {
            Program::Kubectl(elements) => self.one(evaluate::run(elements, data)),
            Program::Standard(standard) => self.one(standard.find(data).map_err(PathError::Find)),
            Program::Several(queries) => Err(self.several(queries, data)),
            Program::Broken(error) => Err(error.clone()),
        }
    }

    /// The one value at the path, under a root that borrows its entries.
    ///
    /// The same as [`Self::evaluate`] of an object with these entries. Nothing is copied if the path
    /// begins with a plain name.
    ///
    /// # Errors
    /// As [`Self::evaluate`].
    pub fn evaluate_root<'v>(&self, root: &'v dyn Root) -> Result<Cow<'v, Value>, PathError> {
        match &self.program {
            Program::Kubectl(elements) => match elements.split_first() {
                Some((Element::Field(key), rest)) => self.one(match root.get(key) {
                    Some(entry) => evaluate::run(rest, entry),
                    None => evaluate::run_on_nothing(rest),
                }),
                _ => self
                    .evaluate(&root::copied(root))
                    .map(|value| Cow::Owned(value.into_owned())),
            },
            Program::Standard(standard) => {
                self.one(standard.find_in_root(root).map_err(PathError::Find))
            }
            Program::Several(queries) => Err(self.several(queries, &root::copied(root))),
            Program::Broken(error) => Err(error.clone()),
        }
    }

    /// The error of every evaluation, whatever the data are. What fails where nothing is left to apply it
    /// to (a word, or what follows a text in quotes) fails everywhere, if nothing before it does.
    ///
    /// ```
    /// # use template_language::jsonpath::Path;
    /// assert!(Path::compile("params.x").dead_end().is_none());
    /// assert!(Path::compile("{params.x}{params.y}").dead_end().is_some());
    /// ```
    pub fn dead_end(&self) -> Option<PathError> {
        match &self.program {
            Program::Kubectl(elements) => evaluate::run_on_nothing(elements).err(),
            Program::Standard(_) => None,
            Program::Several(_) => Some(PathError::MoreQueries(self.expression.clone())),
            Program::Broken(error) => Some(error.clone()),
        }
    }

    /// Leading plain field names: all that has to be kept of an object for this path to read the same.
    /// Empty when the whole object is needed.
    ///
    /// ```
    /// # use template_language::jsonpath::Path;
    /// let prefix = |path| Path::compile(path).static_prefix();
    /// assert_eq!(prefix(".status.conditions[0].reason"), ["status", "conditions"]);
    /// assert_eq!(prefix("$.status.url"), ["status", "url"]);
    /// assert!(prefix("..url").is_empty());
    /// ```
    pub fn static_prefix(&self) -> Vec<String> {
        match &self.program {
            Program::Kubectl(elements) => elements
                .iter()
                .map_while(|element| {
                    let Element::Field(name) = element else {
                        return None;
                    };
                    Some(name.clone())
                })
                .collect(),
            Program::Standard(standard) => standard.static_prefix(),
            Program::Several(_) | Program::Broken(_) => Vec::new(),
        }
    }

    /// Exactly one result is a value.
    fn one<'v>(
        &self,
        results: Result<Vec<Cow<'v, Value>>, PathError>,
    ) -> Result<Cow<'v, Value>, PathError> {
        let mut results = results?;
        match (results.pop(), results.is_empty()) {
            (Some(value), true) => Ok(value),
            (Some(_), false) => Err(PathError::TooMany(self.expression.clone())),
            (None, _) => Err(PathError::DoesNotExist(self.expression.clone())),
        }
    }

    /// The error of the first query that has one, or that there are several.
    fn several(&self, queries: &[Vec<Element>], data: &Value) -> PathError {
        queries
            .iter()
            .find_map(|query| evaluate::run(query, data).err())
            .unwrap_or_else(|| PathError::MoreQueries(self.expression.clone()))
    }
}

#[cfg(test)]
mod tests;
