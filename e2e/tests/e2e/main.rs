//! Whole-system tests: our binaries as processes, real third-party parts, the manifests that users apply.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod attributed;
mod attribution_storm;
mod bare;
mod bounds;
mod carto;
mod charts;
mod conventions;
mod deliver_app;
mod demo;
mod examples;
mod first_use;
mod killing;
mod parts;
mod pods;
mod rights;
mod side_by_side;
mod staging;
mod tenant;
mod terminal;
mod web_app;
mod webhook;

use std::time::Duration;

/// How long anything may take, on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);
