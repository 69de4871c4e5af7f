//! What the log says of what is changed and what came of it: values of literal variables never.

use api_types::ConditionStatus;
use controller_kit::cluster::{RequestError, chain};
use convention_protocol::PodTemplate;
use conventions::PodIntentStatus;
use conventions::diff::diff;
use serde_json::Value;
use tracing::{debug, enabled, info};

use crate::controller::ready_in;

/// Tells what a convention made of a template.
pub(crate) fn applied(convention: &str, before: &PodTemplate, after: &PodTemplate) {
    if !enabled!(tracing::Level::DEBUG) {
        return;
    }
    let diff = diff(before, after).join("; ");
    debug!(convention, diff, "applied convention");
}

/// Tells what a status is to become, before it is written.
pub(crate) fn updating(before: &PodIntentStatus, after: &PodIntentStatus) {
    if !enabled!(tracing::Level::DEBUG) {
        return;
    }
    let template = |status: &PodIntentStatus| status.template.clone().unwrap_or_default();
    let diff = diff(&template(before), &template(after)).join("; ");
    debug!(diff, "updating status");
}

/// Tells what came of it.
pub(crate) fn updated(written: &Result<Value, RequestError>) {
    match written {
        Ok(object) => {
            let version = object["metadata"]["resourceVersion"].as_str();
            debug!(version, "updated status");
        }
        Err(error) => debug!(error = %chain(error), "status not updated"),
    }
}

/// Tells what is new about Ready.
pub(crate) fn ready(before: &PodIntentStatus, after: &PodIntentStatus) {
    let ready = after
        .conditions
        .iter()
        .find(|it| it.is(api_types::ConditionType::Ready));
    let Some(ready) = ready else { return };
    if before
        .conditions
        .iter()
        .any(|it| it.says_the_same_as(ready))
    {
        return;
    }
    let (reason, message) = (&*ready.reason, &*ready.message);
    match ready_in(after) {
        ConditionStatus::True => info!(reason, "ready"),
        ConditionStatus::False | ConditionStatus::Unknown => {
            info!(reason, "handled error" = message, "not ready");
        }
    }
}
