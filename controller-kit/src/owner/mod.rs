//! Reconciling owners: one implementation for Workloads and Deliverables.
//!
//! The reconcile reads as five steps, and the types make another order impossible:
//!
//! ```text
//! dereference ─▶ Dereferenced ─▶ validate ─▶ Validated ─▶ realize + apply ─▶ Realized ─▶ report
//!  (caches)                       (pure)                    (engine, requests)            (status, events)
//! ```

mod claims;
mod controller;
mod entries;
mod reconcile;
mod report;
mod waiters;

pub use controller::{Clock, OwnerController, Parts};
pub use entries::{
    AccountEntry, BlueprintEntry, OwnerEntry, SupplyChainEntry, TemplateEntry, Templates,
};
pub use waiters::{Awaited, Waiters};
