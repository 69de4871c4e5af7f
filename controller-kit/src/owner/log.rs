//! What the log says of an owner or blueprint: whose line it is, and when `Ready` says something
//! new (docs/behaviour/process.md#logs).

use api_types::{ConditionStatus, ConditionType};
use realizer::{Family, Outcome, Retry};
use serde_json::Value;
use tracing::{Span, debug, error, error_span, info};

use crate::object_key::ObjectKey;

/// The span of one look at a blueprint; see [`OwnerKind::span`](super::OwnerKind::span).
pub(super) fn blueprint_span(family: Family, key: &ObjectKey) -> Span {
    match family {
        Family::SupplyChain => error_span!("reconcile", "supply chain" = %key),
        Family::Delivery => error_span!("reconcile", delivery = %key),
    }
}

/// Tells, with the status that was written in place of `previous`, what is new about `Ready`. What is tried again until
/// it works is an error; what somebody has to change is one that was handled.
pub(super) fn tell(previous: &Value, outcome: &Outcome) {
    let message = message(&outcome.status);
    if says(previous) == Some((outcome.ready.as_str(), &outcome.reason, message)) {
        return;
    }
    let warned = || outcome.events.iter().find(|event| event.warning);
    let message = if message.is_empty() {
        warned().map_or("", |event| &event.message)
    } else {
        message
    };
    let reason = &*outcome.reason;
    match (outcome.ready, outcome.retry) {
        (ConditionStatus::True, _) => info!(reason, "ready"),
        (_, Retry::Backoff) => error!(reason, error = message, "not ready"),
        (ConditionStatus::False, _) => info!(reason, "handled error" = message, "not ready"),
        (ConditionStatus::Unknown, _) => {
            debug!(reason, "handled error" = message, "not ready yet");
        }
    }
}

/// The condition `Ready` of a status.
pub(super) fn ready(status: &Value) -> Option<&Value> {
    let conditions = status["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == ConditionType::Ready.as_str())
}

fn message(status: &Value) -> &str {
    ready(status)
        .and_then(|ready| ready["message"].as_str())
        .unwrap_or_default()
}

/// Status, reason and message of `Ready`.
fn says(status: &Value) -> Option<(&str, &str, &str)> {
    let ready = ready(status)?;
    let text = |field: &str| ready[field].as_str().unwrap_or_default();
    Some((text("status"), text("reason"), text("message")))
}

#[cfg(test)]
mod tests {
    use realizer::OwnerEvent;
    use serde_json::json;

    use super::*;
    use crate::owner::OwnerKind;
    use crate::telemetry::{LogLevel, logged};

    fn outcome(ready: ConditionStatus, reason: &str, message: &str, retry: Retry) -> Outcome {
        Outcome {
            status: json!({"conditions": [
                {"type": "SupplyChainReady", "status": "True", "reason": "Ready", "message": ""},
                {"type": "Ready", "status": ready.as_str(), "reason": reason, "message": message}]}),
            changed: true,
            events: Vec::new(),
            removals: Vec::new(),
            retry,
            ready,
            reason: reason.to_owned(),
            again: None,
            write_now: false,
            unless_changed: None,
            obsolete_artifacts: Vec::new(),
            tells_all: false,
            end: realizer::Ended::Settled,
        }
    }

    fn lines(level: LogLevel, act: impl FnOnce()) -> Vec<Value> {
        let text = logged(level, false, |_| {
            let key = ObjectKey::new("dev", "app");
            (OwnerKind::from(Family::SupplyChain).span)(&key).in_scope(act);
        });
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn every_line_of_a_reconcile_names_the_owner_by_its_kind() {
        let key = ObjectKey::new("dev", "app");
        for (family, owner, blueprint) in [
            (Family::SupplyChain, "workload", "supply chain"),
            (Family::Delivery, "deliverable", "delivery"),
        ] {
            for (is_owner, field) in [(true, owner), (false, blueprint)] {
                let text = logged(LogLevel::Error, false, |_| {
                    let span = if is_owner {
                        (OwnerKind::from(family).span)(&key)
                    } else {
                        blueprint_span(family, &key)
                    };
                    span.in_scope(|| error!("broken"));
                });
                let line: Value = serde_json::from_str(text.trim()).unwrap();
                assert_eq!(line["span"], json!({"name": "reconcile", field: "dev/app"}));
            }
        }
    }

    #[test]
    fn ready_is_told_when_it_says_something_new() {
        use ConditionStatus::{False, True, Unknown};
        let rejected = outcome(False, "TemplateRejectedByAPIServer", "no", Retry::Backoff);
        let failed = outcome(False, "TemplateStampFailure", "wrong", Retry::AwaitChange);
        let waiting = outcome(Unknown, "MissingValueAtPath", "waiting", Retry::AwaitChange);
        let ready = outcome(True, "Ready", "", Retry::AwaitChange);
        let told = lines(LogLevel::Info, || {
            tell(&json!({}), &rejected);
            tell(&rejected.status, &rejected);
            tell(&rejected.status, &failed);
            tell(&failed.status, &waiting);
            tell(&waiting.status, &ready);
            tell(&ready.status, &ready);
        });
        let shown: Vec<_> = told
            .iter()
            .map(|line| {
                let text = |field: &str| line[field].as_str().unwrap_or_default();
                (
                    text("level"),
                    text("reason"),
                    text("error"),
                    text("handled error"),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("ERROR", "TemplateRejectedByAPIServer", "no", ""),
                ("INFO", "TemplateStampFailure", "", "wrong"),
                ("INFO", "Ready", "", ""),
            ]
        );
    }

    #[test]
    fn where_the_condition_is_mute_the_warning_says_why() {
        let mut unreadable = outcome(ConditionStatus::Unknown, "Unknown", "", Retry::Backoff);
        unreadable.events.push(OwnerEvent {
            warning: true,
            reason: "ResourceFailed".to_owned(),
            message: "failed to get supply chains".to_owned(),
            immediate: false,
        });
        let told = lines(LogLevel::Error, || tell(&json!(null), &unreadable));
        assert_eq!(told[0]["error"], "failed to get supply chains");
    }
}
