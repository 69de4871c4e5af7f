//! What only a real API server can tell.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

mod events;
mod lease;
mod removal;
mod stage;
mod stale;
mod tokens;
mod typed_patch;
mod webhook;
