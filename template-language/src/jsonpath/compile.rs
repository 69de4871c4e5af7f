//! From an expression to what is evaluated.

use super::parse::{self, Node};
use super::standard::{self, Standard};
use super::{Path, PathError, PathFieldError, Program, ast};

/// The program of an expression.
pub(super) fn compile(expression: &str) -> Result<Program, PathError> {
    if expression.is_empty() {
        return Err(PathError::Empty);
    }
    if standard::is_standard(expression) {
        return Standard::compile(expression)
            .map(Program::Standard)
            .map_err(|cause| PathError::Parse {
                wrapped: expression.to_owned(),
                cause,
            });
    }
    let wrapped = wrap(expression);
    let mut nodes = parse::parse(&wrapped).map_err(|cause| PathError::Parse { wrapped, cause })?;
    if let [Node::Query(query)] = &mut nodes[..]
        && !ast::mentions_range(query)
    {
        return Ok(Program::Kubectl(std::mem::take(query)));
    }
    let queries = nodes.into_iter().filter_map(|node| match node {
        Node::Query(query) => Some(query),
        Node::Text => None,
    });
    Ok(Program::Several(queries.collect()))
}

/// Puts the braces around it that the parser wants. Error texts show the expression so.
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
pub(super) fn filter_instead_of(expression: &str) -> Option<String> {
    let (before, rest) = expression.split_once("#(")?;
    // In brackets it is part of a key or of a text to compare with.
    let is_segment = before.is_empty() || before.ends_with('.');
    if !is_segment || before.matches('[').count() != before.matches(']').count() {
        return None;
    }
    let (condition, after) = rest.split_once(')')?;
    Some(format!(
        "`{}[?(@.{condition})]{after}`",
        before.trim_end_matches('.')
    ))
}

/// Whether the expression is a path field of a template, as [`Path::compile_field`] reads it.
///
/// # Errors
/// The cause alone. A message that names the field and the path already says neither a second time.
///
/// ```
/// # use template_language::jsonpath::check_field;
/// assert!(check_field(".status.url").is_ok());
/// assert_eq!(check_field(".status[").unwrap_err(), "unterminated array");
/// ```
pub fn check_field(expression: &str) -> Result<(), String> {
    Path::compile_field(expression)
        .map(|_| ())
        .map_err(|error| match error {
            PathFieldError::Path(PathError::Parse { cause, .. }) => cause,
            other @ (PathFieldError::OldForm { .. } | PathFieldError::Path(_)) => other.to_string(),
        })
}

/// Whether the expression parses as it stands, without braces around it: a bare path is then literal
/// text, so that only what stands in braces can be wrong. Upstream's admission checks some fields so.
///
/// # Errors
/// What is wrong inside the braces.
pub fn check_unwrapped(expression: &str) -> Result<(), String> {
    parse::parse(expression).map(|_| ())
}
