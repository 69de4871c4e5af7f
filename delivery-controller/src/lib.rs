//! Realizes Deliverables through ClusterDeliveries.
//!
//! A separate deployable: it speaks with the other controllers only through objects and their status on
//! the API server. Everything it shares with them is in `controller-kit` and `realizer`; what is here is
//! the choice of family.

use controller_kit::args::ConcurrencyFlag;
use controller_kit::process::Program;

/// This controller.
pub const PROGRAM: Program = Program {
    name: "delivery-controller",
    about: "Realizes Deliverables through ClusterDeliveries

Selects the delivery for each Deliverable, stamps its objects with the rights of the Deliverable's service account, passes \
outputs on, keeps environments as they are while they are validated, and reports in the Deliverable's status.",
    version: env!("CARGO_PKG_VERSION"),
    user_agent: concat!("carto-delivery/", env!("CARGO_PKG_VERSION")),
    field_manager: "carto-delivery",
    concurrency: ConcurrencyFlag::new("max-concurrent-deliveries", "Deliverables"),
};
