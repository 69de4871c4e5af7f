//! What the controller has asked the API server for.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its audit log has failed"
)]

use std::collections::BTreeSet;

use super::Stage;
use crate::AuditEvent;
use crate::audit::AuditObject;

impl Stage {
    /// The controller's requests so far, whoever's token they carry, without discovery, what fills its caches, events and
    /// its lease.
    pub fn audited(&self) -> Vec<AuditEvent> {
        let mut own = self.audited_with_discovery();
        own.retain(|event| event.object_ref.is_some());
        own
    }

    /// A list with an owner's token is one request more for each reconcile; those of the controller itself begin watches.
    pub(super) fn audited_with_discovery(&self) -> Vec<AuditEvent> {
        let mut own = self.plane.requests_by(self.cast.user_agent).unwrap();
        let itself: BTreeSet<String> = own
            .iter()
            .filter(|event| begins_watch(event))
            .map(|event| event.user.username.clone())
            .collect();
        own.retain(|event| {
            let resource = event.object_ref.as_ref().map(|object| &*object.resource);
            event.verb != "watch"
                && !matches!(resource, Some("events" | "leases"))
                && !(event.verb == "list" && itself.contains(&event.user.username))
        });
        own
    }

    /// As [`Stage::audited`], as `verb path`.
    pub fn requests(&self) -> Vec<String> {
        shown(&self.audited())
    }

    /// The writes so far to stamped objects: `verb plural/name code`.
    pub fn writes(&self) -> Vec<String> {
        let own = self.audited();
        own.iter()
            .filter(|event| event.is_write())
            .filter_map(|event| Some((event, event.object_ref.as_ref()?)))
            .filter(|(_, object)| object.api_group != "carto.run" && object.subresource.is_empty())
            .map(|(event, object)| {
                let code = event
                    .response_status
                    .as_ref()
                    .map_or(0, |status| status.code);
                format!("{} {}/{} {code}", event.verb, object.resource, object.name)
            })
            .collect()
    }
}

/// Whether it is the list of all objects of a kind of ours, which only the controller itself sends.
fn begins_watch(event: &AuditEvent) -> bool {
    let is_ours =
        |object: &AuditObject| object.api_group == "carto.run" && object.namespace.is_empty();
    event.verb == "list" && event.object_ref.as_ref().is_some_and(is_ours)
}

/// As `verb path`.
pub(super) fn shown(events: &[AuditEvent]) -> Vec<String> {
    events
        .iter()
        .map(|event| format!("{} {}", event.verb, event.request_uri))
        .collect()
}
