//! What is kept of owners, blueprints, templates and service accounts between reconciles.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::marker::PhantomData;
use std::sync::Arc;

use api_types::{ConditionStatus, ConditionType, Reason, TemplateKind};
use realizer::lineage::{self, ParentRef};
use realizer::{Blueprint, Family, Template, TemplateSource, TemplateState};
use serde_json::Value;

use crate::mapper::Kind;
use crate::packed_text::PackedText;
use crate::reflect::{Entry, Reflector, Watched, version_of};
use crate::stamped::{ObjectKey, Projection};

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
    version: u64,
    fingerprint: u64,
    body: PackedText,
}

impl Entry for OwnerEntry {
    fn build(mut object: Value, _: Option<&Self>) -> Self {
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
            version: version_of(&object),
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

    fn version(&self) -> u64 {
        self.version
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
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|it| it["type"] == ConditionType::Ready.as_str());
    let text = |field: &str| ready.and_then(|ready| ready[field].as_str());
    (
        ConditionStatus::from_text(text("status").unwrap_or_default()),
        text("reason").map_or_else(|| Reason::label(&Reason::Unknown.as_str()), Reason::label),
    )
}

fn string_map(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
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
    version: u64,
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
    fn build(object: Value, _: Option<&Self>) -> Self {
        let metadata = &object["metadata"];
        Self {
            version: version_of(&object),
            blueprint: Blueprint::compile(F::FAMILY, &object)
                .map(Arc::new)
                .map_err(|error| crate::cluster::chain(&error)),
            uid: metadata["uid"].as_str().unwrap_or_default().into(),
            generation: metadata["generation"].as_i64().unwrap_or(0),
            status: object["status"].clone(),
            family: PhantomData,
        }
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// A template, compiled once per resourceVersion.
pub struct TemplateEntry {
    version: u64,
    /// The template, or what is wrong with it.
    pub template: Result<Arc<Template>, String>,
}

impl Entry for TemplateEntry {
    fn build(object: Value, _: Option<&Self>) -> Self {
        Self {
            version: version_of(&object),
            template: Template::compile(&object)
                .map(Arc::new)
                .map_err(|error| crate::cluster::chain(&error)),
        }
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// A service account: that it exists, and which one it is.
pub struct AccountEntry {
    version: u64,
    /// Its uid; a token belongs to exactly this account.
    pub uid: Box<str>,
}

impl Entry for AccountEntry {
    fn build(object: Value, _: Option<&Self>) -> Self {
        Self {
            version: version_of(&object),
            uid: object["metadata"]["uid"]
                .as_str()
                .unwrap_or_default()
                .into(),
        }
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// The templates of all kinds that one controller uses.
pub struct Templates {
    kinds: BTreeMap<TemplateKind, Arc<Reflector<TemplateEntry>>>,
}

impl Templates {
    /// A store per kind.
    pub fn new(kinds: &[TemplateKind]) -> Self {
        Self {
            kinds: kinds.iter().map(|kind| (*kind, Arc::default())).collect(),
        }
    }

    /// The stores.
    pub(crate) fn stores(
        &self,
    ) -> impl Iterator<Item = (TemplateKind, &Arc<Reflector<TemplateEntry>>)> {
        self.kinds.iter().map(|(kind, store)| (*kind, store))
    }

    /// The kinds that stand literally in simple templates.
    pub(crate) fn stamped_kinds(&self) -> BTreeSet<Kind> {
        let entries = self.kinds.values().flat_map(|store| store.all());
        let templates = entries.filter_map(|(_, entry)| entry.template.as_ref().ok().cloned());
        templates
            .filter_map(|template| {
                let (api_version, kind) = template.stamped_kind()?;
                Some(Kind::new(api_version, kind))
            })
            .collect()
    }

    /// Every path that some template reads on objects of this kind, so that a watch is started once with
    /// all of them instead of growing template by template.
    pub fn reads(&self, kind: &Kind) -> Projection {
        let mut projection = Projection::default();
        for store in self.kinds.values() {
            for (_, entry) in store.all() {
                let Ok(template) = &entry.template else {
                    continue;
                };
                if template.stamped_kind() == Some((&*kind.api_version, &*kind.kind)) {
                    projection.grow(&Projection::new(template.reads().iter().cloned()));
                }
            }
        }
        projection
    }
}

impl TemplateSource for Templates {
    fn template(&self, kind: TemplateKind, name: &str) -> TemplateState {
        let Some(store) = self.kinds.get(&kind) else {
            return TemplateState::Missing;
        };
        match store.get(&ObjectKey::new("", name)) {
            Some(entry) => match &entry.template {
                Ok(template) => TemplateState::Found(template.clone()),
                Err(error) => TemplateState::Unreadable(error.clone()),
            },
            None => TemplateState::Missing,
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
                None,
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
            OwnerEntry::build(json!({"spec": {"a": spec}, "status": {"a": status}}), None).size
        };
        assert!((100_000..100_100).contains(&size(&text, "")));
        assert!((100_000..100_100).contains(&size(&text, &text)));
        assert!(size("", &text) < 100);
    }

    #[test]
    fn what_is_counted_of_an_owner_is_what_its_condition_ready_says() {
        let ready = |status: Value| OwnerEntry::build(json!({"status": status}), None).ready;
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
            None,
        );
        assert_eq!(entry.labels.len(), 1);
        assert_eq!(entry.object()["spec"], "text");
    }
}
