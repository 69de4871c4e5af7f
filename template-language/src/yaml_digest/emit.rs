//! Writing YAML in block style, as `yaml.v3` does with its defaults.
//!
//! That writer decides about line breaks and blanks by where it stands: the column, whether the last
//! thing written was white space, and whether only indentation stands in the line. It has slips, and
//! digests depend on them, so the same state is kept here:
//! - A text that begins with a line break loses it.
//! - The indentation hint of a literal text is always 4, wherever it stands.
//! - A map in a list is indented by two, and a map in that map to the next multiple of four.
//! - A key of more than 128 bytes, or of several lines, is written as `? key`.
//!
//! Nothing breaks long lines: the Go library is asked for that only by a setting nobody makes.

use serde_json::{Map, Value};

use super::key_order::sorted_keys;
use super::scalar::{Shape, Style, escape, is_break};
use crate::go_format;

/// Of a map in a map.
const INDENT: usize = 4;
/// A longer key, in bytes, needs the form `? key`.
const LONGEST_SIMPLE_KEY: usize = 128;

/// What a value stands in decides how far it is indented.
#[derive(Clone, Copy)]
enum Parent {
    Document,
    Item { indent: usize },
    Entry { indent: usize },
}

impl Parent {
    /// The indentation of a list or map below.
    fn indent(self) -> usize {
        match self {
            Self::Document => 0,
            // Behind `- `.
            Self::Item { indent } => indent + 2,
            // The next multiple of four, wherever the map starts.
            Self::Entry { indent } => (indent + INDENT) / INDENT * INDENT,
        }
    }

    /// The indentation of the further lines of a scalar below.
    fn scalar_indent(self) -> usize {
        match self {
            Self::Document => INDENT,
            Self::Item { .. } | Self::Entry { .. } => self.indent(),
        }
    }
}

/// The whole document.
pub(super) fn document(value: &Value) -> String {
    let mut emitter = Emitter {
        out: String::new(),
        column: 0,
        after_blank: true,
        only_indentation: true,
    };
    emitter.value(value, Parent::Document);
    emitter.line_up(0);
    emitter.out
}

/// The text so far, and where it ends.
struct Emitter {
    out: String,
    /// In characters.
    column: usize,
    /// Whether the last thing written was white space.
    after_blank: bool,
    /// Whether nothing else stands in this line.
    only_indentation: bool,
}

impl Emitter {
    fn value(&mut self, value: &Value, parent: Parent) {
        match value {
            Value::Object(fields) if !fields.is_empty() => self.map(fields, parent.indent()),
            Value::Array(items) if !items.is_empty() => self.list(items, parent.indent()),
            Value::Object(_) => self.indicator("{}", Indicator::Word),
            Value::Array(_) => self.indicator("[]", Indicator::Word),
            Value::Null => self.plain("null"),
            Value::Bool(value) => self.plain(if *value { "true" } else { "false" }),
            // Upstream's outputs are decoded without a type, so that all numbers are doubles.
            Value::Number(number) => self.plain(
                &number
                    .as_f64()
                    .map_or_else(|| number.to_string(), go_format::shortest),
            ),
            Value::String(text) => self.text(text, parent.scalar_indent(), false),
        }
    }

    fn map(&mut self, fields: &Map<String, Value>, indent: usize) {
        let parent = Parent::Entry { indent };
        for key in sorted_keys(fields) {
            let Some(value) = fields.get(key) else {
                continue;
            };
            self.line_up(indent);
            if key.len() <= LONGEST_SIMPLE_KEY && !key.contains(is_break) {
                self.text(key, parent.scalar_indent(), true);
                self.indicator(":", Indicator::Attached);
            } else {
                self.indicator("?", Indicator::Block);
                self.text(key, parent.scalar_indent(), false);
                self.line_up(indent);
                self.indicator(":", Indicator::Block);
            }
            self.value(value, parent);
        }
    }

    /// Item by item, each behind its dash.
    fn list(&mut self, items: &[Value], indent: usize) {
        for item in items {
            self.line_up(indent);
            self.indicator("-", Indicator::Block);
            self.value(item, Parent::Item { indent });
        }
    }

    /// A string, in the style that its characters allow.
    fn text(&mut self, text: &str, indent: usize, key: bool) {
        match Shape::of(text).style(text, key) {
            Style::Plain => self.plain(text),
            Style::SingleQuoted => self.single_quoted(text, indent),
            Style::DoubleQuoted => {
                self.indicator("\"", Indicator::Word);
                escape(text, |part| self.push(part));
                self.indicator("\"", Indicator::Attached);
            }
            Style::Literal => self.literal(text, indent),
        }
    }

    /// As it stands.
    fn plain(&mut self, text: &str) {
        self.indicator(text, Indicator::Word);
    }

    /// In single quotes, which are doubled within.
    fn single_quoted(&mut self, text: &str, indent: usize) {
        self.indicator("'", Indicator::Word);
        let mut after_break = false;
        for character in text.chars() {
            if is_break(character) {
                self.copy_break(character);
                after_break = true;
                continue;
            }
            if after_break {
                self.line_up(indent);
            }
            if character == '\'' {
                self.push("'");
            }
            self.push(character.encode_utf8(&mut [0; 4]));
            self.only_indentation = false;
            after_break = false;
        }
        self.indicator("'", Indicator::Attached);
    }

    /// Behind `|`: line by line, with a sign for the line breaks at its end.
    fn literal(&mut self, text: &str, indent: usize) {
        self.indicator("|", Indicator::Word);
        if text.starts_with(|first| first == ' ' || is_break(first)) {
            self.indicator(&INDENT.to_string(), Indicator::Attached);
        }
        let mut backwards = text.chars().rev();
        match (backwards.next().is_some_and(is_break), backwards.next()) {
            (false, _) => self.indicator("-", Indicator::Attached),
            (true, Some(before)) if !is_break(before) => {}
            (true, _) => self.indicator("+", Indicator::Attached),
        }
        self.after_blank = true;
        let mut after_break = true;
        for character in text.chars() {
            if is_break(character) {
                self.copy_break(character);
            } else {
                if after_break {
                    self.line_up(indent);
                }
                self.push(character.encode_utf8(&mut [0; 4]));
                self.only_indentation = false;
            }
            after_break = is_break(character);
        }
    }

    /// Writes within a line.
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn end_line(&mut self) {
        self.out.push('\n');
        self.column = 0;
        self.only_indentation = true;
    }

    /// A line break of the text itself.
    fn copy_break(&mut self, character: char) {
        self.out.push(character);
        self.column = 0;
        self.only_indentation = true;
    }

    /// Goes to this column, in a new line unless this one has only indentation that is not beyond it.
    fn line_up(&mut self, indent: usize) {
        let beyond = self.column > indent || (self.column == indent && !self.after_blank);
        if !self.only_indentation || beyond {
            self.end_line();
        }
        while self.column < indent {
            self.push(" ");
        }
        self.after_blank = true;
    }

    /// Writes a sign or a word, with the blank that it wants before it.
    fn indicator(&mut self, text: &str, kind: Indicator) {
        if !matches!(kind, Indicator::Attached) && !self.after_blank {
            self.push(" ");
        }
        self.push(text);
        self.after_blank = false;
        self.only_indentation &= matches!(kind, Indicator::Block);
    }
}

#[derive(Clone, Copy)]
enum Indicator {
    /// Behind a blank.
    Word,
    /// Behind whatever is there.
    Attached,
    /// Behind a blank, and counts as indentation: what follows may stand in the same line.
    Block,
}
