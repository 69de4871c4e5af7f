//! The controller's binary on a real API server.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

mod changes;
mod completion;
mod forged;
mod recursion;
mod runs;
mod selected;
mod stage;
mod texts;
