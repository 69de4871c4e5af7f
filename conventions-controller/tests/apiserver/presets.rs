//! Pod presets on a real API server that asks the real binary about each pod.

mod admission;
mod conflicts;
mod deployments;
mod kubectl;
mod large;
mod old_group;
mod restarts;
mod stage;
mod status;
mod templates;
mod trouble;
