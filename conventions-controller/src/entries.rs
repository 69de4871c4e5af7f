//! What is kept of watched objects between reconciles.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use api_types::ConditionStatus;
use controller_kit::packed_text::PackedText;
use controller_kit::reflect::{Entry, version_of};
use conventions::authority::CERTIFICATE_NAME;
use conventions::condition::Verdict;
use conventions::select::{Labels, Selectable, Selection, SelectionError};
use conventions::{
    ClusterPodConvention, ClusterPodConventionSpec, ConventionWebhook, FailurePolicy, PodIntent,
    REVISION,
};
use serde::Deserialize as _;
use serde_json::Value;

/// A PodIntent as packed text: parsed when it is reconciled, which is rarer than it is listed.
pub(crate) struct IntentEntry {
    pub(crate) uid: Box<str>,
    pub(crate) labels: Labels,
    pub(crate) template_labels: Labels,
    /// Of everything that its author or somebody else may have written.
    pub(crate) content: u64,
    /// Of what its status says, the template aside.
    pub(crate) said: u64,
    /// Its controller owner, as `<Kind>` or `<Kind>.<group>`.
    pub(crate) owner: Option<Box<str>>,
    /// What its condition Ready says: status, and a reason of which there are not many.
    pub(crate) ready: (ConditionStatus, &'static str),
    body: PackedText,
}

impl Entry for IntentEntry {
    fn build(mut object: Value) -> Self {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        Self {
            uid: text(&object["metadata"]["uid"]).into(),
            labels: texts(&object["metadata"]["labels"]),
            template_labels: texts(&object["spec"]["template"]["metadata"]["labels"]),
            content: content(&object),
            said: said(&object["status"]),
            owner: owner(&object["metadata"]).map(Box::from),
            ready: ready(&object["status"]),
            body: PackedText::of(&object),
        }
    }
}

impl IntentEntry {
    /// The object.
    pub(crate) fn intent(&self) -> Result<PodIntent, serde_json::Error> {
        serde_json::from_value(self.body.value())
    }

    /// What conventions are selected by.
    pub(crate) fn selectable(&self) -> Selectable<'_> {
        Selectable {
            intent: &self.labels,
            template: &self.template_labels,
        }
    }
}

/// What a status says, the templates aside: the API server fills in defaults there.
pub(crate) fn said(status: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for field in ["conditions", "inputsDigest", "observedGeneration"] {
        status[field].hash(&mut hasher);
    }
    hasher.finish()
}

