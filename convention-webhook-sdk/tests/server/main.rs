//! The server over real TLS.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

mod answers;
mod bounds;
mod certificates;
mod ending;
mod recorded;
mod scene;
