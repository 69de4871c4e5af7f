//! What the API server was asked, and by whom, from its audit log.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

use crate::tally::{Agent, Request, Tally, Topic};

/// Reads the log forward: each call sees what was written since the last.
#[derive(Debug)]
pub(crate) struct AuditLog {
    path: PathBuf,
    offset: u64,
}

impl AuditLog {
    /// Starts at the beginning of the log.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, offset: 0 }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The requests recorded since the last call.
    ///
    /// # Errors
    ///
    /// When the log cannot be read, or a line is no audit record.
    pub(crate) fn drain(&mut self) -> anyhow::Result<Tally> {
        let context = || format!("audit log {}", self.path.display());
        let mut file = File::open(&self.path).with_context(context)?;
        file.seek(SeekFrom::Start(self.offset))
            .with_context(context)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(context)?;
        // The last line may be half written while we read; it is read again the next time.
        let complete = text
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end + 1);
        let mut tally = Tally::default();
        for line in text[..complete].split(|&byte| byte == b'\n') {
            if let Some(request) = parse(line)? {
                tally.add(request);
            }
        }
        self.offset += u64::try_from(complete)?;
        Ok(tally)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    stage: String,
    verb: String,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: Option<Object>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Object {
    api_group: String,
    resource: String,
    subresource: String,
}

/// One line of the log: the request it stands for. A request with several records is counted once: a watch, which may not
/// end in this run, when it starts, anything else when it is answered. An empty line is nothing.
///
/// # Errors
///
/// When the line is no audit record.
pub(crate) fn parse(line: &[u8]) -> anyhow::Result<Option<Request>> {
    if line.is_empty() {
        return Ok(None);
    }
    let record: Record = serde_json::from_slice(line)
        .with_context(|| format!("audit record {}", String::from_utf8_lossy(line)))?;
    let counted = if record.verb == "watch" {
        "ResponseStarted"
    } else {
        "ResponseComplete"
    };
    Ok((record.stage == counted).then(|| Request {
        agent: Agent::of(&record.user_agent),
        topic: record.object_ref.as_ref().map_or(Topic::Discovery, topic),
        verb: record.verb,
    }))
}

fn topic(object: &Object) -> Topic {
    match (object.resource.as_str(), object.subresource.as_str()) {
        ("events", _) => Topic::Event,
        ("leases", _) => Topic::Lease,
        (resource, "") => Topic::Object(qualified(resource, &object.api_group)),
        (resource, sub) => {
            Topic::Object(format!("{}/{sub}", qualified(resource, &object.api_group)))
        }
    }
}

fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}.{group}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn line(stage: &str, verb: &str, agent: &str, object: &str) -> String {
        format!(
            r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"x","stage":"{stage}","requestURI":"/x","verb":"{verb}","user":{{"username":"u"}},"userAgent":"{agent}"{object}}}"#
        )
    }

    fn parsed(line: &str) -> Option<(Agent, String, Topic)> {
        parse(line.as_bytes())
            .unwrap()
            .map(|request| (request.agent, request.verb, request.topic))
    }

    #[test]
    fn a_request_is_attributed_to_its_sender_and_object() {
        let status = r#","objectRef":{"resource":"workloads","namespace":"n","name":"a","apiGroup":"carto.run","apiVersion":"v1alpha1","subresource":"status"}"#;
        let token = r#","objectRef":{"resource":"serviceaccounts","apiVersion":"v1","subresource":"token"}"#;
        let cases = [
            (
                line(
                    "ResponseComplete",
                    "patch",
                    "carto-supplychain/0.1.0",
                    status,
                ),
                (
                    Agent::Controller,
                    "patch",
                    Topic::Object("workloads.carto.run/status".into()),
                ),
            ),
            (
                line("ResponseComplete", "create", "bench-client", token),
                (
                    Agent::Client,
                    "create",
                    Topic::Object("serviceaccounts/token".into()),
                ),
            ),
            (
                line(
                    "ResponseComplete",
                    "create",
                    "carto-supplychain",
                    r#","objectRef":{"resource":"events","apiGroup":"events.k8s.io"}"#,
                ),
                (Agent::Controller, "create", Topic::Event),
            ),
            (
                line(
                    "ResponseComplete",
                    "update",
                    "carto-supplychain",
                    r#","objectRef":{"resource":"leases","apiGroup":"coordination.k8s.io"}"#,
                ),
                (Agent::Controller, "update", Topic::Lease),
            ),
            (
                line("ResponseComplete", "get", "kube-apiserver/v1.36", ""),
                (Agent::Other, "get", Topic::Discovery),
            ),
        ];
        for (text, (agent, verb, topic)) in cases {
            assert_eq!(parsed(&text), Some((agent, verb.to_owned(), topic)));
        }
    }

    #[test]
    fn a_watch_counts_when_it_starts_and_a_long_list_when_it_is_answered() {
        let counted = |stage, verb| parsed(&line(stage, verb, "carto-supplychain", "")).is_some();
        assert!(counted("ResponseStarted", "watch") && !counted("ResponseComplete", "watch"));
        assert!(!counted("ResponseStarted", "list") && counted("ResponseComplete", "list"));
        assert!(!counted("Panic", "list"));
    }

    #[test]
    fn what_is_no_audit_record_is_an_error_that_shows_it() {
        assert!(
            parse(b"{\"verb\":1}")
                .unwrap_err()
                .to_string()
                .contains("{\"verb\":1}")
        );
        assert_eq!(parse(b"").unwrap(), None);
    }

    #[test]
    fn the_log_is_read_forward_and_a_half_written_line_left_for_the_next_look() {
        let home = test_support::Scratch::new("bench-audit-").unwrap();
        let path = home.path().join("audit.log");
        let record = line("ResponseComplete", "get", "carto-supplychain", "");
        let mut file = File::create(&path).unwrap();
        write!(file, "{record}\n{}", &record[..20]).unwrap();
        let mut log = AuditLog::new(path);
        let seen = |log: &mut AuditLog| log.drain().unwrap().of(Agent::Controller).sum();
        assert_eq!(seen(&mut log), 1);
        assert_eq!(seen(&mut log), 0);
        write!(file, "{}\n{record}\n", &record[20..]).unwrap();
        assert_eq!(seen(&mut log), 2);
    }
}
