//! Objects that the rules of a template read beside the stamped one (docs/behaviour/attribution.md#others).
//!
//! ```text
//!  OtherObject ─▶ NamedObject ─▶ query(context) ─▶ ObjectQuery ─▶ the shell ─▶ ReadObject ─▶ value() for a rule
//!  (template)     (compiled)                                       (cluster)
//! ```
//!
//! What such an object holds is shown in no message: it is not known what it was made from.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::names::{LabelValue, ResourceName};
use api_types::selector::label_key_errors;
use api_types::templates::OtherObject;
use serde_json::Value;
use template_language::go_format;
use template_language::interpolate::Compiled;

use crate::template::goodness::Unknown;
use crate::values::field_path::{FieldPath, PathProblem};
use crate::values::redaction::Taint;
use crate::{FoundObject, Needed, ObjectChoice, ObjectQuery, Unread};

/// How many names a message tells of objects of which only one may be there.
const MOST_NAMES: usize = 3;

/// An object with its texts compiled.
#[derive(Clone, Debug)]
pub(crate) struct NamedObject {
    /// As the template gives it.
    written: String,
    api_version: Text,
    kind: Text,
    choice: Choice,
    reads: Arc<[Vec<String>]>,
}

#[derive(Clone, Debug)]
enum Choice {
    Name(Text),
    Labels(BTreeMap<String, Text>),
}

/// A text that may hold tags.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) template: Compiled,
}

/// What became of an object that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct ReadObject {
    /// How messages name it.
    shown: String,
    found: Result<Arc<Value>, (String, Unknown)>,
}

/// What became of the objects that the rules of a template name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Others {
    /// Digest of the rendering that they go with: their names may hold what went into it.
    pub(crate) of_rendering: String,
    /// Whether they decide anything. If not, they may be unread.
    pub(crate) are_needed: bool,
    /// In the order of the rules.
    pub(crate) read: Vec<ReadObject>,
    /// Which they are, in the versions that were read; none unless all are known.
    pub(crate) versions: Vec<String>,
    /// Whether all that the rules go by is as it was when they found the stamped object good, so that none is read.
    pub(crate) are_as_when_good: bool,
}

/// What the context has for a text.
pub(crate) type InContext<'c> = &'c dyn Fn(&Text) -> Result<Value, String>;

impl NamedObject {
    /// `paths` are those that are read on it.
    pub(crate) fn new<'p>(
        object: &OtherObject,
        paths: impl Iterator<Item = &'p FieldPath>,
    ) -> Self {
        let mut reads: Vec<Vec<String>> = paths.filter_map(FieldPath::prefix).collect();
        reads.sort();
        reads.dedup();
        let labels = object.match_labels.iter();
        Self {
            written: as_written(object),
            api_version: Text::new(&object.api_version),
            kind: Text::new(&object.kind),
            choice: if object.match_labels.is_empty() {
                Choice::Name(Text::new(&object.name))
            } else {
                Choice::Labels(
                    labels
                        .map(|(key, text)| (key.clone(), Text::new(text)))
                        .collect(),
                )
            },
            reads: reads.into(),
        }
    }

    /// The texts that hold tags.
    pub(crate) fn tagged(&self) -> impl Iterator<Item = &Text> {
        let own = [&self.api_version, &self.kind].into_iter();
        let (name, labels) = match &self.choice {
            Choice::Name(name) => (Some(name), None),
            Choice::Labels(labels) => (None, Some(labels.values())),
        };
        let all = own.chain(name).chain(labels.into_iter().flatten());
        all.filter(|text| text.text.contains("$("))
    }

    /// What to ask for.
    ///
    /// # Errors
    ///
    /// A text has no value, or none that can stand there: why the object is not read.
    pub(crate) fn query(
        &self,
        resource: &ResourceName,
        namespace: &str,
        context: InContext<'_>,
    ) -> Result<ObjectQuery, ReadObject> {
        let query = || {
            Ok(ObjectQuery {
                resource: resource.clone(),
                api_version: self
                    .api_version
                    .rendered("apiVersion", context, is_api_version)?,
                kind: self.kind.rendered("kind", context, is_kind)?,
                namespace: namespace.to_owned(),
                choice: self.choice.rendered(context)?,
                reads: Arc::clone(&self.reads),
                is_fresh: false,
                needed: Needed::Value,
            })
        };
        query().map_err(|why: String| ReadObject {
            shown: self.written.clone(),
            found: Err((why, Unknown::Awaited)),
        })
    }
}

/// An object as a template gives it, in messages.
pub(crate) fn as_written(object: &OtherObject) -> String {
    let choice = if object.match_labels.is_empty() {
        ObjectChoice::Name(object.name.clone())
    } else {
        ObjectChoice::Labels(object.match_labels.clone())
    };
    named(&object.kind, &choice)
}

