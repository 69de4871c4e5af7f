//! Credentials for registries, found as the kubelet finds them.
//!
//! Secrets are read one by one, in the order in which they are named; what is broken in one harms nothing else. For an
//! image all credentials are given that may be meant for it, the most specific first: whoever has several, as while a
//! password is changed, needs them all to be tried.

mod config;
mod key;

use std::collections::BTreeMap;
use std::fmt;

pub use config::{EntryFault, SecretKind};
use key::{Key, Target};

use crate::image::DOCKER_HUB;

/// The most credentials that are given for one image. Each that is wrong costs its registry requests,
/// which all others share.
pub const MOST_CREDENTIALS: usize = 32;

/// Who to be for a registry. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// Name of the user.
    pub username: String,
    /// The password.
    pub password: String,
    /// A token that stands for both, if there is one.
    pub identity_token: Option<String>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(<redacted>)")
    }
}

/// Credentials by what they are for.
///
/// ```
/// use conventions::credentials::{Keyring, SecretKind};
///
/// let config = br#"{"auths": {
///     "*.example": {"username": "all", "password": "1"},
///     "registry.example/team": {"auth": "dGVhbToy"}
/// }}"#;
/// let mut keyring = Keyring::default();
/// assert_eq!(keyring.add(SecretKind::DockerConfigJson, config), []);
/// let users = |name: &str| keyring.lookup(name).into_iter().map(|it| it.username.clone()).collect::<Vec<_>>();
/// assert_eq!(users("registry.example/team/app"), ["team", "all"]);
/// assert_eq!(users("registry.example/other"), ["all"]);
/// assert!(users("elsewhere.test/team").is_empty());
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Keyring {
    entries: BTreeMap<String, Entry>,
}

/// Credentials that are for the same, in the order in which they were added.
#[derive(Clone, PartialEq, Eq)]
struct Entry {
    key: Key,
    credentials: Vec<Credential>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.keys()).finish()
    }
}

impl Keyring {
    /// Adds what a Secret or a configuration file of Docker holds, after what was added before. What cannot be read is
    /// told, by its name, and left out.
    pub fn add(&mut self, kind: SecretKind, bytes: &[u8]) -> Vec<EntryFault> {
        let (entries, mut faults) = config::read(kind, bytes);
        for (address, credential) in entries {
            let Some(key) = Key::parse(&address) else {
                faults.push(EntryFault::address(&address));
                continue;
            };
            let entry = self.entries.entry(key.to_string());
            let entry = entry.or_insert_with(|| Entry::of(key));
            entry.credentials.push(credential);
        }
        faults
    }

    /// All credentials that may be meant for an image, the most specific first and each once, up to [`MOST_CREDENTIALS`];
    /// without any the registry is asked as nobody.
    ///
    /// The name is registry and repository, as [`crate::image::Reference::credentials_name`] gives them.
    pub fn lookup(&self, name: &str) -> Vec<&Credential> {
        let mut found = self.lookup_on_host(name);
        if found.is_empty() && is_docker_hub(name) {
            let entry = self.entries.get(DOCKER_HUB);
            found = each_once(entry.into_iter().flat_map(|entry| &entry.credentials));
        }
        found
    }

    /// The same for a name whose first part is certainly a host, such as `mirror/team/app`: nothing that is for Docker Hub
    /// is given only because that part has no dot.
    pub fn lookup_on_host(&self, name: &str) -> Vec<&Credential> {
        let Some(target) = Target::parse(name) else {
            return Vec::new();
        };
        // The greatest text first, so that a longer path comes before a shorter one.
        let entries = self.entries.values().rev();
        let matching = entries.filter(|entry| entry.key.matches(&target));
        each_once(matching.flat_map(|entry| &entry.credentials))
    }
}

impl Entry {
    fn of(key: Key) -> Self {
        Self {
            key,
            credentials: Vec::new(),
        }
    }
}

/// The first [`MOST_CREDENTIALS`].
fn each_once<'k>(credentials: impl Iterator<Item = &'k Credential>) -> Vec<&'k Credential> {
    let mut found: Vec<&Credential> = Vec::new();
    for credential in credentials {
        if found.len() == MOST_CREDENTIALS {
            break;
        }
        if !found.contains(&credential) {
            found.push(credential);
        }
    }
    found
}

/// Whether an image is of Docker Hub, whose credentials many have under the address of its first version.
fn is_docker_hub(name: &str) -> bool {
    match name.split_once('/') {
        Some(("docker.io" | DOCKER_HUB, _)) => true,
        Some((host, _)) => !host.is_empty() && !host.contains(['.', ':']),
        None => !name.is_empty(),
    }
}

#[cfg(test)]
mod tests;
