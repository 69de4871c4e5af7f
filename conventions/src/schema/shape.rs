//! A schema, made ready to look at values.
//!
//! What the API server would refuse is found before anything is written: a status that is refused is refused for ever,
//! and says nothing to anybody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::kubernetes;

/// What a value may be. Fields that no shape speaks of may be anything.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Any,
    Text,
    Boolean,
    Integer,
    Number,
    IntegerOrText,
    Quantity,
    Map(Box<Self>),
    List(Box<List>),
    Object(Box<Object>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List {
    pub(crate) item: Shape,
    pub(crate) unique: Unique,
}

/// In what the items of a list differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unique {
    Nothing,
    Whole,
    Keys(Vec<String>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object {
    pub(crate) fields: BTreeMap<String, Shape>,
    required: BTreeSet<String>,
    defaults: BTreeMap<String, Value>,
}

/// What is wrong with a value, and where. No value is in it but those of keys: others may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Fault {
    /// The field, as `spec.containers[0].env[1].name`.
    pub field: String,
    /// What is wrong there, in the words of Kubernetes.
    pub problem: String,
}

/// The PodSpec.
pub(crate) static POD_SPEC: LazyLock<Shape> = LazyLock::new(|| Shape::of(&kubernetes::pod_spec()));

impl Shape {
    /// The shape that a schema describes.
    pub(crate) fn of(schema: &Value) -> Self {
        if schema["x-kubernetes-int-or-string"] == true {
            return match schema.get("pattern") {
                Some(_) => Self::Quantity,
                None => Self::IntegerOrText,
            };
        }
        match schema["type"].as_str() {
            Some("string") => Self::Text,
            Some("boolean") => Self::Boolean,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("array") => Self::List(Box::new(List::of(schema))),
            Some("object") if schema.get("additionalProperties").is_some() => {
                Self::Map(Box::new(Self::of(&schema["additionalProperties"])))
            }
            Some("object") => Self::Object(Box::new(Object::of(schema))),
            _ => Self::Any,
        }
    }

    /// Whether the API server would store the value at this path.
    ///
    /// # Errors
    ///
    /// The first fault, in the order of the fields' names.
    pub(crate) fn check(&self, value: &Value, path: &str) -> Result<(), Fault> {
        let wanted = match (self, value) {
            (Self::Any, _)
            | (Self::Text | Self::IntegerOrText, Value::String(_))
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_)) => return Ok(()),
            (Self::Integer | Self::IntegerOrText | Self::Quantity, Value::Number(number))
                if is_whole(number) =>
            {
                return Ok(());
            }
            (Self::Quantity, Value::String(text)) => {
                let refused = || fault(path, "Invalid value: must be a quantity");
                return is_quantity(text).then_some(()).ok_or_else(refused);
            }
            (Self::Map(shape), Value::Object(entries)) => return check_map(shape, entries, path),
            (Self::List(list), Value::Array(items)) => return list.check(items, path),
            (Self::Object(object), Value::Object(fields)) => return object.check(fields, path),
            (Self::Text, _) => "string",
            (Self::Boolean, _) => "boolean",
            (Self::Integer, _) => "integer",
            (Self::Number, _) => "number",
            (Self::IntegerOrText | Self::Quantity, _) => "integer or string",
            (Self::List(_), _) => "array",
            (Self::Map(_) | Self::Object(_), _) => "object",
        };
        let is = type_of(value);
        let problem = format!("Invalid value: \"{is}\": must be of type {wanted}: \"{is}\"");
        Err(fault(path, &problem))
    }
}

impl List {
    fn of(schema: &Value) -> Self {
        let keys = schema["x-kubernetes-list-map-keys"].as_array();
        let keys = keys.into_iter().flatten().filter_map(Value::as_str);
        let unique = match schema["x-kubernetes-list-type"].as_str() {
            Some("map") => Unique::Keys(keys.map(str::to_owned).collect()),
            Some("set") => Unique::Whole,
            _ => Unique::Nothing,
        };
        Self {
            item: Shape::of(&schema["items"]),
            unique,
        }
    }

    /// What an item differs by from the others, defaults filled in; nothing where items need not differ.
    pub(crate) fn key_of(&self, item: &Value) -> Option<Vec<(String, Value)>> {
        match &self.unique {
            Unique::Nothing => None,
            Unique::Whole => Some(vec![(String::new(), item.clone())]),
            Unique::Keys(keys) => {
                let value = |key: &String| {
                    let given = item.get(key).filter(|value| !value.is_null());
                    let default = match &self.item {
                        Shape::Object(object) => object.defaults.get(key),
                        _ => None,
                    };
                    given.or(default).cloned().unwrap_or_default()
                };
                Some(keys.iter().map(|key| (key.clone(), value(key))).collect())
            }
        }
    }

    fn check(&self, items: &[Value], path: &str) -> Result<(), Fault> {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            self.item.check(item, &path)?;
            let Some(key) = self.key_of(item) else {
                continue;
            };
            let text = match &self.unique {
                Unique::Whole => item.to_string(),
                _ => Value::Object(key.into_iter().collect()).to_string(),
            };
            if seen.contains(&text) {
                return Err(fault(&path, &format!("Duplicate value: {text}")));
            }
            seen.insert(text);
        }
        Ok(())
    }
}

impl Object {
    fn of(schema: &Value) -> Self {
        let mut object = Self::default();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            object.fields.insert(name.clone(), Shape::of(field));
            if let Some(default) = field.get("default") {
                object.defaults.insert(name.clone(), default.clone());
            }
        }
        let required = schema["required"].as_array().into_iter().flatten();
        let required = required.filter_map(Value::as_str).map(str::to_owned);
        object.required = required.collect();
        object
    }

    fn check(&self, fields: &Map<String, Value>, path: &str) -> Result<(), Fault> {
        for (name, shape) in &self.fields {
            match fields.get(name).filter(|value| !value.is_null()) {
                Some(value) => shape.check(value, &format!("{path}.{name}"))?,
                None if self.required.contains(name) && !self.defaults.contains_key(name) => {
                    return Err(fault(&format!("{path}.{name}"), "Required value"));
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// `null` in a map is what is not there.
fn check_map(shape: &Shape, entries: &Map<String, Value>, path: &str) -> Result<(), Fault> {
    let mut entries = entries.iter().filter(|(_, value)| !value.is_null());
    entries.try_for_each(|(key, value)| shape.check(value, &format!("{path}.{key}")))
}

fn fault(field: &str, problem: &str) -> Fault {
    Fault {
        field: field.to_owned(),
        problem: problem.to_owned(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_whole(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_whole(number: &serde_json::Number) -> bool {
    number.is_i64() || number.is_u64()
}

/// What may follow the number of a quantity, exponents aside.
const UNITS: [&str; 16] = [
    "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "n", "u", "m", "k", "M", "G", "T", "P", "E",
];

/// Whether a text has the form of a quantity, [`kubernetes::QUANTITY`].
pub(crate) fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some(suffix) = after_number(unsigned) else {
        return false;
    };
    let exponent = suffix
        .strip_prefix(['e', 'E'])
        .and_then(|exponent| after_number(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
    UNITS.contains(&suffix) || exponent == Some("")
}

/// What follows a number such as `1`, `1.`, `1.5` or `.5`; nothing if there is none.
pub(crate) fn after_number(text: &str) -> Option<&str> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let rest = &text[whole..];
    let Some(fraction) = rest.strip_prefix('.') else {
        return (whole > 0).then_some(rest);
    };
    let count = digits(fraction);
    (whole + count > 0).then(|| &fraction[count..])
}

#[cfg(test)]
mod tests;
