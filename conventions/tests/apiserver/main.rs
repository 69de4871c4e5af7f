//! The CRDs on a real API server: what its own document says of PodSpecs, and what it stores.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod document;
mod stored;
