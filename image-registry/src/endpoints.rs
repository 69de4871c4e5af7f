//! Where the contents of a registry are asked for.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conventions::image::{DOCKER_HUB, Reference};
use parking_lot::Mutex;
use reqwest::{Client, StatusCode, Url};

use crate::clients::{Clients, is_loopback};
use crate::error::Cause;
use crate::fault::clip;
use crate::host_clients::HostClients;
use crate::hosts::{DOCKER_HUB_ALIAS, Host, Hosts, folders};
use crate::schemes::Schemes;
use crate::watched::{Stamp, Watched};

/// The most bytes of a file with mirrors.
const HOSTS_BYTES: u64 = 1 << 20;
const HOSTS_FILE: &str = "hosts.toml";

/// A registry's address, or that of a mirror.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// Ends with a slash; repositories follow.
    base: Url,
    /// Host and port, as they are shown and counted.
    pub(crate) host: String,
    /// For its own host. It may be the fault of the installation that there is none.
    client: Result<Client, Cause>,
    /// Whether the client believes any certificate.
    believing: bool,
    /// Whether it stands in for another one.
    pub(crate) mirror: bool,
    /// Whether it knows what a tag means.
    pub(crate) resolves: bool,
    /// The registry it stands in for, which it is told.
    namespace: Option<String>,
    /// That have found out its scheme.
    schemes: Option<Arc<Schemes>>,
}

impl Endpoint {
    /// The address of something in a repository.
    pub(crate) fn url(&self, repository: &str, rest: &str) -> Option<Url> {
        let mut url = self.base.join(&format!("{repository}/{rest}")).ok()?;
        if let Some(namespace) = &self.namespace {
            url.query_pairs_mut().append_pair("ns", namespace);
        }
        Some(url)
    }

    /// Whether it is this host.
    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.base)
    }

    /// Whether an address is of this endpoint, so that what is sent to it may be sent there.
    pub(crate) fn is_origin_of(&self, url: &Url) -> bool {
        self.base.origin() == url.origin()
    }

    /// The client for an address of this endpoint, or one that it leads to. The authorities of its
    /// own are trusted on its own host, at whatever port, and nowhere else.
    ///
    /// # Errors
    ///
    /// If the endpoint's files cannot be used. The operator mends them.
    pub(crate) fn client(&self, url: &Url, clients: &Clients) -> Result<Client, Cause> {
        let own = if self.believing {
            self.is_origin_of(url)
        } else {
            self.base.host() == url.host()
        };
        if own {
            self.client.clone()
        } else {
            Ok(clients.current().for_url(url))
        }
    }

    /// Takes note of how it answered a request, or that it did not. A program with TLS answers 400
    /// where none is used.
    pub(crate) fn heard(&self, status: Option<StatusCode>) {
        let odd = status.is_none_or(|status| status == StatusCode::BAD_REQUEST);
        if let Some(schemes) = &self.schemes
            && odd
        {
            schemes.doubt(&self.host);
        }
    }
}

