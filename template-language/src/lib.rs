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
//! - Everything is a pure function of values: no clock, no cluster, no state between calls.
//! - A template or a path is compiled once and evaluated often. What is wrong with it is found when it is evaluated, as in
//!   the Go Cartographer, whose texts users compare ([`go_format`]).
//! - An evaluation has a budget: a path that multiplies what it finds ends with an error, not with the memory of the process.
//! - What a tag yields is never read as a template again.

pub mod go_format;
pub mod interpolate;
pub mod jsonpath;
pub mod numbers;
pub mod tags;
pub mod vocabulary;
pub mod yaml_digest;
