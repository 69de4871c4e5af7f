//! The language in which authors of templates write.
//!
//! ```text
//!  template ──▶ interpolate::Compiled ──▶ jsonpath::Path per $( … )$ ──▶ rendered object
//!                   │                          ├── kubectl's dialect (jsonpath::ast)
//!                   │                          └── RFC 9535, for paths that begin with $. or $[
//!                   └──▶ tags::faults: tags that no rendering can fill, told at admission
//!
//!  output value ──▶ yaml_digest: digest and preview in status
//! ```
//!
//! # What stands where
//!
//! | module | what it is | who calls it |
//! |---|---|---|
//! | [`interpolate`] | tags `$( … )$` in the strings of a JSON document | whoever stamps objects |
//! | [`jsonpath`] | the paths in tags, and the path fields of templates | stamping, reading of outputs, selectors |
//! | [`tags`] | tags that can never have a value | admission |
//! | [`vocabulary`] | the names that a context can have | admission, by [`tags`] |
//! | [`go_format`] | values, numbers and texts as Go prints them | error texts, text in tags |
//! | [`numbers`] | doubles without a fraction become integers | stamping |
//! | [`yaml_digest`] | digest and preview of a value, of its YAML | statuses |
//!
//! # Rules
//!
//! - Everything is a pure function of values: no clock, no cluster, no state between calls.
//! - A template or a path is compiled once and evaluated often. What is wrong with it is found when it
//!   is evaluated, as in the Go Cartographer, whose texts users compare ([`go_format`]).
//! - An evaluation has a budget: a path that multiplies what it finds ends with an error, not with the
//!   memory of the process.
//! - What a tag yields is never read as a template again.
//! - No function panics, whatever it is given. Fuzz targets and property tests hold this up.
//!
//! # From a template to an object
//!
//! ```
//! use serde_json::json;
//! use template_language::interpolate::Compiled;
//!
//! let template = Compiled::compile(&json!({
//!     "metadata": {"name": "$(workload.metadata.name)$-config"},
//!     "spec": {
//!         "replicas": "$(params.replicas)$",
//!         "url": r#"$(workload.spec.env[?(@.name=="URL")].value)$"#,
//!     },
//! }));
//! let context = json!({
//!     "params": {"replicas": 2},
//!     "workload": {
//!         "metadata": {"name": "shop"},
//!         "spec": {"env": [{"name": "URL", "value": "http://shop"}]},
//!     },
//! });
//! let object = template.render(&mut |path| path.evaluate(&context)).unwrap();
//! assert_eq!(
//!     object,
//!     json!({
//!         "metadata": {"name": "shop-config"},
//!         "spec": {"replicas": 2, "url": "http://shop"},
//!     })
//! );
//! ```
//!
//! # From an object to an output
//!
//! ```
//! use serde_json::json;
//! use template_language::{jsonpath::Path, yaml_digest};
//!
//! let object = json!({"status": {"artifact": {"url": "http://source/1.tgz"}}});
//! let path = Path::compile_field(".status.artifact.url").unwrap();
//! let url = path.evaluate(&object).unwrap();
//! assert_eq!(yaml_digest::preview(&url), "http://source/1.tgz\n");
//! assert!(yaml_digest::digest(&url).starts_with("sha256:"));
//! ```

pub mod digest;
pub mod go_format;
pub mod interpolate;
pub mod jsonpath;
pub mod numbers;
pub mod tags;
pub mod vocabulary;
pub mod yaml_digest;
