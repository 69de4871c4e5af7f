//! Where the contents of a registry are asked for.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use conventions::image::Reference;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use reqwest::{Client, Url};

use crate::clients::{Clients, Stamp, is_loopback, read_bounded};
use crate::error::Cause;
use crate::fault::{clip, has_bad_certificate, text_of};
use crate::hosts::{Host, Hosts, folders};

/// Hosts of loopback whose scheme is remembered.
const LOOPBACKS: usize = 64;
/// The time to find out the scheme of loopback.
const PROBE: Duration = Duration::from_secs(5);
/// The most bytes of a file with mirrors.
const HOSTS_BYTES: u64 = 1 << 20;
const HOSTS_FILE: &str = "hosts.toml";

/// A registry's address, or that of a mirror.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// Ends with a slash; repositories follow.
    base: Url,
    /// Host and port, as they are shown and counted.
    pub(crate) host: String,
    pub(crate) client: Client,
    /// Whether it is this host.
    pub(crate) loopback: bool,
    /// Whether it stands in for another one.
    pub(crate) mirror: bool,
    /// Whether it knows what a tag means.
    pub(crate) resolves: bool,
    /// The registry it stands in for, which it is told.
    namespace: Option<String>,
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

    /// Whether an address is of this endpoint, so that what is sent to it may be sent there.
    pub(crate) fn is_origin_of(&self, url: &Url) -> bool {
        self.base.origin() == url.origin()
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
    folder: Option<PathBuf>,
    schemes: Cache<String, &'static str>,
    /// By file, what was read from it. Files are the operator's, so that they are few.
    files: Mutex<HashMap<PathBuf, Known>>,
    /// By the files that are trusted: clients that trust them, and what the files looked like.
    trusting: Mutex<HashMap<Vec<PathBuf>, Trusting>>,
}

/// What the files looked like, and the client that trusts them.
type Trusting = (Vec<Option<Stamp>>, Client);

struct Known {
    stamp: Stamp,
    hosts: Option<Arc<Hosts>>,
}

impl Endpoints {
    pub(crate) fn new(clients: Arc<Clients>, folder: Option<PathBuf>) -> Self {
        Self {
            clients,
            folder,
            schemes: Cache::new(LOOPBACKS),
            files: Mutex::default(),
            trusting: Mutex::default(),
        }
    }

    /// Where to ask for an image, the registry itself last.
    ///
    /// # Errors
    ///
    /// If the registry is this host and does not answer, or if the installation's files are broken.
    pub(crate) async fn of(&self, reference: &Reference) -> Result<Vec<Endpoint>, Cause> {
        let registry = reference.registry();
        let Some(hosts) = self.hosts(registry)? else {
            return Ok(vec![self.origin(registry).await?]);
        };
        let mut endpoints = Vec::new();
        for mirror in &hosts.mirrors {
            endpoints.push(self.named(mirror, registry, true)?);
        }
        endpoints.push(match &hosts.server {
            Some(server) => self.named(server, registry, false)?,
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
            if let Some(stamp) = Stamp::of(&file) {
                return self.read(&file, &folder, stamp).map(Some);
            }
        }
        Ok(None)
    }

    fn read(&self, file: &Path, folder: &Path, stamp: Stamp) -> Result<Arc<Hosts>, Cause> {
        let mut files = self.files.lock();
        let before = files.get(file);
        if let Some(known) = before
            && known.stamp == stamp
            && let Some(hosts) = &known.hosts
        {
            return Ok(hosts.clone());
        }
        let told = before.is_some_and(|known| known.stamp == stamp);
        let good = before.and_then(|known| known.hosts.clone());
        let bytes = read_bounded(file, HOSTS_BYTES).map_err(|error| error.to_string());
        let text = bytes.and_then(|it| String::from_utf8(it).map_err(|error| error.to_string()));
        let read = text
            .and_then(|text| Hosts::parse(&text, folder))
            .map(Arc::new);
        let fault = read
            .as_ref()
            .err()
            .map(|fault| format!("{}: {fault}", file.display()));
        let hosts = read.ok().or(good);
        files.insert(
            file.to_owned(),
            Known {
                stamp,
                hosts: hosts.clone(),
            },
        );
        match (hosts, fault) {
            (Some(hosts), fault) => {
                if let Some(fault) = fault.filter(|_| !told) {
                    tracing::warn!("{fault}; what it said before counts");
                }
                Ok(hosts)
            }
            (None, fault) => Err(Cause::Installation(fault.unwrap_or_default())),
        }
    }

    /// One that a file names. What is called the server is the registry itself, wherever it is.
    fn named(&self, host: &Host, registry: &str, other: bool) -> Result<Endpoint, Cause> {
        let name = host_of(&host.base);
        let mirror = other && name != registry;
        Ok(Endpoint {
            client: self.client(host)?,
            loopback: is_loopback(&host.base),
            mirror,
            resolves: host.resolves,
            namespace: mirror.then(|| registry.to_owned()),
            host: name,
            base: host.base.clone(),
        })
    }

    fn client(&self, host: &Host) -> Result<Client, Cause> {
        let told = |error: crate::SettingsError| Cause::Installation(error.to_string());
        if host.skip_verify {
            return self.clients.trusting_all().map_err(told);
        }
        if host.authorities.is_empty() {
            return Ok(self.clients.current().for_url(&host.base));
        }
        let mut stamps: Vec<Option<Stamp>> =
            host.authorities.iter().map(|it| Stamp::of(it)).collect();
        stamps.push(self.clients.stamp());
        let mut trusting = self.trusting.lock();
        if let Some((before, client)) = trusting.get(&host.authorities)
            && *before == stamps
        {
            return Ok(client.clone());
        }
        let client = self
            .clients
            .trusting(&host.authorities)
            .map_err(told)?
            .for_url(&host.base);
        trusting.insert(host.authorities.clone(), (stamps, client.clone()));
        Ok(client)
    }

    async fn origin(&self, registry: &str) -> Result<Endpoint, Cause> {
        let secure = address("https", registry)?;
        let loopback = is_loopback(&secure);
        let base = if loopback {
            address(self.scheme(registry).await?, registry)?
        } else {
            secure
        };
        Ok(Endpoint {
            client: self.clients.current().for_url(&base),
            host: registry.to_owned(),
            base,
            loopback,
            mirror: false,
            resolves: true,
            namespace: None,
        })
    }

    /// Registries of loopback have TLS or not; there is only one way to find out.
    async fn scheme(&self, registry: &str) -> Result<&'static str, Cause> {
        if let Some(scheme) = self.schemes.get(registry) {
            return Ok(scheme);
        }
        let mut fault = String::new();
        for scheme in ["https", "http"] {
            let url = address(scheme, registry)?;
            let client = self.clients.current().for_url(&url);
            match client.get(url).timeout(PROBE).send().await {
                Ok(_) => {
                    self.schemes.insert(registry.to_owned(), scheme);
                    return Ok(scheme);
                }
                // It has TLS, and is not believed: the request will say why.
                Err(error) if has_bad_certificate(&error) => return Ok(scheme),
                Err(error) => fault = text_of(error),
            }
        }
        Err(Cause::Unreachable {
            host: registry.to_owned(),
            what: "its version".to_owned(),
            fault,
        })
    }
}

fn address(scheme: &str, registry: &str) -> Result<Url, Cause> {
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
