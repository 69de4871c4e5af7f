//! From a rendering to the object that is sent: at the place where its kind lives, with what people and later walks read on it.

use api_types::labels;
use realizer::{Precondition, Submission, lineage};
use serde_json::{Value, json};
use thiserror::Error;

use crate::identity::derived_name;

/// A version that no object has. An apply that is bound to it creates the object, and is refused when there is one.
const NOTHING_THERE: u64 = 1;

/// The owner of an object, as far as the object tells of it.
#[derive(Debug, Clone, Copy)]
pub struct OwnerFacts<'a> {
    /// Kind.
    pub kind: &'a str,
    /// Namespace.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// uid.
    pub uid: &'a str,
    /// Generation.
    pub generation: i64,
    /// Namespace and name of the service account whose rights are used.
    pub account: (&'a str, &'a str),
    /// The owners that led to it, the first one first.
    pub stamped_for: &'a [String],
}

/// A submission on its way to the API server.
#[derive(Debug, Clone, Copy)]
pub struct Manifest<'a> {
    /// For whom it is sent.
    pub owner: OwnerFacts<'a>,
    /// What the engine asks for.
    pub submission: &'a Submission,
    /// Whether objects of the kind live in namespaces.
    pub namespaced: bool,
}

/// An object for server-side apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Apply {
    /// The object.
    pub object: Value,
    /// Whether the API server refuses it (409) unless what is there is what the write was decided by.
    pub is_bound: bool,
}

/// A rendering has neither a name nor the beginning of one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the object [{address}] has neither metadata.name nor metadata.generateName; set generateName in the template"
)]
pub struct Nameless {
    address: String,
}

impl Manifest<'_> {
    /// The rendering at the place where it is going to be: in the owner's namespace, or in none.
    ///
    /// A cluster-scoped object gets no owner reference: the garbage collector cannot resolve one to an owner
    /// in a namespace and keeps the object for ever. Annotations say whose it is and with whose rights it is deleted.
    pub fn placed(self) -> Value {
        let mut object = self.submission.object.clone();
        if self.namespaced {
            return object;
        }
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return object;
        };
        metadata.remove("namespace");
        metadata.remove("ownerReferences");
        let owner = self.owner;
        let mark = owner_mark(owner.kind, owner.namespace, owner.name, owner.uid);
        let account = format!("{}/{}", owner.account.0, owner.account.1);
        let marks = [(labels::OWNER, mark), (labels::SERVICE_ACCOUNT, account)];
        annotate(&mut object, marks);
        object
    }

    /// The object of a mutable step, for a forced server-side apply; `is_there` when the cluster is known to hold it.
    ///
    /// What the API server takes of it depends on the kind, too: see [`crate::applicable`] and [`crate::openapi::conform`].
    pub fn applied(self, is_there: bool) -> Apply {
        let mut object = self.placed();
        // For people.
        let digest = self.submission.digest.clone();
        annotate(&mut object, [(labels::RENDERED_DIGEST, digest)]);
        self.tell_lineage(&mut object);
        let version = match self.submission.precondition {
            Precondition::None => (!is_there).then_some(NOTHING_THERE),
            Precondition::Absent => Some(NOTHING_THERE),
            Precondition::Version(version) => Some(version),
        };
        if let Some(version) = version {
            object["metadata"]["resourceVersion"] = Value::from(version.to_string());
        }
        let is_bound = version.is_some();
        Apply { object, is_bound }
    }

    /// The object of an immutable step as number `sequence` of its family, for a create. One without a name gets a derived
    /// one, so that the same create can be sent again.
    ///
    /// # Errors
    /// The rendering has neither `metadata.name` nor `metadata.generateName`.
    pub fn created(self, sequence: u64) -> Result<Value, Nameless> {
        let submission = self.submission;
        let mut object = self.placed();
        let metadata = &mut object["metadata"];
        if metadata["name"].as_str().unwrap_or_default().is_empty() {
            let prefix = metadata["generateName"].as_str().unwrap_or_default();
            if prefix.is_empty() {
                let address = address(submission);
                return Err(Nameless { address });
            }
            let seed = submission.name_seed.as_ref().unwrap_or(&submission.digest);
            let (uid, step) = (self.owner.uid, &submission.resource);
            metadata["name"] = Value::from(derived_name(prefix, uid, step, seed, sequence));
        }
        let told = [
            (labels::RENDERED_DIGEST, submission.digest.clone()),
            (labels::SUBMISSION, sequence.to_string()),
            (labels::OWNER_GENERATION, self.owner.generation.to_string()),
        ];
        annotate(&mut object, told);
        self.tell_lineage(&mut object);
        Ok(object)
    }

    /// Tells an owner that is stamped for an owner that was stamped itself how it came to be. Not part of the rendering: an
    /// object that was made before this was told is as rendered without it.
    fn tell_lineage(self, object: &mut Value) {
        let stamped_for = self.owner.stamped_for;
        if !stamped_for.is_empty() && lineage::is_owner(object) {
            let told = lineage::annotation(stamped_for);
            annotate(object, [(labels::STAMPED_FOR, told)]);
        }
    }
}

