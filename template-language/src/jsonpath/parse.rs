//! From text to queries.
//!
//! The dialect is lenient in odd ways, and existing documents rely on them: braces are optional, quotes
//! are characters of a name outside of brackets, `$` and `@` do nothing, and an index is a slice of one.
//!
//! ```text
//! text     = { chars | "{" query "}" }
//! query    = { "." name | ".*" | ".." [name] | "[" array "]" | "[?(" filter ")]"
//!            | quoted | number | word | " " | "@" | "$" }
//! array    = "'" key "'" | "*" | slice | array "," array
//! slice    = index | [index] ":" [index] [":" [index]]
//! filter   = query | query operator query
//! operator = one or more of "!" "<" ">" "="
//! ```
//!
//! - A name ends before a blank or one of `. , [ ] $ @ { }`; a backslash takes its meaning from the next
//!   character, as in `.metadata.labels.app\.kubernetes\.io/name`.
//! - The key in `['key']` is read as `.key`, so that a dot in it wants a backslash, too.
//! - A filter ends at the first `)` outside of its first quoted text.
//! - What follows a closing brace inside brackets is dropped.
//!
//! Errors are texts: the caller says of which expression.

mod brackets;

use serde_json::{Number, Value};

use self::brackets::{comparison, filter_end, slice};
use super::ast::Element;
use super::escapes::unquote;
use crate::go_format::{character, is_digit, is_letter};

/// What stands at the top level of an expression.
#[derive(Debug)]
pub(super) enum Node {
    /// Outside of braces.
    Text,
    /// Inside of braces.
    Query(Vec<Element>),
}

/// Nesting is bounded by the length of the text; this bounds it far below what the stack allows.
const DEEPEST: usize = 64;

/// Parses an expression with the braces that it has.
///
/// # Errors
/// What is wrong, in upstream's words; or that it is nested too deeply.
pub(super) fn parse(text: &str) -> Result<Vec<Node>, String> {
    parse_at(text, 0)
}

/// The same, at a depth of brackets.
fn parse_at(text: &str, depth: usize) -> Result<Vec<Node>, String> {
    if depth > DEEPEST {
        return Err("nested too deeply".into());
    }
    let mut nodes = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some(open) = rest.find('{') else {
            nodes.push(Node::Text);
            break;
        };
        if open > 0 {
            nodes.push(Node::Text);
        }
        let mut action = Action {
            rest: &rest[open + 1..],
            elements: Vec::new(),
            depth,
        };
        action.parse()?;
        rest = action.rest;
        nodes.push(Node::Query(action.elements));
    }
    Ok(nodes)
}

/// Parses `text` as the inside of an action; what follows a closing brace inside it is dropped.
fn inside(text: &str, depth: usize) -> Result<Vec<Element>, String> {
    let nodes = parse_at(&format!("{{{text}}}"), depth + 1)?;
    Ok(match nodes.into_iter().next() {
        Some(Node::Query(elements)) => elements,
        Some(Node::Text) | None => Vec::new(),
    })
}

/// What stands between braces, as far as it is parsed.
struct Action<'t> {
    rest: &'t str,
    elements: Vec<Element>,
    depth: usize,
}

impl<'t> Action<'t> {
    fn parse(&mut self) -> Result<(), String> {
        loop {
            if let Some(rest) = self.rest.strip_prefix('}') {
                self.rest = rest;
                return Ok(());
            }
            if self.rest.starts_with("[?(") {
                self.filter()?;
                continue;
            }
            if self.rest.starts_with("..") {
                self.recursive()?;
                continue;
            }
            let Some(next) = self.rest.chars().next() else {
                return Err("unclosed action".into());
            };
            match next {
                '\r' | '\n' => return Err("unclosed action".into()),
                ' ' | '@' | '$' => self.skip(1),
                '[' => self.array()?,
                '"' | '\'' => self.quoted(next)?,
                '.' => {
                    self.skip(1);
                    self.field();
                }
                '+' | '-' => self.number()?,
                digit if is_digit(digit) => self.number()?,
                letter if is_alphanumeric(letter) => self.identifier(),
                other => {
                    return Err(format!(
                        "unrecognized character in action: {}",
                        character(other)
                    ));
                }
            }
        }
    }

