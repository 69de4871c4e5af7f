//! What presets make of pods, rule by rule.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod build;
mod containers;
mod env;
mod env_from;
mod mounts;
mod pods;
mod policies;
mod selection;
mod volumes;
