//! Reconciling owners: one implementation for Workloads and Deliverables, of which Runnables share what has to do with the
//! cluster ([`OwnerShell`], [`Walk`]).
//!
//! The reconcile reads as five steps, and the types make another order impossible. The first and the last are those of any
//! owner ([`Realizes`]):
//!
//! ```text
//! dereference ─▶ Dereferenced ─▶ validate ─▶ Validated ─▶ realize + apply ─▶ Realized ─▶ report
//!  (caches)                       (pure)                    (engine, requests)            (status, events)
//! ```

mod artifacts;
pub(crate) mod blueprint_admission;
mod controller;
mod dependencies;
mod entries;
mod left_behind;
mod log;
mod namespaces;
mod overload;
mod realizes;
mod reconcile;
mod report;
mod selected;
mod settling;
mod shard;
mod shell;
mod templates;
mod told;
mod walk;
mod wiring;

pub use artifacts::Artifacts;
pub use blueprint_admission::ROUTES;
pub use controller::OwnerController;
pub use dependencies::{Dependency, DependencyIndex};
pub use entries::{
    AccountEntry, BlueprintEntry, BlueprintFamily, Deliveries, OwnerEntry, SupplyChains,
};
pub use left_behind::Scopes;
pub use namespaces::Namespaces;
pub use overload::{Outages, Overload};
pub use realizes::Realizes;
pub use report::{Realized, Subject};
pub use selected::{Selected, Unselected, Wanted};
pub use settling::Settling;
pub use shard::{LiveOwners, OtherShards, Shard, ShardError};
pub use shell::{OwnerKind, OwnerShell};
pub use submission::StepObjects;
pub use templates::{Compiled, TemplateEntry, Templates};
pub use told::ToldOwners;
pub use walk::{Reads, Removed, Walk};
#[cfg(test)]
pub(crate) use wiring::YTT_PROCESSES;
pub use wiring::{Settings, begin, only_webhook, shell, start, ytt};
