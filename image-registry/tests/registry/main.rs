//! Images read from registries of this process, which do as they are told: good ones and bad ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod answers;
mod attached;
mod boms;
mod counts;
mod door;
mod fake;
mod hosts;
mod installation;
mod trust;
