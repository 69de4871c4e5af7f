//! Which controller is measured, and what its kinds are called.

use std::path::PathBuf;

use serde::Serialize;

use crate::api::{CARTO, Kind};

const CONVENTIONS_API: &str = "conventions.carto.run/v1alpha1";
const TWIN_API: &str = "twin.carto.run/v1alpha1";

/// A family and its controller's binary.
pub(crate) type Measured = (&'static Family, PathBuf);

/// A controller, the kind of its owners and the kind of its blueprints.
#[derive(Debug, Serialize)]
pub(crate) struct Family {
    /// How the command line calls it, and labels the blueprint of a stamped object.
    pub(crate) name: &'static str,
    /// Kind of the owners; also the label `kind` in the controller's metrics.
    pub(crate) kind: &'static str,
    pub(crate) owners: Kind,
    /// Kind of the blueprints, without the `Cluster` before it; owners have a reference and a
    /// condition of this name.
    pub(crate) blueprint: &'static str,
    pub(crate) blueprints: Kind,
}

/// Workloads and their ClusterSupplyChain.
pub(crate) static SUPPLY_CHAIN: Family = Family {
    name: "supply-chain",
    kind: "Workload",
    owners: Kind::new(CARTO, "workloads"),
    blueprint: "SupplyChain",
    blueprints: Kind::new(CARTO, "clustersupplychains"),
};

/// Deliverables and their ClusterDelivery.
pub(crate) static DELIVERY: Family = Family {
    name: "delivery",
    kind: "Deliverable",
    owners: Kind::new(CARTO, "deliverables"),
    blueprint: "Delivery",
    blueprints: Kind::new(CARTO, "clusterdeliveries"),
};

/// Runnables and their ClusterRunTemplate.
pub(crate) static RUNNABLE: Family = Family {
    name: "runnable",
    kind: "Runnable",
    owners: Kind::new(CARTO, "runnables"),
    blueprint: "RunTemplate",
    blueprints: Kind::new(CARTO, "clusterruntemplates"),
};

/// PodIntents and their ClusterPodConventions, which have no status.
pub(crate) static CONVENTIONS: Family = Family {
    name: "conventions",
    kind: "PodIntent",
    owners: Kind::new(CONVENTIONS_API, "podintents"),
    blueprint: "PodConvention",
    blueprints: Kind::new(CONVENTIONS_API, "clusterpodconventions"),
};

/// PodIntents of which no controller knows.
pub(crate) static TWIN_INTENT: Family = Family {
    owners: Kind::new(TWIN_API, "podintents"),
    ..CONVENTIONS
};

/// Runnables of which no controller knows.
pub(crate) static TWIN: Family = Family {
    owners: Kind::new(TWIN_API, "runnables"),
    ..RUNNABLE
};

impl Family {
    /// The one of this name; else the text says which there are.
    pub(crate) fn named(name: &str) -> Result<&'static Self, String> {
        let all = [&SUPPLY_CHAIN, &DELIVERY, &RUNNABLE, &CONVENTIONS];
        let names = all.map(|family| family.name).join(", ");
        let found = all.into_iter().find(|family| family.name == name);
        found.ok_or_else(|| format!("one of: {names}"))
    }

    /// The controller's crate and binary.
    pub(crate) fn binary(&self) -> String {
        format!("{}-controller", self.name.replace('-', ""))
    }

    /// Whose owners the bare client writes, so that the controller that is measured leaves them
    /// alone. Runnables and PodIntents have no like in our own groups.
    pub(crate) fn bare(&self) -> &'static Self {
        match self.kind {
            "Workload" => &DELIVERY,
            "Deliverable" => &SUPPLY_CHAIN,
            "PodIntent" => &TWIN_INTENT,
            _ => &TWIN,
        }
    }

    /// Whether its owners are run, and have no chain.
    pub(crate) fn is_run(&self) -> bool {
        self.kind == RUNNABLE.kind
    }

    /// Whether it is this one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}
