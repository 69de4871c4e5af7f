//! URLs of webhooks, read as Go reads them: more than what is a URL to a browser, and less than
//! what can be called.

use super::{invalid, required};
use serde_json::json;

const FORM: &str = "; desired format: https://host[/path]";

/// What is wrong with a URL.
pub(super) fn errors(url: &str, field: &str) -> Vec<String> {
    let parts = match Parts::of(url) {
        Ok(parts) => parts,
        Err(cause) => {
            let shown = json!(url);
            let detail = format!("url must be a valid URL: parse {shown}: {cause}{FORM}");
            return vec![required(field, &detail)];
        }
    };
    let mut errors = Vec::new();
    let mut refuse = |value: &str, detail: &str| {
        errors.push(invalid(field, &json!(value), detail));
    };
    if parts.scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        refuse(&parts.scheme, &detail);
    }
    if parts.host.is_empty() {
        refuse("", &format!("host must be provided{FORM}"));
    }
    if let Some(user) = parts.user {
        // Without the password, which may be in somebody's log next.
        let name = user.split(':').next().unwrap_or_default();
        refuse(name, "user information is not permitted in the URL");
    }
    if !parts.fragment.is_empty() {
        refuse(parts.fragment, "fragments are not permitted in the URL");
    }
    if !parts.query.is_empty() {
        refuse(parts.query, "query parameters are not permitted in the URL");
    }
    errors
}

struct Parts<'u> {
    scheme: String,
    user: Option<&'u str>,
    host: &'u str,
    query: &'u str,
    fragment: &'u str,
}

impl<'u> Parts<'u> {
    fn of(url: &'u str) -> Result<Self, String> {
        if url.chars().any(|c| c.is_ascii_control()) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
        let (scheme, rest) = scheme(rest)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        if !rest.starts_with('/')
            && scheme.is_empty()
            && path.split('/').next().is_some_and(|it| it.contains(':'))
        {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
        escapes(path)?;
        escapes(fragment)?;
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        check_host(host)?;
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            user,
            host,
            query,
            fragment,
        })
    }
}

/// What is before the first colon, if that is a scheme.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    let Some((scheme, rest)) = text.split_once(':') else {
        return Ok(("", text));
    };
    if scheme.is_empty() {
        return Err("missing protocol scheme".to_owned());
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if !scheme.chars().all(fits) {
        return Ok(("", text));
    }
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err("first path segment in URL cannot contain colon".to_owned());
    }
    Ok((scheme, rest))
}

fn check_host(host: &str) -> Result<(), String> {
    let port = match host.strip_prefix('[') {
        Some(address) => {
            let (_, port) = address
                .split_once(']')
                .ok_or_else(|| "missing ']' in host".to_owned())?;
            port
        }
        None => host.find(':').map_or("", |at| &host[at..]),
    };
    let is_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|port| port.chars().all(|c| c.is_ascii_digit()));
    if !is_port {
        return Err(format!("invalid port {} after host", json!(port)));
    }
    let wrong = |c: &char| {
        matches!(
            c,
            ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}'
        )
    };
    if let Some(c) = host.chars().find(wrong) {
        return Err(format!("invalid character {} in host name", json!(c)));
    }
    escapes(host)
}

/// A percent sign has two hexadecimal digits behind it.
fn escapes(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('%') {
        let escape: String = text[at..].chars().take(3).collect();
        let digits = escape.chars().skip(1).filter(char::is_ascii_hexdigit);
        if digits.count() != 2 {
            return Err(format!("invalid URL escape {}", json!(escape)));
        }
    }
    Ok(())
}
