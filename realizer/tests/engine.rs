//! The engine end to end, against a tiny scripted cluster.

#[path = "engine/golden.rs"]
mod golden;
#[path = "engine/scenario.rs"]
mod scenario;
#[path = "engine/worked_examples.rs"]
mod worked_examples;
