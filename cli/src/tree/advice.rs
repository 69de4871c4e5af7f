//! What to do next, by the reason of the condition that says why nothing moves.

use std::fmt;

use api_types::{BlueprintSpec, Condition, ConditionStatus, ConditionType, Reason};

use api_types::status::StampedRef;
use realizer::Family;

use super::{OwnerView, Step};
use crate::target::TargetKind;

/// The owner that advice is about; displays as `workload dev/web-app`.
pub(super) struct Subject<'a> {
    family: Family,
    namespace: &'a str,
    name: &'a str,
    blueprint: &'a str,
    account: String,
    account_namespace: &'a str,
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}/{}",
            self.family.owner_word(),
            self.namespace,
            self.name
        )
    }
}

impl<'a> Subject<'a> {
    pub(super) fn new(
        family: Family,
        owner: &'a OwnerView,
        blueprint: Option<&'a BlueprintSpec>,
    ) -> Self {
        let namespace = owner.metadata.namespace.as_str();
        let lent = blueprint.and_then(|spec| spec.service_account_ref.as_ref());
        let own = owner
            .spec
            .service_account_name
            .as_deref()
            .filter(|name| !name.is_empty());
        // The owner's choice wins and is in its own namespace (spec 3.9).
        let (account, account_namespace) = match (own, lent) {
            (Some(own), _) => (own, namespace),
            (None, Some(lent)) => (
                lent.name.as_str(),
                lent.namespace
                    .as_deref()
                    .filter(|name| !name.is_empty())
                    .unwrap_or(namespace),
            ),
            (None, None) => ("default", namespace),
        };
        Self {
            family,
            namespace,
            name: &owner.metadata.name,
            blueprint: owner.chosen.name.as_deref().unwrap_or_default(),
            account: account.to_owned(),
            account_namespace,
        }
    }

    /// Nothing was written: the controller does not run, or is behind.
    pub(super) fn check_controller(&self) -> String {
        check_controller(TargetKind::Owner(self.family).controller())
    }

    fn look_at_controller_log(&self) -> String {
        let controller = TargetKind::Owner(self.family).controller();
        format!(
            "it is tried again by itself; if it stays, read the log: kubectl logs -n carto-system deployment/{controller}"
        )
    }

    fn compare_selectors(&self) -> String {
        format!(
            "compare the labels (kubectl get {} {} -n {} --show-labels) with the selectors (kubectl get {} -o custom-columns=NAME:.metadata.name,SELECTOR:.spec.selector)",
            self.family.owner_word(),
            self.name,
            self.namespace,
            self.family.blueprint_plural(),
        )
    }

    fn read_blueprint(&self) -> String {
        format!(
            "kubectl describe {} {}",
            self.family.blueprint_plural(),
            self.blueprint
        )
    }
}

/// For what hinders the owner before any step is tried, or when no step explains it.
pub(super) fn for_owner(subject: &Subject<'_>, condition: &Condition) -> String {
    let words = subject.family.blueprint_words();
    let by_reason: [(&[Reason], String); 5] = [
        (
            &[
                Reason::WorkloadLabelsMissing,
                Reason::DeliverableLabelsMissing,
            ],
            format!(
                "give it the labels a {words} selects by; {}",
                subject.compare_selectors()
            ),
        ),
        (
            &[Reason::SupplyChainNotFound, Reason::DeliveryNotFound],
            subject.compare_selectors(),
        ),
        (
            &[
                Reason::MultipleSupplyChainMatches,
                Reason::MultipleDeliveryMatches,
            ],
            format!(
                "make one selector more specific than the others; {}",
                subject.compare_selectors()
            ),
        ),
        (
            &[Reason::TemplatesNotFound],
            format!(
                "create the templates that are named, or correct their names: {}",
                subject.read_blueprint()
            ),
        ),
        (
            &[Reason::ServiceAccountError],
            format!(
                "create it: kubectl create serviceaccount {} -n {}",
                subject.account, subject.account_namespace
            ),
        ),
    ];
    if let Some(advice) = chosen(by_reason, condition) {
        return advice;
    }
    if condition.is(subject.family.blueprint_ready()) {
        return subject.read_blueprint();
    }
    subject.look_at_controller_log()
}

