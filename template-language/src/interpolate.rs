//! Simple templates: `$( … )$` inside the strings of a JSON document (spec 3.3).
//!
//! A string that is one tag takes the value with its type; otherwise each tag is written as text. What a
//! tag yields is never looked at again, so a parameter cannot smuggle in another tag.
//!
//! ```
//! use template_language::interpolate::Compiled;
//! use serde_json::json;
//! let template = Compiled::compile(&json!({"replicas": "$(params.n)$", "name": "app-$(params.n)$"}));
//! let context = json!({"params": {"n": 3}});
//! let rendered = template.render(&mut |path| path.evaluate(&context)).unwrap();
//! assert_eq!(rendered, json!({"replicas": 3, "name": "app-3"}));
//! ```

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::go_format;
use crate::jsonpath::{Path, PathError, Root};
use crate::numbers;

mod error;
mod visit;

pub use error::{InterpolateError, TagError};
pub use visit::Found;

use error::Location;

/// Opens a tag.
pub const OPEN: &str = "$(";
/// Closes a tag.
pub const CLOSE: &str = ")$";

/// A compiled template.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// Nothing below has a tag.
    Literal(Value),
    Object(Vec<(String, Self)>),
    Array(Vec<Self>),
    Tag {
        text: String,
        path: Path,
    },
    Text(Vec<Part>),
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Literal(String),
    Tag(Path),
}

impl Compiled {
    /// Compiles a template. Wrong paths are found when they are evaluated, as upstream finds them.
    pub fn compile(template: &Value) -> Self {
        Self(compile(template))
    }

    /// Renders; `resolve` evaluates a path in the context.
    ///
    /// # Errors
    /// The first tag, in the order of sorted keys, that has no value.
    pub fn render<'c>(
        &self,
        resolve: &mut dyn FnMut(&Path) -> Result<Cow<'c, Value>, PathError>,
    ) -> Result<Value, InterpolateError> {
        render(&self.0, &mut Location::default(), resolve)
    }

    /// Renders against a context that borrows its top-level entries.
    ///
    /// # Errors
    /// As [`Self::render`].
    pub fn render_root(&self, context: &dyn Root) -> Result<Value, InterpolateError> {
        self.render(&mut |path| path.evaluate_root(context))
    }

    /// All paths that the template evaluates.
    pub fn paths(&self) -> Vec<&Path> {
        let mut paths = Vec::new();
        collect(&self.0, &mut paths);
        paths
    }

    /// Whether a change of this top-level entry of the context can change the rendering.
    pub fn mentions(&self, key: &str) -> bool {
        self.paths().iter().any(|path| {
            path.static_prefix()
                .first()
                .is_none_or(|first| first == key)
        })
    }

    /// The literal value at a place, if no tag takes part in it.
    pub fn literal(&self, keys: &[&str]) -> Option<&Value> {
        let mut node = &self.0;
        for (depth, key) in keys.iter().enumerate() {
            match node {
                Node::Object(fields) => node = &fields.iter().find(|(name, _)| name == key)?.1,
                Node::Literal(value) => {
                    return keys[depth..]
                        .iter()
                        .try_fold(value, |value, key| value.get(key));
                }
                Node::Array(_) | Node::Tag { .. } | Node::Text(_) => return None,
            }
        }
        match node {
            Node::Literal(value) => Some(value),
            Node::Object(_) | Node::Array(_) | Node::Tag { .. } | Node::Text(_) => None,
        }
    }
}

