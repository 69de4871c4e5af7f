//! The members of an immutable family: which one outputs are read from, and which ones go
//! (docs/behaviour/objects.md#retention).

use api_types::names::ResourceName;
use api_types::{ConditionStatus, RetentionPolicy, TemplateKind};
use serde_json::Value;

use crate::template::health::CompiledRule;
use crate::{ObjectRef, Observed, Removal, RemovalReason};

/// How the members of a family are judged, and how many are kept.
#[derive(Clone, Copy)]
pub(crate) struct FamilyRule<'t> {
    pub(crate) health: &'t CompiledRule,
    pub(crate) kind: TemplateKind,
    pub(crate) retention: RetentionPolicy,
}

impl FamilyRule<'_> {
    /// Whether a member has succeeded.
    pub(crate) fn judge(&self, member: &Observed) -> ConditionStatus {
        self.health.judge_member(&member.object, self.kind)
    }
}

impl Observed {
    /// An object as the API server returned it, known to be made by a walk; everything else is to be filled in.
    pub fn of(object: Value) -> Self {
        Self {
            qualified_resource: None,
            namespaced: true,
            sequence: 0,
            is_known: true,
            digest: None,
            unchanged: true,
            state: None,
            values: None,
            is_as_left: false,
            beside: None,
            version: 0,
            is_gone: false,
            terminating: object["metadata"]["deletionTimestamp"].is_string(),
            object,
        }
    }

    /// What members of a family are ordered by, the newest last: sequence, then creation time (RFC 3339 in UTC sorts as
    /// text), then name. What is not known has no sequence, so it is older than all that is.
    pub fn order_key(&self) -> (u64, &str, &str) {
        let text = |field: &str| self.object["metadata"][field].as_str().unwrap_or_default();
        (self.sequence, text("creationTimestamp"), text("name"))
    }
}

/// The newest of these.
pub(crate) fn newest<'m>(members: impl Iterator<Item = &'m Observed>) -> Option<&'m Observed> {
    members.max_by(|a, b| a.order_key().cmp(&b.order_key()))
}

/// The newest member that is healthy and stays.
pub(crate) fn newest_healthy<'m>(
    rule: FamilyRule<'_>,
    members: impl IntoIterator<Item = &'m Observed>,
) -> Option<&'m Observed> {
    newest(members.into_iter().filter(|member| {
        member.is_known && !member.terminating && rule.judge(member) == ConditionStatus::True
    }))
}

/// The members beyond the retention policy, oldest last. Successes and failures are counted apart; running ones are
/// neither counted nor removed, and the one submitted last always stays.
pub(crate) fn superseded<'m>(
    rule: FamilyRule<'_>,
    step: &ResourceName,
    submitted: &Observed,
    members: impl IntoIterator<Item = &'m Observed>,
) -> Vec<Removal> {
    let mut newest_first: Vec<&Observed> = members
        .into_iter()
        .filter(|member| !member.terminating)
        .collect();
    newest_first.sort_by(|a, b| b.order_key().cmp(&a.order_key()));
    let (mut successes, mut failures) = (0_i64, 0_i64);
    let mut removals = Vec::new();
    for member in newest_first {
        let (count, limit) = match rule.judge(member) {
            ConditionStatus::True => (&mut successes, rule.retention.max_successful_runs),
            ConditionStatus::False => (&mut failures, rule.retention.max_failed_runs),
            ConditionStatus::Unknown => continue,
        };
        *count += 1;
        if *count > limit
            && member.object["metadata"]["name"] != submitted.object["metadata"]["name"]
        {
            removals.push(Removal {
                resource: step.clone(),
                object: object_ref(member),
                reason: RemovalReason::Retention,
            });
        }
    }
    removals
}

/// The reference to an observed object, with its uid.
pub(crate) fn object_ref(observed: &Observed) -> ObjectRef {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (object, metadata) = (&observed.object, &observed.object["metadata"]);
    ObjectRef {
        api_version: text(&object["apiVersion"]),
        kind: text(&object["kind"]),
        namespace: if observed.namespaced {
            text(&metadata["namespace"])
        } else {
            String::new()
        },
        name: text(&metadata["name"]),
        qualified_resource: observed.qualified_resource.clone(),
        uid: Some(text(&metadata["uid"])).filter(|uid| !uid.is_empty()),
    }
}

#[cfg(test)]
mod tests;