/// Host and port of an address; the port only where it is not the usual one.
pub(crate) fn host_of(url: &Url) -> String {
    // Registries lead to places, and choose their names.
    let host = clip(url.host_str().unwrap_or_default());
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

/// Finds endpoints.
pub(crate) struct Endpoints {
    clients: Arc<Clients>,
    of_hosts: HostClients,
    schemes: Arc<Schemes>,
    folder: Option<PathBuf>,
    /// By file, what was read from it. Files are the operator's, so that they are few.
    files: Mutex<HashMap<PathBuf, Watched<Arc<Hosts>>>>,
}

impl Endpoints {
    pub(crate) fn new(clients: Arc<Clients>, folder: Option<PathBuf>) -> Self {
        Self {
            of_hosts: HostClients::new(clients.clone()),
            schemes: Arc::new(Schemes::new(clients.clone())),
            clients,
            folder,
            files: Mutex::default(),
        }
    }

    /// Where to ask for an image, the registry itself last.
    ///
    /// # Errors
    ///
    /// If the registry is this host and does not answer, or if what is written about the registry
    /// is broken.
    pub(crate) async fn of(&self, reference: &Reference) -> Result<Vec<Endpoint>, Cause> {
        let registry = reference.registry();
        let Some(hosts) = self.hosts(registry)? else {
            return Ok(vec![self.origin(registry).await?]);
        };
        let mirrors = hosts.mirrors.iter();
        let mut endpoints: Vec<Endpoint> = mirrors
            .map(|mirror| self.named(mirror, registry, true))
            .collect();
        endpoints.push(match &hosts.server {
            Some(server) => self.named(server, registry, false),
            None => self.origin(registry).await?,
        });
        Ok(endpoints)
    }

    /// What is written about a registry. A file that was good and is broken counts as it was.
    fn hosts(&self, registry: &str) -> Result<Option<Arc<Hosts>>, Cause> {
        let Some(root) = &self.folder else {
            return Ok(None);
        };
        for folder in folders(root, registry) {
            let file = folder.join(HOSTS_FILE);
            // Whether one that cannot be seen is there is told when it is read.
            if !matches!(Stamp::of(&file), Ok(None)) {
                return self.read(&file, &folder).map(Some);
            }
        }
        Ok(None)
    }

    fn read(&self, file: &Path, folder: &Path) -> Result<Arc<Hosts>, Cause> {
        let mut files = self.files.lock();
        let watched = files
            .entry(file.to_owned())
            .or_insert_with(|| Watched::new(file.to_owned(), HOSTS_BYTES));
        watched.look(|bytes| {
            let text = std::str::from_utf8(bytes.unwrap_or_default());
            let hosts = Hosts::parse(text.map_err(|error| error.to_string())?, folder)?;
            if !hosts.unknown.is_empty() {
                let unknown = hosts.unknown.join(", ");
                tracing::warn!(
                    "{} says what does not count here: {unknown}",
                    file.display()
                );
            }
            Ok(Arc::new(hosts))
        });
        let good = watched.good().map(Arc::clone);
        good.map_err(|fault| Cause::Installation(fault.to_string()))
    }

    /// One that a file names. What is called the server is the registry itself, wherever it is.
    fn named(&self, host: &Host, registry: &str, other: bool) -> Endpoint {
        let name = host_of(&host.base);
        let mirror = other && name != registry;
        Endpoint {
            client: self.of_hosts.of(host),
            believing: host.skip_verify,
            mirror,
            resolves: host.resolves,
            namespace: mirror.then(|| told_as(registry)),
            host: name,
            base: host.base.clone(),
            schemes: None,
        }
    }

    async fn origin(&self, registry: &str) -> Result<Endpoint, Cause> {
        let secure = address("https", registry)?;
        let loopback = is_loopback(&secure);
        let base = if loopback {
            self.schemes.address(registry).await?
        } else {
            secure
        };
        Ok(Endpoint {
            client: Ok(self.clients.current().for_url(&base)),
            believing: false,
            host: registry.to_owned(),
            base,
            mirror: false,
            resolves: true,
            namespace: None,
            schemes: loopback.then(|| self.schemes.clone()),
        })
    }
}

/// What mirrors call a registry: they know Docker Hub by the name that people use.
fn told_as(registry: &str) -> String {
    match registry {
        DOCKER_HUB => DOCKER_HUB_ALIAS.to_owned(),
        other => other.to_owned(),
    }
}

/// The address of a registry's API.
///
/// # Errors
///
/// If a client would read the registry as another host, or as none.
pub(crate) fn address(scheme: &str, registry: &str) -> Result<Url, Cause> {
    let url = Url::parse(&format!("{scheme}://{registry}/v2/")).ok();
    // What is read as another host than it is written would be asked with the credentials of the
    // written one.
    let host = match registry.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => host,
        _ => registry,
    };
    let same = |url: &Url| {
        let read = url.host_str().unwrap_or_default();
        read.eq_ignore_ascii_case(host) || host.starts_with('[')
    };
    let url = url.filter(|url| same(url) && url.path() == "/v2/");
    url.ok_or_else(|| Cause::Image {
        what: format!("registry {registry}"),
        fault: "is no address".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_registry_is_asked_at_the_host_that_is_written(
            host in "[a-z0-9._-]{1,12}|[0-9x.]{1,8}|\\[[0-9a-f:.]{1,12}\\]",
            port in "(|:[0-9]{1,5})",
        ) {
            let Ok(reference) = format!("{host}{port}/app").parse::<Reference>() else {
                return Ok(());
            };
            let Ok(url) = address("https", reference.registry()) else {
                return Ok(());
            };
            prop_assert_eq!(url.path(), "/v2/");
            prop_assert!(url.username().is_empty() && url.password().is_none());
            if !host.starts_with('[') && reference.registry() != DOCKER_HUB {
                prop_assert_eq!(url.host_str(), Some(host.as_str()));
            }
        }
    }
}
