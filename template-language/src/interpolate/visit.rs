//! Looking at every string of a template without rendering it.
//!
//! Checks at admission ask for the tags of a template, and for texts that look like tags and are none.
//! Both need to know where they stand. Nothing is evaluated here.
//!
//! ```
//! use serde_json::json;
//! use template_language::interpolate::{Compiled, Found};
//!
//! let template = Compiled::compile(&json!({"image": "$(params.repo)$/app", "port": 80}));
//! let mut seen = Vec::new();
//! template.visit(&mut |at, found| {
//!     seen.push(match found {
//!         Found::Tag(path) => format!("{at}: tag {}", path.source()),
//!         Found::Text { text, .. } => format!("{at}: text {text}"),
//!     });
//! });
//! assert_eq!(seen, ["image: tag params.repo", "image: text /app"]);
//! ```

use serde_json::Value;

use super::error::Location;
use super::{Compiled, Node, Part};
use crate::jsonpath::Path;

/// What stands in a string.
#[derive(Clone, Copy, Debug)]
pub enum Found<'n> {
    /// A tag.
    Tag(&'n Path),
    /// What is written as it stands: a string, or what is beside the tags of one.
    Text {
        /// The text.
        text: &'n str,
        /// Whether the whole string has several lines.
        in_lines: bool,
    },
}

/// Is told where the string is, such as `spec.list[0].name`, and what stands in it.
type See<'s, 'n> = &'s mut dyn FnMut(&str, Found<'n>);

impl Compiled {
    /// Visits the values in the order of sorted keys; keys are no strings that are rendered.
    ///
    /// A string with tags is visited piece by piece, from left to right. Numbers, booleans and nulls
    /// are not visited.
    pub fn visit<'n>(&'n self, see: See<'_, 'n>) {
        node(&self.0, &mut Location::default(), see);
    }
}

/// What was compiled.
fn node<'n>(found: &'n Node, at: &mut Location, see: See<'_, 'n>) {
    match found {
        Node::Literal(value) => literal(value, at, see),
        Node::Object(fields) => {
            for (key, field) in fields {
                at.inside(key, |at| node(field, at, see));
            }
        }
        Node::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                at.inside_index(index, |at| node(item, at, see));
            }
        }
        Node::Tag { path, .. } => see(at.as_str(), Found::Tag(path)),
        Node::Text(parts) => {
            let is_broken =
                |part: &Part| matches!(part, Part::Literal(text) if text.contains('\n'));
            let in_lines = parts.iter().any(is_broken);
            for part in parts {
                let found = match part {
                    Part::Literal(text) => Found::Text { text, in_lines },
                    Part::Tag(path) => Found::Tag(path),
                };
                see(at.as_str(), found);
            }
        }
    }
}

/// What has no tag in it, which is kept as it was.
fn literal<'n>(value: &'n Value, at: &mut Location, see: See<'_, 'n>) {
    match value {
        Value::String(text) => {
            let in_lines = text.contains('\n');
            see(at.as_str(), Found::Text { text, in_lines });
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                at.inside_index(index, |at| literal(item, at, see));
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                at.inside(key, |at| literal(field, at, see));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
