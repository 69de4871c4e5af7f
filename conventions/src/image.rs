//! References to images.
//!
//! ```text
//!  registry.example:5000 / team/app : 1.0 @ sha256:…
//!  └─ registry            └ repository  └ tag  └ digest
//! ```
//!
//! A reference is read as leniently as the Go controller reads it: what is left out is that of Docker Hub.

use std::fmt;
use std::str::FromStr;

/// The registry of images that name none.
pub const DOCKER_HUB: &str = "index.docker.io";
/// How people, and the node, call it.
const DOCKER_HUB_ALIAS: &str = "docker.io";
/// Where images of Docker Hub are that name no folder.
const OFFICIAL: &str = "library";
/// The tag of a reference without tag and digest.
pub const DEFAULT_TAG: &str = "latest";

/// A reference to an image.
///
/// ```
/// use conventions::image::{Digest, Reference};
///
/// let reference: Reference = "ubuntu:bionic".parse()?;
/// assert_eq!(reference.to_string(), "index.docker.io/library/ubuntu:bionic");
/// let digest: Digest = format!("sha256:{}", "0".repeat(64)).parse()?;
/// let resolved = reference.at(&digest).to_string();
/// assert_eq!(resolved, format!("index.docker.io/library/ubuntu:bionic@{digest}"));
/// // Whoever resolves it again gets the same.
/// assert_eq!(resolved.parse::<Reference>()?.to_string(), resolved);
/// # Ok::<(), conventions::image::ReferenceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// A text that is no reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not parse reference: {text}")]
pub struct ReferenceError {
    text: String,
}

/// `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(String);

impl Reference {
    /// Host of the registry, with its port if there is one.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Path in the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag: the one that is given, `latest` if there is no digest either.
    pub fn tag(&self) -> Option<&str> {
        let default = self.digest.is_none().then_some(DEFAULT_TAG);
        self.tag.as_deref().or(default)
    }

    /// The digest, if one is given.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// The reference with this digest. Its tag is kept, so that people see what the digest was made from.
    #[must_use]
    pub fn at(&self, digest: &Digest) -> Self {
        Self {
            tag: self.tag().map(str::to_owned),
            digest: Some(digest.clone()),
            ..self.clone()
        }
    }

    /// Registry and repository as a node looks them up among its credentials.
    ///
    /// ```
    /// let reference: conventions::image::Reference = "ubuntu".parse()?;
    /// assert_eq!(reference.credentials_name(), "docker.io/library/ubuntu");
    /// # Ok::<(), conventions::image::ReferenceError>(())
    /// ```
    pub fn credentials_name(&self) -> String {
        let registry = match self.registry.as_str() {
            DOCKER_HUB => DOCKER_HUB_ALIAS,
            other => other,
        };
        format!("{registry}/{}", self.repository)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = self.tag() {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        parse(text).ok_or_else(|| ReferenceError {
            text: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<Reference> {
    let (name, digest) = match text.split_once('@') {
        Some((name, digest)) => (name, Some(digest.parse().ok()?)),
        None => (text, None),
    };
    let (name, tag) = match name.rsplit_once(':') {
        // What has a slash behind it is the port of a registry.
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    };
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return None;
    }
    let (registry, repository) = match name.split_once('/') {
        Some((host, rest)) if host == "localhost" || host.contains(['.', ':']) => (host, rest),
        _ => (DOCKER_HUB, name),
    };
    if !is_registry(registry) || !is_repository(repository) {
        return None;
    }
    let registry = match registry {
        DOCKER_HUB_ALIAS => DOCKER_HUB,
        other => other,
    };
    let official = registry == DOCKER_HUB && !repository.contains('/');
    let repository = if official {
        format!("{OFFICIAL}/{repository}")
    } else {
        repository.to_owned()
    };
    Some(Reference {
        registry: registry.to_owned(),
        repository,
        tag: tag.map(str::to_owned),
        digest,
    })
}

fn is_tag(text: &str) -> bool {
    let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.');
    (1..=128).contains(&text.len()) && text.bytes().all(fits)
}

fn is_repository(text: &str) -> bool {
    let fits = |c: u8| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'-' | b'.' | b'/')
    };
    (2..=255).contains(&text.len()) && text.bytes().all(fits)
}

/// A name, or an address of the fourth or sixth version in brackets, and perhaps a port.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((address, port))) => {
            let fits = |c: u8| c.is_ascii_hexdigit() || matches!(c, b':' | b'.');
            if address.is_empty() || !address.bytes().all(fits) {
                return false;
            }
            ("address", port)
        }
        Some(None) => return false,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b'_');
    let is_port = match port.strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok() && port.bytes().all(|c| c.is_ascii_digit()),
        None => port.is_empty(),
    };
    is_port && !host.is_empty() && host.bytes().all(fits)
}

