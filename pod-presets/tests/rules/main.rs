//! What presets make of pods, rule by rule.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod build;
mod env;
mod pods;
