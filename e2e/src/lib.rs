//! The whole system on this machine, with real third-party parts: for the tests in `tests/` and for `make demo`.
//!
//! ```text
//!  Stack ─┬─▶ test_support::ControlPlane (API server, etcd, controller manager)
//!         ├─▶ test_support::FluxSourceController, GitServer, OciRegistry
//!         └─▶ Controller: the supplychain-controller binary as its own process, with the identity and exactly the
//!             rights of deploy/install.yaml
//!  WebApp ──▶ examples/web-app on a Stack: a repository, an image, a developer's namespace
//! ```

pub mod binaries;
pub mod controller;
pub mod manifests;
pub mod stack;
pub mod web_app;

pub use controller::Controller;
pub use stack::Stack;
pub use web_app::WebApp;
