//! JSONPath in the dialect of kubectl, compiled once and evaluated often (spec 3.3).
//!
//! A path is a program over a set of current values that starts with the root. Missing keys are no
//! errors; an index out of range is one. Exactly one result is a value, none is "absent", several are an
//! error. A path that starts with `$.` or `$[`, which is useless in the old dialect, is standard
//! RFC 9535 and evaluated by `jsonpath-rust`.
//!
//! ```
//! use realizer::jsonpath::Path;
//! let object = serde_json::json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
//! let path = Path::compile(r#".status.conditions[?(@.type=="Ready")].status"#);
//! assert_eq!(path.evaluate(&object).unwrap().as_ref(), "True");
//! assert!(path.evaluate(&serde_json::json!({"status": {"conditions": []}})).unwrap_err().is_absent());
//! ```

mod compare;
mod evaluate;
mod parse;

use std::borrow::Cow;

use jsonpath_rust::JsonPath as _;
use serde_json::{Map, Value};
use thiserror::Error;

pub(crate) use evaluate::Element;

/// Why a path has no value. The texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathError {
    /// The expression is empty.
    #[error("empty jsonpath not allowed")]
    Empty,
    /// The expression cannot be parsed.
    #[error("evaluate: failed to parse jsonpath '{wrapped}': {cause}")]
    Parse {
        /// The expression as it was parsed.
        wrapped: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The evaluation met something that it cannot go through, such as an index out of range.
    #[error("evaluate: failed to find results: {0}")]
    Find(String),
    /// The expression holds more than one query, or text outside of it.
    #[error("evaluate: more queries than expected: {0}")]
    MoreQueries(String),
    /// There is nothing at the path.
    #[error("jsonpath returned empty list: {0}")]
    DoesNotExist(String),
    /// There are several values at the path.
    #[error("too many results for the query: {0}")]
    TooMany(String),
}

impl PathError {
    /// Whether the path is simply not there (yet).
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::DoesNotExist(_))
    }
}

/// Why an expression is no path field of a template.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathFieldError {
    /// A form that older documents show.
    #[error("`{found}` is not JSONPath; write {instead}")]
    OldForm {
        /// What was found.
        found: String,
        /// What to write.
        instead: String,
    },
    /// It cannot be parsed.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// A root that borrows its top-level entries, so that a context is never copied together.
pub trait Root {
    /// The entry of this name.
    fn get(&self, key: &str) -> Option<&Value>;
    /// All entries.
    fn entries(&self) -> Vec<(&str, &Value)>;
}

impl Root for Map<String, Value> {
    fn get(&self, key: &str) -> Option<&Value> {
        self.get(key)
    }

    fn entries(&self) -> Vec<(&str, &Value)> {
        self.iter()
            .map(|(key, value)| (key.as_str(), value))
            .collect()
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Program {
    Kubectl(Vec<Element>),
    Standard(String),
    /// Kept, so that every evaluation reports it: upstream finds out at evaluation, too.
    Broken(PathError),
}

/// A compiled path.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    source: String,
    program: Program,
}

impl Path {
    /// Compiles an expression: `.a.b`, `a.b` or `{.a.b}`. One that cannot be parsed reports so whenever it is evaluated.
    pub fn compile(expression: &str) -> Self {
        let program = compile(expression).unwrap_or_else(Program::Broken);
        Self {
            source: expression.to_owned(),
            program,
        }
    }