fn compile(template: &Value) -> Node {
    match template {
        Value::String(text) => compile_text(text),
        Value::Array(items) => {
            let nodes: Vec<Node> = items.iter().map(compile).collect();
            if nodes.iter().all(|node| matches!(node, Node::Literal(_))) {
                return Node::Literal(integral(Cow::Borrowed(template)));
            }
            Node::Array(nodes)
        }
        Value::Object(fields) => {
            let mut nodes: Vec<(String, Node)> = fields
                .iter()
                .map(|(key, value)| (key.clone(), compile(value)))
                .collect();
            if nodes
                .iter()
                .all(|(_, node)| matches!(node, Node::Literal(_)))
            {
                return Node::Literal(integral(Cow::Borrowed(template)));
            }
            // Sorted, so that the first error is always the same one.
            nodes.sort_by(|(left, _), (right, _)| left.cmp(right));
            Node::Object(nodes)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            Node::Literal(integral(Cow::Borrowed(template)))
        }
    }
}

fn compile_text(text: &str) -> Node {
    if text.matches(OPEN).count() == 1
        && let Some(path) = text
            .strip_prefix(OPEN)
            .and_then(|rest| rest.strip_suffix(CLOSE))
    {
        return Node::Tag {
            text: text.to_owned(),
            path: Path::compile(path),
        };
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, tagged)) = rest.split_once(OPEN) {
        // An unclosed tag is text, and so is everything after it.
        let Some((path, after)) = tagged.split_once(CLOSE) else {
            break;
        };
        if !before.is_empty() {
            parts.push(Part::Literal(before.to_owned()));
        }
        parts.push(Part::Tag(Path::compile(path)));
        rest = after;
    }
    if parts.is_empty() {
        return Node::Literal(Value::String(text.to_owned()));
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest.to_owned()));
    }
    Node::Text(parts)
}

type Resolve<'r, 'c> = &'r mut dyn FnMut(&Path) -> Result<Cow<'c, Value>, PathError>;

fn render(
    node: &Node,
    at: &mut Location,
    resolve: Resolve<'_, '_>,
) -> Result<Value, InterpolateError> {
    match node {
        Node::Literal(value) => Ok(value.clone()),
        Node::Object(fields) => {
            let mut rendered = Map::new();
            for (key, node) in fields {
                rendered.insert(key.clone(), at.inside(key, |at| render(node, at, resolve))?);
            }
            Ok(Value::Object(rendered))
        }
        Node::Array(nodes) => {
            let items = nodes
                .iter()
                .enumerate()
                .map(|(index, node)| at.inside_index(index, |at| render(node, at, resolve)));
            items.collect::<Result<_, _>>().map(Value::Array)
        }
        Node::Tag { text, path } => match resolve(path) {
            Ok(value) => Ok(integral(value)),
            Err(cause) => Err(at.error(TagError::Single {
                tag: text.clone(),
                cause,
            })),
        },
        Node::Text(parts) => render_text(parts, resolve)
            .map(Value::String)
            .map_err(|cause| at.error(cause)),
    }
}

fn render_text(parts: &[Part], resolve: Resolve<'_, '_>) -> Result<String, TagError> {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Literal(literal) => text.push_str(literal),
            Part::Tag(path) => match resolve(path).map_err(TagError::InText)?.as_ref() {
                Value::Null => return Err(TagError::Nil(path.source().to_owned())),
                Value::String(value) => text.push_str(value),
                value
                @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    text.push_str(&go_format::json(value));
                }
            },
        }
    }
    Ok(text)
}

fn collect<'n>(node: &'n Node, paths: &mut Vec<&'n Path>) {
    match node {
        Node::Literal(_) => {}
        Node::Object(fields) => fields.iter().for_each(|(_, node)| collect(node, paths)),
        Node::Array(nodes) => nodes.iter().for_each(|node| collect(node, paths)),
        Node::Tag { path, .. } => paths.push(path),
        Node::Text(parts) => paths.extend(parts.iter().filter_map(|part| match part {
            Part::Tag(path) => Some(path),
            Part::Literal(_) => None,
        })),
    }
}

/// A double that is a whole number is submitted as one: a typed field takes 5, not 5.0.
fn integral(value: Cow<'_, Value>) -> Value {
    numbers::plain(value).into_owned()
}

#[cfg(test)]
mod tests;
