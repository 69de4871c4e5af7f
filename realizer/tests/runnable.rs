//! Runnables (docs/behaviour/runnables.md#runs), walked against a cluster in memory.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "fixtures are written where they are used"
)]

#[path = "runnable/concurrency.rs"]
mod concurrency;
#[path = "runnable/conditions.rs"]
mod conditions;
#[path = "engine/golden.rs"]
mod golden;
#[path = "runnable/outputs.rs"]
mod outputs;
#[path = "runnable/properties.rs"]
mod properties;
#[path = "runnable/pruning.rs"]
mod pruning;
#[path = "runnable/rendering.rs"]
mod rendering;
#[path = "runnable/retries.rs"]
mod retries;
#[path = "runnable/runs.rs"]
mod runs;
#[path = "runnable/stage.rs"]
mod stage;
