//! The engine end to end, against a cluster in memory in which things go wrong.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "fixtures are written where they are used"
)]

#[path = "engine/artifacts.rs"]
mod artifacts;
#[path = "engine/attribution.rs"]
mod attribution;
#[path = "engine/delivery.rs"]
mod delivery;
#[path = "engine/dependencies.rs"]
mod dependencies;
#[path = "engine/doubt.rs"]
mod doubt;
#[path = "engine/environments.rs"]
mod environments;
#[path = "engine/explanation.rs"]
mod explanation;
#[path = "engine/failures.rs"]
mod failures;
#[path = "engine/golden.rs"]
mod golden;
#[path = "engine/inputs.rs"]
mod inputs;
#[path = "engine/options.rs"]
mod options;
#[path = "engine/other_objects.rs"]
mod other_objects;
#[path = "engine/pruning.rs"]
mod pruning;
#[path = "engine/removals.rs"]
mod removals;
#[path = "engine/scenario.rs"]
mod scenario;
#[path = "engine/secrets.rs"]
mod secrets;
#[path = "engine/selection.rs"]
mod selection;
#[path = "engine/status_writes.rs"]
mod status_writes;
#[path = "engine/statuses.rs"]
mod statuses;
#[path = "engine/tampered.rs"]
mod tampered;
#[path = "engine/unconfirmed.rs"]
mod unconfirmed;
#[path = "engine/updates.rs"]
mod updates;
#[path = "engine/validation.rs"]
mod validation;
#[path = "engine/worked_examples.rs"]
mod worked_examples;
#[path = "engine/ytt.rs"]
mod ytt;
