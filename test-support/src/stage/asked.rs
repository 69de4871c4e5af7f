//! What the controller has asked the API server for.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its audit log has failed"
)]

use std::collections::BTreeSet;

use super::Stage;
use crate::AuditEvent;
use crate::audit::AuditObject;

/// So many watches may begin again while owners are reconciled: the API server ends each after some minutes.
const WATCHES_AGAIN: usize = 2;

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
            event.verb != "watch"
                && !matches!(resource(event), Some("events" | "leases"))
                && !(event.verb == "list" && itself.contains(&event.user.username))
        });
        own
    }

    /// All that the controller has sent so far, whoever's token it carries: lists, watches and events as well. Only its lease
    /// is left out.
    pub(super) fn traffic(&self) -> Vec<AuditEvent> {
        let mut own = self.plane.requests_by(self.cast.user_agent).unwrap();
        own.retain(|event| resource(event) != Some("leases"));
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

/// What of the traffic is more than watches that begin again.
pub(super) fn beyond_allowance(mut traffic: Vec<AuditEvent>) -> Vec<AuditEvent> {
    let again = traffic.iter().filter(|event| event.verb == "watch").count();
    if again <= WATCHES_AGAIN {
        traffic.retain(|event| event.verb != "watch");
    }
    traffic
}

fn resource(event: &AuditEvent) -> Option<&str> {
    let object = event.object_ref.as_ref();
    object.map(|object| &*object.resource)
}

/// Whether it is the list of all objects of a kind of ours, which only the controller itself sends.
fn begins_watch(event: &AuditEvent) -> bool {
    let is_ours = |object: &AuditObject| {
        object.api_group.ends_with("carto.run") && object.namespace.is_empty()
    };
    event.verb == "list" && event.object_ref.as_ref().is_some_and(is_ours)
}

/// As `verb path`.
pub(super) fn shown(events: &[AuditEvent]) -> Vec<String> {
    events
        .iter()
        .map(|event| format!("{} {}", event.verb, event.request_uri))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(verb: &str, resource: &str) -> AuditEvent {
        let object = serde_json::json!({"resource": resource});
        let event = serde_json::json!({"auditID": "1", "verb": verb, "requestURI": "/", "user": {}, "objectRef": object});
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn a_few_watches_that_begin_again_are_nothing_and_all_else_counts() {
        let watch = || asked("watch", "workloads");
        assert_eq!(beyond_allowance(vec![watch(), watch()]), []);
        assert_eq!(beyond_allowance(vec![watch(); 3]).len(), 3);
        for (verb, resource) in [
            ("list", "workloads"),
            ("create", "events"),
            ("get", "configmaps"),
            ("patch", "workloads"),
        ] {
            let sent = vec![watch(), asked(verb, resource)];
            assert_eq!(beyond_allowance(sent), [asked(verb, resource)]);
        }
    }
}
