//! What is kept of owners, blueprints, templates and service accounts between reconciles.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::marker::PhantomData;
use std::sync::Arc;

use api_types::{ConditionStatus, Reason};
use realizer::lineage::{self, ParentRef};
use realizer::{Blueprint, Family};
use serde_json::Value;

use super::log;
use crate::packed_text::PackedText;
use crate::reflect::{Entry, Watched};
use crate::stamped::string_map;

/// An owner as packed text: parsed when it is reconciled, which is rarer than it is listed.
pub struct OwnerEntry {
    /// uid.
    pub uid: Box<str>,
    /// Labels, to find the owners that a blueprint concerns.
    pub labels: BTreeMap<String, String>,
    /// Its generation.
    pub generation: i64,
    /// The owner that it was stamped for, if it was.
    pub parent: Option<Box<ParentRef>>,
    /// The owners that led to it, as far as it says so itself.
    pub stamped_for: Box<[String]>,
    /// Whether that stands in its status.
    pub is_lineage_recorded: bool,
    /// How many bytes it has without its status, as text.
    pub size: usize,
    /// What its condition Ready says, for metrics: status, and a reason of which there are not many.
    pub(crate) ready: (ConditionStatus, &'static str),
    fingerprint: u64,
    body: PackedText,
}

impl Entry for OwnerEntry {
    fn build(mut object: Value) -> Self {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            // Most of what the API server stores of an owner is who set which status field.
            metadata.remove("managedFields");
        }
        let body = object.to_string();
        let metadata = &object["metadata"];
        let labels = string_map(&metadata["labels"]);
        Self {
            uid: metadata["uid"].as_str().unwrap_or_default().into(),
            generation: metadata["generation"].as_i64().unwrap_or(0),
            fingerprint: fingerprint(&object),
            parent: ParentRef::of(&object).map(Box::new),
            stamped_for: lineage::stamped_for(&object).into(),
            is_lineage_recorded: lineage::is_recorded(&object),
            labels,
            ready: ready_of(&object),
            size: body.len().saturating_sub(status_size(&object, body.len())),
            body: PackedText::of_text(&body),
        }
    }

    fn uid(&self) -> Option<&str> {
        Some(&self.uid)
    }
}

impl OwnerEntry {
    /// The object.
    pub fn object(&self) -> Value {
        self.body.value()
    }

    /// Whether anything but the version differs.
    pub fn differs(&self, other: &Self) -> bool {
        self.fingerprint != other.fingerprint
    }
}

/// Owners that have no more than this are small, whatever part of it is their status.
const SMALL: usize = 16 << 10;

/// How much of it is the status, which we write.
fn status_size(object: &Value, size: usize) -> usize {
    match object.get("status") {
        Some(status) if size > SMALL => status.to_string().len(),
        _ => 0,
    }
}

/// Of everything that a reconcile could see: all but the version.
fn fingerprint(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        if key == "metadata" {
            for (key, value) in value
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(key, _)| *key != "resourceVersion")
            {
                (key, value).hash(&mut hasher);
            }
        } else {
            (key, value).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn ready_of(object: &Value) -> (ConditionStatus, &'static str) {
    let ready = log::ready(&object["status"]);
    let text = |field: &str| ready.and_then(|ready| ready[field].as_str());
    (
        ConditionStatus::from_text(text("status").unwrap_or_default()),
        text("reason").map_or_else(|| Reason::label(&Reason::Unknown.as_str()), Reason::label),
    )
}

/// A family as a type, because a store builds its entries by itself.
pub trait BlueprintFamily: Send + Sync + 'static {
    /// The family.
    const FAMILY: Family;

    /// The kind of its blueprints, as it is watched.
    fn watched() -> Watched {
        Watched::carto(
            Self::FAMILY.blueprint_kind(),
            Self::FAMILY.blueprint_plural(),
        )
    }
}

/// Workloads and ClusterSupplyChains.
pub enum SupplyChains {}

impl BlueprintFamily for SupplyChains {
    const FAMILY: Family = Family::SupplyChain;
}

/// Deliverables and ClusterDeliveries.
pub enum Deliveries {}

impl BlueprintFamily for Deliveries {
    const FAMILY: Family = Family::Delivery;
}

/// A blueprint, compiled once per resourceVersion.
pub struct BlueprintEntry<F> {
    /// The blueprint, or what is wrong with it.
    pub blueprint: Result<Arc<Blueprint>, String>,
    /// Its uid.
    pub uid: Box<str>,
    /// Its generation.
    pub generation: i64,
    /// Its present status.
    pub status: Value,
    family: PhantomData<fn() -> F>,
}

impl<F: BlueprintFamily> Entry for BlueprintEntry<F> {
    fn build(object: Value) -> Self {
        let metadata = &object["metadata"];
        Self {
            blueprint: Blueprint::compile(F::FAMILY, &object)
                .map(Arc::new)
                .map_err(|error| crate::cluster::chain(&error)),
            uid: metadata["uid"].as_str().unwrap_or_default().into(),
            generation: metadata["generation"].as_i64().unwrap_or(0),
            status: object["status"].clone(),
            family: PhantomData,
        }
    }
}

/// A service account: that it exists, and which one it is.
pub struct AccountEntry {
    /// Its uid; a token belongs to exactly this account.
    pub uid: Box<str>,
}

impl Entry for AccountEntry {
    fn build(object: Value) -> Self {
        Self {
            uid: object["metadata"]["uid"]
                .as_str()
                .unwrap_or_default()
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_owner_differs_only_in_what_a_reconcile_could_see() {
        let entry = |version: &str, managed: Value, status: Value| {
            OwnerEntry::build(
                json!({"metadata": {"name": "w", "resourceVersion": version, "managedFields": managed}, "status": status}),
            )
        };
        let first = entry("1", json!([1]), json!({"a": 1}));
        assert!(!first.differs(&entry("2", json!([2]), json!({"a": 1}))));
        assert!(first.differs(&entry("1", json!([1]), json!({"a": 2}))));
    }

    #[test]
    fn the_size_of_an_owner_is_that_of_what_its_user_wrote() {
        let text = "x".repeat(100_000);
        let size = |spec: &str, status: &str| {
            OwnerEntry::build(json!({"spec": {"a": spec}, "status": {"a": status}})).size
        };
        assert!((100_000..100_100).contains(&size(&text, "")));
        assert!((100_000..100_100).contains(&size(&text, &text)));
        assert!(size("", &text) < 100);
    }

    #[test]
    fn what_is_counted_of_an_owner_is_what_its_condition_ready_says() {
        let ready = |status: Value| OwnerEntry::build(json!({"status": status})).ready;
        let of = |status: &str, reason: &str| json!({"conditions": [{"type": "Other"}, {"type": "Ready", "status": status, "reason": reason}]});
        assert_eq!(ready(of("True", "Ready")), (ConditionStatus::True, "Ready"));
        let failing = of("False", "TemplateStampFailure");
        assert_eq!(
            ready(failing),
            (ConditionStatus::False, "TemplateStampFailure")
        );
        let made_up = of("False", "Tenant4711Condition");
        assert_eq!(ready(made_up), (ConditionStatus::False, "other"));
        assert_eq!(ready(json!({})), (ConditionStatus::Unknown, "Unknown"));
    }

    #[test]
    fn a_malformed_owner_is_kept_as_it_is() {
        let entry = OwnerEntry::build(
            json!({"metadata": {"name": "w", "labels": {"a": 5, "b": "c"}}, "spec": "text"}),
        );
        assert_eq!(entry.labels.len(), 1);
        assert_eq!(entry.object()["spec"], "text");
    }
}
