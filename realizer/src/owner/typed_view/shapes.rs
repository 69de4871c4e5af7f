//! The fields of owners and Runnables by their Go types.

/// The Go type of a field, as far as it decides how an unset one looks.
pub(super) enum Shape {
    /// `string`: unset is `""`.
    Text,
    /// `int64`: unset is 0.
    Number,
    /// A pointer to a scalar, a map, a list of scalars or raw JSON: unset is `null`.
    Opaque,
    /// A field that JSON always carries, of any type (`metav1.Time`, required fields): unset is `null`.
    Kept,
    /// A quantity: never unset, or it is 0.
    Quantity,
    /// A map of quantities: unset is `null`.
    Quantities,
    /// A struct: never unset.
    Struct(&'static Fields),
    /// A pointer to a struct: unset is `null`.
    Pointer(&'static Fields),
    /// A list of strings: unset is `null` itself, and empty for what looks into it.
    Texts,
    /// A list of structs: unset is `null` itself, and empty for what looks into it.
    List(&'static Fields),
}

use Shape::{Kept, List, Number, Opaque, Pointer, Quantities, Quantity, Struct, Text, Texts};

/// Names of fields, with a blank between them, and the shape that all of them have.
pub(super) type Fields = [(&'static str, Shape)];

/// Each field with its shape.
pub(super) fn each(fields: &Fields) -> impl Iterator<Item = (&'static str, &Shape)> {
    fields
        .iter()
        .flat_map(|(names, shape)| names.split(' ').map(move |name| (name, shape)))
}

pub(super) const WORKLOAD: Shape = Struct(&[
    ("apiVersion kind", Text),
    ("metadata", Struct(METADATA)),
    ("spec", Struct(WORKLOAD_SPEC)),
    (
        "status",
        Struct(&[
            ("observedGeneration", Number),
            ("conditions", List(CONDITION)),
            ("supplyChainRef", Struct(BLUEPRINT_REFERENCE)),
            ("resources", List(RESOURCE)),
        ]),
    ),
]);

const WORKLOAD_SPEC: &Fields = &[
    ("params", List(PARAM)),
    ("source", Pointer(SOURCE)),
    ("build", Struct(&[("env", List(ENV_VAR))])),
    ("env", List(ENV_VAR)),
    ("image", Opaque),
    (
        "resources",
        Pointer(&[
            ("limits requests", Quantities),
            ("claims", List(&[("name", Text)])),
        ]),
    ),
    ("serviceAccountName", Text),
    (
        "serviceClaims",
        List(&[
            ("name", Text),
            ("ref", Pointer(&[("apiVersion kind name", Text)])),
        ]),
    ),
];

pub(super) const DELIVERABLE: Shape = Struct(&[
    ("apiVersion kind", Text),
    ("metadata", Struct(METADATA)),
    (
        "spec",
        Struct(&[
            ("params", List(PARAM)),
            ("source", Pointer(SOURCE)),
            ("serviceAccountName", Text),
        ]),
    ),
    (
        "status",
        Struct(&[
            ("observedGeneration", Number),
            ("conditions", List(CONDITION)),
            ("deliveryRef", Struct(BLUEPRINT_REFERENCE)),
            ("resources", List(RESOURCE)),
        ]),
    ),
]);

pub(super) const RUNNABLE: Shape = Struct(&[
    ("apiVersion kind", Text),
    ("metadata", Struct(METADATA)),
    (
        "spec",
        Struct(&[
            ("runTemplateRef", Struct(&[("kind", Text), ("name", Kept)])),
            (
                "selector",
                Pointer(&[
                    ("resource", Struct(&[("apiVersion kind", Text)])),
                    ("matchingLabels", Kept),
                ]),
            ),
            ("inputs", Opaque),
            ("serviceAccountName", Text),
            ("retentionPolicy", Kept),
        ]),
    ),
    (
        "status",
        Struct(&[
            ("observedGeneration", Number),
            ("conditions", List(CONDITION)),
            ("outputs", Opaque),
        ]),
    ),
]);

const METADATA: &Fields = &[
    (
        "name generateName namespace selfLink uid resourceVersion",
        Text,
    ),
    ("generation", Number),
    ("creationTimestamp", Kept),
    (
        "deletionTimestamp deletionGracePeriodSeconds labels annotations",
        Opaque,
    ),
    (
        "ownerReferences",
        List(&[
            ("apiVersion kind name uid", Text),
            ("controller blockOwnerDeletion", Opaque),
        ]),
    ),
    ("finalizers", Texts),
    (
        "managedFields",
        List(&[
            ("manager operation apiVersion", Text),
            ("time", Opaque),
            ("fieldsType", Text),
            ("fieldsV1", Opaque),
            ("subresource", Text),
        ]),
    ),
];

const PARAM: &Fields = &[("name", Text), ("value", Kept)];

const SOURCE: &Fields = &[
    (
        "git",
        Pointer(&[
            ("url", Opaque),
            ("ref", Pointer(&[("branch tag commit", Opaque)])),
        ]),
    ),
    ("image subPath", Opaque),
];

const ENV_VAR: &Fields = &[
    ("name value", Text),
    (
        "valueFrom",
        Pointer(&[
            ("fieldRef", Pointer(&[("apiVersion fieldPath", Text)])),
            (
                "resourceFieldRef",
                Pointer(&[("containerName resource", Text), ("divisor", Quantity)]),
            ),
            ("configMapKeyRef secretKeyRef", Pointer(KEY_SELECTOR)),
        ]),
    ),
];

const KEY_SELECTOR: &Fields = &[("name key", Text), ("optional", Opaque)];

const BLUEPRINT_REFERENCE: &Fields = &[("apiVersion kind namespace name", Text)];

const OBJECT_REFERENCE: &Fields = &[(
    "apiVersion kind namespace name uid resourceVersion fieldPath resource",
    Text,
)];

const CONDITION: &Fields = &[
    ("type status", Text),
    ("observedGeneration", Number),
    ("lastTransitionTime", Kept),
    ("reason", Text),
    ("message", Kept),
];

const RESOURCE: &Fields = &[
    ("name", Text),
    ("stampedRef templateRef", Pointer(OBJECT_REFERENCE)),
    ("inputs", List(&[("name", Text)])),
    (
        "outputs",
        List(&[
            ("name", Text),
            ("preview", Kept),
            ("digest", Text),
            ("lastTransitionTime", Kept),
        ]),
    ),
    ("conditions", List(CONDITION)),
];
