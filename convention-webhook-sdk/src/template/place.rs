//! Places in JSON: reading them, and giving them values without harm to what is around.

use serde_json::{Map, Value};

use crate::change::Change;

/// What is in the way of a change: a value of another type than Kubernetes has there. The author of
/// the template, or of what was to be added, must correct it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} is {found}, not {wanted}")]
pub struct TemplateError {
    path: String,
    found: &'static str,
    wanted: &'static str,
}

impl TemplateError {
    /// Where it is, such as `spec.containers[web].env`.
    pub fn path(&self) -> &str {
        &self.path
    }

    fn new(path: impl Into<String>, found: &Value, wanted: &'static str) -> Self {
        let found = match found {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        Self {
            path: path.into(),
            found,
            wanted,
        }
    }
}

/// What is done with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// It stays.
    Default,
    /// It goes.
    Set,
}

type Object = Map<String, Value>;

/// What stands below these keys, if anything but `null` does.
pub(super) fn get<'v>(object: &'v Object, keys: &[&str]) -> Option<&'v Value> {
    let (last, way) = keys.split_last()?;
    let mut object = object;
    for key in way {
        object = object.get(*key)?.as_object()?;
    }
    object.get(*last).filter(|value| !value.is_null())
}

/// Gives a value below these keys.
pub(super) fn put(
    object: &mut Object,
    path: &str,
    keys: &[&str],
    value: Value,
    wish: Wish,
) -> Result<Change, TemplateError> {
    let Some((last, way)) = keys.split_last() else {
        return Ok(Change::Already);
    };
    passable(object, path, way)?;
    match get(object, keys) {
        Some(there) if *there == value => return Ok(Change::Already),
        Some(_) if wish == Wish::Default => return Ok(Change::Kept),
        _ => {}
    }
    let mut object = object;
    for key in way {
        let next = object.entry(*key).or_insert(Value::Null);
        if next.is_null() {
            *next = Value::Object(Object::new());
        }
        let Value::Object(next) = next else {
            // It was looked at above.
            return Err(TemplateError::new(path, &Value::Null, "an object"));
        };
        object = next;
    }
    object.insert((*last).to_owned(), value);
    Ok(Change::Made)
}

/// Whether there is nothing but objects on the way. Nothing is made for a wish that cannot be
/// fulfilled.
fn passable(object: &Object, path: &str, way: &[&str]) -> Result<(), TemplateError> {
    let mut object = object;
    let mut at = path.to_owned();
    for key in way {
        at = format!("{at}.{key}");
        match object.get(*key) {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Object(next)) => object = next,
            Some(other) => return Err(TemplateError::new(at, other, "an object")),
        }
    }
    Ok(())
}

/// An entry of a list, and how it is known among the others.
pub(super) struct Item {
    value: Object,
    is_same: Box<dyn Fn(&Object) -> bool>,
}

impl Item {
    pub(super) fn new(value: Object, is_same: impl Fn(&Object) -> bool + 'static) -> Self {
        Self {
            value,
            is_same: Box::new(is_same),
        }
    }

    /// One that is known by its `name`.
    pub(super) fn named(value: Value, list: &str) -> Result<Self, TemplateError> {
        let path = format!("{list}[…]");
        let Value::Object(value) = value else {
            return Err(TemplateError::new(path, &value, "an object"));
        };
        match value.get("name") {
            Some(Value::String(name)) if !name.is_empty() => Ok(Self::by("name", value)),
            other => {
                let found = other.unwrap_or(&Value::Null);
                Err(TemplateError::new(format!("{path}.name"), found, "a name"))
            }
        }
    }

    /// One that is known by the value of a key.
    pub(super) fn by(key: &'static str, value: Object) -> Self {
        let known = value.get(key).cloned();
        Self::new(value, move |other| other.get(key) == known.as_ref())
    }

    /// Puts it into a list of the object. The last of several counts, as for Kubernetes.
    pub(super) fn put(
        self,
        object: &mut Object,
        path: &str,
        list: &str,
        wish: Wish,
    ) -> Result<Change, TemplateError> {
        let entries = match object.get_mut(list) {
            None | Some(Value::Null) => {
                object.insert(list.to_owned(), Value::Array(vec![self.value.into()]));
                return Ok(Change::Made);
            }
            Some(Value::Array(entries)) => entries,
            Some(other) => {
                return Err(TemplateError::new(
                    format!("{path}.{list}"),
                    other,
                    "a list",
                ));
            }
        };
        let is_same = |entry: &Value| entry.as_object().is_some_and(&self.is_same);
        match entries.iter().rposition(is_same) {
            None => entries.push(self.value.into()),
            Some(at) if entries[at].as_object() == Some(&self.value) => return Ok(Change::Already),
            Some(_) if wish == Wish::Default => return Ok(Change::Kept),
            Some(at) => entries[at] = self.value.into(),
        }
        Ok(Change::Made)
    }
}
