//! Objects and what admission says about them, for everything that decides: the rules, the policies and the webhook.
//!
//! The objects are in `api-types/tests/corpus`; its README says how to write one.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::manifests::yaml_files;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    kind: String,
    spec: Map<String, Value>,
    cases: Vec<RawCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    rule: String,
    kind: Option<String>,
    #[serde(default)]
    spec: Map<String, Value>,
    error: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    schema: bool,
    policy: Option<String>,
}

/// An object and what is said about it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Rule of `docs/behaviour/admission.md`, and what it is about.
    pub rule: String,
    /// Kind of the object.
    pub kind: String,
    /// The object, as a user writes it.
    pub object: Value,
    /// With the prefix of the kind.
    pub error: Option<String>,
    /// In order, none twice.
    pub warnings: Vec<String>,
    /// Whether the schema refuses the object before anything else.
    pub refused_by_schema: bool,
    /// What the end of the policy's message is; `None` if it admits the object.
    pub policy: Option<String>,
}

/// The whole corpus.
///
/// # Panics
///
/// When a file of it is missing or not as its README says: the tests that need it have nothing to go by.
#[must_use]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "only tests read it; a test fails by panicking"
)]
pub fn cases() -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api-types/tests/corpus");
    let mut cases = Vec::new();
    for file in yaml_files(&directory).unwrap() {
        let text = std::fs::read_to_string(&file).unwrap();
        let group: Group = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        cases.extend(
            group
                .cases
                .into_iter()
                .map(|raw| case(&group.kind, &group.spec, raw)),
        );
    }
    assert!(cases.len() > 100, "the corpus was not found");
    cases
}

fn case(kind: &str, base: &Map<String, Value>, raw: RawCase) -> Case {
    let kind = raw.kind.unwrap_or_else(|| kind.to_owned());
    let mut spec = base.clone();
    for (field, value) in raw.spec {
        if value.is_null() {
            spec.remove(&field);
        } else {
            spec.insert(field, value);
        }
    }
    let prefix = match kind.as_str() {
        "ClusterSupplyChain" | "ClusterDelivery" => {
            format!("error validating {} [case]: ", kind.to_lowercase())
        }
        _ => String::new(),
    };
    let prefixed = |text: String| format!("{prefix}{text}");
    Case {
        object: json!({"apiVersion": "carto.run/v1alpha1", "kind": kind, "metadata": {"name": "case"}, "spec": spec}),
        kind,
        rule: raw.rule,
        policy: raw
            .policy
            .or_else(|| raw.error.clone())
            .filter(|text| !text.is_empty())
            .map(prefixed),
        error: raw.error.map(prefixed),
        warnings: raw.warnings,
        refused_by_schema: raw.schema,
    }
}
