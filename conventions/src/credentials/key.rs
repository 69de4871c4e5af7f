//! What credentials are for: a host, which may have `*` in its parts, a port and the beginning of a path.

use std::fmt;

/// The address of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    authority: String,
    path: String,
}

/// The registry and repository of an image.
pub(super) struct Target<'n> {
    authority: &'n str,
    path: &'n str,
}

impl Key {
    /// Reads an address: with or without scheme; `/v1/` and `/v2/`, the roots of a registry's API, mean all of it.
    /// Nothing for a text that is no address.
    pub(super) fn parse(address: &str) -> Option<Self> {
        let schemeless = ["https://", "http://"]
            .iter()
            .find_map(|scheme| address.strip_prefix(scheme))
            .unwrap_or(address);
        let end = schemeless.find(['?', '#']).unwrap_or(schemeless.len());
        let (authority, path) = split(&schemeless[..end]);
        let authority = authority.rsplit('@').next().unwrap_or(authority);
        if address.contains(|c: char| c.is_ascii_control()) || !is_authority(authority) {
            return None;
        }
        let rooted = ["/v1", "/v2"]
            .iter()
            .filter_map(|version| path.strip_prefix(version))
            .find(|rest| rest.starts_with('/'));
        let path = match rooted.unwrap_or(path) {
            "/" => "",
            path => path,
        };
        Some(Self {
            authority: authority.to_owned(),
            path: path.to_owned(),
        })
    }

    /// Whether it is for this image: the same port, as many parts of the host, each matching, and a path that begins
    /// the image's.
    pub(super) fn matches(&self, target: &Target<'_>) -> bool {
        let (host, port) = host_and_port(&self.authority);
        let (target_host, target_port) = host_and_port(target.authority);
        let (parts, targets) = (host.split('.'), target_host.split('.'));
        port == target_port
            && target.path.starts_with(&self.path)
            && parts.clone().count() == targets.clone().count()
            && parts
                .zip(targets)
                .all(|(part, target)| matches(part, target))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.authority, self.path)
    }
}

impl<'n> Target<'n> {
    pub(super) fn parse(name: &'n str) -> Option<Self> {
        let (authority, path) = split(name);
        is_authority(authority).then_some(Self { authority, path })
    }
}

/// What is before the first slash, and from there on.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find('/').unwrap_or(text.len()))
}

/// Whether a client in Go could read it as the host of an address.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rfind(']') {
        Some(end) if text.starts_with('[') => text.split_at(end + 1),
        Some(_) => return false,
        None => text.split_at(text.rfind(':').unwrap_or(text.len())),
    };
    let is_port = |port: &str| port.bytes().all(|c| c.is_ascii_digit());
    let odd = [' ', '\\', '^', '`', '{', '|', '}', '%', '/', '@'];
    !host.contains(odd) && port.strip_prefix(':').map_or(port.is_empty(), is_port)
}

/// Host and port; what has several colons and no brackets is all host.
fn host_and_port(authority: &str) -> (&str, &str) {
    if let Some((host, port)) = authority.rsplit_once("]:") {
        return (host.trim_start_matches('['), port);
    }
    match authority.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, port),
        _ => (authority, ""),
    }
}

/// Whether a text has the form of a pattern, in which `*` is any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let mut pieces = rest.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return text.ends_with(piece);
        }
        let Some(at) = text.find(piece) else {
            return false;
        };
        text = &text[at + piece.len()..];
    }
    true
}
