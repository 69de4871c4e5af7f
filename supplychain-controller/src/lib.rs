//! Realizes Workloads through ClusterSupplyChains.
//!
//! A separate deployable: it speaks with the other controllers only through objects and their status on
//! the API server. Everything it shares with them is in `controller-kit` and `realizer`; what is here is
//! the choice of family and of webhooks.

pub mod args;
mod run;
pub mod webhooks;

pub use run::{FIELD_MANAGER, USER_AGENT, run};
