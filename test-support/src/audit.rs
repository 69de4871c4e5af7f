//! What the API server was asked, from its audit log. Tests use it to prove that *nothing* was asked.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

/// Everything is recorded once it is answered; a watch, which may never end, also when it starts.
pub(crate) const POLICY: &str = r"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
";

/// One request, as the API server recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// Unique per request.
    #[serde(rename = "auditID")]
    pub audit_id: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// Path and query, as sent.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// Who asked.
    pub user: AuditUser,
    /// The client's `User-Agent` header.
    #[serde(default)]
    pub user_agent: String,
    /// The object or collection that was asked for. Absent for paths such as `/readyz`.
    #[serde(default)]
    pub object_ref: Option<AuditObject>,
    /// The answer. Absent while a request is under way.
    #[serde(default)]
    pub response_status: Option<AuditStatus>,
}

/// Who sent a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AuditUser {
    /// User name, such as `system:serviceaccount:ns:name`.
    #[serde(default)]
    pub username: String,
}

/// What a request was about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditObject {
    /// API group; empty for the core group.
    pub api_group: String,
    /// Plural name.
    pub resource: String,
    /// Such as `status` or `token`; empty for the object itself.
    pub subresource: String,
    /// Empty for cluster-wide requests.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
}

/// How a request was answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AuditStatus {
    /// HTTP status.
    #[serde(default)]
    pub code: u16,
}

impl AuditEvent {
    /// Whether the request could change something.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

/// Reads the log: one event a request, in order of its first record. The last record of a request wins.
pub(crate) fn read(log: &Path) -> anyhow::Result<Vec<AuditEvent>> {
    let text =
        std::fs::read_to_string(log).with_context(|| format!("audit log {}", log.display()))?;
    parse(&text)
}

fn parse(text: &str) -> anyhow::Result<Vec<AuditEvent>> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut events: Vec<AuditEvent> = Vec::new();
    // The last line may be half written while we read.
    for line in text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
    {
        let event: AuditEvent =
            serde_json::from_str(line).with_context(|| format!("audit log line {line}"))?;
        if let Some(&place) = places.get(&event.audit_id) {
            events[place] = event;
        } else {
            places.insert(event.audit_id.clone(), events.len());
            events.push(event);
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WATCH: &str = r#"{"auditID":"w","stage":"ResponseStarted","verb":"watch","requestURI":"/api/v1/pods?watch=1","user":{"username":"u"},"userAgent":"carto","objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200}}"#;
    const PATCH: &str = r#"{"auditID":"p","stage":"ResponseComplete","verb":"patch","requestURI":"/api/v1/namespaces/n/pods/a","user":{"username":"u"},"objectRef":{"resource":"pods","namespace":"n","name":"a","subresource":"status"},"responseStatus":{"code":409}}"#;

    #[test]
    fn a_request_with_several_records_is_one_event_in_order_of_its_start() {
        let ended = WATCH
            .replace("ResponseStarted", "ResponseComplete")
            .replace("200", "504");
        let events = parse(&format!("{WATCH}\n{PATCH}\n{ended}\n")).unwrap();
        let seen: Vec<_> = events
            .iter()
            .map(|e| (e.verb.as_str(), e.response_status.as_ref().unwrap().code))
            .collect();
        assert_eq!(seen, [("watch", 504), ("patch", 409)]);
        assert!(!events[0].is_write() && events[1].is_write());
    }

    #[test]
    fn a_line_still_being_written_is_left_for_the_next_look() {
        let events = parse(&format!("{PATCH}\n{}", &WATCH[..40])).unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].object_ref.as_ref().unwrap().subresource, "status");
    }
}
