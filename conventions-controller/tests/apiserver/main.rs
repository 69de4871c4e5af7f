//! The controller's binary on a real API server, with webhooks in the test's own process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod stage;
mod tally;

mod accounts;
mod admission;
mod answers;
mod authorities;
mod cert_manager;
mod events;
mod flood;
mod forged;
mod hanging;
mod ignored;
mod images;
mod intents;
mod logs;
mod metrics;
mod overload;
mod pace;
mod registries;
mod registry;
mod rights;
mod secrets;
mod unreadable;
mod wakes;
mod webhook;
mod webhooks;

mod presets;
