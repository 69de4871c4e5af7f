//! The realization engine: decides what to stamp and what to report, without any I/O.
pub mod go_format;
pub mod interpolate;
pub mod jsonpath;
pub mod yaml_digest;
