//! Calls over real connections, to servers that do what servers should not.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

mod answers;
mod connections;
mod proxies;
mod redirects;
mod requests;
mod roots;
mod server;
mod tries;
mod trust;
