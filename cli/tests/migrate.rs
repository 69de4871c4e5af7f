//! `carto migrate` on a real API server, with what the Go controller leaves.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

#[path = "migrate/installation.rs"]
mod installation;
#[path = "migrate/plans.rs"]
mod plans;
#[path = "migrate/ways.rs"]
mod ways;