    /// Compiles a path field of a template, which may also have the form `$(a.b)$` of older documents.
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
            Program::Kubectl(_) | Program::Standard(_) => Ok(path),
        }
    }

    /// Whether the expression can be parsed.
    ///
    /// # Errors
    /// What evaluation would report.
    pub fn check(expression: &str) -> Result<(), PathError> {
        compile(expression).map(|_| ())
    }

    /// The expression as it was given.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The one value at the path.
    ///
    /// # Errors
    /// [`PathError`]; [`PathError::is_absent`] tells "nothing there" from the rest.
    pub fn evaluate<'v>(&self, data: &'v Value) -> Result<Cow<'v, Value>, PathError> {
        match &self.program {
            Program::Kubectl(elements) => {
                self.one(evaluate::run(elements, data).map_err(PathError::Find)?)
            }
            Program::Standard(query) => {
                let found = data
                    .query(query)
                    .map_err(|error| PathError::Find(error.to_string()))?;
                self.one(found.into_iter().map(Cow::Borrowed).collect())
            }
            Program::Broken(error) => Err(error.clone()),
        }
    }

    /// The one value at the path, under a root that borrows its entries.
    ///
    /// # Errors
    /// As [`Self::evaluate`].
    pub fn evaluate_root<'v>(&self, root: &'v dyn Root) -> Result<Cow<'v, Value>, PathError> {
        if let Program::Kubectl(elements) = &self.program
            && let Some((Element::Field(key), rest)) = elements.split_first()
        {
            return match root.get(key) {
                Some(entry) => self.one(evaluate::run(rest, entry).map_err(PathError::Find)?),
                None => self.one(evaluate::run_on_nothing(rest).map_err(PathError::Find)?),
            };
        }
        let whole: Map<String, Value> = root
            .entries()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect();
        self.evaluate(&Value::Object(whole))
            .map(|value| Cow::Owned(value.into_owned()))
    }

    /// Leading plain field names: all that has to be kept of an object for this path to read the same.
    /// Empty when the whole object is needed.
    pub fn static_prefix(&self) -> Vec<String> {
        let Program::Kubectl(elements) = &self.program else {
            return Vec::new();
        };
        let names = elements.iter().map_while(|element| match element {
            Element::Field(name) => Some(name.clone()),
            _ => None,
        });
        names.collect()
    }

    fn one<'v>(&self, mut results: Vec<Cow<'v, Value>>) -> Result<Cow<'v, Value>, PathError> {
        match (results.pop(), results.is_empty()) {
            (Some(value), true) => Ok(value),
            (Some(_), false) => Err(PathError::TooMany(self.source.clone())),
            (None, _) => Err(PathError::DoesNotExist(self.source.clone())),
        }
    }
}

/// Whether the expression parses as it stands, without braces around it: a bare path is then literal
/// text, so that only what stands in braces can be wrong (spec 7.3 rule 3).
///
/// # Errors
/// What is wrong inside the braces.
pub fn check_unwrapped(expression: &str) -> Result<(), String> {
    parse::parse(expression).map(|_| ())
}

fn compile(expression: &str) -> Result<Program, PathError> {
    if expression.is_empty() {
        return Err(PathError::Empty);
    }
    if expression.starts_with("$.") || expression.starts_with("$[") {
        jsonpath_rust::parser::parse_json_path(expression).map_err(|error| PathError::Parse {
            wrapped: expression.to_owned(),
            cause: error.to_string(),
        })?;
        return Ok(Program::Standard(expression.to_owned()));
    }
    let wrapped = wrap(expression);
    let nodes = parse::parse(&wrapped).map_err(|cause| PathError::Parse {
        wrapped: wrapped.clone(),
        cause,
    })?;
    let mut nodes = nodes.into_iter();
    match (nodes.next(), nodes.next()) {
        (Some(parse::Node::Action(elements)), None) => Ok(Program::Kubectl(elements)),
        _ => Err(PathError::MoreQueries(wrapped)),
    }
}

fn wrap(expression: &str) -> String {
    let open = if expression.starts_with("{.") {
        ""
    } else if expression.starts_with('.') {
        "{"
    } else {
        "{."
    };
    let close = if expression.ends_with('}') { "" } else { "}" };
    format!("{open}{expression}{close}")
}

/// `conditions.#(type=="Ready").status` is the form of another library; the same in this dialect.
fn filter_instead_of(expression: &str) -> Option<String> {
    let (before, rest) = expression.split_once("#(")?;
    let (condition, after) = rest.split_once(')')?;
    Some(format!(
        "`{}[?(@.{condition})]{after}`",
        before.trim_end_matches('.')
    ))
}

#[cfg(test)]
mod tests;
