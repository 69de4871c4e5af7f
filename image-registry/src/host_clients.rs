//! Clients that trust authorities of one host only, which `hosts.toml` names.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use reqwest::Client;

use crate::clients::{Authorities, CA_BYTES, Clients, Pair, authorities};
use crate::error::Cause;
use crate::hosts::Host;
use crate::settings::SettingsError;
use crate::watched::Watched;

/// Clients by the files that they trust. Files are the operator's, so that they are few.
pub(crate) struct HostClients {
    clients: Arc<Clients>,
    known: Mutex<HashMap<Vec<PathBuf>, Trusting>>,
}

/// What trusts some files beside what all clients trust.
struct Trusting {
    files: Vec<Watched<Authorities>>,
    /// With the version of the clients whose authorities it trusts as well.
    made: Option<(u64, Pair)>,
}

impl HostClients {
    pub(crate) fn new(clients: Arc<Clients>) -> Self {
        Self {
            clients,
            known: Mutex::default(),
        }
    }

    /// The client for a host.
    ///
    /// # Errors
    ///
    /// If one of the host's files has never been good. The operator mends it.
    pub(crate) fn of(&self, host: &Host) -> Result<Client, Cause> {
        let made = if host.skip_verify {
            self.clients.trusting_all()
        } else if host.authorities.is_empty() {
            Ok(self.clients.current().for_url(&host.base))
        } else {
            // Hosts of the network and of loopback may share their files, and no client.
            self.pair(&host.authorities)
                .map(|pair| pair.for_url(&host.base))
        };
        made.map_err(|fault| Cause::Installation(fault.to_string()))
    }

    fn pair(&self, files: &[PathBuf]) -> Result<Pair, SettingsError> {
        let mut known = self.known.lock();
        let trusting = known.entry(files.to_vec()).or_insert_with(|| Trusting {
            files: files.iter().cloned().map(watched).collect(),
            made: None,
        });
        trusting.pair(&self.clients)
    }
}

fn watched(file: PathBuf) -> Watched<Authorities> {
    Watched::new(file, CA_BYTES)
}

impl Trusting {
    fn pair(&mut self, clients: &Clients) -> Result<Pair, SettingsError> {
        for file in &mut self.files {
            if file.look(read) {
                self.made = None;
            }
        }
        let version = clients.version();
        if let Some((of, pair)) = &self.made
            && *of == version
        {
            return Ok(pair.clone());
        }
        let mut all = Vec::new();
        for file in &self.files {
            all.extend(file.good()?.iter().cloned());
        }
        let pair = clients.trusting(all.into_iter())?;
        self.made = Some((version, pair.clone()));
        Ok(pair)
    }
}

/// The authorities of a file that must be there.
fn read(pem: Option<&[u8]>) -> Result<Authorities, String> {
    authorities(pem.ok_or("there is none")?)
}