impl Choice {
    fn rendered(&self, context: InContext<'_>) -> Result<ObjectChoice, String> {
        match self {
            Self::Name(name) => Ok(ObjectChoice::Name(name.rendered("name", context, is_name)?)),
            Self::Labels(labels) => {
                let pairs = labels.iter().map(|(key, text)| {
                    if !label_key_errors(key).is_empty() {
                        return Err(format!("cannot be read: [{key}] is no key of a label"));
                    }
                    let is_value = |text: &str| LabelValue::try_from(text).is_ok();
                    Ok((
                        key.clone(),
                        text.rendered("matchLabels", context, is_value)?,
                    ))
                });
                Ok(ObjectChoice::Labels(pairs.collect::<Result<_, _>>()?))
            }
        }
    }
}

impl Text {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            template: Compiled::compile(&text.into()),
        }
    }

    fn rendered(
        &self,
        field: &str,
        context: InContext<'_>,
        fits: impl Fn(&str) -> bool,
    ) -> Result<String, String> {
        let value = context(self)
            .map_err(|why| format!("cannot be read: {field} [{}]: {why}", self.text))?;
        let text = match &value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(go_format::display(&value)),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        let text = text.filter(|text| fits(text));
        text.ok_or_else(|| {
            let value = go_format::display(&value);
            format!(
                "cannot be read: {field} [{}] is [{value}], which is none",
                self.text
            )
        })
    }
}

impl ReadObject {
    /// What was found for a query. Nothing that is told of it holds what `taint` has.
    pub(crate) fn new(query: &ObjectQuery, found: FoundObject, taint: &Taint) -> Self {
        let found = found.object.map_err(|unread| {
            let (why, unknown) = told(unread);
            (taint.scrub(why), unknown)
        });
        Self {
            shown: taint.scrub(named(&query.kind, &query.choice)),
            found,
        }
    }

    /// As it is, without what `taint` has.
    pub(crate) fn scrubbed(self, taint: &Taint) -> Self {
        Self {
            shown: taint.scrub(self.shown),
            found: self
                .found
                .map_err(|(why, unknown)| (taint.scrub(why), unknown)),
        }
    }

    /// How messages name it.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The value at a path.
    ///
    /// # Errors
    ///
    /// There is none: why, and what makes one come.
    pub(crate) fn value(&self, path: &FieldPath) -> Result<Cow<'_, Value>, (String, Unknown)> {
        let (text, shown) = (path.text(), &self.shown);
        if let Some(problem) = path.unparsable() {
            return Err((format!("[{text}]: {problem}"), Unknown::Hopeless));
        }
        let object = self
            .found
            .as_ref()
            .map_err(|(why, unknown)| (format!("object [{shown}] {why}"), *unknown))?;
        path.read(object).map_err(|problem| match problem {
            PathProblem::Absent(_) | PathProblem::EmptyList(_) => {
                let why = format!("object [{shown}] has nothing at [{text}]");
                (why, Unknown::Awaited)
            }
            PathProblem::Broken(_) => {
                let why = format!("path [{text}] does not fit object [{shown}]");
                (why, Unknown::Hopeless)
            }
        })
    }
}

/// What a message says of an object that was not read.
fn told(unread: Unread) -> (String, Unknown) {
    match unread {
        Unread::Unneeded => {
            let why = "is not read before what it depends on is known of the stamped one";
            (why.to_owned(), Unknown::Unasked)
        }
        Unread::Missing => ("is not there".to_owned(), Unknown::Awaited),
        Unread::Several(mut names) => {
            names.sort();
            let more = if names.len() > MOST_NAMES {
                " and more"
            } else {
                ""
            };
            names.truncate(MOST_NAMES);
            let names = names.join(", ");
            let why = format!("is not one but several: {names}{more}; give its labels to one only");
            (why, Unknown::Several)
        }
        Unread::Unserved(why) => (format!("cannot be read: {why}"), Unknown::Awaited),
        Unread::Refused(why) => (format!("cannot be read: {why}"), Unknown::Refused),
        Unread::Unavailable(why) => (format!("cannot be read: {why}"), Unknown::Unavailable),
    }
}

fn named(kind: &str, choice: &ObjectChoice) -> String {
    match choice {
        ObjectChoice::Name(name) => format!("{kind}/{name}"),
        ObjectChoice::Labels(labels) => {
            let labels = labels.iter().map(|(key, value)| format!("{key}={value}"));
            let labels: Vec<String> = labels.collect();
            format!("{kind} with labels {}", labels.join(","))
        }
    }
}

/// Whether it can stand in a path and in a field selector as it is: otherwise it would name another place.
fn is_name(text: &str) -> bool {
    consists_of(text, "-._:") && text != "." && text != ".."
}

fn is_kind(text: &str) -> bool {
    consists_of(text, "")
}

fn is_api_version(text: &str) -> bool {
    consists_of(text, "-./") && !text.contains("..") && text.matches('/').count() < 2
}

fn consists_of(text: &str, signs: &str) -> bool {
    let fits = |char: char| char.is_ascii_alphanumeric() || signs.contains(char);
    !text.is_empty() && text.chars().all(fits)
}

#[cfg(test)]
mod tests;