/// Of everything in an object that a status write does not change.
pub(crate) fn content(object: &Value) -> u64 {
    const WRITTEN: [&str; 2] = ["resourceVersion", "managedFields"];
    let mut hasher = DefaultHasher::new();
    let fields = object.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| *name != "status") {
        if name == "metadata" {
            let fields = value.as_object().into_iter().flatten();
            for field in fields.filter(|(name, _)| !WRITTEN.contains(&name.as_str())) {
                field.hash(&mut hasher);
            }
        } else {
            (name, value).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn owner(metadata: &Value) -> Option<String> {
    let references = metadata["ownerReferences"].as_array()?;
    let owner = references.iter().find(|it| it["controller"] == true)?;
    let kind = text(&owner["kind"]);
    Some(match text(&owner["apiVersion"]).split_once('/') {
        Some((group, _)) => format!("{kind}.{group}"),
        None => kind.to_owned(),
    })
}

fn ready(status: &Value) -> (ConditionStatus, &'static str) {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let ready = conditions
        .into_iter()
        .find(|condition| condition["type"] == api_types::ConditionType::Ready.as_str());
    let said = |field: &str| ready.map_or("", |ready| text(&ready[field]));
    let status = ConditionStatus::from_text(said("status"));
    (status, Verdict::label(said("reason")))
}

/// A ClusterPodConvention, its selectors compiled.
pub(crate) struct ConventionEntry {
    pub(crate) name: Box<str>,
    pub(crate) uid: Box<str>,
    pub(crate) generation: i64,
    pub(crate) revision: Box<str>,
    pub(crate) convention: Arc<ClusterPodConvention>,
    pub(crate) selection: Result<Selection, SelectionError>,
    /// Why nobody can be asked: only whom it is for is known, if that.
    pub(crate) unreadable: Option<String>,
}

/// What the store has of a ClusterPodConvention.
pub(crate) struct StoredConvention(pub(crate) Arc<ConventionEntry>);

impl Entry for StoredConvention {
    fn build(object: Value) -> Self {
        Self(Arc::new(ConventionEntry::read(&object)))
    }
}

impl ConventionEntry {
    fn read(object: &Value) -> Self {
        let revision = text(&object["metadata"]["annotations"][REVISION]).into();
        let (convention, unreadable) = match ClusterPodConvention::deserialize(object) {
            Ok(convention) => (convention, None),
            Err(error) => (legible(object), Some(error.to_string())),
        };
        let metadata = &convention.metadata;
        Self {
            name: metadata.name.as_deref().unwrap_or_default().into(),
            uid: metadata.uid.as_deref().unwrap_or_default().into(),
            generation: metadata.generation.unwrap_or_default(),
            revision,
            selection: Selection::compile(&convention),
            unreadable,
            convention: Arc::new(convention),
        }
    }

    /// What tells it from what it was before.
    pub(crate) fn version(&self) -> String {
        format!("{}/{}/{}", self.uid, self.generation, self.revision)
    }

    /// What follows when its webhook fails.
    pub(crate) fn failure_policy(&self) -> FailurePolicy {
        let webhook = self.convention.spec.webhook.as_ref();
        webhook.map_or_else(FailurePolicy::default, |webhook| {
            FailurePolicy::from_text(&webhook.failure_policy)
        })
    }

    /// Whether it applies pod presets, and asks no webhook.
    pub(crate) fn applies_presets(&self) -> bool {
        self.convention.spec.pod_presets.is_some()
    }

    /// Whether a PodIntent with these labels has to be looked at because of it. One whose selectors
    /// cannot be read concerns all.
    pub(crate) fn concerns(&self, labels: Selectable<'_>) -> bool {
        match &self.selection {
            Ok(selection) => selection.matched_by(labels).is_some(),
            Err(_) => true,
        }
    }
}

/// What of a convention counts that cannot be read whole: whom it is for, which is all if that
/// cannot be read either, and what follows when nobody answers.
fn legible(object: &Value) -> ClusterPodConvention {
    let spec = &object["spec"];
    let selectors = serde_json::from_value(spec["selectors"].clone());
    let webhook = ConventionWebhook {
        failure_policy: text(&spec["webhook"]["failurePolicy"]).to_owned(),
        ..ConventionWebhook::default()
    };
    ClusterPodConvention {
        metadata: serde_json::from_value(object["metadata"].clone()).unwrap_or_default(),
        spec: ClusterPodConventionSpec {
            selectors: selectors.unwrap_or_default(),
            selector_target: text(&spec["selectorTarget"]).to_owned(),
            priority: text(&spec["priority"]).to_owned(),
            webhook: Some(webhook),
            pod_presets: None,
        },
    }
}

/// What of a ServiceAccount counts: its pull secrets.
pub(crate) struct AccountEntry {
    pub(crate) pull_secrets: Box<[Box<str>]>,
}

impl Entry for AccountEntry {
    fn build(object: Value) -> Self {
        let secrets = object["imagePullSecrets"].as_array().into_iter().flatten();
        let names = secrets.map(|secret| text(&secret["name"]));
        Self {
            pull_secrets: names
                .filter(|name| !name.is_empty())
                .map(Box::from)
                .collect(),
        }
    }
}

/// What of a Secret is watched: its metadata.
pub(crate) struct SecretEntry {
    pub(crate) version: u64,
    /// The Certificate of cert-manager that it is for.
    pub(crate) certificate: Option<Box<str>>,
}

impl Entry for SecretEntry {
    fn build(object: Value) -> Self {
        let certificate = object["metadata"]["annotations"][CERTIFICATE_NAME].as_str();
        Self {
            version: version_of(&object),
            certificate: certificate.map(Box::from),
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Labels {
    let fields = value.as_object().into_iter().flatten();
    fields
        .map(|(key, value)| (key.clone(), text(value).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_status_write_changes_is_no_content_and_all_else_is() {
        let object = |version: &str, label: &str, status: Value| {
            json!({"metadata": {"name": "a", "resourceVersion": version, "labels": {"l": label},
                    "managedFields": [version]},
                "spec": {"template": {}}, "status": status})
        };
        let build = |version, label, status| IntentEntry::build(object(version, label, status));
        let first = build("1", "x", json!({}));
        // The reply to a write has the managed fields that the store leaves out.
        assert_eq!(content(&object("3", "x", json!({}))), first.content);
        let status = json!({"inputsDigest": "d", "conditions": [{"type": "Ready", "status": "True", "reason": "ConventionsApplied"}]});
        let written = build("2", "x", status);
        assert_eq!(first.content, written.content);
        assert_ne!(first.said, written.said);
        assert_eq!(written.ready, (ConditionStatus::True, "ConventionsApplied"));
        assert_ne!(first.content, build("3", "y", json!({})).content);
        let any =
            json!({"conditions": [{"type": "Ready", "status": "False", "reason": "Somebody's"}]});
        assert_eq!(
            build("1", "x", any).ready,
            (ConditionStatus::False, "other")
        );
    }

    #[test]
    fn a_convention_whose_selectors_cannot_be_read_concerns_all() {
        let convention = |selectors: Value| {
            let object = json!({"metadata": {"name": "c"}, "spec": {"selectors": selectors}});
            StoredConvention::build(object).0
        };
        let labels = Labels::new();
        let labels = Selectable {
            intent: &labels,
            template: &labels,
        };
        let near = json!([{"matchExpressions": [{"key": "a", "operator": "Near"}]}]);
        assert!(convention(near).concerns(labels));
        assert!(convention(json!([])).concerns(labels));
        assert!(!convention(json!([{"matchLabels": {"a": "b"}}])).concerns(labels));
    }

    #[test]
    fn of_a_convention_that_cannot_be_read_it_is_known_whom_it_is_for_if_it_says_so() {
        let read = |selectors: Value| {
            let webhook = json!({"timeoutSeconds": "soon", "failurePolicy": "Ignore"});
            let spec = json!({"selectors": selectors, "webhook": webhook});
            let metadata = json!({"name": "c", "uid": "u", "generation": 2});
            StoredConvention::build(json!({"metadata": metadata, "spec": spec})).0
        };
        let labels = Labels::new();
        let labels = Selectable {
            intent: &labels,
            template: &labels,
        };
        let of_some = read(json!([{"matchLabels": {"a": "b"}}]));
        assert!(of_some.unreadable.as_ref().unwrap().contains("\"soon\""));
        assert_eq!(of_some.version(), "u/2/");
        assert_eq!(of_some.failure_policy(), FailurePolicy::Ignore);
        assert!(!of_some.concerns(labels));
        assert!(read(json!("nobody")).concerns(labels));
    }
}