/// For a step.
pub(super) fn for_step(subject: &Subject<'_>, step: &Step, condition: &Condition) -> String {
    if condition.is(ConditionType::Healthy) {
        return examine_object(subject, step);
    }
    let read_template = read_template(step);
    let by_reason: [(&[Reason], String); 6] = [
        (
            &[Reason::TemplateObjectRetrievalFailure],
            format!(
                "see whether the template is there: {read_template}; and the {}: {}",
                subject.family.blueprint_words(),
                subject.read_blueprint()
            ),
        ),
        (
            &[Reason::TemplateStampFailure],
            format!(
                "correct the template or what the {} gives it: {read_template}",
                subject.family.owner_word()
            ),
        ),
        (
            &[Reason::TemplateRejectedByAPIServer],
            check_rejection(subject, step),
        ),
        (
            &[
                Reason::ResolveTemplateOptionsError,
                Reason::TemplateOptionsMatchError,
            ],
            format!(
                "make exactly one option's selector match: {}",
                subject.read_blueprint()
            ),
        ),
        (
            &[Reason::InputsNotReady, Reason::PassThrough],
            format!(
                "see which steps wait for one another, or for one that is not there: {}",
                subject.read_blueprint()
            ),
        ),
        (
            &[
                Reason::MissingValueAtPath,
                Reason::ConditionNotMet,
                Reason::FailedConditionMet,
            ],
            examine_output(subject, step, condition, &read_template),
        ),
    ];
    chosen(by_reason, condition).unwrap_or_else(|| subject.look_at_controller_log())
}

fn chosen<const N: usize>(
    by_reason: [(&[Reason], String); N],
    condition: &Condition,
) -> Option<String> {
    let fits = |reasons: &[Reason]| {
        reasons
            .iter()
            .any(|reason| condition.reason == reason.as_str())
    };
    by_reason
        .into_iter()
        .find(|(reasons, _)| fits(reasons))
        .map(|(_, advice)| advice)
}

fn read_template(step: &Step) -> String {
    let template = step.template.as_deref().unwrap_or_default();
    match template.split_once('/') {
        Some((kind, name)) => format!("kubectl get {} {name} -o yaml", kind.to_ascii_lowercase()),
        None => "kubectl describe the options of its template".to_owned(),
    }
}

fn examine_object(subject: &Subject<'_>, step: &Step) -> String {
    let Some(object) = &step.object else {
        return subject.look_at_controller_log();
    };
    examine(object, subject.namespace)
}

/// Nothing was written: the controller does not run, or is behind.
pub(super) fn check_controller(controller: &str) -> String {
    format!(
        "if this stays, see whether {controller} runs: kubectl get pods -A -l app.kubernetes.io/name={controller}"
    )
}

/// An object says more of itself than what is mirrored.
pub(super) fn examine(object: &StampedRef, namespace: &str) -> String {
    format!(
        "look at the object: kubectl describe -n {} {}/{}",
        object.namespace.as_deref().unwrap_or(namespace),
        object
            .resource
            .as_deref()
            .or(object.kind.as_deref())
            .unwrap_or_default(),
        object.name.as_deref().unwrap_or_default(),
    )
}

/// A healthy object without the value will never have it: the path is wrong.
fn examine_output(
    subject: &Subject<'_>,
    step: &Step,
    condition: &Condition,
    read_template: &str,
) -> String {
    let health = step
        .condition(ConditionType::Healthy)
        .map(|health| health.status);
    if health == Some(ConditionStatus::True)
        && condition.reason == Reason::MissingValueAtPath.as_str()
    {
        return format!(
            "correct the path in the template ({read_template}), or {}",
            examine_object(subject, step)
        );
    }
    examine_object(subject, step)
}

fn check_rejection(subject: &Subject<'_>, step: &Step) -> String {
    let resource = step
        .object
        .as_ref()
        .and_then(|object| object.resource.as_deref())
        .unwrap_or("RESOURCE");
    format!(
        "if it is forbidden, grant it to the service account (kubectl auth can-i patch {resource} -n {} --as=system:serviceaccount:{}:{}); otherwise correct the template: {}",
        subject.namespace,
        subject.account_namespace,
        subject.account,
        read_template(step),
    )
}