impl Digest {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Digest {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        let hex = text.strip_prefix("sha256:").unwrap_or_default();
        if hex.len() == 64 && hex.bytes().all(is_hex) {
            return Ok(Self(text.to_owned()));
        }
        Err(ReferenceError {
            text: text.to_owned(),
        })
    }
}

/// What is said of an image that cannot be resolved.
///
/// ```
/// use conventions::image::{Reference, unresolvable};
///
/// let error = "Not a reference".parse::<Reference>().unwrap_err();
/// assert_eq!(
///     unresolvable("Not a reference", &error),
///     "failed to resolve image \"Not a reference\": could not parse reference: Not a reference as digest could not be \
///      determined from tag provided",
/// );
/// ```
pub fn unresolvable(image: &str, cause: &dyn fmt::Display) -> String {
    format!(
        "failed to resolve image \"{image}\": {cause} as digest could not be determined from tag provided"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const D: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const E: &str = "sha256:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";

    #[test]
    fn images_are_rewritten_by_the_table() {
        for (given, name, resolved) in [
            (
                "ubuntu",
                "index.docker.io/library/ubuntu:latest",
                "index.docker.io/library/ubuntu:latest@D",
            ),
            (
                "ubuntu:bionic",
                "index.docker.io/library/ubuntu:bionic",
                "index.docker.io/library/ubuntu:bionic@D",
            ),
            (
                "host/hello",
                "index.docker.io/host/hello:latest",
                "index.docker.io/host/hello:latest@D",
            ),
            (
                "docker.io/ubuntu",
                "index.docker.io/library/ubuntu:latest",
                "index.docker.io/library/ubuntu:latest@D",
            ),
            (
                "docker.io/a/b",
                "index.docker.io/a/b:latest",
                "index.docker.io/a/b:latest@D",
            ),
            (
                "index.docker.io/ubuntu",
                "index.docker.io/library/ubuntu:latest",
                "index.docker.io/library/ubuntu:latest@D",
            ),
            (
                "localhost/hello",
                "localhost/hello:latest",
                "localhost/hello:latest@D",
            ),
            (
                "localhost:5000/hello:1",
                "localhost:5000/hello:1",
                "localhost:5000/hello:1@D",
            ),
            (
                "host.example/hello",
                "host.example/hello:latest",
                "host.example/hello:latest@D",
            ),
            (
                "host.example:443/a/b/c:t",
                "host.example:443/a/b/c:t",
                "host.example:443/a/b/c:t@D",
            ),
            (
                "HOST.example/hello",
                "HOST.example/hello:latest",
                "HOST.example/hello:latest@D",
            ),
            (
                "[::1]:5000/hello",
                "[::1]:5000/hello:latest",
                "[::1]:5000/hello:latest@D",
            ),
            (
                "[fe80::1]/hello",
                "[fe80::1]/hello:latest",
                "[fe80::1]/hello:latest@D",
            ),
            (
                "host.example/hello@D",
                "host.example/hello@D",
                "host.example/hello@D",
            ),
            (
                "host.example/hello:t@D",
                "host.example/hello:t@D",
                "host.example/hello:t@D",
            ),
            (
                "host.example:5000/hello@D",
                "host.example:5000/hello@D",
                "host.example:5000/hello@D",
            ),
            (
                "ubuntu@D",
                "index.docker.io/library/ubuntu@D",
                "index.docker.io/library/ubuntu@D",
            ),
            (
                "ubuntu:Up_1.2-x",
                "index.docker.io/library/ubuntu:Up_1.2-x",
                "index.docker.io/library/ubuntu:Up_1.2-x@D",
            ),
        ] {
            let reference: Reference = given.replace("@D", &format!("@{D}")).parse().unwrap();
            assert_eq!(
                reference.to_string(),
                name.replace("@D", &format!("@{D}")),
                "{given}"
            );
            let digest = D.parse().unwrap();
            assert_eq!(
                reference.at(&digest).to_string(),
                resolved.replace("@D", &format!("@{D}")),
                "{given}"
            );
        }
    }

    #[test]
    fn a_tag_outlives_every_resolution() {
        let mut reference: Reference = "ubuntu".parse().unwrap();
        for digest in [D, E, D] {
            let resolved = reference.at(&digest.parse().unwrap()).to_string();
            assert_eq!(
                resolved,
                format!("index.docker.io/library/ubuntu:latest@{digest}")
            );
            reference = resolved.parse().unwrap();
        }
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        let long = format!("host.example/{}", "x".repeat(256));
        let long_tag = format!("ubuntu:{}", "x".repeat(129));
        for given in [
            "",
            " ",
            "a",
            "ubuntu:",
            ":tag",
            "@",
            "Ubuntu",
            "ubuntu:a b",
            "ubu ntu",
            "ubuntu@",
            "ubuntu@sha256:00",
            "ubuntu@latest",
            "ubuntu@md5:0123456789abcdef0123456789abcdef",
            "host.example/",
            "host.example:x/hello",
            "host.example:/hello",
            "host.example:99999/hello",
            "host.example:+80/hello",
            "host.example/Hello",
            "a:b:c",
            "host .example/hello",
            "[::1/hello",
            "[]/hello",
            "[x]/hello",
            "user@host.example/hello",
            "https://host.example/hello",
            "host.example/hello?x",
            "h%C3%B6st.example/hello",
            "höst.example/hello",
            ".:80x/hello",
            "host.example:80:81/hello",
            &long,
            &long_tag,
        ] {
            let error = given.parse::<Reference>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("could not parse reference: {given}")
            );
        }
        let upper = D.replace('a', "A");
        for given in [
            format!("ubuntu@{upper}"),
            format!("ubuntu@{D}0"),
            format!("ubuntu@{D}@{D}"),
        ] {
            assert!(given.parse::<Reference>().is_err(), "{given}");
        }
    }

    #[test]
    fn parts_are_told_apart() {
        let reference: Reference = format!("host.example:5000/a/b:t@{D}").parse().unwrap();
        assert_eq!(
            (
                reference.registry(),
                reference.repository(),
                reference.tag(),
                reference.digest().map(Digest::as_str)
            ),
            ("host.example:5000", "a/b", Some("t"), Some(D))
        );
        let reference: Reference = format!("host.example/ab@{D}").parse().unwrap();
        assert_eq!(reference.tag(), None);
        assert_eq!(reference.credentials_name(), "host.example/ab");
        let reference: Reference = "docker.io/a/b".parse().unwrap();
        assert_eq!(reference.credentials_name(), "docker.io/a/b");
    }

    proptest! {
        #[test]
        fn a_reference_reads_back_as_itself(
            host in "|localhost/|[a-z]{1,4}\\.[a-z]{2}(:[1-9][0-9]{0,3})?/|docker\\.io/",
            path in "[a-z0-9]{2,5}(/[a-z0-9._-]{1,5}){0,2}",
            tag in proptest::option::of("[A-Za-z0-9_.-]{1,8}"),
            digested in any::<bool>(),
        ) {
            let tag = tag.map_or(String::new(), |tag| format!(":{tag}"));
            let digest = if digested { format!("@{D}") } else { String::new() };
            let given = format!("{host}{path}{tag}{digest}");
            let reference: Reference = given.parse().unwrap();
            let read: Reference = reference.to_string().parse().unwrap();
            prop_assert_eq!(read.to_string(), reference.to_string());
            let digest: Digest = E.parse().unwrap();
            prop_assert_eq!(read.at(&digest), reference.at(&digest));
        }
    }
}
