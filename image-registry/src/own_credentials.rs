//! Credentials of the installation: for images of everybody.

use std::path::PathBuf;
use std::sync::Arc;

use conventions::credentials::{EntryFault, Keyring, SecretKind};
use parking_lot::Mutex;

use crate::watched::Watched;

/// The most bytes of the file.
const BYTES: u64 = 1 << 20;

/// A `config.json` of Docker. Programs that it names are not run.
pub(crate) struct OwnCredentials {
    file: Option<Mutex<Watched<Arc<Keyring>>>>,
}

impl OwnCredentials {
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self {
            file: file.map(|file| Mutex::new(Watched::new(file, BYTES))),
        }
    }

    /// What the file says now. One that was good and cannot be read any more counts as it was; one
    /// that is not there says nothing.
    pub(crate) fn current(&self) -> Arc<Keyring> {
        let Some(file) = &self.file else {
            return Arc::default();
        };
        let mut file = file.lock();
        file.look(|bytes| bytes.map_or_else(|| Ok(Arc::default()), read));
        file.good().map(Arc::clone).unwrap_or_default()
    }
}

/// Entries that are broken harm nobody else.
fn read(bytes: &[u8]) -> Result<Arc<Keyring>, String> {
    let mut keyring = Keyring::default();
    for fault in keyring.add(SecretKind::DockerConfigJson, bytes) {
        if fault == EntryFault::Whole {
            return Err(fault.to_string());
        }
        tracing::warn!("in the installation's credentials {fault}");
    }
    Ok(Arc::new(keyring))
}
