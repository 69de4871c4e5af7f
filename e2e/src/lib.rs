//! The whole system on this machine, with real third-party parts: for the tests in `tests/` and for `make demo`.
//!
//! ```text
//!  Stack ─┬─▶ test_support::ControlPlane (API server, etcd, controller manager)
//!         ├─▶ test_support::FluxSourceController, GitServer, OciRegistry
//!         └─▶ Controller: the supplychain-controller binary as its own process, with the identity and exactly the
//!             rights of deploy/install.yaml
//!  Delivery ──▶ FluxKustomizeController and the delivery-controller binary, likewise, on a Stack
//!  WebApp ────▶ examples/web-app on a Stack: a repository, an image, a developer's namespace
//!  ConventionStack, ConventionWebhook ▶ the conventions controller alone, and webhooks of examples/conventions
//!  Helm ───────▶ deploy/charts, as users install them
//!  DeliverApp ▶ examples/deliver-app on a Stack with a Delivery
//!
//!  PathStack ──▶ all of these, all three controllers of ours, and if wanted test_support::Node
//!  FullPath ───▶ examples/full-path on a PathStack
//!  Release ────▶ our charts on the node of a PathStack, controllers as Pods; NodeRegistry, tekton, AdmissionLoad and Soak
//!                are what they work with there
//!  KnativeServing, ArgoCd ▶ third-party controllers that only `make test-third-party` runs
//!  StagingDelivery ▶ examples/staging-delivery on a PathStack
//! ```

pub mod admission_load;
pub mod binaries;
mod command;
pub mod controller;
pub mod conventions;
pub mod deliver_app;
pub mod example;
pub mod full_path;
pub mod helm;
pub mod manifests;
pub mod node_registry;
pub mod path_stack;
pub mod pods;
pub mod release;
pub mod soak;
pub mod stack;
pub mod staging;
pub mod tekton;
pub mod third_party;
pub mod web_app;

pub use admission_load::AdmissionLoad;
pub use controller::Controller;
pub use conventions::{ConventionStack, ConventionWebhook};
pub use deliver_app::DeliverApp;
pub use full_path::FullPath;
pub use helm::Helm;
pub use node_registry::NodeRegistry;
pub use path_stack::PathStack;
pub use release::Release;
pub use stack::{Delivery, Stack};
pub use staging::StagingDelivery;
pub use web_app::WebApp;
