//! Whether registries of loopback have TLS: there is only one way to find out.

use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::Cache;
use reqwest::Url;

use crate::clients::Clients;
use crate::endpoints::address;
use crate::error::Cause;
use crate::fault::{has_bad_certificate, text_of};

/// Hosts whose scheme is remembered.
const HOSTS: usize = 64;
/// The time to find it out.
const PROBE: Duration = Duration::from_secs(5);

/// Schemes by host and port, until they are doubted.
pub(crate) struct Schemes {
    clients: Arc<Clients>,
    known: Cache<String, Scheme>,
}

#[derive(Clone, Copy)]
struct Scheme {
    name: &'static str,
    /// It may be another one now.
    doubted: bool,
}

impl Schemes {
    pub(crate) fn new(clients: Arc<Clients>) -> Self {
        Self {
            clients,
            known: Cache::new(HOSTS),
        }
    }

    /// The address of a registry, by the scheme that it has; by the one that it had if it does not
    /// answer: what is known of its images is known all the same.
    ///
    /// # Errors
    ///
    /// If it does not answer, and never has.
    pub(crate) async fn address(&self, registry: &str) -> Result<Url, Cause> {
        let known = self.known.get(registry);
        if let Some(known) = known.filter(|it| !it.doubted) {
            return address(known.name, registry);
        }
        let found = self.find(registry).await;
        match known {
            Some(known) if found.is_err() => address(known.name, registry),
            _ => found,
        }
    }

    async fn find(&self, registry: &str) -> Result<Url, Cause> {
        let mut fault = String::new();
        for scheme in ["https", "http"] {
            let url = address(scheme, registry)?;
            let client = self.clients.current().for_url(&url);
            match client.get(url.clone()).timeout(PROBE).send().await {
                Ok(_) => {
                    let known = Scheme {
                        name: scheme,
                        doubted: false,
                    };
                    self.known.insert(registry.to_owned(), known);
                    return Ok(url);
                }
                // It has TLS, and is not believed: the request will say why.
                Err(error) if has_bad_certificate(&error) => return Ok(url),
                Err(error) => fault = text_of(error),
            }
        }
        Err(Cause::Unreachable {
            host: registry.to_owned(),
            what: "its version".to_owned(),
            fault,
        })
    }

    /// Another program may listen there now, with TLS or without.
    pub(crate) fn doubt(&self, registry: &str) {
        if let Some(known) = self.known.get(registry) {
            let known = Scheme {
                doubted: true,
                ..known
            };
            self.known.insert(registry.to_owned(), known);
        }
    }
}
