//! What the API server was asked, from its audit log. Tests use it to prove that *nothing* was asked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

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
    /// When it was recorded: `ResponseStarted` for a request that takes long, and `ResponseComplete`.
    #[serde(default)]
    pub stage: String,
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
    /// What authorizers, policies and webhooks noted.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
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

impl AuditObject {
    /// `<plural>[.<group>][/<subresource>]`.
    pub fn kind(&self) -> String {
        let mut kind = self.resource.clone();
        for (separator, part) in [(".", &self.api_group), ("/", &self.subresource)] {
            if !part.is_empty() {
                kind.push_str(separator);
                kind.push_str(part);
            }
        }
        kind
    }
}

impl AuditEvent {
    /// Whether the request could change something.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

/// Reads a log forward: each call sees what was recorded since the last.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    offset: u64,
}

impl AuditLog {
    /// Starts at the beginning of the log.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, offset: 0 }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The records since the last call. A request that takes long has two: one of its start and one of its end.
    ///
    /// # Errors
    ///
    /// When the log cannot be read, or a line is no record.
    pub fn drain(&mut self) -> anyhow::Result<Vec<AuditEvent>> {
        let context = || format!("audit log {}", self.path.display());
        let mut file = File::open(&self.path).with_context(context)?;
        file.seek(SeekFrom::Start(self.offset))
            .with_context(context)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(context)?;
        // The last line may be half written while we read; it is read again the next time.
        let complete = text.iter().rposition(|&byte| byte == b'\n');
        let complete = complete.map_or(0, |end| end + 1);
        self.offset += u64::try_from(complete)?;
        let lines = text[..complete].split(|&byte| byte == b'\n');
        let records = lines.filter(|line| !line.is_empty()).map(|line| {
            serde_json::from_slice(line)
                .with_context(|| format!("audit log line {}", String::from_utf8_lossy(line)))
        });
        records.collect()
    }
}

/// Reads the log: one event a request, in order of its first record. The last record of a request wins.
pub(crate) fn read(log: &Path) -> anyhow::Result<Vec<AuditEvent>> {
    Ok(by_request(AuditLog::new(log.to_owned()).drain()?))
}

fn by_request(records: Vec<AuditEvent>) -> Vec<AuditEvent> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut events: Vec<AuditEvent> = Vec::new();
    for event in records {
        if let Some(&place) = places.get(&event.audit_id) {
            events[place] = event;
        } else {
            places.insert(event.audit_id.clone(), events.len());
            events.push(event);
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    const WATCH: &str = r#"{"auditID":"w","stage":"ResponseStarted","verb":"watch","requestURI":"/api/v1/pods?watch=1","user":{"username":"u"},"userAgent":"carto","objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200}}"#;
    const PATCH: &str = r#"{"auditID":"p","stage":"ResponseComplete","verb":"patch","requestURI":"/api/v1/namespaces/n/pods/a","user":{"username":"u"},"objectRef":{"resource":"pods","namespace":"n","name":"a","subresource":"status"},"responseStatus":{"code":409}}"#;

    fn log(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn a_request_with_several_records_is_one_event_in_order_of_its_start() {
        let ended = WATCH
            .replace("ResponseStarted", "ResponseComplete")
            .replace("200", "504");
        let (_folder, path) = log(&format!("{WATCH}\n{PATCH}\n{ended}\n"));
        let events = read(&path).unwrap();
        let seen: Vec<_> = events
            .iter()
            .map(|e| (e.verb.as_str(), e.response_status.as_ref().unwrap().code))
            .collect();
        assert_eq!(seen, [("watch", 504), ("patch", 409)]);
        assert!(!events[0].is_write() && events[1].is_write());
    }

    #[test]
    fn the_log_is_read_forward_and_a_half_written_line_left_for_the_next_look() {
        let (_folder, path) = log(&format!("{PATCH}\n{}", &WATCH[..40]));
        let mut log = AuditLog::new(path.clone());
        let seen = log.drain().unwrap();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].object_ref.as_ref().unwrap().subresource, "status");
        assert_eq!(log.drain().unwrap(), []);
        std::fs::write(&path, format!("{PATCH}\n{WATCH}\n{PATCH}\n")).unwrap();
        assert_eq!(log.drain().unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_record_is_an_error_that_shows_it() {
        let (_folder, path) = log("{\"verb\":1}\n");
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("{\"verb\":1}"), "{error}");
    }
}
