//! Words to write a schema with.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};
use serde_json::Value;

/// Defines the trait, each method of which sets one field.
macro_rules! refinements {
    ($($(#[$doc:meta])* $name:ident($argument:ident: $type:ty) sets $field:ident to $value:expr;)+) => {
        /// A schema that can be refined.
        pub(super) trait Refine: Sized {
            $($(#[$doc])* fn $name(self, $argument: $type) -> Self;)+
            /// A CEL rule for a value that was not there before, and what is said if it is broken.
            fn new_only(self, rule: &str, message: &str) -> Self;
        }

        impl Refine for JSONSchemaProps {
            $(fn $name(self, $argument: $type) -> Self {
                Self { $field: Some($value), ..self }
            })+

            fn new_only(self, rule: &str, message: &str) -> Self {
                let rule = ValidationRule {
                    rule: format!("oldSelf.hasValue() || {rule}"),
                    optional_old_self: Some(true),
                    message: Some(message.to_owned()),
                    ..ValidationRule::default()
                };
                Self { x_kubernetes_validations: Some(vec![rule]), ..self }
            }
        }
    };
}

refinements! {
    /// At least this many characters.
    min_length(length: i64) sets min_length to length;
    /// At most this many characters.
    max_length(length: i64) sets max_length to length;
    /// A regular expression the text must match.
    pattern(pattern: &str) sets pattern to pattern.to_owned();
    /// The only texts allowed.
    one_of(texts: &[&str]) sets enum_ to texts.iter().map(|&text| JSON(text.into())).collect();
    /// The value the API server fills in.
    defaults_to(value: Value) sets default to JSON(value);
    /// The least number allowed.
    minimum(number: i32) sets minimum to number.into();
    /// The largest number.
    maximum(number: u32) sets maximum to number.into();
    /// At least this many items.
    min_items(count: i64) sets min_items to count;
}

fn of_type(type_: &str, description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        description: Some(description.to_owned()),
        ..plain(type_)
    }
}

fn plain(type_: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        type_: Some(type_.to_owned()),
        ..JSONSchemaProps::default()
    }
}

/// A string.
pub(super) fn text(description: &str) -> JSONSchemaProps {
    of_type("string", description)
}

/// A boolean.
pub(super) fn boolean(description: &str) -> JSONSchemaProps {
    of_type("boolean", description)
}

/// A 64-bit integer.
pub(super) fn integer(description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        format: Some("int64".to_owned()),
        ..of_type("integer", description)
    }
}

/// A point in time.
pub(super) fn time(description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        format: Some("date-time".to_owned()),
        ..of_type("string", description)
    }
}

/// Any JSON: no type at all, and `null` is a value.
///
/// Without `nullable` the API server drops the null and then misses the field, or sees a param with nothing set (#1048).
pub(super) fn any(description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        description: Some(description.to_owned()),
        nullable: Some(true),
        x_kubernetes_preserve_unknown_fields: Some(true),
        ..JSONSchemaProps::default()
    }
}

/// An object of which nothing is pruned.
pub(super) fn any_object(description: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        x_kubernetes_preserve_unknown_fields: Some(true),
        ..of_type("object", description)
    }
}

/// A list.
pub(super) fn list(description: &str, item: impl Into<JSONSchemaProps>) -> JSONSchemaProps {
    JSONSchemaProps {
        items: Some(JSONSchemaPropsOrArray::Schema(Box::new(item.into()))),
        ..of_type("array", description)
    }
}

/// A list in which the items differ by this key.
pub(super) fn list_by(
    description: &str,
    key: &str,
    item: impl Into<JSONSchemaProps>,
) -> JSONSchemaProps {
    JSONSchemaProps {
        x_kubernetes_list_type: Some("map".to_owned()),
        x_kubernetes_list_map_keys: Some(vec![key.to_owned()]),
        ..list(description, item)
    }
}

/// An object with any keys and values of one schema.
pub(super) fn map(description: &str, value: impl Into<JSONSchemaProps>) -> JSONSchemaProps {
    JSONSchemaProps {
        additional_properties: Some(JSONSchemaPropsOrBool::Schema(Box::new(value.into()))),
        ..of_type("object", description)
    }
}

/// A value of a map, which needs no description.
pub(super) fn plain_text() -> JSONSchemaProps {
    plain("string")
}

/// An integer or a quantity as text.
pub(super) fn quantity() -> JSONSchemaProps {
    JSONSchemaProps {
        any_of: Some(vec![plain("integer"), plain("string")]),
        pattern: Some(
            r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
                .to_owned(),
        ),
        x_kubernetes_int_or_string: Some(true),
        ..JSONSchemaProps::default()
    }
}

/// An object with named fields, under construction.
#[derive(Clone)]
pub(super) struct Object(JSONSchemaProps);

/// An object without fields, to begin with.
pub(super) fn object(description: &str) -> Object {
    Object(of_type("object", description))
}

impl Object {
    /// Adds a field that may be absent.
    pub(super) fn optional(mut self, name: &str, field: impl Into<JSONSchemaProps>) -> Self {
        self.0
            .properties
            .get_or_insert_default()
            .insert(name.to_owned(), field.into());
        self
    }

    /// Adds a field that must be there.
    pub(super) fn required(mut self, name: &str, field: impl Into<JSONSchemaProps>) -> Self {
        let required = self.0.required.get_or_insert_default();
        required.push(name.to_owned());
        // Sorted, as other generators write it, so that files can be compared.
        required.sort_unstable();
        self.optional(name, field)
    }

    /// Written as a whole, never merged by field.
    pub(super) fn atomic(mut self) -> Self {
        self.0.x_kubernetes_map_type = Some("atomic".to_owned());
        self
    }

    /// The value the API server fills in.
    pub(super) fn with_default(self, value: Value) -> JSONSchemaProps {
        self.0.defaults_to(value)
    }
}

impl From<Object> for JSONSchemaProps {
    fn from(object: Object) -> Self {
        object.0
    }
}
