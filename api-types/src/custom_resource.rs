//! What the kinds of the group have in common.

/// Defines the spec of a kind, and with it the kind. What is its own is said as ever, in further attributes.
macro_rules! custom_resource {
    ($(#[$meta:meta])* pub struct $name:ident $fields:tt) => {
        #[derive(
            Clone,
            Debug,
            Default,
            PartialEq,
            kube_derive::CustomResource,
            serde::Serialize,
            serde::Deserialize,
        )]
        #[kube(
            group = "carto.run",
            version = "v1alpha1",
            schema = "disabled",
            derive = "Default",
            derive = "PartialEq",
            crates(
                kube_core = "::kube_core",
                k8s_openapi = "::k8s_openapi",
                serde = "::serde",
                serde_json = "::serde_json"
            )
        )]
        $(#[$meta])*
        pub struct $name $fields
    };
}

pub(crate) use custom_resource;
