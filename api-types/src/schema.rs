//! The CustomResourceDefinitions.
//!
//! The schemas are written by hand, because they are a contract: names, enums, defaults and required fields are those
//! of the Go controller (docs/behaviour/kinds.md#common), whatever the Rust types look like. A test
//! holds types and schemas together.

mod artifacts;
mod blueprints;
mod build;
mod core;
mod owners;
mod runs;
mod templates;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceValidation, JSONSchemaProps,
};
use kube_core::CustomResourceExt;

use build::{Object, Refine, object, plain_text, text};

/// Every CustomResourceDefinition of the group, owners first.
///
/// ```
/// let names: Vec<String> = api_types::crds().into_iter().filter_map(|crd| crd.metadata.name).collect();
/// assert_eq!(names.len(), 13);
/// assert_eq!(names[0], "workloads.carto.run");
/// ```
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        crd::<crate::Workload>(owners::workload()),
        crd::<crate::Deliverable>(owners::deliverable()),
        crd::<crate::ClusterSupplyChain>(blueprints::supply_chain()),
        crd::<crate::ClusterDelivery>(blueprints::delivery()),
        crd::<crate::ClusterSourceTemplate>(templates::source()),
        crd::<crate::ClusterImageTemplate>(templates::image()),
        crd::<crate::ClusterConfigTemplate>(templates::config()),
        crd::<crate::ClusterTemplate>(templates::plain()),
        crd::<crate::ClusterDeploymentTemplate>(templates::deployment()),
        crd::<crate::ClusterDeploymentValidationTemplate>(templates::validation()),
        crd::<crate::Runnable>(runs::runnable()),
        crd::<crate::ClusterRunTemplate>(runs::run_template()),
        crd::<crate::Artifact>(artifacts::artifact()),
    ]
}

/// The derived definition (names, scope, columns, subresource) with the hand-written schema.
fn crd<K: CustomResourceExt>(schema: Object) -> CustomResourceDefinition {
    let mut crd = K::crd();
    let schema = CustomResourceValidation {
        open_api_v3_schema: Some(schema.into()),
    };
    for version in &mut crd.spec.versions {
        version.schema = Some(schema.clone());
        // An empty list is left out of the files, and the API server has none either.
        version.additional_printer_columns = version
            .additional_printer_columns
            .take()
            .filter(|list| !list.is_empty());
        version.selectable_fields = version
            .selectable_fields
            .take()
            .filter(|list| !list.is_empty());
        version.subresources = version
            .subresources
            .take()
            .filter(|sub| sub.status.is_some());
    }
    let names = &mut crd.spec.names;
    // `kubectl get carto` shows all there is.
    names
        .categories
        .get_or_insert_default()
        .push("carto".to_owned());
    names.list_kind = Some(format!("{}List", names.kind));
    crd
}

/// The root of a kind: `metadata` and `spec` are required.
fn root(description: &str, spec: Object) -> Object {
    object(description)
        .optional("apiVersion", text("Version of the schema of this object."))
        .optional("kind", text("Kind of this object."))
        .required("metadata", metadata())
        .required("spec", spec)
}

/// All that a schema may say of `metadata` is something of its names.
///
/// The name of an owner, a blueprint or a template stands in a label of each stamped object. Whoever has a longer one is told
/// at once, not by the condition of an owner. What was stored before that rule keeps its name, as names never change, and can
/// be written as ever: the rule asks only what has no former state.
fn metadata() -> JSONSchemaProps {
    let most = crate::names::MOST_LABEL_CHARS;
    let name = plain_text().new_only(
        &format!("self.size() <= {most}"),
        &format!(
            "must be at most {most} characters: every object that is stamped has it in a label; choose a shorter name"
        ),
    );
    JSONSchemaProps {
        type_: Some("object".to_owned()),
        properties: Some([("name".to_owned(), name)].into()),
        ..JSONSchemaProps::default()
    }
}
