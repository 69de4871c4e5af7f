//! `carto migrate` on a real API server, with what the Go controller leaves.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

#[path = "migrate/hanging.rs"]
mod hanging;
#[path = "migrate/installation.rs"]
mod installation;
#[path = "migrate/others.rs"]
mod others;
#[path = "migrate/plans.rs"]
mod plans;
#[path = "migrate/ways.rs"]
mod ways;
