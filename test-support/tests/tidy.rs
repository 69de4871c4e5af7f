//! The repository as a whole: what its documents say of it, and what no single crate can check of itself.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

#[path = "tidy/repository.rs"]
mod repository;

#[path = "tidy/behaviour.rs"]
mod behaviour;
#[path = "tidy/commands.rs"]
mod commands;
#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/generated.rs"]
mod generated;
#[path = "tidy/images.rs"]
mod images;
#[path = "tidy/modules.rs"]
mod modules;
#[path = "tidy/sources.rs"]
mod sources;
#[path = "tidy/twins.rs"]
mod twins;
