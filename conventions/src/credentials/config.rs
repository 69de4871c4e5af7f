//! The two forms in which Docker writes credentials.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Credential;

/// How the bytes are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    /// Type `kubernetes.io/dockerconfigjson`, or the file `config.json` of Docker.
    DockerConfigJson,
    /// Type `kubernetes.io/dockercfg`, or the older file `.dockercfg`.
    DockerCfg,
}

impl SecretKind {
    /// The kind of a Secret of this type, and the key that it has the credentials under. Other Secrets have none.
    ///
    /// ```
    /// use conventions::credentials::SecretKind;
    ///
    /// let (_, key) = SecretKind::of_type("kubernetes.io/dockerconfigjson").unwrap();
    /// assert_eq!(key, ".dockerconfigjson");
    /// assert!(SecretKind::of_type("Opaque").is_none());
    /// ```
    pub fn of_type(type_: &str) -> Option<(Self, &'static str)> {
        match type_ {
            "kubernetes.io/dockerconfigjson" => Some((Self::DockerConfigJson, ".dockerconfigjson")),
            "kubernetes.io/dockercfg" => Some((Self::DockerCfg, ".dockercfg")),
            _ => None,
        }
    }
}

/// Something that is left out, without any of what it holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryFault {
    /// The whole is no configuration.
    #[error("it is not a configuration of Docker")]
    Whole,
    /// An entry is none, or its `auth` is not base64 of `user:password`.
    #[error("the entry {entry:?} has no credentials that can be read")]
    Entry {
        /// What the entry is for.
        entry: String,
    },
    /// An entry is for something that is no address.
    #[error("the entry {entry:?} is for no address of a registry")]
    Address {
        /// What the entry is for.
        entry: String,
    },
}

impl EntryFault {
    pub(super) fn address(entry: &str) -> Self {
        Self::Address {
            entry: entry.to_owned(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    username: Option<String>,
    password: Option<String>,
    auth: Option<String>,
    identitytoken: Option<String>,
}

type Read = (Vec<(String, Credential)>, Vec<EntryFault>);

/// The entries in the order of what they are for, and what is wrong with others.
pub(super) fn read(kind: SecretKind, bytes: &[u8]) -> Read {
    let (mut read, mut faults) = (Vec::new(), Vec::new());
    let Some(entries) = entries(kind, bytes) else {
        return (read, vec![EntryFault::Whole]);
    };
    for (entry, value) in entries {
        match credential(value) {
            Some(credential) => read.push((entry, credential)),
            None => faults.push(EntryFault::Entry { entry }),
        }
    }
    (read, faults)
}

fn entries(kind: SecretKind, bytes: &[u8]) -> Option<Map<String, Value>> {
    let mut whole: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
    let entries = match kind {
        SecretKind::DockerCfg => return Some(whole),
        SecretKind::DockerConfigJson => whole.remove("auths"),
    };
    match entries {
        None | Some(Value::Null) => Some(Map::new()),
        Some(Value::Object(entries)) => Some(entries),
        Some(_) => None,
    }
}

fn credential(value: Value) -> Option<Credential> {
    let entry: Entry = serde_json::from_value(value).ok()?;
    let (username, password) = match entry.auth.as_deref() {
        None | Some("") => (
            entry.username.unwrap_or_default(),
            entry.password.unwrap_or_default(),
        ),
        Some(auth) => decoded(auth)?,
    };
    Some(Credential {
        username,
        password,
        identity_token: entry.identitytoken.filter(|token| !token.is_empty()),
    })
}

/// User and password of `auth`. As in Go, line breaks do not count, and padding is needed only if there is some.
fn decoded(auth: &str) -> Option<(String, String)> {
    let text: String = auth.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let config = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    let mode = if text.trim().ends_with('=') {
        DecodePaddingMode::RequireCanonical
    } else {
        DecodePaddingMode::RequireNone
    };
    let engine = GeneralPurpose::new(&STANDARD, config.with_decode_padding_mode(mode));
    let bytes = engine.decode(text).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (username, password) = text.split_once(':')?;
    Some((username.to_owned(), password.to_owned()))
}