/// `<namespace>/<name>` of the rendered object, as messages name it.
pub fn address(submission: &Submission) -> String {
    let metadata = &submission.object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// The owner of a cluster-scoped object, for annotation `carto.run/owner`.
pub fn owner_mark(kind: &str, namespace: &str, name: &str, uid: &str) -> String {
    format!("{kind}/{namespace}/{name}/{uid}")
}

fn annotate(object: &mut Value, annotations: impl IntoIterator<Item = (&'static str, String)>) {
    let held = &mut object["metadata"]["annotations"];
    if !held.is_object() {
        *held = json!({});
    }
    for (key, text) in annotations {
        held[key] = Value::from(text);
    }
}

#[cfg(test)]
mod tests {
    use realizer::{Labels, Lifecycle, Recorded};

    use super::*;

    fn submission(kind: &str, metadata: &Value) -> Submission {
        Submission {
            resource: "step".into(),
            object: json!({"apiVersion": "carto.run/v1alpha1", "kind": kind, "metadata": metadata}),
            digest: "sha256:a".to_owned(),
            name_seed: None,
            basis: None,
            lifecycle: Lifecycle::Mutable,
            family: Labels::default(),
            reads: Vec::new().into(),
            precondition: Precondition::None,
            recorded: Recorded::default(),
            adopt: false,
            refuses_foreign_fields: false,
            asks_whose_values: false,
        }
    }

    fn manifest(submission: &Submission, namespaced: bool) -> Manifest<'_> {
        let owner = OwnerFacts {
            kind: "Workload",
            namespace: "dev",
            name: "app",
            uid: "u-1",
            generation: 3,
            account: ("ops", "deployer"),
            stamped_for: &[],
        };
        Manifest {
            owner,
            submission,
            namespaced,
        }
    }

    #[test]
    fn a_cluster_scoped_object_is_in_no_namespace_and_says_whose_it_is() {
        let metadata = json!({"name": "a", "namespace": "dev", "ownerReferences": [{}]});
        let submission = submission("Test", &metadata);
        assert_eq!(manifest(&submission, true).placed(), submission.object);
        assert_eq!(
            manifest(&submission, false).placed()["metadata"],
            json!({"name": "a", "annotations": {
                "carto.run/owner": "Workload/dev/app/u-1",
                "carto.run/service-account": "ops/deployer",
            }})
        );
    }

    #[test]
    fn an_apply_is_bound_to_what_it_was_decided_by() {
        let mut submission = submission("Test", &json!({"name": "a"}));
        for (precondition, is_there, bound_to) in [
            (Precondition::None, true, None),
            (Precondition::None, false, Some("1")),
            (Precondition::Absent, true, Some("1")),
            (Precondition::Version(7), false, Some("7")),
        ] {
            submission.precondition = precondition;
            let Apply { object, is_bound } = manifest(&submission, true).applied(is_there);
            let version = object["metadata"]["resourceVersion"].as_str();
            assert_eq!((version, is_bound), (bound_to, bound_to.is_some()));
        }
    }

    #[test]
    fn what_is_created_has_a_name_or_cannot_be() {
        let named = submission("Test", &json!({"name": "a", "generateName": "b-"}));
        let created = manifest(&named, true).created(2).unwrap();
        assert_eq!(created["metadata"]["name"], "a");
        assert_eq!(
            created["metadata"]["annotations"],
            json!({"carto.run/rendered-digest": "sha256:a", "carto.run/submission": "2", "carto.run/owner-generation": "3"})
        );
        let nameless = submission("Test", &json!({"namespace": "dev", "name": ""}));
        let error = manifest(&nameless, true).created(2).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the object [dev/] has neither")
        );
    }

    #[test]
    fn only_an_owner_is_told_who_came_before_it() {
        let above = ["Workload/first".to_owned(), "Workload/second".to_owned()];
        for (kind, told) in [
            ("Deliverable", json!("Workload/first,Workload/second")),
            ("Test", Value::Null),
        ] {
            let submission = submission(kind, &json!({"name": "a"}));
            let mut manifest = manifest(&submission, true);
            manifest.owner.stamped_for = &above;
            let object = manifest.applied(true).object;
            assert_eq!(
                object["metadata"]["annotations"]["carto.run/stamped-for"],
                told
            );
        }
    }
}
