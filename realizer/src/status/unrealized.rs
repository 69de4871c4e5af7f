//! Owners that are not realized at all (docs/behaviour/realizing.md#reconcile,
//! docs/behaviour/status.md#blueprint-condition).

use std::sync::Arc;

use api_types::{BlueprintRef, Condition, ConditionStatus, ConditionType, Reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::owner::lineage;
use crate::owner::owner_status::OwnerStatus;
use crate::status::conditions::{self, Conditions};
use crate::status::events;
use crate::status::explanation::Explanation;
use crate::status::progress::{self, Hindrance};
use crate::status::report::outcome;
use crate::{Blueprint, Ended, ErrorKind, Outcome, Owner, OwnerEvent, Retry, weigh_blueprints};
use template_language::go_format;

/// Why an owner is not realized at all. The resources in its status stay as they are, and so do its objects.
#[derive(Clone, Debug)]
pub enum Unrealized<'a> {
    /// It has no labels.
    LabelsMissing,
    /// No blueprint selects it. One that might have could not be evaluated with what is in the owner; why, for a warning.
    NotFound(Option<String>),
    /// Several select it equally.
    Multiple(Vec<String>),
    /// The blueprints could not be evaluated or read; why.
    BlueprintUnreadable(String),
    /// The blueprint is not for owners of this namespace; what it asks for of the namespace, in words.
    NamespaceNotAllowed(&'a Blueprint, String),
    /// The blueprint is not ready.
    BlueprintNotReady(&'a Blueprint),
    /// Too many owners in a row were stamped for one another; how many may be.
    StampedTooDeep(&'a Blueprint, usize),
    /// It is larger than what is realized; how large, and how large it may be, in bytes.
    TooLarge(&'a Blueprint, usize, usize),
    /// The blueprint lends a ServiceAccount of another namespace, and none is taken; its namespace and name.
    LentAccountRefused(&'a Blueprint, (String, String)),
    /// The ServiceAccount of this namespace and name could not be read; the inner error, for example
    /// `ServiceAccount "sa" not found`.
    ServiceAccount(&'a Blueprint, (String, String), String),
    /// No token for it; the whole message, for example `fetch token: …`.
    ServiceAccountToken(&'a Blueprint, String),
    /// The API server did not issue a token, and not because of the account; the whole message.
    Unavailable(&'a Blueprint, String),
}

impl<'a> Unrealized<'a> {
    /// The blueprint, where one was chosen.
    fn blueprint(&self) -> Option<&'a Blueprint> {
        match self {
            Self::LabelsMissing
            | Self::NotFound(_)
            | Self::Multiple(_)
            | Self::BlueprintUnreadable(_) => None,
            Self::NamespaceNotAllowed(blueprint, _)
            | Self::BlueprintNotReady(blueprint)
            | Self::StampedTooDeep(blueprint, _)
            | Self::TooLarge(blueprint, ..)
            | Self::LentAccountRefused(blueprint, _)
            | Self::ServiceAccount(blueprint, ..)
            | Self::ServiceAccountToken(blueprint, _)
            | Self::Unavailable(blueprint, _) => Some(blueprint),
        }
    }

    /// Whether nothing will change until somebody does something. A blueprint, and its templates, may come with the owner.
    fn is_stuck(&self) -> bool {
        match self {
            Self::NotFound(_) | Self::BlueprintNotReady(_) | Self::Unavailable(..) => false,
            Self::LabelsMissing
            | Self::Multiple(_)
            | Self::BlueprintUnreadable(_)
            | Self::NamespaceNotAllowed(..)
            | Self::StampedTooDeep(..)
            | Self::TooLarge(..)
            | Self::LentAccountRefused(..)
            | Self::ServiceAccount(..)
            | Self::ServiceAccountToken(..) => true,
        }
    }

    /// Why the owner is as it is. `blueprints` are those that there were to choose among, `now` is for transition times.
    pub fn explain<'e>(
        &self,
        owner: &'e Owner,
        blueprints: &'e [Arc<Blueprint>],
        now: Timestamp,
    ) -> Explanation<'e> {
        Explanation {
            candidates: weigh_blueprints(owner, blueprints),
            ..self.explanation(owner, &Time(now))
        }
    }

    fn explanation(&self, owner: &Owner, now: &Time) -> Explanation<'static> {
        let mut conditions = Conditions::new(&owner.status.conditions, now);
        if let Some((type_, status, reason, message)) = self.condition(owner) {
            if type_ == ConditionType::ResourcesSubmitted {
                let blueprint = owner.family.blueprint_ready();
                conditions.add(blueprint, ConditionStatus::True, &Reason::Ready, "");
            }
            conditions.add(type_, status, &reason, message);
        }
        conditions.derive_ready();
        let first = progress::unready(conditions.list()).map(|ready| Hindrance {
            message: self.text().unwrap_or_else(|| ready.message.clone()),
            ..Hindrance::of(ready, self.is_stuck())
        });
        Explanation {
            blueprint: self.blueprint().map(|blueprint| blueprint.name.to_string()),
            conditions: conditions.finish(),
            first,
            ..Explanation::default()
        }
    }

    /// What no condition says.
    fn text(&self) -> Option<String> {
        match self {
            Self::BlueprintUnreadable(cause) => Some(cause.clone()),
            Self::LabelsMissing
            | Self::NotFound(_)
            | Self::Multiple(_)
            | Self::NamespaceNotAllowed(..)
            | Self::BlueprintNotReady(_)
            | Self::StampedTooDeep(..)
            | Self::TooLarge(..)
            | Self::LentAccountRefused(..)
            | Self::ServiceAccount(..)
            | Self::ServiceAccountToken(..)
            | Self::Unavailable(..) => None,
        }
    }

    /// Upstream sleeps after ServiceAccount errors and misses the fix; we look again slowly
    /// (docs/behaviour/service-accounts.md#missing).
    fn retry(&self) -> Retry {
        match self {
            Self::LabelsMissing
            | Self::NotFound(_)
            | Self::Multiple(_)
            | Self::NamespaceNotAllowed(..)
            | Self::BlueprintNotReady(_)
            | Self::StampedTooDeep(..)
            | Self::TooLarge(..)
            | Self::LentAccountRefused(..) => Retry::AwaitChange,
            Self::ServiceAccount(..) | Self::ServiceAccountToken(..) => Retry::Slow,
            Self::BlueprintUnreadable(_) | Self::Unavailable(..) => Retry::Backoff,
        }
    }

    /// Who has to act.
    fn kind(&self) -> ErrorKind {
        match self {
            Self::LabelsMissing
            | Self::NotFound(_)
            | Self::Multiple(_)
            | Self::BlueprintUnreadable(_)
            | Self::NamespaceNotAllowed(..)
            | Self::BlueprintNotReady(_)
            | Self::StampedTooDeep(..)
            | Self::TooLarge(..)
            | Self::LentAccountRefused(..)
            | Self::ServiceAccount(..) => ErrorKind::UserMustFix,
            Self::ServiceAccountToken(..) | Self::Unavailable(..) => ErrorKind::Infrastructure,
        }
    }

    /// The condition that says so. None for unreadable blueprints: then `Ready` is Unknown
    /// (docs/behaviour/selection.md#broken-blueprint).
    fn condition(&self, owner: &Owner) -> Option<(ConditionType, ConditionStatus, Reason, String)> {
        use ConditionStatus::False;
        let family = owner.family;
        let (word, blueprint) = (family.owner_word(), family.blueprint_words());
        let of_blueprint =
            |reason, message| Some((family.blueprint_ready(), False, reason, message));
        let of_resources =
            |reason, message| Some((ConditionType::ResourcesSubmitted, False, reason, message));
        match self {
            Self::BlueprintUnreadable(_) => None,
            Self::LabelsMissing => of_blueprint(
                family.labels_missing(),
                format!("{word} has no labels to match to {blueprint}"),
            ),
            Self::NotFound(_) => of_blueprint(
                family.not_found(),
                format!(
                    "no {blueprint} found where full selector is satisfied by labels: {}",
                    go_format::display(&json!(owner.labels))
                ),
            ),
            Self::Multiple(_) => of_blueprint(
                family.multiple_matches(),
                format!("{word} may only match a single {blueprint}'s selector"),
            ),
            Self::NamespaceNotAllowed(blueprint, unmet) => of_blueprint(
                Reason::NamespaceNotAllowed,
                not_allowed(owner, blueprint, unmet),
            ),
            Self::BlueprintNotReady(blueprint) => {
                let (reason, message) = match &blueprint.ready {
                    Some(ready) => (Reason::copied(&ready.reason), ready.message.clone()),
                    None => (Reason::Unknown, String::new()),
                };
                of_blueprint(reason, message)
            }
            Self::StampedTooDeep(_, most) => {
                let own = lineage::named(family.owner_kind(), owner.name.as_str());
                of_resources(
                    Reason::StampedTooDeep,
                    too_deep(&owner.stamped_for, &own, *most),
                )
            }
            Self::TooLarge(_, size, most) => {
                of_resources(Reason::OwnerTooLarge, too_large(word, *size, *most))
            }
            Self::LentAccountRefused(lender, account) => of_resources(
                Reason::LentAccountRefused,
                lent_refused(owner, lender, account),
            ),
            Self::ServiceAccount(_, (namespace, name), cause) => {
                let message = no_service_account((namespace, name), cause);
                of_resources(Reason::ServiceAccountError, message)
            }
            Self::ServiceAccountToken(_, message) => {
                of_resources(Reason::ServiceAccountTokenError, message.clone())
            }
            Self::Unavailable(_, message) => {
                of_resources(Reason::ApiServerUnavailable, message.clone())
            }
        }
    }
}

/// The message when a blueprint is not for the namespace of an owner.
fn not_allowed(owner: &Owner, blueprint: &Blueprint, unmet: &str) -> String {
    let (word, words) = (owner.family.owner_word(), owner.family.blueprint_words());
    format!(
        "{words} [{}] takes no {word} of namespace [{}]: {unmet}; have a cluster administrator label the namespace as \
         spec.allowedNamespaces of the {words} asks, or select another {words}. What is there stays as it is",
        blueprint.name, owner.namespace
    )
}

/// The message when too many owners led to this one.
pub(crate) fn too_deep(stamped_for: &[String], own: &str, most: usize) -> String {
    let way: Vec<&str> = stamped_for
        .iter()
        .map(String::as_str)
        .chain([own])
        .collect();
    format!(
        "nothing is stamped, because this is owner {} in a row that was stamped for the one before it, and {most} may follow \
         the first: {}; a template stamps what it is stamped for itself: mend it, and delete the first of them",
        way.len(),
        way.join(" -> ")
    )
}

/// The message when an owner is too large.
pub(crate) fn too_large(word: &str, size: usize, most: usize) -> String {
    format!(
        "nothing is stamped, because the {word} has {} KiB without its status, and {} KiB are allowed; move data into an \
         object that it refers to",
        size.div_ceil(1024),
        most / 1024
    )
}

/// The message when an account is lent that is not taken.
fn lent_refused(owner: &Owner, lender: &Blueprint, (namespace, name): &(String, String)) -> String {
    let family = owner.family;
    format!(
        "nothing is stamped, because {} [{}] lends service account [{name}] of namespace [{namespace}], and this controller takes \
         none of another namespace than the {}'s (--no-lent-accounts); name a service account of namespace [{}] in \
         spec.serviceAccountName",
        family.blueprint_words(),
        lender.name,
        family.owner_word(),
        owner.namespace
    )
}

/// The message when there is no ServiceAccount of this namespace and name.
pub(crate) fn no_service_account((namespace, name): (&str, &str), cause: &str) -> String {
    format!(
        "failed to get service account object from api server [{namespace}/{name}]: failed to get object \
         [{namespace}/{name}] from api server: {cause}"
    )
}

/// The outcome for an owner that is not realized. `now` is for transition times.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the reason is made for this one call"
)]
pub fn report_unrealized(owner: &Owner, why: Unrealized<'_>, now: Timestamp) -> Outcome {
    let now = Time(now);
    let Explanation {
        conditions, first, ..
    } = why.explanation(owner, &now);
    let conditions = with_progress(conditions, first.as_ref(), owner, &now);
    let events = warning(owner, &why, &conditions).into_iter().collect();
    let status = OwnerStatus {
        observed_generation: Some(owner.generation),
        blueprint_ref: match why.blueprint() {
            Some(blueprint) => {
                BlueprintRef::new(blueprint.family.blueprint_kind(), blueprint.name.as_str())
            }
            None => owner.status.blueprint_ref.clone(),
        },
        conditions,
        stamped_for: owner.stamped_for.clone(),
        summary: first.map(|first| first.summary(owner.status.summary.as_ref(), &now)),
        ..owner.status.clone()
    };
    let outcome = outcome(owner, &status, events, Vec::new(), why.retry());
    Outcome {
        end: Ended::of([why.kind()], outcome.ready),
        ..outcome
    }
}

fn with_progress(
    conditions: Vec<Condition>,
    first: Option<&Hindrance>,
    owner: &Owner,
    now: &Time,
) -> Vec<Condition> {
    let before = &owner.status.conditions;
    let mut conditions = Conditions::go_on(conditions, before, now);
    // What is pending stays pending: without a walk nothing is deleted.
    if let Some(pending) = conditions::of_type(before, ConditionType::DeletionPending) {
        conditions.carry_over(pending.clone());
    }
    if let Some(first) = first {
        first.add(&mut conditions);
    }
    conditions.finish()
}

/// A warning if `Ready` says something new. Missing labels and a blueprint that is not there or not ready yet are
/// ordinary states of a fresh owner.
fn warning(owner: &Owner, why: &Unrealized<'_>, conditions: &[Condition]) -> Option<OwnerEvent> {
    let ready = conditions::of_type(conditions, ConditionType::Ready)?;
    let before = conditions::of_type(&owner.status.conditions, ConditionType::Ready);
    if before.is_some_and(|before| before.says_the_same_as(ready)) {
        return None;
    }
    let message = match why {
        Unrealized::LabelsMissing
        | Unrealized::NotFound(None)
        | Unrealized::BlueprintNotReady(_) => return None,
        Unrealized::BlueprintUnreadable(cause) | Unrealized::NotFound(Some(cause)) => cause.clone(),
        Unrealized::Multiple(names) => format!("{}: {}", ready.message, names.join(", ")),
        Unrealized::NamespaceNotAllowed(..)
        | Unrealized::StampedTooDeep(..)
        | Unrealized::TooLarge(..)
        | Unrealized::LentAccountRefused(..)
        | Unrealized::ServiceAccount(..)
        | Unrealized::ServiceAccountToken(..)
        | Unrealized::Unavailable(..) => ready.message.clone(),
    };
    Some(events::of_status(
        api_types::EventReason::ResourceFailed,
        message,
    ))
}

#[cfg(test)]
mod tests;
