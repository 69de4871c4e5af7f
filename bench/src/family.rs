//! Which controller is measured, and what its kinds are called.

use std::path::PathBuf;

use crate::api::{CARTO, Kind};

/// A family and its controller's binary.
pub(crate) type Measured = (&'static Family, PathBuf);

/// A controller, the kind of its owners and the kind of its blueprints.
#[derive(Debug)]
pub(crate) struct Family {
    /// How the command line calls it.
    pub(crate) name: &'static str,
    /// The controller's crate and binary.
    pub(crate) binary: &'static str,
    /// Kind of the owners; also the label `kind` in the controller's metrics.
    pub(crate) kind: &'static str,
    pub(crate) owners: Kind,
    /// What templates and labels call an owner.
    pub(crate) word: &'static str,
    pub(crate) blueprint_kind: &'static str,
    pub(crate) blueprints: Kind,
    /// Label of a stamped object that names the blueprint.
    pub(crate) blueprint_label: &'static str,
    /// Field of the owner that names the blueprint: in the status, but of a Runnable in the spec.
    pub(crate) blueprint_ref: &'static str,
    /// Condition of the owner that speaks of the blueprint.
    pub(crate) blueprint_condition: &'static str,
}

/// Workloads and their ClusterSupplyChain.
pub(crate) static SUPPLY_CHAIN: Family = Family {
    name: "supply-chain",
    binary: "supplychain-controller",
    kind: "Workload",
    owners: Kind::new(CARTO, "workloads"),
    word: "workload",
    blueprint_kind: "ClusterSupplyChain",
    blueprints: Kind::new(CARTO, "clustersupplychains"),
    blueprint_label: "carto.run/supply-chain-name",
    blueprint_ref: "supplyChainRef",
    blueprint_condition: "SupplyChainReady",
};

/// Deliverables and their ClusterDelivery.
pub(crate) static DELIVERY: Family = Family {
    name: "delivery",
    binary: "delivery-controller",
    kind: "Deliverable",
    owners: Kind::new(CARTO, "deliverables"),
    word: "deliverable",
    blueprint_kind: "ClusterDelivery",
    blueprints: Kind::new(CARTO, "clusterdeliveries"),
    blueprint_label: "carto.run/delivery-name",
    blueprint_ref: "deliveryRef",
    blueprint_condition: "DeliveryReady",
};

/// Runnables and their ClusterRunTemplate.
pub(crate) static RUNNABLE: Family = Family {
    name: "runnable",
    binary: "runnable-controller",
    kind: "Runnable",
    owners: Kind::new(CARTO, "runnables"),
    word: "runnable",
    blueprint_kind: "ClusterRunTemplate",
    blueprints: Kind::new(CARTO, "clusterruntemplates"),
    blueprint_label: "carto.run/run-template-name",
    blueprint_ref: "runTemplateRef",
    blueprint_condition: "RunTemplateReady",
};

/// PodIntents and their ClusterPodConventions, which have no status and leave nothing in that of a PodIntent but their names.
pub(crate) static CONVENTIONS: Family = Family {
    name: "conventions",
    binary: "conventions-controller",
    kind: "PodIntent",
    owners: Kind::new("conventions.carto.run/v1alpha1", "podintents"),
    word: "podintent",
    blueprint_kind: "ClusterPodConvention",
    blueprints: Kind::new("conventions.carto.run/v1alpha1", "clusterpodconventions"),
    blueprint_label: "",
    blueprint_ref: "",
    blueprint_condition: "",
};

/// PodIntents of which no controller knows.
pub(crate) static TWIN_INTENT: Family = Family {
    name: "twin-intent",
    owners: Kind::new("twin.carto.run/v1alpha1", "podintents"),
    ..CONVENTIONS
};

/// Runnables of which no controller knows.
pub(crate) static TWIN: Family = Family {
    name: "twin",
    owners: Kind::new("twin.carto.run/v1alpha1", "runnables"),
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

    /// Whose owners the bare client writes, so that the controller that is measured leaves them alone. Runnables have no like
    /// in our own group.
    pub(crate) fn bare(&self) -> &'static Self {
        match self.name {
            "supply-chain" => &DELIVERY,
            "delivery" => &SUPPLY_CHAIN,
            "conventions" => &TWIN_INTENT,
            _ => &TWIN,
        }
    }

    /// Whether its owners are run, and have no chain.
    pub(crate) fn is_run(&self) -> bool {
        self.kind == RUNNABLE.kind
    }

    /// Whether it is this one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
