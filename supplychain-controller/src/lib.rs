//! Realizes Workloads through ClusterSupplyChains.
//!
//! A separate deployable: it speaks with the other controllers only through objects and their status on
//! the API server. Everything it shares with them is in `controller-kit` and `realizer`; what is here is
//! the choice of family.

use controller_kit::args::CommonArgs;
use controller_kit::owner::SupplyChains;
use controller_kit::process::Program;
use controller_kit::wiring::{Environment, Wired, wire};

/// This controller.
pub const PROGRAM: Program = Program {
    name: "supplychain-controller",
    about: "Realizes Workloads through ClusterSupplyChains

Selects the supply chain for each Workload, stamps its objects with the rights of the Workload's service account, passes \
outputs on, and reports in the Workload's status.",
    version: env!("CARGO_PKG_VERSION"),
    user_agent: concat!("carto-supplychain/", env!("CARGO_PKG_VERSION")),
    field_manager: "carto-supplychain",
};

/// Starts its watches.
pub fn wire_up(args: &CommonArgs, environment: Environment<'_>) -> Wired {
    let concurrency = args.concurrency.workloads();
    wire::<SupplyChains>(concurrency, PROGRAM.field_manager, environment)
}
