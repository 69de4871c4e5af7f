//! Admission of blueprints and templates: upstream's paths, verdicts and messages
//! (docs/behaviour/admission.md#serving), the same in every controller of
//! owners.

use api_types::validation;
use serde_json::Value;

use crate::args::WebhookArgs;
use crate::webhook::{Admission, Answer, Operation, Route, Validate, Validating, routes};

/// The rules of [`api_types::validation`]. The policies in `deploy/policies` are a copy of those that refuse.
pub(crate) struct Rules;

impl Validate for Rules {
    fn validate(&self, kind: &str, object: &Value, _: Operation) -> Answer {
        let validation::Verdict { error, warnings } = validation::validate(kind, object);
        Answer {
            error,
            warnings,
            ..Answer::default()
        }
    }
}

/// Admission of blueprints and templates, as the flags ask for it.
pub(super) fn of_blueprints(args: &WebhookArgs) -> Admission {
    Admission::new(args, routes(&ROUTES, Validating::new(Rules)))
}

/// The routes (docs/behaviour/admission.md#serving) that existing ValidatingWebhookConfigurations
/// name, and that of the kind that is ours alone.
pub const ROUTES: [Route; 9] = [
    Route {
        path: "/validate-carto-run-v1alpha1-clustersupplychain",
        kind: "ClusterSupplyChain",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clusterdelivery",
        kind: "ClusterDelivery",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clustersourcetemplate",
        kind: "ClusterSourceTemplate",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clusterimagetemplate",
        kind: "ClusterImageTemplate",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clusterconfigtemplate",
        kind: "ClusterConfigTemplate",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clustertemplate",
        kind: "ClusterTemplate",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clusterdeploymenttemplate",
        kind: "ClusterDeploymentTemplate",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clusterdeploymentvalidationtemplate",
        kind: "ClusterDeploymentValidationTemplate",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clusterruntemplate",
        kind: "ClusterRunTemplate",
    },
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_verdict_is_that_of_the_shared_rules() {
        let chain = json!({"metadata": {"name": "chain"}, "spec": {"resources": []}});
        let verdict = Rules.validate("ClusterSupplyChain", &chain, Operation::Create);
        assert_eq!(
            verdict.error.as_deref(),
            Some(
                "error validating clustersupplychain [chain]: at least one selector, selectorMatchExpression, selectorMatchField must be specified"
            )
        );
    }

    #[test]
    fn every_route_has_rules() {
        for route in ROUTES {
            let refused = Rules.validate(route.kind, &json!("no object"), Operation::Create);
            assert!(refused.error.is_some(), "{}", route.kind);
        }
    }
}
