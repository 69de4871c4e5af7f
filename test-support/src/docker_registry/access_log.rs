//! What the registry writes of each request: the combined log format of web servers.

/// A request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryRequest {
    /// `GET`, `HEAD` and so on.
    pub method: String,
    /// The path with its query: `/v2/team/app/manifests/v1`.
    pub path: String,
    /// The status of the answer.
    pub status: u16,
    /// What the client calls itself.
    pub(super) agent: String,
}

impl RegistryRequest {
    /// `host - user [time] "GET /v2/ HTTP/1.1" 200 2 "referrer" "agent"`; nothing for a line of another kind.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut quoted = line.split('"');
        let before = quoted.next()?;
        let mut request = quoted.next()?.split(' ');
        let mut answer = quoted.next()?.split_whitespace();
        if !before.ends_with("] ") {
            return None;
        }
        Some(Self {
            method: request.next()?.to_owned(),
            path: request.next()?.to_owned(),
            status: answer.next()?.parse().ok()?,
            agent: quoted.nth(2)?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_from_the_log_and_other_lines_are_not() {
        let line = r#"127.0.0.1 - - [22/Nov/2026:22:30:00 +0000] "GET /v2/a/tags/list?n=1 HTTP/1.1" 404 96 "" "crane/1 (x)""#;
        let request = RegistryRequest::parse(line).unwrap();
        assert_eq!(
            (request.method.as_str(), request.path.as_str()),
            ("GET", "/v2/a/tags/list?n=1")
        );
        assert_eq!(
            (request.status, request.agent.as_str()),
            (404, "crane/1 (x)")
        );
        let other = r#"time="2026-11-22T22:30:00Z" level=error msg="HTTP/1.1 is not spoken""#;
        assert_eq!(RegistryRequest::parse(other), None);
    }
}
