//! Where the contents of a registry are asked for.

use std::sync::Arc;
use std::time::Duration;

use conventions::image::Reference;
use quick_cache::sync::Cache;
use reqwest::{Client, Url};

use crate::clients::{Clients, is_loopback};
use crate::error::Cause;
use crate::fault::{has_bad_certificate, text_of};

/// Hosts of loopback whose scheme is remembered.
const HOSTS: usize = 64;
/// The time to find out the scheme of loopback.
const PROBE: Duration = Duration::from_secs(5);

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
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Finds endpoints.
pub(crate) struct Endpoints {
    clients: Arc<Clients>,
    schemes: Cache<String, &'static str>,
}

impl Endpoints {
    pub(crate) fn new(clients: Arc<Clients>) -> Self {
        Self {
            clients,
            schemes: Cache::new(HOSTS),
        }
    }

    /// Where to ask for an image, the registry itself last.
    ///
    /// # Errors
    ///
    /// If the registry is this host and does not answer, or if the installation's files are broken.
    pub(crate) async fn of(&self, reference: &Reference) -> Result<Vec<Endpoint>, Cause> {
        Ok(vec![self.origin(reference.registry()).await?])
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
    // What is read as another host than it is written would be asked with the credentials of the written one.
    let url = url.filter(|url| url.host_str().is_some() && url.path() == "/v2/");
    url.ok_or_else(|| Cause::Image {
        what: format!("registry {registry}"),
        fault: "is no address".to_owned(),
    })
}
