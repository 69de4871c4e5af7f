//! What a schema says, as one record per field: the form in which our schemas and the Go controller's are compared.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

use crate::sample::schema_of;

/// Facts by path, e.g. `spec.params[].name`.
pub(crate) type Fields = BTreeMap<String, Facts>;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    pub(crate) kind: String,
    pub(crate) required: bool,
    pub(crate) one_of: BTreeSet<String>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) pattern: Option<String>,
    pub(crate) default: Option<Value>,
    pub(crate) atomic: bool,
    pub(crate) list_key: Option<String>,
    pub(crate) nullable: bool,
}

/// Our fields of `spec` and `status`.
pub(crate) fn fields_of(crd: &CustomResourceDefinition) -> Fields {
    let mut fields = Fields::new();
    let root = schema_of(crd);
    for name in ["spec", "status"] {
        if let Some(schema) = root
            .properties
            .as_ref()
            .and_then(|properties| properties.get(name))
        {
            collect(name, schema, is_required(root, name), &mut fields);
        }
    }
    fields
}

fn is_required(object: &JSONSchemaProps, name: &str) -> bool {
    object
        .required
        .iter()
        .flatten()
        .any(|required| required == name)
}

fn collect(path: &str, schema: &JSONSchemaProps, required: bool, fields: &mut Fields) {
    fields.insert(path.to_owned(), facts(schema, required));
    for (name, property) in schema.properties.iter().flatten() {
        collect(
            &format!("{path}.{name}"),
            property,
            is_required(schema, name),
            fields,
        );
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
        collect(&format!("{path}[]"), item, false, fields);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &schema.additional_properties {
        collect(&format!("{path}{{}}"), value, false, fields);
    }
}

/// What a schema may say: all that the facts hold, and what refuses nothing.
const READ: [&str; 20] = [
    "additionalProperties",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
];

/// What the schema of a field says beyond the facts: a comparison that skipped it would prove nothing.
pub(crate) fn unread(schema: &JSONSchemaProps) -> Vec<String> {
    let said = serde_json::to_value(schema).unwrap();
    let words = said.as_object().unwrap().iter();
    let unread = words.filter(|(word, value)| match word.as_str() {
        // Belong to quantities, which are one kind here.
        "x-kubernetes-int-or-string" | "anyOf" => kind(schema) != "quantity",
        "x-kubernetes-list-type" => *value == "set",
        "x-kubernetes-map-type" => *value != "atomic" && *value != "granular",
        "additionalProperties" | "items" => !value.is_object(),
        "enum" => value
            .as_array()
            .unwrap()
            .iter()
            .any(|text| !text.is_string()),
        word => !READ.contains(&word),
    });
    unread
        .map(|(word, value)| format!("{word}: {value}"))
        .collect()
}

fn facts(schema: &JSONSchemaProps, required: bool) -> Facts {
    assert_eq!(
        unread(schema),
        Vec::<String>::new(),
        "rules that the short form has no word for"
    );
    Facts {
        kind: kind(schema).to_owned(),
        required,
        one_of: schema
            .enum_
            .iter()
            .flatten()
            .filter_map(|text| text.0.as_str().map(str::to_owned))
            .collect(),
        min: schema.minimum,
        max: schema.maximum,
        min_length: schema.min_length,
        max_length: schema.max_length,
        min_items: schema.min_items,
        // The pattern of a quantity belongs to its kind.
        pattern: schema
            .pattern
            .clone()
            .filter(|_| schema.x_kubernetes_int_or_string.is_none()),
        default: schema.default.as_ref().map(|default| default.0.clone()),
        atomic: schema.x_kubernetes_map_type.as_deref() == Some("atomic"),
        list_key: schema
            .x_kubernetes_list_map_keys
            .as_ref()
            .map(|keys| keys.join(",")),
        nullable: schema.nullable == Some(true),
    }
}

const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

fn kind(schema: &JSONSchemaProps) -> &'static str {
    let open = schema.x_kubernetes_preserve_unknown_fields == Some(true);
    match (schema.type_.as_deref(), schema.format.as_deref()) {
        (None, None)
            if schema.x_kubernetes_int_or_string == Some(true)
                && schema.pattern.as_deref() == Some(QUANTITY) =>
        {
            "quantity"
        }
        (None, None) if open && schema.properties.is_some() => "condition",
        (None, None) if open => "any",
        (Some("object"), None) if open => "any-object",
        (Some("object"), None) if schema.additional_properties.is_some() => "map",
        (Some("object"), None) => "object",
        (Some("array"), None) => "list",
        (Some("integer"), Some("int64")) => "int64",
        (Some("boolean"), None) => "boolean",
        (Some("string"), None) => "string",
        (Some("string"), Some("date-time")) => "date-time",
        other => panic!("a schema of a kind the short form has no word for: {other:?}"),
    }
}
