//! Simple templates: `$( … )$` inside the strings of a JSON document.
//!
//! # What a string becomes
//!
//! | string | rendered as |
//! |---|---|
//! | no tag | itself |
//! | exactly one tag, and nothing beside it | the value at the path, with its type |
//! | tags with text beside them, or several tags | one text, each tag written as text |
//! | `$(` that no `)$` follows | itself from there on: it is no tag |
//!
//! In a text a string stands as it is, a number, boolean, list or map as the JSON that Go writes
//! ([`go_format::json`]), and a null is an error: nobody means the word `null` in a name.
//!
//! Only strings that are values are rendered, never the keys of a map. A double without a fraction
//! becomes an integer ([`crate::numbers`]), wherever it comes from: a typed field takes 5, not 5.0.
//!
//! What a tag yields is never looked at again, so a parameter cannot smuggle in another tag:
//!
//! ```
//! # use serde_json::json;
//! # use template_language::interpolate::Compiled;
//! let template = Compiled::compile(&json!("$(params.text)$"));
//! let context = json!({"params": {"text": "$(workload.metadata)$"}});
//! let rendered = template.render(&mut |path| path.evaluate(&context)).unwrap();
//! assert_eq!(rendered, "$(workload.metadata)$");
//! ```
//!
//! # Compiled once
//!
//! A template is compiled once for each version of it and rendered for each owner. Parts without tags
//! are kept as they are and copied as a whole. The fields of a map are rendered in the order of their
//! keys, so the first error of a template with several is always the same one.
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

/// A compiled template: any JSON document whose strings may have tags.
///
/// Compiling never fails. A tag with a wrong path is kept, and says so whenever it is rendered: the
/// object that is wrong is the template, but who meets it is the owner that is rendered. To tell the
/// author early, ask [`crate::tags::faults`].
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// Nothing below has a tag.
    Literal(Value),
    /// Something below has one; sorted by key.
    Object(Vec<(String, Self)>),
    /// Something in it has one.
    Array(Vec<Self>),
    /// A string that is one tag. Its text is kept for the error.
    Tag { text: String, path: Path },
    /// A string with text beside its tags.
    Text(Vec<Part>),
}

/// A piece of a string that is not one tag.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Literal(String),
    Tag(Path),
}

impl Compiled {
    /// Compiles a template. Wrong paths are found when they are evaluated, as upstream finds them.
    ///
    /// ```
    /// # use serde_json::json;
    /// # use template_language::interpolate::Compiled;
    /// let template = Compiled::compile(&json!({"a": "$(params[)$"}));
    /// let error = template.render_root(&serde_json::Map::new()).unwrap_err();
    /// assert_eq!(error.at, "a");
    /// ```
    pub fn compile(template: &Value) -> Self {
        Self(compile(template))
    }

    /// Renders; `resolve` evaluates a path in the context.
    ///
    /// `resolve` is asked for each tag, in the order of sorted keys, until one has no value. It is where
    /// a caller can note which paths were read, or answer some of them by itself.
    ///
    /// ```
    /// # use serde_json::json;
    /// # use template_language::interpolate::Compiled;
    /// let template = Compiled::compile(&json!({"b": "$(params.b)$", "a": "at $(params.a)$"}));
    /// let context = json!({"params": {"a": 1, "b": 2}});
    /// let mut read = Vec::new();
    /// let rendered = template.render(&mut |path| {
    ///     read.push(path.source().to_owned());
    ///     path.evaluate(&context)
    /// });
    /// assert_eq!(rendered.unwrap(), json!({"a": "at 1", "b": 2}));
    /// assert_eq!(read, ["params.a", "params.b"]);
    /// ```
    ///
    /// # Errors
    /// The first tag, in the order of sorted keys, that has no value. The author of the template or of
    /// what it reads must act, or the value is still to come.
    pub fn render<'c>(
        &self,
        resolve: &mut dyn FnMut(&Path) -> Result<Cow<'c, Value>, PathError>,
    ) -> Result<Value, InterpolateError> {
        render(&self.0, &mut Location::default(), resolve)
    }

    /// Renders against a context that borrows its top-level entries.
    ///
    /// A context has large entries, such as the owner and the objects of other steps. They are looked
    /// into, and copied only where a template asks for all of them.
    ///
    /// ```
    /// # use serde_json::json;
    /// # use template_language::interpolate::Compiled;
    /// let context = json!({"params": {"port": 80}}).as_object().cloned().unwrap();
    /// let template = Compiled::compile(&json!(["$(params.port)$", ":$(params.port)$"]));
    /// assert_eq!(template.render_root(&context).unwrap(), json!([80, ":80"]));
    /// ```
    ///
    /// # Errors
    /// As [`Self::render`].
    pub fn render_root(&self, context: &dyn Root) -> Result<Value, InterpolateError> {
        self.render(&mut |path| path.evaluate_root(context))
    }

    /// All paths that the template evaluates, in the order in which it does.
    ///
    /// One that stands twice is there twice.
    pub fn paths(&self) -> Vec<&Path> {
        let mut paths = Vec::new();
        collect(&self.0, &mut paths);
        paths
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

/// A string. One tag alone is told by its ends: inside it, `)$` is part of the path.
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

/// Evaluates a path in the context.
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

/// A text of parts; a null in it is an error, an empty string is not.
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

/// The paths below a node, in the order of rendering.
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
