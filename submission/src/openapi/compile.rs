//! From a published document to the compact form of one kind.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::document::{AdditionalProperties, Document, GroupVersionKind, Node};

const REFERENCE_PREFIX: &str = "#/components/schemas/";

/// What the fields of one kind may hold. Recursive schemas (JSONSchemaProps) are cycles of indexes.
#[derive(Debug, Clone, PartialEq)]
pub struct KindSchema {
    pub(super) root: Index,
    pub(super) shapes: Vec<Shape>,
}

pub(super) type Index = usize;

/// The shape that comes first in every schema.
const ANY: Index = 0;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// Nothing in it is checked: scalars, and whatever is not declared further.
    Any,
    /// Declared fields; others only if `open`.
    Struct {
        fields: BTreeMap<Box<str>, Field>,
        open: bool,
    },
    /// Any keys, all values alike.
    Map { values: Index, nullable: bool },
    /// A list.
    List { items: Index, identity: Identity },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) shape: Index,
    pub(super) default: Option<Value>,
    /// Whether null is one of its values.
    pub(super) nullable: bool,
}

/// What makes two list items the same.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Identity {
    /// Nothing: items are positions.
    None,
    /// Their value.
    Value,
    /// These fields.
    Keys(Vec<Box<str>>),
}

impl KindSchema {
    /// The schema of a kind out of `/openapi/v3/...`, or `None` if the document has none.
    ///
    /// # Errors
    /// The text is no OpenAPI v3 document.
    pub fn compile(
        document: &[u8],
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Option<Self>, serde_json::Error> {
        let document: Document = serde_json::from_slice(document)?;
        let wanted = GroupVersionKind {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        };
        let schemas = &document.components.schemas;
        // Shared kinds (DeleteOptions, WatchEvent) name every group version; the kind itself comes alone.
        let matching = schemas
            .iter()
            .filter(|(_, node)| node.kinds.contains(&wanted));
        let Some((name, _)) = matching.min_by_key(|(_, node)| node.kinds.len()) else {
            return Ok(None);
        };
        let mut compiler = Compiler {
            schemas,
            shapes: vec![Shape::Any],
            named: HashMap::new(),
        };
        let root = compiler.named(name);
        Ok(Some(Self {
            root,
            shapes: compiler.shapes,
        }))
    }
}

struct Compiler<'a> {
    schemas: &'a BTreeMap<String, Node>,
    shapes: Vec<Shape>,
    named: HashMap<&'a str, Index>,
}

impl<'a> Compiler<'a> {
    fn push(&mut self, shape: Shape) -> Index {
        // Scalars are all alike, and most fields are scalars.
        if shape == Shape::Any {
            return ANY;
        }
        self.shapes.push(shape);
        self.shapes.len() - 1
    }

    fn named(&mut self, name: &'a str) -> Index {
        if let Some(index) = self.named.get(name) {
            return *index;
        }
        let Some(node) = self.schemas.get(name) else {
            return ANY;
        };
        // Taken before it is compiled, so that a schema can contain itself.
        self.shapes.push(Shape::Any);
        let index = self.shapes.len() - 1;
        self.named.insert(name, index);
        let shape = self.shape(node);
        self.shapes[index] = shape;
        index
    }

    fn compile(&mut self, node: &'a Node) -> Index {
        if let Some(name) = reference(node) {
            return self.named(name);
        }
        let shape = self.shape(node);
        self.push(shape)
    }

    fn shape(&mut self, node: &'a Node) -> Shape {
        if node.int_or_string {
            return Shape::Any;
        }
        if let Some(name) = reference(node) {
            let index = self.named(name);
            return self.shapes[index].clone();
        }
        if let Some(items) = &node.items {
            return Shape::List {
                items: self.compile(items),
                identity: identity(node),
            };
        }
        if !node.properties.is_empty() {
            return self.fields(node);
        }
        match &node.additional_properties {
            Some(AdditionalProperties::Schema(values)) => Shape::Map {
                values: self.compile(values),
                nullable: values.nullable,
            },
            Some(AdditionalProperties::Allowed(_)) | None => Shape::Any,
        }
    }

    fn fields(&mut self, node: &'a Node) -> Shape {
        let mut fields = BTreeMap::new();
        for (name, property) in &node.properties {
            let shape = self.compile(property);
            fields.insert(
                name.as_str().into(),
                Field {
                    shape,
                    default: property.default.clone(),
                    nullable: property.nullable,
                },
            );
        }
        let open = node.preserve_unknown_fields
            || matches!(
                node.additional_properties,
                Some(AdditionalProperties::Schema(_) | AdditionalProperties::Allowed(true))
            );
        Shape::Struct { fields, open }
    }
}

/// `$ref`, or the `allOf` around a single one that gives it a default.
fn reference(node: &Node) -> Option<&str> {
    let reference = match (&node.reference, &*node.all_of) {
        (Some(reference), _) => Some(reference),
        (None, [only]) => only.reference.as_ref(),
        (None, _) => None,
    };
    reference?.strip_prefix(REFERENCE_PREFIX)
}

fn identity(node: &Node) -> Identity {
    match node.list_type.as_deref() {
        Some("set") => Identity::Value,
        Some("map") if !node.list_map_keys.is_empty() => Identity::Keys(
            node.list_map_keys
                .iter()
                .map(|key| key.as_str().into())
                .collect(),
        ),
        _ => Identity::None,
    }
}