    /// Goes on behind so many bytes.
    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    /// So many bytes; goes on behind them.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    /// `..`, and the name that may stand right behind it.
    fn recursive(&mut self) -> Result<(), String> {
        if matches!(self.elements.last(), Some(Element::Recursive)) {
            return Err("invalid multiple recursive descent".into());
        }
        self.skip(2);
        self.elements.push(Element::Recursive);
        if self.rest.chars().next().is_some_and(is_alphanumeric) {
            self.field();
        }
        Ok(())
    }

    /// Up to the next terminator that no backslash precedes.
    fn field(&mut self) {
        let mut end = self.rest.len();
        let mut characters = self.rest.char_indices();
        while let Some((at, character)) = characters.next() {
            if character == '\\' {
                characters.next();
            } else if is_terminator(character) {
                end = at;
                break;
            }
        }
        let name = self.take(end);
        self.elements.push(if name == "*" {
            Element::Wildcard
        } else {
            Element::Field(name.replace('\\', ""))
        });
    }

    /// A word without a dot before it.
    fn identifier(&mut self) {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        let element = match self.take(end) {
            "true" => Element::Literal(Value::from(true)),
            "false" => Element::Literal(Value::from(false)),
            word => Element::Word(word.to_owned()),
        };
        self.elements.push(element);
    }

    /// An integer, or a double if it is none.
    fn number(&mut self) -> Result<(), String> {
        let signed = usize::from(self.rest.starts_with(['+', '-']));
        let end = self.rest[signed..]
            .find(|next| next != '.' && !is_digit(next))
            .map_or(self.rest.len(), |end| end + signed);
        let text = self.take(end);
        let number = text.parse::<i64>().ok().map(Number::from);
        // A double out of range is infinite, and no JSON number.
        let number = number.or_else(|| Number::from_f64(text.parse().ok()?));
        let number = number.ok_or_else(|| format!("cannot parse number {text}"))?;
        self.elements.push(Element::Literal(Value::Number(number)));
        Ok(())
    }

    /// A text in quotes, which may not go over the end of a line.
    fn quoted(&mut self, quote: char) -> Result<(), String> {
        let mut escaped = false;
        let mut end = None;
        for (at, character) in self.rest.char_indices().skip(1) {
            match character {
                '\n' => break,
                _ if character == quote && !escaped => {
                    end = Some(at + 1);
                    break;
                }
                _ => escaped = character == '\\',
            }
        }
        let end = end.ok_or("unterminated quoted string")?;
        let raw = self.take(end);
        let text = unquote(raw, quote)
            .ok_or_else(|| format!("unquote string {raw} error invalid syntax"))?;
        self.elements.push(Element::Text(text));
        Ok(())
    }

    /// Brackets that are no filter. They end at the first `]`, wherever it stands.
    fn array(&mut self) -> Result<(), String> {
        let end = self
            .rest
            .find(['\n', ']'])
            .filter(|end| self.rest[*end..].starts_with(']'))
            .ok_or("unterminated array")?;
        let text = &self.take(end + 1)[1..end];
        if text.contains(',') {
            let parts = text
                .split(',')
                .map(|part| inside(&format!("[{}]", part.trim_matches(' ')), self.depth));
            self.elements
                .push(Element::Union(parts.collect::<Result<_, _>>()?));
            return Ok(());
        }
        if let Some(key) = text
            .strip_prefix('\'')
            .and_then(|text| text.strip_suffix('\''))
            .filter(|key| !key.contains('\''))
        {
            self.elements
                .extend(inside(&format!(".{key}"), self.depth)?);
            return Ok(());
        }
        self.elements
            .push(Element::Slice(slice(if text == "*" { ":" } else { text })?));
        Ok(())
    }

    /// `[?( … )]`.
    fn filter(&mut self) -> Result<(), String> {
        let body = &self.rest[3..];
        let end = filter_end(body)?;
        let text = &body[..end];
        self.rest = body[end + 1..]
            .strip_prefix(']')
            .ok_or("unclosed array expect ]")?;
        self.elements.push(match comparison(text) {
            Some((left, operator, right)) => Element::Compare {
                left: inside(left, self.depth)?,
                operator: operator.to_owned(),
                right: inside(right, self.depth)?,
            },
            None => Element::Exists(inside(text, self.depth)?),
        });
        Ok(())
    }
}

/// Whether a name ends before this character.
fn is_terminator(character: char) -> bool {
    matches!(
        character,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

/// Whether a word may have this character, in the eyes of Go.
fn is_alphanumeric(character: char) -> bool {
    character == '_' || is_letter(character) || is_digit(character)
}
