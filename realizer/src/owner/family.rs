//! The two families of owner and blueprint. Everything in which they differ is here, and only here.

use api_types::{ConditionType, Reason, TemplateKind, labels};

/// Workload with ClusterSupplyChain, or Deliverable with ClusterDelivery.
///
/// The algorithm exists once; kinds, words, labels, condition types and reasons hang on this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Workload and ClusterSupplyChain.
    SupplyChain,
    /// Deliverable and ClusterDelivery.
    Delivery,
}

impl Family {
    fn pick<T>(self, supply_chain: T, delivery: T) -> T {
        match self {
            Self::SupplyChain => supply_chain,
            Self::Delivery => delivery,
        }
    }

    /// Kind of the owner; also the `source.component` of its events.
    pub fn owner_kind(self) -> &'static str {
        self.pick("Workload", "Deliverable")
    }

    /// Plural of the owner, as in URLs.
    pub fn owner_plural(self) -> &'static str {
        self.pick("workloads", "deliverables")
    }

    /// The word for the owner in messages.
    pub fn owner_word(self) -> &'static str {
        self.pick("workload", "deliverable")
    }

    /// Kind of the blueprint.
    pub fn blueprint_kind(self) -> &'static str {
        self.pick("ClusterSupplyChain", "ClusterDelivery")
    }

    /// Plural of the blueprint, as in URLs.
    pub fn blueprint_plural(self) -> &'static str {
        self.pick("clustersupplychains", "clusterdeliveries")
    }

    /// The words for a blueprint in messages.
    ///
    /// Messages about a step say "supply chain" for both families, as upstream does
    /// (docs/behaviour/status.md#blueprint-condition); they do not come here.
    pub fn blueprint_words(self) -> &'static str {
        self.pick("supply chain", "delivery")
    }

    /// The words for several blueprints in messages.
    pub fn blueprints_words(self) -> &'static str {
        self.pick("supply chains", "deliveries")
    }

    /// Label with the owner's name; the selector of all watches on stamped kinds.
    pub fn owner_name_label(self) -> &'static str {
        self.pick(labels::WORKLOAD_NAME, labels::DELIVERABLE_NAME)
    }

    /// Label with the owner's namespace.
    pub fn owner_namespace_label(self) -> &'static str {
        self.pick(labels::WORKLOAD_NAMESPACE, labels::DELIVERABLE_NAMESPACE)
    }

    /// Label with the blueprint's name.
    pub fn blueprint_name_label(self) -> &'static str {
        self.pick(labels::SUPPLY_CHAIN_NAME, labels::DELIVERY_NAME)
    }

    /// Field of the owner's status that names the blueprint.
    pub fn status_ref_field(self) -> &'static str {
        self.pick("supplyChainRef", "deliveryRef")
    }

    /// Condition type that speaks of the blueprint.
    pub fn blueprint_ready(self) -> ConditionType {
        self.pick(
            ConditionType::SupplyChainReady,
            ConditionType::DeliveryReady,
        )
    }

    /// Kinds of the templates that a blueprint may use.
    pub fn template_kinds(self) -> &'static [TemplateKind] {
        use TemplateKind::{Config, Deployment, Image, Plain, Source, Validation};
        self.pick(
            &[Source, Image, Plain, Config],
            &[Source, Deployment, Validation, Plain, Config],
        )
    }

    pub(crate) fn labels_missing(self) -> Reason {
        self.pick(
            Reason::WorkloadLabelsMissing,
            Reason::DeliverableLabelsMissing,
        )
    }

    pub(crate) fn not_found(self) -> Reason {
        self.pick(Reason::SupplyChainNotFound, Reason::DeliveryNotFound)
    }

    pub(crate) fn multiple_matches(self) -> Reason {
        self.pick(
            Reason::MultipleSupplyChainMatches,
            Reason::MultipleDeliveryMatches,
        )
    }
}
