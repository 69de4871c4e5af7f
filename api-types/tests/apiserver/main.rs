//! CRDs and admission policies on a real API server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod examples;
mod names;
mod policies;
#[path = "../crds/sample.rs"]
mod sample;
mod schemas;
mod server;
