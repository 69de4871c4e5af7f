//! What the controllers send to the API server for a rendered object, computed without sending anything.
//!
//! ```text
//!  realizer::Submission ──▶ Manifest ──┬─▶ applied() ─▶ applicable() ─▶ apply ─▶ State: need it be written again?
//!   (one rendered object)              │                     ▲            │
//!                                      │                 KindSchema       └─▶ refused ─┬─▶ openapi::conform
//!                                      │                 (OpenAPI)                     ├─▶ without_empty
//!                                      │                                               └─▶ obstacles
//!                                      └─▶ created() ─▶ create ─▶ is there already ──▶ contains, relabelling
//! ```
//!
//! The engine decides which object a step wants, and `controller-kit` sends requests. What is between the two is here: which
//! name the object has, what is annotated on it, what of it the API server would not take, whether what is there is what was
//! left there, and how what is there becomes ours. All of it is a function of values: no client, no clock, no state. So a tool
//! can say what a controller would send without a cluster.
//!
//! ```
//! # use std::collections::BTreeMap;
//! use realizer::{Lifecycle, Precondition, Submission, Recorded};
//! use serde_json::json;
//! use submission::openapi::{KindSchema, conform};
//! use submission::{Kind, Manifest, OwnerFacts, applicable};
//!
//! // What the engine asks for ...
//! let submission = Submission {
//!     object: json!({
//!         "apiVersion": "apps.example/v1", "kind": "App",
//!         "metadata": {"namespace": "dev", "name": "web"},
//!         "spec": {"replicas": null, "imag": "a"},
//!     }),
//!     digest: "sha256:feed".to_owned(),
//!     lifecycle: Lifecycle::Mutable,
//!     resource: "deploy".into(),
//! #   name_seed: None,
//! #   basis: None,
//! #   family: BTreeMap::default(),
//! #   reads: Vec::new().into(),
//! #   precondition: Precondition::None,
//! #   recorded: Recorded::default(),
//! #   adopt: false,
//! #   refuses_foreign_fields: false,
//! #   asks_whose_values: false,
//!     // and so on
//! };
//! let owner = OwnerFacts {
//!     kind: "Workload",
//!     namespace: "dev",
//!     name: "web",
//!     uid: "6f6e",
//!     generation: 1,
//!     account: ("dev", "default"),
//!     stamped_for: &[],
//! };
//! // ... and what the API server publishes of the kind, at /openapi/v3/apis/apps.example/v1.
//! let document = json!({"components": {"schemas": {"App": {
//!     "x-kubernetes-group-version-kind": [{"group": "apps.example", "version": "v1", "kind": "App"}],
//!     "properties": {
//!         "apiVersion": {}, "kind": {}, "metadata": {},
//!         "spec": {"properties": {"replicas": {"type": "integer"}, "image": {"type": "string"}}},
//!     },
//! }}}});
//! let schema = KindSchema::compile(document.to_string().as_bytes(), "apps.example", "v1", "App")?;
//! let schema = schema.expect("the document has the kind");
//!
//! let manifest = Manifest { owner, submission: &submission, namespaced: true };
//! let apply = manifest.applied(false);
//! let mut sent = applicable(&apply.object, &Kind::new("apps.example/v1", "App"), Some(&schema));
//! assert_eq!(conform(&mut sent, &schema), ["spec.imag"], "left out, and told as a warning");
//! assert_eq!(sent["spec"], json!({}), "a null stands for nothing where the kind does not call it nullable");
//! assert_eq!(sent["metadata"]["annotations"]["carto.run/rendered-digest"], "sha256:feed");
//! assert!(apply.is_bound, "what is not known to be there is not overwritten unseen");
//!
//! // An immutable object is made once per rendering, under a name that says which it is.
//! let mut submission = submission;
//! submission.object["metadata"] = json!({"namespace": "dev", "generateName": "web-"});
//! let manifest = Manifest { owner, submission: &submission, namespaced: true };
//! let created = manifest.created(7)?;
//! assert_eq!(created["metadata"]["annotations"]["carto.run/submission"], "7");
//! let name = created["metadata"]["name"].as_str().unwrap_or_default();
//! assert_eq!(name.len(), "web-".len() + 10);
//! assert_eq!(manifest.created(7)?["metadata"]["name"], name, "the repeated create makes no second object");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod belonging;
mod beside;
mod defaults;
mod dropped;
mod family;
mod holder;
mod identity;
mod kind;
mod managed;
mod manifest;
pub mod openapi;
mod rendering;
mod step_objects;
mod takeover;
mod values;

pub use belonging::{Annotations, Belonging, ControllerRef, owner_of};
pub use beside::ValuesBeside;
pub use defaults::{Obstacles, obstacles, refused_fields};
pub use dropped::without_dropped;
pub use family::{Candidate, candidates, claimed_age, has_family_labels, is_rendering, known_run};
pub use holder::{Claim, Held, Holder, IsLiveOwner, WantedByStep, belongs_to_another};
pub use identity::{contains, derived_name};
pub use kind::Kind;
pub use manifest::{Apply, Manifest, Nameless, OwnerFacts, address, owner_mark};
pub use rendering::{applicable, bound_anew, has_lost_a_map, without_empty};
pub use step_objects::StepObjects;
pub use takeover::{marking, migration, needs_migration, relabelling};
pub use values::{OwnedValues, State};
