//! Realizes Workloads through ClusterSupplyChains.
//!
//! A separate deployable: it speaks with the other controllers only through objects and their status on
//! the API server. Everything it shares with them is in `controller-kit` and `realizer`; what is here is
//! the choice of family.

use controller_kit::args::ConcurrencyFlag;
use controller_kit::process::Program;

/// This controller.
pub const PROGRAM: Program = Program {
    name: "supplychain-controller",
    about: "Realizes Workloads through ClusterSupplyChains

Selects the supply chain for each Workload, stamps its objects with the rights of the Workload's service account, passes \
outputs on, and reports in the Workload's status.",
    version: env!("CARGO_PKG_VERSION"),
    user_agent: concat!("carto-supplychain/", env!("CARGO_PKG_VERSION")),
    field_manager: "carto-supplychain",
    concurrency: ConcurrencyFlag::new("max-concurrent-workloads", "Workloads"),
};
