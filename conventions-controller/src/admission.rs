//! Admission of PodIntents and ClusterPodConventions: the Go controller's paths, verdicts and
//! messages. Pods and their presets are served beside them.

use controller_kit::webhook::{
    Admission, Answer, Operation, Route, Routes, Validate, Validating, routes,
};
use conventions::admission::{
    convention_defaults, convention_refusal, intent_defaults, intent_refusal,
};
use serde_json::Value;

use crate::args::ConventionArgs;
use crate::controller::{CONVENTIONS, INTENTS};

/// Fills in what is left out.
struct Defaults;

/// Refuses what could not work.
struct Rules;

impl Validate for Defaults {
    fn validate(&self, kind: &str, object: &Value, _: Operation) -> Answer {
        let patch = if kind == INTENTS.kind {
            intent_defaults(object)
        } else {
            convention_defaults(object)
        };
        Answer {
            patch,
            ..Answer::default()
        }
    }
}

impl Validate for Rules {
    fn validate(&self, kind: &str, object: &Value, _: Operation) -> Answer {
        let error = if kind == INTENTS.kind {
            intent_refusal(object)
        } else {
            convention_refusal(object)
        };
        Answer {
            error,
            ..Answer::default()
        }
    }
}

/// As the flags ask for it.
pub(crate) fn admission(args: &ConventionArgs, more: Routes) -> Admission {
    let mutating = args.mutating_webhook_configuration.clone();
    let mut routes = all();
    routes.extend(more);
    let of_presets = &args.presets.preset_webhook_configuration;
    Admission::new(&args.webhook, routes)
        .named_by_mutating(mutating)
        .named_by_mutating(of_presets.clone())
        .named_by_validating(of_presets.clone())
}

fn all() -> Routes {
    let mut all = routes(&MUTATING, Validating::new(Defaults));
    all.extend(routes(&VALIDATING, Validating::new(Rules)));
    all
}

/// The paths that existing MutatingWebhookConfigurations name.
const MUTATING: [Route; 2] = [
    Route {
        path: "/mutate-conventions-carto-run-v1alpha1-podintent",
        kind: INTENTS.kind,
    },
    Route {
        path: "/mutate-conventions-carto-run-v1alpha1-clusterpodconvention",
        kind: CONVENTIONS.kind,
    },
];

/// Those of ValidatingWebhookConfigurations.
const VALIDATING: [Route; 2] = [
    Route {
        path: "/validate-conventions-carto-run-v1alpha1-podintent",
        kind: INTENTS.kind,
    },
    Route {
        path: "/validate-conventions-carto-run-v1alpha1-clusterpodconvention",
        kind: CONVENTIONS.kind,
    },
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_has_its_own_defaults_and_rules() {
        let nothing = json!({"spec": {}});
        let of = |answer: Answer| (answer.error.is_some(), answer.patch.len());
        let create = Operation::Create;
        let defaults = |kind: &str| of(Defaults.validate(kind, &nothing, create));
        let rules = |kind: &str| of(Rules.validate(kind, &nothing, create));
        assert_eq!(defaults("PodIntent"), (false, 1));
        assert_eq!(defaults("ClusterPodConvention"), (false, 2));
        assert_eq!(rules("PodIntent"), (false, 0));
        assert_eq!(rules("ClusterPodConvention"), (true, 0));
        assert_eq!(all().len(), 4);
    }
}
