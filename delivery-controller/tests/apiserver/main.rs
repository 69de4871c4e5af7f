//! The controller's binary on a real API server. What Deliverables share with Workloads is tested there; here is what is
//! theirs alone, and that the shared parts are wired for them, too.

mod stage;

mod blueprints;
mod chain;
mod deployment;
mod forged;
mod unchanged;
mod validation;
