//! Package URLs.

use std::str::FromStr;

/// A package URL, such as `pkg:maven/org.springframework.boot/spring-boot@2.7.1`: what a dependency
/// is called in every language.
///
/// ```
/// use convention_webhook_sdk::Purl;
///
/// let purl: Purl = "pkg:NPM/%40angular/core@12.3.1?arch=any#lib".parse()?;
/// assert_eq!((purl.kind(), purl.namespace(), purl.name()), ("npm", "@angular", "core"));
/// assert_eq!(purl.version(), Some("12.3.1"));
/// assert!("spring-boot".parse::<Purl>().is_err());
/// # Ok::<(), convention_webhook_sdk::PurlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Purl {
    kind: String,
    namespace: String,
    name: String,
    version: Option<String>,
    /// Qualifiers and path as they are written.
    rest: Option<String>,
}

/// A text that is no package URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no package URL: pkg:TYPE/NAMESPACE/NAME@VERSION, where namespace and version may be left out"
)]
pub struct PurlError(String);

impl Purl {
    /// What kind of package it is, such as `maven`; in lower case.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What groups packages, such as `org.springframework.boot`; empty if nothing does.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name of the package.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version, if there is one.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Whether the other is this one, in what this one says.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let same = |own: &Option<String>, its: &Option<String>| own.is_none() || own == its;
        (&self.kind, &self.namespace, &self.name) == (&other.kind, &other.namespace, &other.name)
            && same(&self.version, &other.version)
            && same(&self.rest, &other.rest)
    }
}

impl FromStr for Purl {
    type Err = PurlError;

    fn from_str(text: &str) -> Result<Self, PurlError> {
        let wrong = || PurlError(text.chars().take(200).collect());
        let path = text.strip_prefix("pkg:").ok_or_else(wrong)?;
        let (path, rest) = match path.find(['?', '#']) {
            Some(at) => (&path[..at], Some(path[at..].to_owned())),
            None => (path, None),
        };
        let (kind, path) = path
            .trim_start_matches('/')
            .split_once('/')
            .ok_or_else(wrong)?;
        // A namespace may begin with an `@` that nobody escaped, so only one behind the last slash
        // is a version's.
        let (namespace, last) = match path.trim_matches('/').rsplit_once('/') {
            Some((namespace, last)) => (namespace, last),
            None => ("", path.trim_matches('/')),
        };
        let (name, version) = match last.rsplit_once('@') {
            Some((name, version)) => (name, Some(unescape(version))),
            None => (last, None),
        };
        if kind.is_empty() || name.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            kind: kind.to_ascii_lowercase(),
            namespace: unescape(namespace),
            name: unescape(name),
            version,
            rest,
        })
    }
}

/// Percent-escapes as what they stand for. What is none stays.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let escaped = (first == b'%').then(|| behind.get(..2)).flatten();
        let byte = escaped
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
